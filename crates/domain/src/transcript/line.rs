//! The lines of a transcript, with the names that OpenClaw has for everything.

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use crate::{MessageId, SessionId, Time, Usage, image::Image, price::Dollars};

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    /// The first one.
    Session(Header),
    Message {
        #[serde(flatten)]
        place: Place,
        message: Message,
        ostler: Origin,
    },
    #[serde(rename_all = "camelCase")]
    ModelChange {
        #[serde(flatten)]
        place: Place,
        provider: String,
        model_id: String,
        ostler: Origin,
    },
    /// The agent's program put a summary in the place of what was said before.
    #[serde(rename_all = "camelCase")]
    Compaction {
        #[serde(flatten)]
        place: Place,
        /// Programs keep theirs to themselves.
        summary: String,
        first_kept_entry_id: Option<String>,
        tokens_before: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
        ostler: Origin,
    },
    /// What that form has no word for. No part of what a model is told.
    #[serde(rename_all = "camelCase")]
    Custom {
        #[serde(flatten)]
        place: Place,
        custom_type: String,
        data: Value,
        ostler: Origin,
    },
}

/// What a transcript is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub version: u32,
    pub id: String,
    pub timestamp: String,
    pub cwd: String,
}

/// Where a line stands: lines make a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    pub id: String,
    pub parent_id: Option<String>,
    pub timestamp: String,
}

/// What of ours a line was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub session: SessionId,
    /// The place in the log of its first event.
    pub seq: u64,
    /// The turn of that session, where it belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// Which message was delivered, and who had sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// To whom something was delivered in the agent's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// Something said. Its time is in milliseconds, as that of the line is text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Message {
    User {
        content: Vec<Block>,
        timestamp: i64,
    },
    Assistant {
        content: Vec<Block>,
        api: String,
        provider: String,
        model: String,
        usage: TokenUse,
        stop_reason: StopReason,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
        timestamp: i64,
    },
    ToolResult {
        tool_call_id: String,
        tool_name: String,
        content: Vec<Block>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
        is_error: bool,
        timestamp: i64,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Block {
    Text { text: String },
    Thinking { thinking: String },
    ToolCall { id: String, name: String, arguments: Value },
    Image(Picture),
}

/// A picture. That form has the bytes in the line; in ours they are a file of their own, which the line names, until
/// somebody asks for both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Picture {
    /// In base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    pub mime_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl From<&Image> for Picture {
    fn from(image: &Image) -> Self {
        // One that was deleted has no name any more.
        let sha256 = Some(image.sha256.clone()).filter(|name| !name.is_empty());
        Picture { data: None, mime_type: image.mime.clone(), sha256, bytes: Some(image.bytes) }
    }
}

impl Block {
    pub fn text(text: impl Into<String>) -> Block {
        Block::Text { text: text.into() }
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    Stop,
    ToolUse,
    Error,
    Aborted,
}

/// Tokens in that form's words. All lines of a transcript together have what its sessions used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenUse {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub reasoning_tokens: u64,
    pub total_tokens: u64,
    pub cost: Cost,
}

/// Dollars. The log has what all tokens of a call cost together: the parts are nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    pub input: Number,
    pub output: Number,
    pub cache_read: Number,
    pub cache_write: Number,
    pub total: Number,
}

impl TokenUse {
    pub fn new(usage: Usage, cost: Dollars) -> TokenUse {
        let zero = || Number::from(0);
        TokenUse {
            input: usage.input,
            output: usage.output,
            cache_read: usage.cache_read,
            cache_write: usage.cache_write,
            reasoning_tokens: usage.reasoning,
            total_tokens: usage.total(),
            cost: Cost {
                input: zero(),
                output: zero(),
                cache_read: zero(),
                cache_write: zero(),
                total: serde_json::from_str(&cost.decimal()).unwrap_or_else(|_| zero()),
            },
        }
    }
}

impl Cost {
    pub fn dollars(&self) -> Dollars {
        let micros = self.total.as_f64().unwrap_or_default() * 1e6;
        // Amounts of dollars are far below where this would lose anything; what is below nothing becomes that.
        Dollars(micros.round() as u64)
    }
}

impl Line {
    /// As it stands in the file, with its end.
    pub fn to_json(&self) -> String {
        // Plain structs with string keys: serializing them cannot fail.
        let mut text = serde_json::to_string(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The pictures in what it says.
    pub fn pictures(&mut self) -> impl Iterator<Item = &mut Picture> {
        let content = match self {
            Line::Message { message, .. } => Some(match message {
                Message::User { content, .. }
                | Message::Assistant { content, .. }
                | Message::ToolResult { content, .. } => content,
            }),
            _ => None,
        };
        content.into_iter().flatten().filter_map(|block| match block {
            Block::Image(picture) => Some(picture),
            Block::Text { .. } | Block::Thinking { .. } | Block::ToolCall { .. } => None,
        })
    }

    /// What of ours it was made from; none for the first.
    pub fn origin(&self) -> Option<&Origin> {
        match self {
            Line::Session(_) => None,
            Line::Message { ostler, .. }
            | Line::ModelChange { ostler, .. }
            | Line::Compaction { ostler, .. }
            | Line::Custom { ostler, .. } => Some(ostler),
        }
    }
}

/// A moment as that form writes it, to the millisecond.
pub(super) fn iso(time: Time) -> String {
    let text = time.rfc3339();
    format!("{}Z", &text[..text.len() - "000Z".len()])
}

pub(super) fn millis(time: Time) -> i64 {
    time.micros().div_euclid(1_000)
}
