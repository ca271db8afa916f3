//! Before a machine is taken down: nothing new starts, and what runs goes on to its end.

use ostler_domain::{
    Event, Refusal,
    event::{DrainEnded, Drained},
};
use ostler_store::{Commit, Drain, RequestReply, Urgency};

use crate::{Change, Engine};

impl Engine {
    /// The drain in force, if there is one.
    pub fn drained(&self) -> Option<Drain> {
        self.shared.drain.borrow().clone()
    }

    /// Lets nothing new start. Sessions that are asked for are accepted, and wait.
    pub async fn drain(&self, why: &str, change: Change) -> Result<Drain, Refusal> {
        let fingerprint = format!("drain {why}");
        if change.done_before(&self.shared.store, &fingerprint).await?.is_some()
            && let Some(drain) = self.drained()
        {
            return Ok(drain);
        }
        // Who says it again without a reason does not take the first one's away.
        if let Some(drain) = self.drained().filter(|_| why.is_empty()) {
            return Ok(drain);
        }
        let now = self.shared.clock.now().wall;
        let (by, why) = (change.by.clone(), why.to_owned());
        let event = Event::Drained(Drained { by: by.clone(), why: why.clone() });
        self.record(event, change.done(&fingerprint, "")).await?;
        let drain = Drain { by, why, since: now };
        self.shared.drain.send_replace(Some(drain.clone()));
        self.shared.line.look();
        Ok(drain)
    }

    /// Lets start what waits. Says whether there was a drain.
    pub async fn end_drain(&self, change: Change) -> Result<bool, Refusal> {
        if self.drained().is_none() || change.done_before(&self.shared.store, "end_drain").await?.is_some() {
            return Ok(false);
        }
        let event = Event::DrainEnded(DrainEnded { by: change.by.clone() });
        self.record(event, change.done("end_drain", "")).await?;
        self.shared.drain.send_replace(None);
        self.shared.line.look();
        Ok(true)
    }

    async fn record(&self, event: Event, request: Option<RequestReply>) -> Result<(), Refusal> {
        let node_events = vec![(self.shared.clock.now().wall, event)];
        let commit = Commit { urgency: Urgency::Control, node_events, session: None, request };
        self.shared.store.commit(commit).await?;
        Ok(())
    }
}
