//! Events of one session, folded into spans. A span is said when it ends.

use std::collections::BTreeMap;

use super::{Context, FIRST, genai, span_id};
use crate::{
    Event, Kind, Recorded, SessionId, Time, Usage,
    event::{StopReason, ToolCall, ToolResult, TurnEnded, UsageRecorded},
    limits::{TELEMETRY_OPEN_TOOLS, TELEMETRY_TEXT_BYTES},
    redact::redact,
    session::{Created, Ended},
    text::head,
};

/// The kinds of events that spans are made of.
pub const KINDS: &[Kind] = &[
    Kind::SessionCreated,
    Kind::SessionStarted,
    Kind::ProviderBound,
    Kind::ModelChanged,
    Kind::SessionStopped,
    Kind::SessionFailed,
    Kind::TurnStarted,
    Kind::TurnEnded,
    Kind::MessageAccepted,
    Kind::AgentCompletion,
    Kind::AgentToolCall,
    Kind::AgentToolResult,
    Kind::UsageRecorded,
];

/// Messages that a turn is said to have been told.
const MESSAGES: usize = 16;

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(String),
    Number(i64),
    Amount(f64),
    Switch(bool),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    pub trace: u128,
    pub id: u64,
    pub parent: Option<u64>,
    pub name: String,
    /// Somebody else was called: the model.
    pub is_call: bool,
    pub start: Time,
    pub end: Time,
    pub attributes: Vec<(&'static str, Value)>,
    /// Set where it came to nothing; the text is empty unless content is wanted.
    pub error: Option<String>,
}

impl Span {
    fn with(mut self, key: &'static str, value: impl Into<Value>) -> Span {
        self.attributes.push((key, value.into()));
        self
    }

    fn with_some(self, key: &'static str, value: Option<impl Into<Value>>) -> Span {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    fn failed(mut self, kind: Option<&str>, text: Option<&str>) -> Span {
        if let Some(kind) = kind {
            self = self.with(genai::ERROR_TYPE, kind);
            self.error = Some(text.map(cut).unwrap_or_default());
        }
        self
    }

