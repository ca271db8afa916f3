//! The agent's side of the Agent Client Protocol: JSON-RPC, one object a line.
//!
//! What the protocol has no word for travels as `_ostler/…` notifications, which other clients ignore.

use std::io::{self, Write};

use ostler_domain::Usage;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    conversation::{Conversation, Item},
    think::Piece,
    tools::{Kind, Outcome},
    turn::{Asked, End},
};

pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const INVALID_PARAMS: i64 = -32602;
pub(super) const INTERNAL: i64 = -32603;
pub(super) const LOGIN_REQUIRED: i64 = -32000;
pub(super) const NOT_FOUND: i64 = -32002;

/// A line that came in.
#[derive(Debug, Deserialize)]
pub(super) struct Incoming {
    #[serde(default)]
    pub(super) id: Option<Value>,
    #[serde(default)]
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) params: Value,
    #[serde(default)]
    pub(super) result: Option<Value>,
    #[serde(default)]
    pub(super) error: Option<Value>,
}

/// Prints one line, whole and at once: who kills us between two lines finds no half one.
fn say(message: &Value) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

pub(super) fn answer(id: &Value, result: Value) -> io::Result<()> {
    say(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

pub(super) fn refuse(id: &Value, code: i64, message: &str) -> io::Result<()> {
    say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
}

pub(super) fn initialized(version: &str) -> Value {
    json!({
        "protocolVersion": 1,
        "agentInfo": {"name": "ostler-agent", "title": "Ostler's own agent", "version": version},
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": {"image": false, "audio": false, "embeddedContext": false},
            "sessionCapabilities": {"resume": {}, "fork": {}},
            "_meta": {"_ostler/ping": true, "_ostler/steer": true},
        },
        "authMethods": [],
    })
}

/// The conversation's own model, and the one that this agent was started with.
pub(super) fn opened(session: Option<&str>, model: &str, configured: &str) -> Value {
    let is_other = configured != model;
    let models: Vec<Value> = std::iter::once(model)
        .chain(is_other.then_some(configured))
        .map(|model| json!({"modelId": model, "name": model}))
        .collect();
    let mut result = json!({"models": {"currentModelId": model, "availableModels": models}});
    if let Some(session) = session {
        result["sessionId"] = session.into();
    }
    result
}

/// What one model call cost.
pub(super) struct Spent<'a> {
    pub(super) usage: Usage,
    pub(super) estimated: bool,
    pub(super) model: &'a str,
    /// The server's name for the call.
    pub(super) call: Option<&'a str>,
}

/// What one session says.
pub(super) struct Voice {
    pub(super) session: String,
}

impl Voice {
    fn update(&self, update: Value) -> io::Result<()> {
        say(
            &json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": self.session, "update": update}}),
        )
    }

    fn extra(&self, method: &str, mut params: Value) -> io::Result<()> {
        params["sessionId"] = self.session.as_str().into();
        say(&json!({"jsonrpc": "2.0", "method": format!("_ostler/{method}"), "params": params}))
    }

    /// A piece of a reply, as it streams.
    pub(super) fn piece(&self, message: &str, piece: &Piece) -> io::Result<()> {
        let (kind, text) = match piece {
            Piece::Text(text) => ("agent_message_chunk", text),
            Piece::Thinking(text) => ("agent_thought_chunk", text),
        };
        self.chunk(kind, Some(message), text)
    }

