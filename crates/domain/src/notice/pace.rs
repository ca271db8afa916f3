//! When something is told: approvals at once, the rest when it has lasted a while, and of each session or mission so
//! much. What came too soon waits, and is told with what came meanwhile. Times are counted from any beginning that does
//! not move, as the machine's start.

use std::{collections::HashMap, time::Duration};

use super::{Event, MissionId, Occasion, Recorded, SessionId};
use crate::limits::{NOTICE_DWELL, NOTICE_EVERY, NOTICES_WAITING};

/// What a notice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum About {
    Session(SessionId),
    Mission(MissionId),
}

impl About {
    pub fn of(recorded: &Recorded) -> Option<About> {
        match (&recorded.event, recorded.session) {
            (Event::MissionEnded(ended), _) => Some(About::Mission(ended.mission)),
            (_, session) => session.map(About::Session),
        }
    }
}

/// How long something must have lasted before it is told: whoever looks may have seen to it.
const fn dwell(on: Occasion) -> Duration {
    match on {
        Occasion::Approval => Duration::ZERO,
        Occasion::WaitingInput | Occasion::Failed | Occasion::Budget | Occasion::MissionDone => NOTICE_DWELL,
    }
}

/// What is told of several that are due together: the one that keeps somebody waiting.
const fn weight(on: Occasion) -> u8 {
    match on {
        Occasion::Approval => 4,
        Occasion::WaitingInput => 3,
        Occasion::Budget => 2,
        Occasion::Failed => 1,
        Occasion::MissionDone => 0,
    }
}

/// What waits to be told on one channel.
#[derive(Debug, Default)]
pub struct Pace {
    /// In the order of the log.
    waiting: Vec<Waiting>,
    /// When each was told of last.
    told: HashMap<About, Duration>,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    seq: u64,
    on: Occasion,
    about: About,
    lasted: Duration,
}

impl Pace {
    /// Something happened, a while ago.
    pub fn heard(&mut self, seq: u64, on: Occasion, about: About, age: Duration, now: Duration) {
        let lasted = now + dwell(on).saturating_sub(age);
        self.waiting.push(Waiting { seq, on, about, lasted });
    }

    /// Whether more can wait; who has more leaves it in the log.
    pub fn has_room(&self) -> bool {
        self.waiting.len() < NOTICES_WAITING
    }

    /// When something is due.
    pub fn next(&self) -> Option<Duration> {
        self.waiting.iter().map(|waiting| self.due_at(waiting)).min()
    }

    /// Takes what is to be told together now: all that waits of one session or mission and has lasted, what is told
    /// first in front.
    pub fn due(&mut self, now: Duration) -> Option<(About, Vec<u64>)> {
        let about = self.waiting.iter().find(|waiting| self.due_at(waiting) <= now)?.about;
        let is_due = |waiting: &Waiting| waiting.about == about && waiting.lasted <= now;
        let mut group: Vec<Waiting> = self.waiting.iter().copied().filter(is_due).collect();
        self.waiting.retain(|waiting| !is_due(waiting));
        // The newest of the weightiest.
        group.sort_by_key(|waiting| std::cmp::Reverse((weight(waiting.on), waiting.seq)));
        Some((about, group.into_iter().map(|waiting| waiting.seq).collect()))
    }

    /// Somebody was told.
    pub fn told(&mut self, about: About, now: Duration) {
        self.told.retain(|_, at| now.saturating_sub(*at) < NOTICE_EVERY);
        self.told.insert(about, now);
    }

    /// How far everything was told, of a log that was read this far.
    pub fn place(&self, read: u64) -> u64 {
        self.waiting.iter().map(|waiting| waiting.seq - 1).min().unwrap_or(read).min(read)
    }

    fn due_at(&self, waiting: &Waiting) -> Duration {
        let again = self.told.get(&waiting.about).map_or(Duration::ZERO, |at| *at + NOTICE_EVERY);
        waiting.lasted.max(again)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Time;

    const START: Duration = Duration::from_secs(1_000);

    fn session(number: u128) -> About {
        About::Session(SessionId::new(Time::default(), number as _))
    }

    fn seconds(seconds: u64) -> Duration {
        START + Duration::from_secs(seconds)
    }

    #[test]
    fn an_approval_does_not_wait_behind_what_must_last() {
        let mut pace = Pace::default();
        pace.heard(7, Occasion::Failed, session(1), Duration::ZERO, START);
        pace.heard(8, Occasion::Approval, session(2), Duration::ZERO, START);
        assert_eq!(pace.next(), Some(START));
        assert_eq!(pace.due(START), Some((session(2), vec![8])));
        assert_eq!((pace.due(seconds(4)), pace.place(8)), (None, 6), "the failure is not told yet");
        assert_eq!(pace.due(seconds(5)), Some((session(1), vec![7])));
        assert_eq!((pace.next(), pace.place(8)), (None, 8));
    }

    #[test]
    fn what_has_lasted_before_it_was_heard_is_told_at_once() {
        let mut pace = Pace::default();
        pace.heard(1, Occasion::Budget, session(1), Duration::from_secs(60), START);
        assert_eq!(pace.due(START), Some((session(1), vec![1])));
    }

    #[test]
    fn a_session_is_told_of_once_a_minute_and_nothing_is_dropped() {
        let mut pace = Pace::default();
        pace.heard(1, Occasion::Approval, session(1), Duration::ZERO, START);
        assert!(pace.due(START).is_some());
        pace.told(session(1), START);
        pace.heard(2, Occasion::Failed, session(1), Duration::ZERO, seconds(1));
        pace.heard(3, Occasion::Approval, session(1), Duration::ZERO, seconds(10));
        pace.heard(4, Occasion::Approval, session(1), Duration::ZERO, seconds(20));
        assert_eq!((pace.due(seconds(59)), pace.place(4)), (None, 1));
        assert_eq!(pace.next(), Some(seconds(60)));
        let group = pace.due(seconds(60));
        assert_eq!(group, Some((session(1), vec![4, 3, 2])), "the newest approval stands for all of them");
        // Whoever had nothing worth telling may be told of the next at once.
        pace.heard(5, Occasion::Approval, session(1), Duration::ZERO, seconds(61));
        assert!(pace.due(seconds(61)).is_some());
    }

    proptest! {
        #[test]
        fn each_is_taken_once_and_none_of_a_session_within_a_minute(
            heard in proptest::collection::vec((0_u64..90, 0_usize..5, 0_u128..3), 0..40)
        ) {
            let mut pace = Pace::default();
            let mut heard: Vec<_> = heard;
            heard.sort_by_key(|(at, ..)| *at);
            let (mut taken, mut told): (Vec<u64>, Vec<(About, u64)>) = Default::default();
            let mut coming = heard.iter().enumerate().peekable();
            for second in 0..300 {
                while let Some((n, (_, on, who))) = coming.next_if(|(_, (at, ..))| *at <= second) {
                    let on = Occasion::ALL[*on];
                    pace.heard(n as u64 + 1, on, session(*who), Duration::ZERO, seconds(second));
                }
                while let Some((about, group)) = pace.due(seconds(second)) {
                    for (before, at) in told.iter().filter(|(before, _)| *before == about) {
                        prop_assert!(second - at >= 60, "{before:?} at {at} and {second}");
                    }
                    pace.told(about, seconds(second));
                    told.push((about, second));
                    taken.extend(group);
                }
            }
            taken.sort_unstable();
            prop_assert_eq!(taken, (1..=heard.len() as u64).collect::<Vec<_>>());
            prop_assert_eq!(pace.place(heard.len() as u64), heard.len() as u64);
        }
    }
}