    fn with_usage(self, usage: &Usage) -> Span {
        let input = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
        self.with(genai::INPUT_TOKENS, input)
            .with(genai::OUTPUT_TOKENS, usage.output)
            .with(genai::CACHE_READ, usage.cache_read)
            .with(genai::CACHE_CREATION, usage.cache_write)
            .with(genai::REASONING, usage.reasoning)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// What is open in one session.
#[derive(Debug, Clone)]
pub struct SessionTrace {
    id: SessionId,
    context: Context,
    parent: Option<u64>,
    created: Box<Created>,
    since: Time,
    model: Option<String>,
    turn: Option<Turn>,
    tools: BTreeMap<String, Tool>,
    usage: Usage,
    /// What has been said to the agent since its last turn began.
    told: Vec<String>,
    with_content: bool,
    has_ended: bool,
}

#[derive(Debug, Clone)]
struct Turn {
    number: u32,
    span: u64,
    start: Time,
    /// When the last thing before a model call was known: it cannot have begun earlier.
    last: Time,
    told: Vec<String>,
    said: Option<String>,
    usage: Usage,
}

#[derive(Debug, Clone)]
struct Tool {
    span: u64,
    parent: u64,
    start: Time,
    name: String,
    input: String,
}

impl SessionTrace {
    /// Begins with the event that created the session; any other begins nothing.
    pub fn begin(recorded: &Recorded, with_content: bool) -> Option<SessionTrace> {
        let Event::SessionCreated(created) = &recorded.event else { return None };
        Some(SessionTrace {
            id: created.id,
            context: Context::of_session(created),
            parent: Context::parent_of(&created.config.environment).map(|parent| parent.span),
            model: created.config.model.clone(),
            created: created.clone(),
            since: recorded.time,
            turn: None,
            tools: BTreeMap::new(),
            usage: Usage::default(),
            told: Vec::new(),
            with_content,
            has_ended: false,
        })
    }

    /// Nothing more comes.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Takes the session's next event; the spans that end with it. What was imported happened long ago, and its programs may
    /// have told of it themselves: nobody is told again.
    pub fn apply(&mut self, recorded: &Recorded) -> Vec<Span> {
        let ended = self.take(recorded);
        if self.created.imported.is_some() { Vec::new() } else { ended }
    }

    fn take(&mut self, recorded: &Recorded) -> Vec<Span> {
        let at = recorded.time;
        let span = span_id(self.id, recorded.session_seq.unwrap_or(FIRST));
        let ended = match &recorded.event {
            Event::SessionStarted(started) => {
                self.model = started.model.clone().or(self.model.take());
                Vec::new()
            }
            Event::ProviderBound(bound) => {
                self.model = bound.model.clone().or(self.model.take());
                Vec::new()
            }
            Event::ModelChanged(changed) if !changed.at_next_session => {
                self.model = Some(changed.model.clone());
                Vec::new()
            }
            Event::MessageAccepted(accepted) if self.with_content && self.told.len() < MESSAGES => {
                self.told.push(cut(&accepted.message.text));
                Vec::new()
            }
            Event::TurnStarted(started) => {
                let told = std::mem::take(&mut self.told);
                let (number, usage) = (started.turn, Usage::default());
                self.turn = Some(Turn { number, span, start: at, last: at, told, said: None, usage });
                Vec::new()
            }
            Event::AgentCompletion(text) if self.with_content && text.subagent.is_none() => {
                if let Some(turn) = &mut self.turn {
                    turn.said = Some(cut(&text.text));
                }
                Vec::new()
            }
            Event::AgentToolCall(call) => {
                self.call(call, span, at);
                Vec::new()
            }
            Event::AgentToolResult(result) => self.result(result, at),
            Event::UsageRecorded(used) => self.model_call(used, span, at),
            Event::TurnEnded(ended) => self.turn_ended(ended, at),
            Event::SessionStopped(ended) | Event::SessionFailed(ended) => {
                let is_failure = matches!(recorded.event, Event::SessionFailed(_));
                self.session_ended(ended, is_failure, at)
            }
            _ => Vec::new(),
        };
        if self.context.sampled { ended } else { Vec::new() }
    }

    fn span(
        &self,
        id: u64,
        parent: Option<u64>,
        operation: &'static str,
        what: &str,
        start: Time,
        end: Time,
    ) -> Span {
        let name = if what.is_empty() { operation.to_owned() } else { format!("{operation} {what}") };
        let provider = &self.created.config.provider;
        let (trace, attributes) = (self.context.trace, Vec::new());
        Span { trace, id, parent, name, is_call: false, start, end, attributes, error: None }
            .with(genai::OPERATION, operation)
            .with(genai::PROVIDER, genai::provider(provider))
            .with(genai::CONVERSATION, self.created.chain.to_string())
            .with(genai::OSTLER_SESSION, self.id.to_string())
    }

    fn call(&mut self, call: &ToolCall, span: u64, at: Time) {
        let of_subagent = call.subagent.as_ref().and_then(|id| self.tools.get(id)).map(|tool| tool.span);
        let of_turn = self.turn.as_ref().map(|turn| turn.span);
        let parent = of_subagent.or(of_turn).unwrap_or(self.context.span);
        if self.tools.len() >= TELEMETRY_OPEN_TOOLS
            && let Some(oldest) =
                self.tools.iter().min_by_key(|(_, tool)| tool.start).map(|(id, _)| id.clone())
        {
            self.tools.remove(&oldest);
        }
        let input = if self.with_content { cut(&call.input) } else { String::new() };
        let tool = Tool { span, parent, start: at, name: call.tool.clone(), input };
        self.tools.insert(call.tool_id.clone(), tool);
    }

    fn result(&mut self, result: &ToolResult, at: Time) -> Vec<Span> {
        if let Some(turn) = &mut self.turn {
            turn.last = at;
        }
        let Some(tool) = self.tools.remove(&result.tool_id) else { return Vec::new() };
        let kind =
            (!result.success).then(|| result.exit.map_or("failed".to_owned(), |exit| format!("exit {exit}")));
        let output = self.with_content.then(|| cut(&result.output));
        let span = self.tool_span(&tool, &result.tool_id, at);
        vec![span.with_some(genai::TOOL_RESULT, output).failed(kind.as_deref(), None)]
    }

    fn tool_span(&self, tool: &Tool, id: &str, end: Time) -> Span {
        let input = self.with_content.then(|| tool.input.clone());
        self.span(tool.span, Some(tool.parent), genai::TOOL, &tool.name, tool.start, end)
            .with(genai::TOOL_NAME, tool.name.as_str())
            .with(genai::TOOL_CALL, id)
            .with_some(genai::TOOL_ARGUMENTS, input)
    }

    /// Only the end of a call is known; it began at the earliest when the last thing before it was over.
    fn model_call(&mut self, used: &UsageRecorded, span: u64, at: Time) -> Vec<Span> {
        if used.usage.is_zero() {
            // The other source has told of it.
            return Vec::new();
        }
        self.usage += used.usage;
        let (parent, start) =
            self.turn.as_ref().map_or((self.context.span, at), |turn| (turn.span, turn.last));
        if let Some(turn) = &mut self.turn {
            turn.usage += used.usage;
            turn.last = at;
        }
        let model = used.model.as_deref().or(self.model.as_deref()).unwrap_or_default();
        let mut said = self
            .span(span, Some(parent), genai::MODEL_CALL, model, start, at)
            .with_some(genai::REQUEST_MODEL, self.model.as_deref())
            .with_some(genai::RESPONSE_MODEL, used.model.as_deref())
            .with_some(genai::RESPONSE_ID, used.call.as_deref())
            .with_usage(&used.usage)
            .with_some(genai::OSTLER_COST, used.cost.map(|cost| Value::Amount(cost.0 as f64 / 1e6)));
        if used.plan {
            said = said.with(genai::OSTLER_COVERED, Value::Switch(true));
        }
        said.is_call = true;
        vec![said]
    }

    fn turn_ended(&mut self, ended: &TurnEnded, at: Time) -> Vec<Span> {
        let Some(turn) = self.turn.take() else { return Vec::new() };
        let kind = match ended.stop_reason {
            StopReason::Completed => ended.failure.as_ref().map(|_| "error"),
            StopReason::Interrupted => Some("interrupted"),
            StopReason::Error => Some("error"),
            StopReason::ProcessEnded => Some("process_ended"),
        };
        let why = ended.failure().filter(|_| self.with_content);
        vec![self.turn_span(&turn, at).failed(kind, why)]
    }

    /// What the agent is called where this goes. A session's own name is mostly made of what was said to it first.
    fn called(&self) -> &str {
        match &self.created.agent {
            _ if self.with_content => self.created.name.as_str(),
            Some(agent) => agent.name.as_str(),
            None => &self.created.config.provider,
        }
    }

    fn turn_span(&self, turn: &Turn, end: Time) -> Span {
        let agent = self.called().to_owned();
        let told = (!turn.told.is_empty()).then(|| messages("user", &turn.told));
        let said = turn.said.as_ref().map(|said| messages("assistant", std::slice::from_ref(said)));
        self.span(turn.span, Some(self.context.span), genai::TURN, &agent, turn.start, end)
            .with(genai::AGENT_NAME, agent.as_str())
            .with(genai::OSTLER_TURN, u64::from(turn.number))
            .with_some(genai::REQUEST_MODEL, self.model.as_deref())
            .with_usage(&turn.usage)
            .with_some(genai::INPUT_MESSAGES, told)
            .with_some(genai::OUTPUT_MESSAGES, said)
    }

    /// What is still open ends with its session.
    fn session_ended(&mut self, ended: &Ended, is_failure: bool, at: Time) -> Vec<Span> {
        self.has_ended = true;
        let cut_short = Some("process_ended");
        let mut spans: Vec<Span> = std::mem::take(&mut self.tools)
            .iter()
            .map(|(id, tool)| self.tool_span(tool, id, at).failed(cut_short, None))
            .collect();
        spans.extend(self.turn.take().map(|turn| self.turn_span(&turn, at).failed(cut_short, None)));
        let agent = self.called().to_owned();
        let outcome = ended.outcome.as_str();
        let why = self.with_content.then_some(ended.obituary.sentence.as_str());
        let session = self
            .span(self.context.span, self.parent, genai::SESSION, &agent, self.since, at)
            .with(genai::WORKFLOW_NAME, agent.as_str())
            .with(genai::OSTLER_CAMPAIGN, self.created.campaign.to_string())
            .with(genai::OSTLER_PROVIDER, self.created.config.provider.as_str())
            .with(genai::OSTLER_OUTCOME, outcome)
            .with_some(genai::OSTLER_TICKET, self.created.config.ticket.as_deref())
            .with_usage(&self.usage)
            .failed(is_failure.then_some(outcome), why);
        spans.push(session);
        spans
    }
}

/// What people said is recorded as they said it, and goes no further like that. Blotted out first: half a secret is known as
/// none.
fn cut(text: &str) -> String {
    head(&redact(text), TELEMETRY_TEXT_BYTES).to_owned()
}

/// Messages in the form that the convention has for them.
fn messages(role: &str, texts: &[String]) -> String {
    let said: Vec<_> = texts
        .iter()
        .map(|text| serde_json::json!({"role": role, "parts": [{"type": "text", "content": text}]}))
        .collect();
    serde_json::Value::Array(said).to_string()
}

#[cfg(test)]
mod tests;
