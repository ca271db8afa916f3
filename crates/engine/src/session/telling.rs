//! What the actor tells its keeper: inputs, and the verbs of the control socket.

use std::time::Duration;

use ostler_domain::{
    call::{CallLine, Reply},
    event::By,
    gateway::Allowance,
    session::{self, StopRule},
};
use ostler_tape::{
    ToKeeper,
    frame::{Rung, RungAction},
};
use tokio::time::Instant;

use super::actor::Actor;
use super::keeping::{FORCE_AFTER, FORCE_AFTER_GONE};
use crate::keeper;

/// An end in an orderly way, of which the keeper has not heard.
pub(super) struct EndAsked {
    rule: StopRule,
    by: By,
    since: Instant,
    /// When the keeper hears of it at the latest.
    pub(super) until: Instant,
}

impl Actor {
    /// Sends what the keeper has not had.
    pub(super) async fn send_outbox(&mut self) {
        let Some(link) = &mut self.keeping.link else { return };
        for row in &self.outbox {
            if row.input_no <= self.keeping.sent_input_no {
                continue;
            }
            let frame = ToKeeper::Input { input_no: row.input_no, tag: row.tag.clone() };
            if link.send(&frame, &row.bytes).await.is_err() {
                self.lose_link();
                self.keeping.retry_later();
                return;
            }
            self.keeping.sent_input_no = row.input_no;
        }
    }

    pub(super) async fn freeze(&mut self, on: bool) {
        self.tell_keeper(ToKeeper::Freeze { on }).await;
    }

    /// Ends the agent; in an orderly way once it has done what it was told before.
    pub(super) async fn stop(&mut self, rule: StopRule, by: &By) {
        let since = Instant::now();
        match rule.ladder() {
            session::Ladder::AtOnce => {
                self.ending = None;
                self.descend(rule, by).await;
            }
            session::Ladder::Orderly if self.ending.is_none() => {
                self.ending = Some(EndAsked { rule, by: by.clone(), since, until: since });
                self.look_whether_done().await;
            }
            session::Ladder::Orderly => {}
        }
    }

    /// Looks whether whoever is to end may be ended now.
    pub(super) async fn look_whether_done(&mut self) {
        let Some(ending) = &mut self.ending else { return };
        ending.until = ending.since + self.intake.dialogue().ends_within();
        if ending.until > Instant::now() {
            return;
        }
        if let Some(EndAsked { rule, by, .. }) = self.ending.take() {
            self.descend(rule, &by).await;
        }
    }

    async fn descend(&mut self, rule: StopRule, by: &By) {
        let ladder = match rule.ladder() {
            session::Ladder::Orderly => self.provider.stop_ladder(),
            session::Ladder::AtOnce => vec![Rung { action: RungAction::Kill, wait_ms: 0 }],
        };
        let patience: u64 = ladder.iter().map(|rung| rung.wait_ms).sum();
        let is_gone = self.keeping.state.as_ref().is_some_and(|state| state.gone);
        let patience = Duration::from_millis(patience);
        let force_after = if is_gone { FORCE_AFTER_GONE } else { patience + FORCE_AFTER };
        self.keeping.force_at = Some(Instant::now() + force_after);
        self.tell_keeper(ToKeeper::Stop { by: by.0.clone(), rule: word_of(rule), ladder }).await;
    }

    /// The keeper had its time and its agent still lives: it hangs or is stopped. Killed, it takes the tree along.
    pub(super) async fn force(&mut self) {
        self.keeping.force_at = None;
        if self.state.is_ended() || self.keeping.starting {
            return;
        }
        tracing::warn!(session = %self.id, "the keeper does not end its agent; it is killed");
        if let Err(error) = keeper::kill(&self.dir) {
            tracing::warn!(session = %self.id, %error, "the keeper cannot be killed");
        }
        self.lose_link();
        self.keeping.retry_later();
    }

    pub(super) async fn raise_tape_limit(&mut self, bytes: u64) {
        self.tell_keeper(ToKeeper::Limits { tape_bytes: Some(bytes), allowance: None }).await;
    }

    /// Passes an answer to whoever called on the session socket. Nobody may be waiting for it any more.
    pub(super) async fn answer(&mut self, call: u64, reply: Reply) {
        let Ok(line) = serde_json::to_vec(&CallLine { call, reply }) else { return };
        self.tell_keeper_with(ToKeeper::Answer { call }, &line).await;
    }

    pub(super) async fn allow(&mut self, allowance: Allowance) {
        self.tell_keeper(ToKeeper::Limits { tape_bytes: None, allowance: Some(allowance) }).await;
    }

    /// Says something that is said again at the next connection, if it gets lost with this one.
    pub(super) async fn tell_keeper(&mut self, verb: ToKeeper) {
        self.tell_keeper_with(verb, b"").await;
    }

    async fn tell_keeper_with(&mut self, verb: ToKeeper, body: &[u8]) {
        let Some(link) = &mut self.keeping.link else { return };
        if link.send(&verb, body).await.is_err() {
            self.lose_link();
            self.keeping.retry_later();
        }
    }

    /// Says goodbye: the keeper is not to start a daemon.
    pub(super) async fn leave(&mut self) {
        // Nobody stays to see whether it has done what it was told.
        if let Some(EndAsked { rule, by, .. }) = self.ending.take().filter(|_| !self.state.is_ended()) {
            self.descend(rule, &by).await;
        }
        self.tell_keeper(ToKeeper::Bye {}).await;
        self.lose_link();
    }
}

/// A rule's word in frames and exit records.
fn word_of(rule: StopRule) -> String {
    serde_json::to_value(rule).ok().and_then(|rule| rule.as_str().map(str::to_owned)).unwrap_or_default()
}
