//! The emergency stop: every agent killed or frozen, and nothing started until it is released.

use std::sync::Arc;

use ostler_domain::{
    Event, Reason, Refusal,
    event::{HaltReleased, Halted},
    session::Request,
};
use ostler_store::{Commit, Halt, Urgency};
use tokio::task::JoinSet;

use crate::{Change, Engine, restart, session::Handle};

impl Engine {
    /// The halt in force, if there is one.
    pub fn halted(&self) -> Option<Halt> {
        self.shared.halt.borrow().clone()
    }

    /// Kills or freezes every agent. The halt is durable first, so that it holds whatever happens next.
    /// Returns how many sessions it reached.
    pub async fn halt(&self, freeze: bool, why: &str, change: Change) -> Result<(Halt, u64), Refusal> {
        let fingerprint = format!("halt {freeze} {why}");
        if change.done_before(&self.shared.store, &fingerprint).await?.is_some()
            && let Some(halt) = self.halted()
        {
            return Ok((halt, 0));
        }
        let now = self.shared.clock.now().wall;
        let halted = Halted { freeze, by: change.by.clone(), why: why.to_owned() };
        let commit = Commit {
            urgency: Urgency::Control,
            node_events: vec![(now, Event::Halted(halted))],
            session: None,
            request: change.done(&fingerprint, ""),
        };
        self.shared.store.commit(commit).await?;
        let halt = Halt { freeze, by: change.by.clone(), why: why.to_owned(), since: now };
        self.shared.halt.send_replace(Some(halt.clone()));
        Ok((halt, self.tell_all(|| Request::Halt { freeze }, &change).await))
    }

    /// Lets everything go on: frozen agents, sessions that waited to start, restarts that were due.
    pub async fn release_halt(&self, change: Change) -> Result<u64, Refusal> {
        if self.halted().is_none() || change.done_before(&self.shared.store, "release_halt").await?.is_some()
        {
            return Ok(0);
        }
        let now = self.shared.clock.now().wall;
        let commit = Commit {
            urgency: Urgency::Control,
            node_events: vec![(now, Event::HaltReleased(HaltReleased { by: change.by.clone() }))],
            session: None,
            request: change.done("release_halt", ""),
        };
        self.shared.store.commit(commit).await?;
        self.shared.halt.send_replace(None);
        let reached = self.tell_all(|| Request::ReleaseHalt, &change).await;
        restart::keep_promises(&self.shared).await?;
        Ok(reached)
    }

    /// Asks every session at once and waits for all of them.
    pub(crate) async fn tell_all(&self, request: impl Fn() -> Request, change: &Change) -> u64 {
        let mut asked = JoinSet::new();
        for (_, handle) in self.shared.sessions.all() {
            let (request, by) = (request(), change.by.clone());
            let handle: Arc<Handle> = Arc::new(handle);
            asked.spawn(async move { handle.request(request, by, None).await.is_ok() });
        }
        asked.join_all().await.into_iter().map(u64::from).sum()
    }
}

/// What a halted daemon answers to those who would start something.
pub(crate) trait HaltRefusal {
    fn refusal(&self) -> Refusal;
}

impl HaltRefusal for Halt {
    fn refusal(&self) -> Refusal {
        let why = if self.why.is_empty() { String::new() } else { format!(": {}", self.why) };
        Refusal::new(Reason::Halted, "all agents are halted, so nothing is started")
            .because(format!("halted by {}{why}", self.by.0))
            .hint("ostler halt --release", "lets everything go on")
    }
}
