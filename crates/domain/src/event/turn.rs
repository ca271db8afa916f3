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

/// How much of what the model can take in at once is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextMeasured {
    /// Tokens that the last call of the agent's main dialogue took in and gave back.
    pub used: u64,
    /// Tokens that the model can take in; absent when nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

/// Without a window to measure by, less than this part of it more or less is no news.
const NEWS_PART: u64 = 16;

/// How it is said that a conversation no longer fits its model, whatever the server and the agent say.
pub const CONTEXT_FULL: &str = "the conversation no longer fits into the model's context";

impl ContextMeasured {
    /// Of the window, in whole percent; none where that is not known.
    pub fn percent(&self) -> Option<u64> {
        let window = self.window.filter(|window| *window > 0)?;
        Some(self.used.saturating_mul(100) / window)
    }

    /// Whether anybody would see the difference: agents tell it with each of a thousand calls.
    pub fn is_news_after(&self, before: Option<&ContextMeasured>) -> bool {
        let Some(before) = before else { return self.used > 0 };
        match (self.percent(), before.percent()) {
            (None, None) => self.used.abs_diff(before.used) > before.used / NEWS_PART,
            (percent, known) => percent != known || self.window != before.window,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_news_when_somebody_would_see_it() {
        let of = |used, window| ContextMeasured { used, window };
        assert_eq!(of(122_000, Some(200_000)).percent(), Some(61));
        assert_eq!((of(5, None).percent(), of(5, Some(0)).percent()), (None, None));
        let is_news = |now: ContextMeasured, before: ContextMeasured| now.is_news_after(Some(&before));
        assert!(of(1, None).is_news_after(None) && !of(0, None).is_news_after(None));
        assert!(!is_news(of(122_500, Some(200_000)), of(122_000, Some(200_000))));
        assert!(is_news(of(124_000, Some(200_000)), of(122_000, Some(200_000))));
        // After a compaction it is less.
        assert!(is_news(of(20_000, Some(200_000)), of(180_000, Some(200_000))));
        assert!(is_news(of(10_000, Some(1_000_000)), of(2_000, Some(200_000))), "another model");
        assert!(is_news(of(122_000, Some(200_000)), of(122_000, None)));
        assert!(
            !is_news(of(101_000, None), of(100_000, None)) && is_news(of(110_000, None), of(100_000, None))
        );
    }
}
