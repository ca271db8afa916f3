//! A session that a budget holds in the middle of a run: whoever is there is asked, everybody else is told what helps.

use ostler_client::ResumeSession;
use ostler_domain::{budget::Amount, event::Held};

use super::{Stream, Then};
use crate::{
    failure::Failure,
    output::Line,
    screen::{activity::Told, hold},
    signals::Asked,
};

/// `[r]aise to 4usd  [s]top  [d]etach >`
pub(super) fn label(larger: &Amount) -> String {
    format!("[r]aise to {larger}  [s]top  [d]etach >")
}

impl Stream<'_> {
    /// Whoever is asked has seen what was paid for.
    pub(super) fn held_by(&mut self, held: &Held) -> Then {
        match hold::at_a_budget_now(&self.session.id, held) {
            Some(_) if self.app.ui.is_json() => Then::GoOn,
            Some(_) if held.settles => {
                self.settles = true;
                Then::GoOn
            }
            Some(_) => Then::Held,
            None => Then::GoOn,
        }
    }

    /// It stands still now.
    pub(super) fn has_settled(&mut self) -> Then {
        self.settles = false;
        self.story.passed_over().iter().for_each(|text| self.show(&Told::said(text)));
        Then::Held
    }

    /// Asks for more where it is the session's own budget, else says what would allow more.
    pub(super) async fn held(&mut self) -> Result<(), Failure> {
        let session = self.client.session(&self.session.id.to_string()).await?;
        let ui = &self.app.ui;
        let Some(told) = hold::at_a_budget(&session) else { return Ok(()) };
        let may_be_asked = hold::is_own(&session) && ui.has_person();
        self.larger = hold::larger_budget(&session).filter(|_| may_be_asked);
        if self.larger.is_none() {
            ui.remark(&Line::of("          ").append(told));
        }
        self.await_answer();
        Ok(())
    }

    /// It goes on, or is about to end: nothing is to be raised any more.
    pub(super) fn released(&mut self) -> Then {
        self.settles = false;
        if self.larger.take().is_some() {
            self.await_answer();
        }
        Then::GoOn
    }

    /// What a person says to that.
    pub(super) async fn answered_hold(&mut self, line: &str, larger: Amount) -> Result<Then, Failure> {
        match line.trim() {
            "r" | "raise" => {
                let raised = ResumeSession {
                    who: self.session.id.to_string(),
                    max_tokens: larger.tokens,
                    max_dollars: larger.dollars,
                    tape_bytes: None,
                };
                match self.client.resume_session(raised).await.map_err(Failure::from) {
                    Ok(session) => self.session = session,
                    Err(Failure::Refused(refusal)) => {
                        self.app.ui.say_refusal(&refusal);
                        self.await_answer();
                    }
                    Err(failure) => return Err(failure),
                }
                Ok(Then::GoOn)
            }
            "s" | "stop" => self.end(Asked::Interrupt).await,
            "d" | "detach" => Ok(Then::Detach),
            _ => {
                self.await_answer();
                Ok(Then::GoOn)
            }
        }
    }
}
