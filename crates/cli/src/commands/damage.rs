//! Events that are in the log and cannot be read: the others are shown, and the command fails at its end.

use ostler_client::Received;
use ostler_domain::{Event, Reason, Refusal};

use crate::failure::Failure;

/// What was met on the way through the log.
#[derive(Debug, Default)]
pub(super) struct Damage {
    first: Option<u64>,
    events: u64,
}

impl Damage {
    pub(super) fn look_at(&mut self, received: &Received) {
        if let Received::Known(recorded) = received
            && matches!(recorded.event, Event::Unreadable(_))
        {
            self.first.get_or_insert(recorded.seq);
            self.events += 1;
        }
    }

    /// Everything that can be read was shown; this says whether that was everything.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        let Some(first) = self.first else { return Ok(()) };
        let what = match self.events {
            1 => format!("event {first} cannot be read"),
            more => format!("{more} events cannot be read, the first is {first}"),
        };
        Err(Refusal::new(Reason::StoreCorrupt, what)
            .because("the others were shown")
            .hint("ostler db check", "says what is damaged and what is not")
            .into())
    }
}
