//! How tickets stand, and which change is allowed when.

use serde::{Deserialize, Serialize};

use crate::session::Outcome;

/// How a ticket stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Written down.
    #[default]
    Initialized,
    /// To be worked on next: asked for, opened again, or tried without an end.
    Queued,
    /// A session works on it.
    Running,
    Done,
    Failed,
    Cancelled,
    /// Over, and out of the lists.
    Archived,
}

/// What is wanted of a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Queue,
    /// A session begins to work on it.
    Start,
    Done,
    Fail,
    Cancel,
    /// It is to be worked on once more.
    Reopen,
    Archive,
}

/// A change that does not fit how the ticket stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a ticket that is {} cannot be {}", from.as_str(), verb.participle())]
pub struct MoveFault {
    pub from: Status,
    pub verb: Verb,
}

impl Status {
    pub const ALL: [Status; 7] = [
        Self::Initialized,
        Self::Queued,
        Self::Running,
        Self::Done,
        Self::Failed,
        Self::Cancelled,
        Self::Archived,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Initialized => "initialized",
            Status::Queued => "queued",
            Status::Running => "running",
            Status::Done => "done",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
            Status::Archived => "archived",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Whether there is still something to do.
    pub const fn is_open(self) -> bool {
        matches!(self, Status::Initialized | Status::Queued | Status::Running)
    }

    /// How it stands after a change; none where it stands so already.
    pub fn after(self, verb: Verb) -> Result<Option<Status>, MoveFault> {
        let fault = MoveFault { from: self, verb };
        let (to, is_allowed) = match verb {
            Verb::Queue => (Status::Queued, self.is_open()),
            // A further attempt at what failed is one more iteration of it.
            Verb::Start => (Status::Running, self.is_open() || self == Status::Failed),
            Verb::Done => (Status::Done, self.is_open() || self == Status::Failed),
            Verb::Fail => (Status::Failed, self.is_open()),
            Verb::Cancel => (Status::Cancelled, self.is_open() || self == Status::Failed),
            Verb::Reopen => (Status::Queued, !self.is_open()),
            Verb::Archive => (Status::Archived, !self.is_open()),
        };
        match to == self {
            true => Ok(None),
            false if is_allowed => Ok(Some(to)),
            false => Err(fault),
        }
    }
}

impl Verb {
    pub const ALL: [Verb; 7] =
        [Self::Queue, Self::Start, Self::Done, Self::Fail, Self::Cancel, Self::Reopen, Self::Archive];

    /// As it is typed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verb::Queue => "queue",
            Verb::Start => "start",
            Verb::Done => "done",
            Verb::Fail => "fail",
            Verb::Cancel => "cancel",
            Verb::Reopen => "reopen",
            Verb::Archive => "archive",
        }
    }

    const fn participle(self) -> &'static str {
        match self {
            Verb::Queue => "queued",
            Verb::Start => "started",
            Verb::Done => "done",
            Verb::Fail => "failed",
            Verb::Cancel => "cancelled",
            Verb::Reopen => "opened again",
            Verb::Archive => "archived",
        }
    }
}

/// How a session of a ticket ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AfterSession {
    pub outcome: Outcome,
    /// Its agent said that the work is done.
    pub said_done: bool,
    /// Another session goes on with it.
    pub goes_on: bool,
}

impl AfterSession {
    /// What becomes of the ticket that was worked on; none where nothing does.
    pub fn verb(self, status: Status) -> Option<Verb> {
        if status != Status::Running || self.goes_on {
            return None;
        }
        Some(match self.outcome {
            Outcome::Done if self.said_done => Verb::Done,
            // Whoever it was handed to goes on.
            Outcome::Handoff => return None,
            // Nobody said that the work is done, or that it cannot be.
            Outcome::Done | Outcome::Stopped | Outcome::Killed | Outcome::Reset => Verb::Queue,
            Outcome::Crashed
            | Outcome::FailedStart
            | Outcome::Lost
            | Outcome::Timeout
            | Outcome::Budget
            | Outcome::Oom
            | Outcome::TurnFailed => Verb::Fail,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_ticket_goes_the_way_of_all_tickets() {
        let mut status = Status::default();
        for (verb, to) in [
            (Verb::Queue, Status::Queued),
            (Verb::Start, Status::Running),
            (Verb::Fail, Status::Failed),
            (Verb::Start, Status::Running),
            (Verb::Done, Status::Done),
            (Verb::Reopen, Status::Queued),
            (Verb::Cancel, Status::Cancelled),
            (Verb::Archive, Status::Archived),
            (Verb::Reopen, Status::Queued),
        ] {
            assert_eq!(status.after(verb), Ok(Some(to)), "{status:?} {verb:?}");
            status = to;
        }
        for (from, verb) in [
            (Status::Done, Verb::Start),
            (Status::Cancelled, Verb::Start),
            (Status::Archived, Verb::Done),
            (Status::Running, Verb::Archive),
            (Status::Queued, Verb::Archive),
            (Status::Initialized, Verb::Reopen),
            (Status::Done, Verb::Fail),
        ] {
            assert_eq!(from.after(verb), Err(MoveFault { from, verb }));
        }
    }

    #[test]
    fn a_session_s_end_decides_only_for_what_was_worked_on() {
        let end = |outcome, said_done| AfterSession { outcome, said_done, goes_on: false };
        assert_eq!(end(Outcome::Done, true).verb(Status::Running), Some(Verb::Done));
        assert_eq!(end(Outcome::Done, false).verb(Status::Running), Some(Verb::Queue));
        assert_eq!(end(Outcome::Stopped, true).verb(Status::Running), Some(Verb::Queue));
        assert_eq!(end(Outcome::Crashed, true).verb(Status::Running), Some(Verb::Fail));
        assert_eq!(end(Outcome::Handoff, false).verb(Status::Running), None);
        let goes_on = AfterSession { goes_on: true, ..end(Outcome::Crashed, false) };
        assert_eq!(goes_on.verb(Status::Running), None);
        for other in Status::ALL.into_iter().filter(|status| *status != Status::Running) {
            assert_eq!(end(Outcome::Done, true).verb(other), None, "{other:?}");
        }
    }

    proptest! {
        /// Whatever is asked in whatever order: what is over stays so until somebody opens it again, only what is over is
        /// archived, and asking twice does nothing more.
        #[test]
        fn no_order_of_wishes_breaks_the_rules(wishes in prop::collection::vec(0..Verb::ALL.len(), 0..40)) {
            let mut status = Status::default();
            for verb in wishes.into_iter().map(|place| Verb::ALL[place]) {
                let before = status;
                if let Ok(Some(to)) = status.after(verb) {
                    prop_assert_ne!(to, before);
                    status = to;
                    prop_assert!(!matches!(status.after(verb), Ok(Some(_))) || verb == Verb::Reopen);
                }
                if matches!(before, Status::Done | Status::Cancelled | Status::Archived) && status.is_open() {
                    prop_assert_eq!(verb, Verb::Reopen);
                }
                if status == Status::Archived && before != Status::Archived {
                    prop_assert!(!before.is_open());
                }
                prop_assert_eq!(Status::parse(status.as_str()), Some(status));
            }
        }
    }
}
