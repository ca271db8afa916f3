//! The stop ladder: rung by rung, each with its time, until the agent has ended.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ostler_tape::AskedStop;
use ostler_tape::frame::{Rung, RungAction};

#[derive(Debug)]
pub(crate) struct Ladder {
    asked: AskedStop,
    rungs: VecDeque<Rung>,
    taken: Option<RungAction>,
    next_at: Instant,
}

impl Ladder {
    pub(crate) fn new(asked: AskedStop, rungs: Vec<Rung>, now: Instant) -> Ladder {
        Ladder { asked, rungs: rungs.into(), taken: None, next_at: now }
    }

    /// The rung that is due, if one is.
    pub(crate) fn step(&mut self, now: Instant) -> Option<RungAction> {
        if now < self.next_at {
            return None;
        }
        let rung = self.rungs.pop_front()?;
        self.next_at = now + Duration::from_millis(rung.wait_ms);
        self.taken = Some(rung.action);
        self.taken
    }

    /// When the next rung is due; nothing after the last.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        (!self.rungs.is_empty()).then_some(self.next_at)
    }

    pub(crate) fn asked(&self) -> &AskedStop {
        &self.asked
    }

    /// The last rung that was taken.
    pub(crate) fn taken(&self) -> Option<RungAction> {
        self.taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rung_has_its_time() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let asked = AskedStop { by: "ada".into(), rule: "stop".into() };
        let rungs = [RungAction::CloseInput, RungAction::Signal(15), RungAction::Kill]
            .map(|action| Rung { action, wait_ms: 100 });
        let mut ladder = Ladder::new(asked, rungs.to_vec(), start);
        assert_eq!(ladder.step(start), Some(RungAction::CloseInput));
        assert_eq!(ladder.step(at(99)), None);
        assert_eq!(ladder.wake_at(), Some(at(100)));
        assert_eq!(ladder.step(at(100)), Some(RungAction::Signal(15)));
        assert_eq!(ladder.step(at(250)), Some(RungAction::Kill));
        assert_eq!(ladder.step(at(999)), None);
        assert_eq!(ladder.taken(), Some(RungAction::Kill));
        assert_eq!(ladder.wake_at(), None);
    }
}
