//! What an agent said, without what looks like a secret: from here on it is recorded, searched and shown.

use super::Report;
use crate::{
    Event,
    event::{Action, AgentRetrying, Raw, Text, ToolCall, ToolResult},
    redact::{blots, redacted},
};

/// How often something was blotted out of what an event says of an agent's words, calls and results.
pub(super) fn blots_in(event: &Event) -> u32 {
    match event {
        Event::AgentThinking(said)
        | Event::AgentCompletion(said)
        | Event::AgentStatus(said)
        | Event::AgentError(said) => blots(&said.text),
        // Its line is a part of it.
        Event::AgentToolCall(call) => blots(&call.input).max(blots(&call.summary)),
        Event::AgentToolResult(result) => blots(&result.output),
        Event::AgentStderr(raw) | Event::Opaque(raw) | Event::Oversize(raw) | Event::Partial(raw) => {
            blots(&raw.text)
        }
        _ => 0,
    }
}

impl Report {
    /// The report as it may be recorded.
    pub(super) fn redacted(self) -> Self {
        let text = |said: Text| Text { text: redacted(said.text), ..said };
        let raw = |raw: Raw| Raw { text: redacted(raw.text), ..raw };
        match self {
            Report::Thinking(said) => Report::Thinking(text(said)),
            Report::Completion(said) => Report::Completion(text(said)),
            Report::Status(said) => Report::Status(redacted(said)),
            Report::Error(said) => Report::Error(redacted(said)),
            Report::AuthFailed(said) => Report::AuthFailed(redacted(said)),
            Report::CannotStart(said) => Report::CannotStart(redacted(said)),
            Report::Retrying(retrying) => {
                Report::Retrying(AgentRetrying { why: redacted(retrying.why), ..retrying })
            }
            Report::RateLimited { what, until } => Report::RateLimited { what: redacted(what), until },
            Report::ContextReset { why } => Report::ContextReset { why: redacted(why) },
            Report::Background { tasks } => {
                Report::Background { tasks: tasks.into_iter().map(redacted).collect() }
            }
            Report::ToolCall(call) => Report::ToolCall(ToolCall {
                summary: redacted(call.summary),
                input: redacted(call.input),
                ..call
            }),
            Report::ToolResult(result) => {
                Report::ToolResult(ToolResult { output: redacted(result.output), ..result })
            }
            Report::Stderr(line) => Report::Stderr(raw(line)),
            Report::Opaque(line) => Report::Opaque(raw(line)),
            Report::Oversize(line) => Report::Oversize(raw(line)),
            Report::Partial(line) => Report::Partial(raw(line)),
            Report::ApprovalAsked { ask, tool, input, kind, action, subagent } => Report::ApprovalAsked {
                ask,
                tool,
                input: redacted(input),
                kind,
                action: match action {
                    Action::Run { command } => Action::Run { command: redacted(command) },
                    Action::Fetch { url } => Action::Fetch { url: redacted(url) },
                    action @ (Action::Write { .. } | Action::Read { .. } | Action::Other) => action,
                },
                subagent,
            },
            // Nobody looks for words in a picture, and what is only announced is not recorded.
            report @ (Report::Ready { .. }
            | Report::ToolAnnounced { .. }
            | Report::Image(_)
            | Report::TurnStarted { .. }
            | Report::TurnEnded { .. }
            | Report::Unread { .. }
            | Report::Unclear { .. }
            | Report::Bound { .. }
            | Report::Compacted(_)
            | Report::Context(_)
            | Report::Usage(_)
            | Report::ApprovalWithdrawn { .. }
            | Report::Alive) => report,
        }
    }
}
