//! What is said of an attempt to leave the sandbox.

use serde::{Deserialize, Serialize};

/// What became of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Refused inside, and outside nothing is to be seen of it.
    Stopped,
    /// A control that works.
    Works,
    GotThrough,
    /// Something is missing that it needs.
    Untried,
    /// It cannot be said: it did not end, or could not be started; or a control does not work.
    Failed,
}

impl Verdict {
    /// Whether it is as it should be; what could not be tried is no proof against anything.
    pub const fn held(self) -> bool {
        matches!(self, Verdict::Stopped | Verdict::Works | Verdict::Untried)
    }
}

/// One line of the suite's report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Area and name.
    pub name: String,
    /// What it tries, after "tries to"; of a control, what must work.
    pub tries: String,
    pub verdict: Verdict,
    /// What it was answered inside, or why it cannot be said.
    pub detail: String,
    /// What was seen of it outside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// How many attempts are still to be made.
    pub left: usize,
}

impl Finding {
    pub fn area(&self) -> &str {
        self.name.split_once('/').map_or(&self.name, |(area, _)| area)
    }
}
