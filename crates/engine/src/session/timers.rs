//! When an actor must look up although nothing happened: watchdogs and the session's time limit.

use std::time::Duration;

use ostler_domain::{
    Deadline, Now,
    session::{State, Watchdog},
};

/// Deadlines are measured by BOOTTIME, sleeps by the runtime's clock, which stops while the machine is suspended:
/// nobody sleeps longer than this without looking again.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// The watchdog that is awake and since when it has waited.
#[derive(Default)]
pub(super) struct Timers {
    armed: Option<Armed>,
    /// The turn of which pieces of an answer have come. They are no events, so the state does not know of them.
    streamed: Option<u32>,
}

#[derive(PartialEq, Eq, Clone, Copy)]
struct Armed {
    watchdog: Watchdog,
    limit: Duration,
    since: Duration,
}

/// What is due.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    Watchdog(Watchdog),
    TimedOut,
    /// A question has waited too long.
    Approvals,
    LimitEnded,
    /// It has been idle for as long as it may.
    IdledOut,
    /// Nothing more has come for as long as what waits was held back.
    Quiet,
}

impl Timers {
    /// Takes a sign of progress into account: output, or only what was logged.
    pub(super) fn progress(&mut self, is_output: bool, now: &Now) {
        let heeds = |watchdog: Watchdog| {
            if is_output { watchdog.heeds_output() } else { watchdog.heeds_log() }
        };
        if let Some(armed) = self.armed.as_mut().filter(|armed| heeds(armed.watchdog)) {
            armed.since = now.since_boot;
        }
    }

    /// Takes note that a piece of an answer has come: from here on it is silence that is waited out.
    pub(super) fn streams(&mut self, state: &State) {
        self.streamed = state.turn().map(|turn| turn.number);
    }

    /// Looks at the state again: another watchdog, or another limit, starts to wait anew.
    pub(super) fn arm(&mut self, state: &State, now: &Now) {
        let awake = state.watchdog().filter(|_| state.watchdogs_sleep_until(now.wall).is_none());
        let has_streamed = self.streamed.is_some() && self.streamed == state.turn().map(|turn| turn.number);
        let awake = awake.map(|(watchdog, limit)| match watchdog {
            Watchdog::FirstOutput if has_streamed => {
                (Watchdog::Silent, Duration::from_micros(state.created().config.watchdogs.silent_us))
            }
            _ => (watchdog, limit),
        });
        self.armed = awake.map(|(watchdog, limit)| match self.armed {
            Some(armed) if armed.watchdog == watchdog && armed.limit == limit => armed,
            _ => Armed { watchdog, limit, since: now.since_boot },
        });
    }

    /// Begins the wait anew, after a rung of the ladder was taken.
    pub(super) fn rearm(&mut self, state: &State, now: &Now) {
        self.armed = None;
        self.arm(state, now);
    }

    pub(super) fn due(&self, state: &State, now: &Now) -> Option<Due> {
        if state.deadline().is_some_and(|deadline| deadline.has_passed(now)) && state.stop().is_none() {
            return Some(Due::TimedOut);
        }
        if approval_deadlines(state).any(|deadline| deadline.has_passed(now)) {
            return Some(Due::Approvals);
        }
        if state.limit_ends().is_some_and(|until| until <= now.wall) && !state.is_frozen() {
            return Some(Due::LimitEnded);
        }
        if state.quiet_until().is_some_and(|until| until.has_passed(now)) {
            return Some(Due::Quiet);
        }
        if state.idles_until().is_some_and(|until| until <= now.wall) {
            return Some(Due::IdledOut);
        }
        let armed = self.armed?;
        (now.since_boot.saturating_sub(armed.since) >= armed.limit).then_some(Due::Watchdog(armed.watchdog))
    }

    /// How long to sleep at most; none when nothing can become due.
    pub(super) fn sleep(&self, state: &State, now: &Now) -> Option<Duration> {
        let deadline =
            state.deadline().filter(|_| state.stop().is_none()).map(|deadline| deadline.remaining(now));
        let watchdog =
            self.armed.map(|armed| armed.limit.saturating_sub(now.since_boot.saturating_sub(armed.since)));
        let approval = approval_deadlines(state).map(|deadline| deadline.remaining(now)).min();
        let limit = state.limit_ends().map(|until| until.since(now.wall)).filter(|_| !state.is_frozen());
        let idle = state.idles_until().map(|until| until.since(now.wall));
        let awakes = state.watchdogs_sleep_until(now.wall).map(|until| until.since(now.wall));
        let quiet = state.quiet_until().map(|until| until.remaining(now));
        [deadline, watchdog, approval, limit, idle, quiet, awakes]
            .into_iter()
            .flatten()
            .min()
            .map(|span| span.min(LONGEST_SLEEP))
    }
}

fn approval_deadlines(state: &State) -> impl Iterator<Item = &Deadline> {
    state.approvals().iter().filter_map(|open| open.deadline.as_ref())
}
