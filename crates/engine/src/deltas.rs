//! Partial text, live: a lossy channel beside the log. Who is slow misses some; the whole text comes as an event.

use ostler_domain::{SessionId, limits::DELTA_BUFFER};
use tokio::sync::broadcast;

/// A part of a text that an agent is writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    pub session: SessionId,
    pub text: String,
}

pub(crate) struct Deltas {
    sender: broadcast::Sender<Delta>,
}

impl Deltas {
    pub(crate) fn new() -> Self {
        Self { sender: broadcast::Sender::new(DELTA_BUFFER) }
    }

    pub(crate) fn publish(&self, delta: Delta) {
        // Nobody listening is the usual case.
        let _ = self.sender.send(delta);
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Delta> {
        self.sender.subscribe()
    }
}
