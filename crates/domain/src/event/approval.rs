//! Bodies: what an agent asked leave for, and the answer.

use serde::{Deserialize, Serialize};

use crate::{approval::Applied, event::By, id::ApprovalId, text::one_line, time::Deadline};

/// How much of a request its line shows.
const ASKS: usize = 400;

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
    /// Why no rule answered it; absent where one did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// When it is denied if nobody answers; absent where nobody is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
}

impl ApprovalRequested {
    /// Says whether somebody is waited for: what a rule answers, or nobody can, is answered at once.
    pub const fn waits(&self) -> bool {
        self.deadline.is_some()
    }

    /// What it asks for, in one line: `run: cargo add governor`.
    pub fn asks(&self) -> String {
        let (tool, what) = match &self.action {
            Action::Run { command } if !command.is_empty() => ("run", command.clone()),
            Action::Write { paths } if !paths.is_empty() => ("write", paths.join(", ")),
            Action::Read { paths } if !paths.is_empty() => ("read", paths.join(", ")),
            Action::Fetch { url } if !url.is_empty() => ("fetch", url.clone()),
            Action::Run { .. }
            | Action::Write { .. }
            | Action::Read { .. }
            | Action::Fetch { .. }
            | Action::Other => (self.tool.as_str(), self.input.clone()),
        };
        one_line(&format!("{tool}: {what}"), ASKS)
    }
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
    /// The rules that decided; none where a person did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Applied>,
}
