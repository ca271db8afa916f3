//! Bodies: tokens and what they may cost.

use serde::{Deserialize, Serialize};

use crate::{Usage, budget::Budget, event::By};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct UsageRecorded {
    /// What this adds to every sum. Less than what was said when another source had told of the same tokens.
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default)]
    pub source: UsageSource,
    /// The model server's name for the call, by which both sources mean the same one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// What the source said, where that is not what is added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Usage>,
}

impl UsageRecorded {
    /// What the source said.
    pub fn said(&self) -> Usage {
        self.said.unwrap_or(self.usage)
    }
}

/// Who told of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageSource {
    /// The agent.
    #[default]
    Report,
    /// The model gateway, which read it off the wire.
    Wire,
}

impl UsageSource {
    pub const fn as_str(self) -> &'static str {
        match self {
            UsageSource::Report => "report",
            UsageSource::Wire => "wire",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BudgetReached {
    pub used: u64,
    pub tokens: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BudgetChanged {
    pub budget: Option<Budget>,
    pub by: By,
}
