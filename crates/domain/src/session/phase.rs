//! The words for where a session is: how far it has come, how it ended, what a person wants of it.

use serde::{Deserialize, Serialize};

/// How far a session has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Created,
    Starting,
    Live,
    Stopping,
    Ended,
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Done,
    Handoff,
    Stopped,
    Killed,
    Crashed,
    FailedStart,
    Lost,
    Timeout,
    Budget,
    Oom,
    Reset,
    /// It was to end with its turn, and that came to nothing.
    TurnFailed,
}

impl Outcome {
    pub const ALL: &'static [Outcome] = &[
        Outcome::Done,
        Outcome::Handoff,
        Outcome::Stopped,
        Outcome::Killed,
        Outcome::Crashed,
        Outcome::FailedStart,
        Outcome::Lost,
        Outcome::Timeout,
        Outcome::Budget,
        Outcome::Oom,
        Outcome::Reset,
        Outcome::TurnFailed,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Handoff => "handoff",
            Outcome::Stopped => "stopped",
            Outcome::Killed => "killed",
            Outcome::Crashed => "crashed",
            Outcome::FailedStart => "failed_start",
            Outcome::Lost => "lost",
            Outcome::Timeout => "timeout",
            Outcome::Budget => "budget",
            Outcome::Oom => "oom",
            Outcome::Reset => "reset",
            Outcome::TurnFailed => "turn_failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|outcome| outcome.as_str() == text)
    }

    /// Says whether this is a failure: shown as FAILED.
    pub const fn is_failure(self) -> bool {
        matches!(
            self,
            Outcome::Crashed | Outcome::FailedStart | Outcome::Lost | Outcome::Oom | Outcome::TurnFailed
        )
    }
}

/// What the operator wants; survives restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Desired {
    Run,
    Pause,
    Stop,
}

impl Desired {
    pub const fn as_str(self) -> &'static str {
        match self {
            Desired::Run => "run",
            Desired::Pause => "pause",
            Desired::Stop => "stop",
        }
    }
}
