//! Bodies: what the agent did.

use serde::{Deserialize, Serialize};

use crate::{MessageId, image::Image};

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Text {
    pub text: String,
    /// The tool call that started the sub-agent whose words these are; absent for the agent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Self {
        Text { text: text.into(), subagent: None }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub tool: String,
    /// Joins a call with its result.
    pub tool_id: String,
    /// One readable line.
    pub summary: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub input: String,
    /// The call that started the sub-agent who makes this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    pub tool_id: String,
    pub success: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
}

/// A picture of a dialogue. It comes before the event of what it is a part of; where that is neither a result nor a message,
/// the agent showed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageRecorded {
    #[serde(flatten)]
    pub image: Image,
    /// The call whose result it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<String>,
    /// The message that it was sent with; that comes before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
}

/// Bytes that were not understood, and where the tape has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Raw {
    /// The beginning, lossily as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    pub bytes: u64,
    /// Tape position.
    pub at: u64,
}
