//! The lines that Claude Code prints, as far as they are read. Every release adds types and fields: what is not known is
//! left alone, and a field of another shape makes its line opaque, never an error.

use std::collections::BTreeMap;

use ostler_domain::Usage;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Said {
    ControlResponse {
        response: Response,
    },
    ControlRequest {
        request_id: String,
        request: Request,
    },
    ControlCancelRequest {
        request_id: String,
    },
    System(Box<System>),
    CommandLifecycle {
        command_uuid: String,
        state: String,
    },
    StreamEvent {
        event: StreamEvent,
        #[serde(default)]
        parent_tool_use_id: Option<String>,
    },
    Assistant(Box<Assistant>),
    User(Box<User>),
    RateLimitEvent {
        rate_limit_info: RateLimitInfo,
    },
    /// A tool still runs.
    ToolProgress {},
    ConversationReset {
        #[serde(default)]
        trigger: String,
    },
    Result(Box<TurnResult>),
}

#[derive(Deserialize)]
pub(super) struct Response {
    pub(super) subtype: String,
    pub(super) request_id: String,
    #[serde(default)]
    pub(super) error: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub(super) enum Request {
    CanUseTool {
        tool_name: String,
        #[serde(default)]
        input: Value,
        #[serde(default)]
        agent_id: Option<String>,
    },
    HookCallback {
        callback_id: String,
        input: HookInput,
    },
    #[serde(other)]
    Unknown,
}

/// What a hook is told of the tool that it stands before.
#[derive(Deserialize)]
pub(super) struct HookInput {
    #[serde(default)]
    pub(super) tool_name: String,
    #[serde(default)]
    pub(super) tool_input: Value,
}

#[derive(Deserialize)]
pub(super) struct System {
    pub(super) subtype: String,
    #[serde(default)]
    pub(super) session_id: Option<String>,
    #[serde(default)]
    pub(super) model: Option<String>,
    #[serde(default)]
    pub(super) state: Option<String>,
    #[serde(default)]
    pub(super) status: Option<String>,
    #[serde(default)]
    pub(super) tasks: Vec<Task>,
    #[serde(default)]
    pub(super) compact_metadata: Option<CompactMetadata>,
    #[serde(default)]
    pub(super) attempt: u32,
    #[serde(default)]
    pub(super) max_retries: u32,
    #[serde(default)]
    pub(super) retry_delay_ms: Option<f64>,
    #[serde(default)]
    pub(super) error_status: Option<u16>,
    #[serde(default)]
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) tool_name: Option<String>,
    #[serde(default)]
    pub(super) message: Option<String>,
    #[serde(default)]
    pub(super) content: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Task {
    #[serde(default)]
    pub(super) description: String,
}

#[derive(Deserialize)]
pub(super) struct CompactMetadata {
    #[serde(default)]
    pub(super) trigger: String,
    #[serde(default)]
    pub(super) pre_tokens: Option<u64>,
    #[serde(default)]
    pub(super) post_tokens: Option<u64>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum StreamEvent {
    MessageStart {
        message: MessageStart,
    },
    ContentBlockDelta {
        delta: Delta,
    },
    MessageDelta {
        #[serde(default)]
        usage: Option<Tokens>,
    },
    MessageStop,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
pub(super) struct MessageStart {
    pub(super) id: String,
    #[serde(default)]
    pub(super) model: Option<String>,
    #[serde(default)]
    pub(super) usage: Tokens,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Delta {
    TextDelta {
        text: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
pub(super) struct Assistant {
    pub(super) message: Message,
    #[serde(default)]
    pub(super) parent_tool_use_id: Option<String>,
    #[serde(default)]
    pub(super) is_api_error_message: bool,
    #[serde(default)]
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) api_error_status: Option<u16>,
}

#[derive(Deserialize)]
pub(super) struct Message {
    #[serde(default)]
    pub(super) content: Content,
}

/// A text, or blocks.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

impl Default for Content {
    fn default() -> Self {
        Content::Blocks(Vec::new())
    }
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
    Text {
        text: String,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(default)]
        content: Value,
        #[serde(default)]
        is_error: Option<bool>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
pub(super) struct User {
    pub(super) message: Message,
    #[serde(default)]
    pub(super) parent_tool_use_id: Option<String>,
    #[serde(default)]
    pub(super) tool_use_result: Value,
}

#[derive(Deserialize)]
pub(super) struct RateLimitInfo {
    #[serde(default)]
    pub(super) status: String,
    #[serde(default, rename = "resetsAt")]
    pub(super) resets_at: Option<f64>,
    #[serde(default, rename = "rateLimitType")]
    pub(super) limit: String,
    #[serde(default)]
    pub(super) utilization: Option<f64>,
}

#[derive(Deserialize)]
pub(super) struct TurnResult {
    #[serde(default)]
    pub(super) is_error: bool,
    #[serde(default)]
    pub(super) subtype: String,
    #[serde(default)]
    pub(super) terminal_reason: Option<String>,
    #[serde(default)]
    pub(super) result: Option<String>,
    #[serde(default)]
    pub(super) errors: Vec<String>,
    #[serde(default)]
    pub(super) api_error_status: Option<u16>,
    #[serde(default)]
    pub(super) user_message_uuid: Option<String>,
    #[serde(default)]
    pub(super) user_message_uuids: Option<Vec<String>>,
    #[serde(default)]
    pub(super) origin: Option<Origin>,
    #[serde(default)]
    pub(super) usage: Tokens,
    #[serde(default, rename = "modelUsage")]
    pub(super) totals: BTreeMap<String, ModelTokens>,
    #[serde(default, rename = "model_usage_since_last_result")]
    pub(super) since_last: Option<BTreeMap<String, ModelTokens>>,
}

impl TurnResult {
    /// Somebody broke it off.
    pub(super) fn was_aborted(&self) -> bool {
        self.terminal_reason.as_deref().is_some_and(|reason| reason.starts_with("aborted"))
    }

    /// It ends a turn that nobody's message began, such as one about background work that is over.
    pub(super) fn is_of_its_own_turn(&self) -> bool {
        self.origin.as_ref().is_some_and(|origin| origin.kind != "human")
    }
}

/// What began a turn, where it was no message.
#[derive(Deserialize)]
pub(super) struct Origin {
    #[serde(default)]
    pub(super) kind: String,
}

/// As the Messages API counts.
#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
pub(super) struct Tokens {
    pub(super) input_tokens: Option<u64>,
    pub(super) cache_creation_input_tokens: Option<u64>,
    pub(super) cache_read_input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default)]
pub(super) struct OutputDetails {
    pub(super) thinking_tokens: Option<u64>,
}

impl Tokens {
    /// What is said here, and where nothing is said, what was known before.
    pub(super) fn over(self, known: Usage) -> Usage {
        Usage {
            input: self.input_tokens.unwrap_or(known.input),
            cache_read: self.cache_read_input_tokens.unwrap_or(known.cache_read),
            cache_write: self.cache_creation_input_tokens.unwrap_or(known.cache_write),
            output: self.output_tokens.unwrap_or(known.output),
            reasoning: self
                .output_tokens_details
                .and_then(|details| details.thinking_tokens)
                .unwrap_or(known.reasoning),
        }
    }
}

/// As Claude Code counts by model.
#[derive(Deserialize, Default, Clone, Copy)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ModelTokens {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
    pub(super) context_window: Option<u64>,
}

impl From<ModelTokens> for Usage {
    fn from(tokens: ModelTokens) -> Usage {
        Usage {
            input: tokens.input_tokens,
            cache_read: tokens.cache_read_input_tokens,
            cache_write: tokens.cache_creation_input_tokens,
            output: tokens.output_tokens,
            reasoning: 0,
        }
    }
}
