//! What a provider's dialogue understood of the tape.

use crate::{
    MessageId, Time, Usage,
    event::{
        Action, AgentRetrying, AskKind, ContextCompacted, ContextMeasured, ImageRecorded, Raw, StopReason,
        Text, ToolCall, ToolResult,
    },
    gateway::ModelCall,
};

/// The tokens of one model call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallUsage {
    pub usage: Usage,
    pub model: Option<String>,
    /// The model server's name for the call, by which the agent's report and the wire mean the same one. Absent in a
    /// report: tokens of calls that the agent does not name, such as those of its sub-agents, added up.
    pub call: Option<String>,
}

impl CallUsage {
    /// What the wire says of a call; none where the answer did not say what it took.
    pub fn of(call: ModelCall) -> Option<CallUsage> {
        let ModelCall { id, request_id, model, usage, .. } = call;
        Some(CallUsage { usage: usage?, model, call: id.or(request_id) })
    }
}

/// What a dialogue understood.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// Ready for messages. The provider's own id is a claim until [`Report::Bound`].
    Ready {
        provider_id: Option<String>,
        model: Option<String>,
    },
    /// A turn began, because of these messages or by itself.
    TurnStarted {
        messages: Vec<MessageId>,
    },
    TurnEnded {
        stop_reason: StopReason,
    },
    /// What was said into the open turn went no further than the agent: its model has not read it, and will not.
    Unread {
        messages: Vec<MessageId>,
    },
    /// The same where nobody can know whether its model has read it.
    Unclear {
        messages: Vec<MessageId>,
    },
    /// A turn runs under this id: the provider really has it. Comes again when the id changes.
    Bound {
        provider_id: String,
        model: Option<String>,
    },
    /// What the agent left running beside its turns, one readable line each: all of it, every time.
    Background {
        tasks: Vec<String>,
    },
    Thinking(Text),
    ToolCall(ToolCall),
    ToolResult(ToolResult),
    /// Before the result that it is in.
    Image(ImageRecorded),
    Completion(Text),
    Status(String),
    Error(String),
    /// A model call failed and is made again.
    Retrying(AgentRetrying),
    /// The model's server wants fewer calls, or none until a time; absent when it did not say.
    RateLimited {
        what: String,
        until: Option<Time>,
    },
    /// The model's server does not accept the agent's key or login.
    AuthFailed(String),
    /// What opens the dialogue was refused: it will never be ready, and says why.
    CannotStart(String),
    Compacted(ContextCompacted),
    /// How full the context of the main dialogue is, as often as the agent says it.
    Context(ContextMeasured),
    /// The agent no longer knows what was said before, or cannot find it again.
    ContextReset {
        why: String,
    },
    Stderr(Raw),
    Opaque(Raw),
    Oversize(Raw),
    Partial(Raw),
    /// Once for each model call.
    Usage(CallUsage),
    ApprovalAsked {
        ask: String,
        tool: String,
        input: String,
        kind: AskKind,
        action: Action,
        subagent: Option<String>,
    },
    /// The agent is about to use a tool, perhaps without asking for leave, and waits to hear whether it must ask.
    ToolAnnounced {
        ask: String,
        tool: String,
        action: Action,
    },
    /// The agent no longer waits for an answer.
    ApprovalWithdrawn {
        ask: String,
    },
    /// The agent answered a nudge: it lives, and says no more.
    Alive,
}
