//! The check of an agent's work between its turns.

use std::{pin::pin, time::Instant};

use ostler_client::{SendMessage, Watch};
use ostler_domain::text::one_line;

use super::{
    super::check::{self, Checked},
    Stream, Then, some,
};
use crate::{
    failure::Failure,
    output::{Line, Tone},
    screen::activity::Told,
    signals::Signals,
    words,
};

/// What came of running a check once.
enum Tried {
    /// It was run to its end. What the agent is to be told, if it is to try again.
    Checked(Option<String>),
    /// The session ended before it, or is about to.
    Interrupted(Then),
}

impl Stream<'_> {
    pub(super) fn has_no_check_ahead(&self) -> bool {
        self.checks.is_none() || self.is_checked
    }

    /// Checks the work, and has the agent go on where it is not good and may be told so.
    pub(super) async fn check(
        &mut self,
        keep: bool,
        watch: &mut Watch,
        signals: &mut Signals,
    ) -> Result<Then, Failure> {
        let id = self.session.id.to_string();
        let told = match self.story.turn_failed() {
            true => None,
            false => match self.check_once(watch, signals).await? {
                Tried::Interrupted(then) => return Ok(then),
                Tried::Checked(told) => told,
            },
        };
        // Whoever told it now would wake it when its time was over.
        let left = self.checks.as_ref().and_then(|checks| checks.wanted.time_left());
        self.is_out_of_time |= told.is_some() && left.is_some_and(|left| left.is_zero());
        // A session that has ended meanwhile is not woken for it, and one that has no time left ends by itself.
        let is_live = !self.is_out_of_time && self.client.session(&id).await?.outcome.is_none();
        if let Some(text) = told.filter(|_| is_live) {
            self.story.go_on();
            self.client.send_message(SendMessage { who: id, text, ..SendMessage::default() }).await?;
            return Ok(Then::GoOn);
        }
        self.is_checked = true;
        if !keep && is_live {
            self.client.end_session(&id).await?;
        }
        Ok(Then::GoOn)
    }

    /// Runs the check once, until it ends, the session does, the time is over or somebody wants no more of it.
    async fn check_once(&mut self, watch: &mut Watch, signals: &mut Signals) -> Result<Tried, Failure> {
        let Some(checks) = &self.checks else { return Ok(Tried::Checked(None)) };
        let (ui, session, began) = (&self.app.ui, self.session.clone(), Instant::now());
        let (command, limit) = (checks.wanted.command.clone(), checks.wanted.time_left());
        let shown = Line::of("  check   ").plain(one_line(&command, 60));
        ui.show_meanwhile(shown.clone());
        let mut running = pin!(check::run(self.app, self.client, &session, &command, limit));
        let (checked, then) = loop {
            let then = tokio::select! {
                checked = &mut running => break (checked?, None),
                item = watch.next() => self.watched(some(item)?)?,
                asked = signals.next() => return Ok(Tried::Interrupted(self.end(asked).await?)),
            };
            // Whoever ended the session ended the run: nobody waits for what its check would have said.
            if self.story.has_ended() {
                break (Checked::cut_off(began.elapsed()), Some(then));
            }
        };
        let (code, took, passed) = (checked.exit, checked.took, checked.passed());
        self.is_out_of_time = code.is_none() && then.is_none() && limit.is_some_and(|limit| took >= limit);
        let told = self.checks.as_mut().and_then(|checks| checks.take(checked));
        // What it said is not the answer: it goes on, and said it before it was checked.
        let earlier = told.as_ref().filter(|_| then.is_none()).and_then(|_| self.story.passed_over());
        earlier.iter().for_each(|text| self.show(&Told::said(text)));
        let (tone, sign) = if passed { (Tone::Good, "✓") } else { (Tone::Bad, "✗") };
        let code = code.map_or_else(|| "not ended".to_owned(), |code| code.to_string());
        let line = shown.plain("   ").with(tone, format!("{sign} {code}"));
        ui.remark(&line.faint(format!("   {}", words::took(took))));
        Ok(then.map_or(Tried::Checked(told), Tried::Interrupted))
    }
}
