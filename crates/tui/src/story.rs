//! What the session under the cursor did and does: the end of its past, then what comes.

use std::collections::VecDeque;

use ostler_client::Received;
use ostler_domain::{Event, SessionId, Time};
use ostler_screen::{
    Line,
    activity::{Teller, Told},
};

/// Deeds that are remembered; `ostler logs` has all of them.
const MOST: usize = 500;

#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) session: Option<SessionId>,
    teller: Teller,
    told: VecDeque<Told>,
    /// The last place in the log that was told.
    seen: u64,
    pub(crate) is_known: bool,
}

impl Default for Story {
    fn default() -> Self {
        Self { session: None, teller: Teller::calm(), told: VecDeque::new(), seen: 0, is_known: false }
    }
}

impl Story {
    pub(crate) fn of(session: SessionId) -> Self {
        Self { session: Some(session), ..Self::default() }
    }

    /// Takes in what happened. What was told before is not told again.
    pub(crate) fn tell(&mut self, received: &[Received]) {
        self.is_known = true;
        for received in received.iter() {
            if received.seq() <= self.seen {
                continue;
            }
            self.seen = received.seq();
            // What waits for an answer stands below, with its keys.
            let told = self.teller.tell(received);
            if !is_question(received) {
                self.told.extend(told);
            }
        }
        self.told.drain(..self.told.len().saturating_sub(MOST));
    }

    /// All that is remembered, then what runs now.
    pub(crate) fn lines(&self, width: usize, now: Time) -> Vec<Line> {
        let told = self.told.iter().flat_map(|told| told.lines(&Line::of("  "), Some(width)));
        let running = self.teller.running(now).map(|line| line.cut(width));
        told.chain(running).flat_map(|line| line.folded(Some(width), 10)).collect()
    }
}

fn is_question(received: &Received) -> bool {
    matches!(received, Received::Known(recorded) if matches!(recorded.event, Event::ApprovalRequested(_)))
}
