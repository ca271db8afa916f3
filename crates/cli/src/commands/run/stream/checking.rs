//! The check of an agent's work between its turns.

use std::{pin::pin, time::Instant};

use ostler_client::{SendMessage, Watch};
use ostler_domain::{Reason, session::Status, text::one_line};

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
#[derive(Default)]
struct Tried {
    /// What the agent is to be told, if it is to try again.
    told: Option<String>,
    /// How the check ended, in a line.
    shown: Option<Line>,
    /// The session ended before it, or is about to.
    then: Option<Then>,
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
        if !self.story.turn_failed() {
            let Tried { told, shown, then } = self.check_once(watch, signals).await?;
            let is_told = match told.filter(|_| then.is_none()) {
                Some(text) => self.tell(text).await?,
                None => false,
            };
            // What it said is not the answer: it goes on, and said it before it was checked.
            let earlier = if is_told { self.story.passed_over() } else { None };
            earlier.iter().for_each(|text| self.show(&Told::said(text)));
            shown.iter().for_each(|line| self.app.ui.remark(line));
            if is_told {
                self.story.go_on();
                return Ok(Then::GoOn);
            }
            if let Some(then) = then {
                return Ok(then);
            }
        }
        self.is_checked = true;
        if !keep && !self.is_out_of_time && self.is_live().await? {
            self.client.end_session(&self.session.id.to_string()).await?;
        }
        Ok(Then::GoOn)
    }

    /// Tells the agent what its check has said. Says whether it goes on with that: one that has ended, or is about to, is
    /// not woken for it.
    async fn tell(&mut self, text: String) -> Result<bool, Failure> {
        // Whoever told it now would wake it when its time was over: then it ends by itself.
        let left = self.checks.as_ref().and_then(|checks| checks.wanted.time_left());
        self.is_out_of_time |= left.is_some_and(|left| left.is_zero());
        if self.is_out_of_time || !self.is_live().await? {
            return Ok(false);
        }
        let who = self.session.id.to_string();
        let sent = self.client.send_message(SendMessage { who, text, ..SendMessage::default() }).await;
        match sent.map_err(Failure::from) {
            Ok(_) => Ok(true),
            // Its budget was used up by what it answered, or somebody ended it: the answer stands.
            Err(failure) if matches!(failure.reason(), Some(Reason::OverBudget | Reason::WrongState)) => {
                Ok(false)
            }
            Err(failure) => Err(failure),
        }
    }

    async fn is_live(&self) -> Result<bool, Failure> {
        let session = self.client.session(&self.session.id.to_string()).await?;
        Ok(session.outcome.is_none() && session.status != Status::Stopping)
    }

    /// Runs the check once, until it ends, the session does, the time is over or somebody wants no more of it.
    async fn check_once(&mut self, watch: &mut Watch, signals: &mut Signals) -> Result<Tried, Failure> {
        let Some(checks) = &self.checks else { return Ok(Tried::default()) };
        let (ui, session, began) = (&self.app.ui, self.session.clone(), Instant::now());
        let (command, limit) = (checks.wanted.command.clone(), checks.wanted.time_left());
        let shown = Line::of("  check   ").plain(one_line(&command, 60));
        ui.show_meanwhile(shown.clone());
        let mut running = pin!(check::run(self.app, self.client, &session, &command, limit));
        let (checked, then) = loop {
            let then = tokio::select! {
                checked = &mut running => break (checked?, None),
                item = watch.next() => self.watched(some(item)?)?,
                asked = signals.next() => {
                    let then = Some(self.end(asked).await?);
                    return Ok(Tried { then, ..Tried::default() });
                }
            };
            // Whoever ended the session ended the run: nobody waits for what its check would have said.
            if self.story.has_ended() {
                break (Checked::cut_off(began.elapsed()), Some(then));
            }
        };
        let (code, took, passed) = (checked.exit, checked.took, checked.passed());
        self.is_out_of_time = code.is_none() && then.is_none() && limit.is_some_and(|limit| took >= limit);
        let told = self.checks.as_mut().and_then(|checks| checks.take(checked));
        let (tone, sign) = if passed { (Tone::Good, "✓") } else { (Tone::Bad, "✗") };
        let code = code.map_or_else(|| "not ended".to_owned(), |code| code.to_string());
        let line = shown.plain("   ").with(tone, format!("{sign} {code}"));
        let shown = Some(line.faint(format!("   {}", words::took(took))));
        Ok(Tried { told, shown, then })
    }
}
