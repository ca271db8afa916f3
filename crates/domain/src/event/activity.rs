//! Bodies: what the agent did.

use serde::{Deserialize, Serialize};

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
