//! Bodies: turns, and what comes between them.

use serde::{Deserialize, Serialize};

use crate::{Time, event::By};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnStarted {
    pub turn: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnEnded {
    pub turn: u32,
    pub stop_reason: StopReason,
    /// Why it came to nothing, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// When the session goes on by itself, because the limit that it failed of ends then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goes_on: Option<Time>,
    /// The session was being ended already, and its end says why.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_session: bool,
}

impl TurnEnded {
    /// The end of a turn that came to something, or of which no more is known.
    pub fn new(turn: u32, stop_reason: StopReason) -> Self {
        Self { turn, stop_reason, failure: None, goes_on: None, ends_session: false }
    }

    /// Why it came to nothing; none where it was completed, interrupted by a person, or cut short by the end of its process.
    pub fn failure(&self) -> Option<&str> {
        let unsaid = (self.stop_reason == StopReason::Error).then_some("the agent did not say why");
        self.failure.as_deref().or(unsaid)
    }
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    Completed,
    Interrupted,
    Error,
    /// The process ended within the turn.
    ProcessEnded,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterruptRequested {
    pub by: By,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackgroundChanged {
    /// One readable line for each thing that still runs.
    pub tasks: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextCompacted {
    /// The agent did it by itself, because its context was full.
    #[serde(default)]
    pub automatic: bool,
    /// Tokens of context, where the agent says them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentRetrying {
    pub why: String,
    #[serde(default)]
    pub attempt: u32,
    /// Tries that there are at most; 0 when the agent does not say.
    #[serde(default)]
    pub most: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateLimited {
    pub what: String,
    /// When the limit ends; absent when nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}
