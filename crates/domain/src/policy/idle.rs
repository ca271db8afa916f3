//! How long the process of a session that has nothing to do is kept.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::{span, span_text};

/// When an idle session is ended. Its conversation stays, and the next message wakes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleStop {
    Never,
    AfterMicros(u64),
}

impl IdleStop {
    pub fn after(limit: Duration) -> Self {
        IdleStop::AfterMicros(u64::try_from(limit.as_micros()).unwrap_or(u64::MAX))
    }

    /// `30m`, `2h`, or `never`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "never" => Some(IdleStop::Never),
            text => span(text).filter(|limit| *limit >= LEAST).map(Self::after),
        }
    }

    pub const fn micros(self) -> Option<u64> {
        match self {
            IdleStop::Never => None,
            IdleStop::AfterMicros(limit) => Some(limit),
        }
    }
}

/// A session is idle between any two messages.
const LEAST: Duration = Duration::from_secs(1);

impl std::fmt::Display for IdleStop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            IdleStop::Never => f.write_str("never"),
            IdleStop::AfterMicros(limit) => f.write_str(&span_text(Duration::from_micros(*limit))),
        }
    }
}
