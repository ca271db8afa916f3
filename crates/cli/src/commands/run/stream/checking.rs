//! The check of an agent's work between its turns.

use ostler_client::SendMessage;
use ostler_domain::text::one_line;

use super::{super::check, Stream};
use crate::{
    failure::Failure,
    output::{Line, Tone},
    screen::activity::Told,
    signals::Signals,
    words,
};

impl Stream<'_> {
    pub(super) fn has_no_check_ahead(&self) -> bool {
        self.checks.is_none() || self.is_checked
    }

    /// Checks the work, and has the agent go on where it is not good and may be told so.
    pub(super) async fn check(&mut self, keep: bool, signals: &mut Signals) -> Result<(), Failure> {
        let id = self.session.id.to_string();
        let told = if self.story.turn_failed() { None } else { self.check_once(signals).await? };
        if self.asked.is_some() {
            return Ok(());
        }
        // A session that has ended meanwhile is not woken for it.
        let is_live = self.client.session(&id).await?.outcome.is_none();
        if let Some(text) = told.filter(|_| is_live) {
            self.story.go_on();
            self.client.send_message(SendMessage { who: id, text, ..SendMessage::default() }).await?;
            return Ok(());
        }
        self.is_checked = true;
        if !keep && is_live {
            self.client.end_session(&id).await?;
        }
        Ok(())
    }

    /// Runs the check once. Says what the agent is to be told, if it is to try again.
    async fn check_once(&mut self, signals: &mut Signals) -> Result<Option<String>, Failure> {
        let Some(checks) = &mut self.checks else { return Ok(None) };
        let ui = &self.app.ui;
        let (command, limit) = (checks.wanted.command.clone(), checks.wanted.limit);
        let shown = Line::of("  check   ").plain(one_line(&command, 60));
        ui.show_meanwhile(shown.clone());
        let checked = tokio::select! {
            checked = check::run(self.app, self.client, &self.session, &command, limit) => checked?,
            asked = signals.next() => {
                self.end(asked).await?;
                return Ok(None);
            }
        };
        let (code, took, passed) = (checked.exit, checked.took, checked.passed());
        let told = checks.take(checked);
        // What it said is not the answer: it goes on, and said it before it was checked.
        let earlier = told.as_ref().and_then(|_| self.story.passed_over());
        earlier.iter().for_each(|text| self.show(&Told::said(text)));
        let (tone, sign) = if passed { (Tone::Good, "✓") } else { (Tone::Bad, "✗") };
        let code = code.map_or_else(|| "too slow".to_owned(), |code| code.to_string());
        let line = shown.plain("   ").with(tone, format!("{sign} {code}"));
        ui.remark(&line.faint(format!("   {}", words::took(took))));
        Ok(told)
    }
}
