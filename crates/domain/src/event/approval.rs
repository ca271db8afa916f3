//! Bodies: what an agent asked leave for, and the answer.

use serde::{Deserialize, Serialize};

use crate::{event::By, id::ApprovalId};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequested {
    pub id: ApprovalId,
    /// The provider's own name for the question.
    pub ask: String,
    pub tool: String,
    pub input: String,
    #[serde(default, skip_serializing_if = "AskKind::is_leave")]
    pub kind: AskKind,
    #[serde(default, skip_serializing_if = "Action::is_other")]
    pub action: Action,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
}

/// What the tool would do, as far as a rule can be about it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A shell's command line.
    Run {
        command: String,
    },
    /// Paths as the agent names them.
    Write {
        paths: Vec<String>,
    },
    Read {
        paths: Vec<String>,
    },
    Fetch {
        url: String,
    },
    #[default]
    Other,
}

impl Action {
    fn is_other(&self) -> bool {
        *self == Action::Other
    }
}

/// What an agent wants of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    /// Leave to do something.
    #[default]
    Leave,
    /// An answer in words, which is the message of whoever allows.
    Question,
}

impl AskKind {
    fn is_leave(&self) -> bool {
        *self == AskKind::Leave
    }
}

/// How an approval was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Allowed,
    Denied,
    /// Nobody answered before the turn or the agent ended.
    Expired,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalAnswered {
    pub id: ApprovalId,
    pub answer: Answer,
    pub by: By,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}
