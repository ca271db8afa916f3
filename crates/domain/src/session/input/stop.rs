//! Why a session is to end, and the way down.

use serde::{Deserialize, Serialize};

use crate::{event::By, session::Outcome};

/// Why a session is to end. Decides its outcome and the way down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopRule {
    /// A person asked for an orderly end.
    Stop,
    /// A person asked for an end at once.
    Kill,
    Halt,
    /// The turn ended and the session was to end with it.
    TurnEnded,
    /// The agent said that its work is done.
    Done,
    /// Nobody has said anything to it for as long as its process is kept for that.
    Idle,
    /// It was idle, and another session waited for its slot or its memory.
    GaveWay,
    Timeout,
    Budget,
    /// The start watchdog: the agent never became ready.
    StartWatchdog,
    /// The agent said, before it was ready, that it cannot work.
    CannotStart,
    /// A watchdog's last resort but one: a new process.
    StallWatchdog,
    /// A person asked for a new process.
    Restart,
    /// The agent's work goes on in another session, to which it was handed.
    Handoff,
    /// Its conversation was closed, and a fresh one opened in its place.
    Reset,
    /// The model's server does not accept the agent: trying again would only be refused again.
    ProviderAuth,
}

impl StopRule {
    pub const fn outcome(self) -> Outcome {
        match self {
            StopRule::Stop | StopRule::Restart => Outcome::Stopped,
            StopRule::Kill | StopRule::Halt => Outcome::Killed,
            StopRule::TurnEnded | StopRule::Done | StopRule::Idle | StopRule::GaveWay => Outcome::Done,
            StopRule::Handoff => Outcome::Handoff,
            StopRule::Reset => Outcome::Reset,
            StopRule::Timeout => Outcome::Timeout,
            StopRule::Budget => Outcome::Budget,
            StopRule::StartWatchdog | StopRule::CannotStart | StopRule::ProviderAuth => Outcome::FailedStart,
            StopRule::StallWatchdog => Outcome::Crashed,
        }
    }

    pub const fn ladder(self) -> Ladder {
        match self {
            StopRule::Kill
            | StopRule::Halt
            | StopRule::StartWatchdog
            | StopRule::StallWatchdog
            | StopRule::CannotStart
            | StopRule::ProviderAuth => Ladder::AtOnce,
            StopRule::Stop
            | StopRule::TurnEnded
            | StopRule::Done
            | StopRule::Idle
            | StopRule::GaveWay
            | StopRule::Timeout
            | StopRule::Budget
            | StopRule::Handoff
            | StopRule::Reset
            | StopRule::Restart => Ladder::Orderly,
        }
    }
}

/// The way an agent is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ladder {
    /// The provider's polite ways first, then SIGTERM, then the whole tree.
    Orderly,
    /// The whole tree, now.
    AtOnce,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRequested {
    pub rule: StopRule,
    pub by: By,
}