    fn chunk(&self, kind: &str, message: Option<&str>, text: &str) -> io::Result<()> {
        let mut update = json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}});
        if let Some(message) = message {
            update["messageId"] = message.into();
        }
        self.update(update)
    }

    /// What was shown of a message does not count.
    pub(super) fn withdraw(&self, message: &str) -> io::Result<()> {
        self.extra("withdrawn", json!({"messageId": message}))
    }

    pub(super) fn tool_started(
        &self,
        number: u64,
        name: &str,
        title: &str,
        kind: Kind,
        input: &Value,
    ) -> io::Result<()> {
        self.update(
            json!({"sessionUpdate": "tool_call", "toolCallId": call_id(number), "name": name, "title": title,
            "kind": kind.as_str(), "status": "pending", "rawInput": input}),
        )
    }

    pub(super) fn tool_runs(&self, number: u64) -> io::Result<()> {
        self.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": call_id(number), "status": "in_progress"}))
    }

    pub(super) fn tool_ended(&self, number: u64, outcome: &Outcome) -> io::Result<()> {
        let mut output = json!({"output": outcome.output});
        if let Some(exit) = outcome.exit {
            output["exitCode"] = exit.into();
        }
        self.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": call_id(number),
            "status": if outcome.ok { "completed" } else { "failed" }, "rawOutput": output,
            "content": [{"type": "content", "content": {"type": "text", "text": outcome.output}}]}))
    }

    /// One model call's tokens. `used` is how full the context is; what was spent is in `_meta`.
    pub(super) fn usage(&self, spent: &Spent<'_>, used: u64, window: Option<u64>) -> io::Result<()> {
        let Spent { usage, estimated, model, call } = spent;
        self.update(json!({"sessionUpdate": "usage_update", "used": used, "size": window.unwrap_or(0),
            "_meta": {"ostler": {"call": usage, "callId": call, "estimated": estimated, "model": model}}}))
    }

    pub(super) fn waiting(
        &self,
        why: &str,
        rate_limit: bool,
        after: std::time::Duration,
        attempt: u32,
    ) -> io::Result<()> {
        let ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        let said = json!({"reason": why, "rateLimit": rate_limit, "retryAfterMs": ms, "attempt": attempt});
        self.extra("waiting", said)
    }

    pub(super) fn compacted(&self, how: &str) -> io::Result<()> {
        self.extra("compacted", json!({"reason": how}))
    }

    pub(super) fn ask(&self, id: u64, asked: &Asked) -> io::Result<()> {
        say(&json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": {
            "sessionId": self.session,
            "toolCall": tool_call(asked),
            "options": [
                {"optionId": "allow", "kind": "allow_once", "name": "Allow"},
                {"optionId": "reject", "kind": "reject_once", "name": "Reject"},
            ],
        }}))
    }

    /// Asks whether leave must be asked for.
    pub(super) fn announce(&self, id: u64, asked: &Asked) -> io::Result<()> {
        let params = json!({"sessionId": self.session, "toolCall": tool_call(asked)});
        say(&json!({"jsonrpc": "2.0", "id": id, "method": "_ostler/announce", "params": params}))
    }

    /// Tells a conversation that was loaded, before the answer to the request that loaded it.
    pub(super) fn replay(&self, conversation: &Conversation) -> io::Result<()> {
        // Numbers of calls that a summary has swallowed are not used again.
        let shown: u64 = conversation
            .items
            .iter()
            .map(|item| match item {
                Item::Model(reply) => reply.calls.len() as u64,
                _ => 0,
            })
            .sum();
        let mut next = conversation.calls - shown;
        let mut open = std::collections::VecDeque::new();
        for item in &conversation.items {
            match item {
                Item::User { text } => self.chunk("user_message_chunk", None, text)?,
                Item::Model(reply) => {
                    if !reply.thinking.is_empty() {
                        self.chunk("agent_thought_chunk", None, &reply.thinking)?;
                    }
                    if !reply.text.is_empty() {
                        self.chunk("agent_message_chunk", None, &reply.text)?;
                    }
                    for call in &reply.calls {
                        next += 1;
                        open.push_back(next);
                        self.tool_started(
                            next,
                            &call.name,
                            &call.name,
                            Kind::Other,
                            &call.arguments.clone().into(),
                        )?;
                    }
                }
                Item::Tool(answer) => {
                    if let Some(number) = open.pop_front() {
                        let outcome = Outcome { ok: answer.ok, exit: None, output: answer.output.clone() };
                        self.tool_ended(number, &outcome)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Answers the prompt that a turn was for.
    pub(super) fn ended(&self, id: &Value, end: &End, spent: &Usage) -> io::Result<()> {
        let reason = match end {
            End::Done => "end_turn",
            End::Truncated => "max_tokens",
            End::Refused => "refusal",
            End::TooManyRounds => "max_turn_requests",
            End::Cancelled => "cancelled",
            End::Failed { message, login } => {
                return refuse(id, if *login { LOGIN_REQUIRED } else { INTERNAL }, message);
            }
        };
        answer(
            id,
            json!({"stopReason": reason, "usage": {
            "inputTokens": spent.input, "cachedReadTokens": spent.cache_read, "outputTokens": spent.output,
            "thoughtTokens": spent.reasoning, "totalTokens": spent.total()}}),
        )
    }
}

/// A call that somebody is to judge.
fn tool_call(asked: &Asked) -> Value {
    let mut call = json!({"toolCallId": call_id(asked.number), "title": asked.title, "kind": asked.kind.as_str(),
        "status": "pending", "rawInput": asked.input});
    if asked.kind == Kind::Search {
        // Where no place is said, it searches where it works.
        let path = asked.input["path"].as_str().unwrap_or(".");
        call["locations"] = json!([{"path": path}]);
    }
    call
}

fn call_id(number: u64) -> String {
    format!("call-{number}")
}
