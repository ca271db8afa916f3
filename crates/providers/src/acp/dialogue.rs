//! The conversation with an agent that speaks the protocol: JSON-RPC, one object a line, requests both ways.
//!
//! All that is remembered comes off the tape: what the agent printed, and what was written to it, which is read back
//! with its tag. Which request an answer belongs to is known from the request's own line.

use std::collections::BTreeMap;

use ostler_domain::{
    Message, MessageId,
    event::{AskKind, StopReason},
    session::{AgentRequest, Begin, Report},
    text::one_line,
};
use ostler_tape::{Line, LineBody, Stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::turn::Turn;
use crate::{Dialogue, DialogueState, Heard, Say, Terms, UnknownState, foreign, mcp};

const STATE_VERSION: u32 = 1;
const PROTOCOL_VERSION: u64 = 1;
/// A method of our own, for agents that say that they know it.
const PING: &str = "_ostler/ping";
/// Another, by which such an agent is told something within a turn.
const STEER: &str = "_ostler/steer";
/// Another, by which such an agent says that it is about to use a tool, and asks whether it must ask for leave.
const ANNOUNCE: &str = "_ostler/announce";
const METHOD_NOT_FOUND: i64 = -32601;
const LOGIN_REQUIRED: i64 = -32000;
/// The tag of the first line begins with this; the rest is what the dialogue must know.
const OPENING: &str = "open:";
/// Longest message of an agent that is put into a report.
const ERROR_BYTES: usize = 2000;
/// Requests of ours that wait for an answer, at most.
const WAITING: usize = 64;

/// What is said first.
pub(crate) fn opening(terms: &Terms) -> Vec<Say> {
    let opening = Opening {
        cwd: terms.working_dir.to_string_lossy().into_owned(),
        resume: terms.begin.provider_id().map(str::to_owned),
        fork: matches!(terms.begin, Begin::Fork { .. }),
        model: terms.model.clone(),
        mcp: terms.mcp.as_ref().map(|ostler| ostler.to_string_lossy().into_owned()),
    };
    let Ok(tag) = serde_json::to_string(&opening) else { return Vec::new() };
    let initialize = json!({"jsonrpc": "2.0", "id": "open", "method": "initialize", "params": {
        "protocolVersion": PROTOCOL_VERSION,
        "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false},
        "clientInfo": {"name": "ostler", "title": "Ostler", "version": env!("CARGO_PKG_VERSION")},
    }});
    Say::line(format!("{OPENING}{tag}"), &initialize).into_iter().collect()
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Opening {
    cwd: String,
    resume: Option<String>,
    fork: bool,
    model: Option<String>,
    /// The program that has our tools for its model.
    mcp: Option<String>,
}

impl Opening {
    /// The servers of tools that a conversation is opened with.
    fn servers(&self) -> Value {
        let ostler = self.mcp.as_ref();
        ostler
            .map(|ostler| json!({"name": mcp::NAME, "command": ostler, "args": [mcp::ARG], "env": []}))
            .into_iter()
            .collect()
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct AcpDialogue {
    opening: Opening,
    /// The agent's name for the conversation.
    session: Option<String>,
    is_bound: bool,
    /// It answers a ping. Others are not asked: some print on standard error that they do not know the method.
    answers_pings: bool,
    /// It can be told something within a turn.
    can_steer: bool,
    /// What it was told so, and has not said that it has heard.
    steered: Vec<MessageId>,
    /// A conversation of before is being told again: nothing of it is new.
    is_loading: bool,
    /// Our requests that wait for an answer, by id.
    waiting: BTreeMap<String, Waiting>,
    asks: BTreeMap<String, Ask>,
    /// The ids of calls that it has announced and that wait to hear whether it must ask.
    announced: BTreeMap<String, Value>,
    turn: Option<Turn>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Waiting {
    Initialize,
    Open { resumed: bool },
    Prompt,
    Steer { prompt: Value },
    Ping,
    Other,
}

/// A question of the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Ask {
    id: Value,
    allow: Option<String>,
    reject: Option<String>,
}

impl AcpDialogue {
    pub(crate) fn restore(state: Option<&DialogueState>) -> Result<Self, UnknownState> {
        match state {
            None => Ok(Self::default()),
            Some(state) if state.version != STATE_VERSION => Err(UnknownState(state.version)),
            Some(state) => serde_json::from_slice(&state.bytes).map_err(|_| UnknownState(state.version)),
        }
    }
}

impl Dialogue for AcpDialogue {
    fn on_line(&mut self, line: &Line<'_>, heard: &mut Vec<Heard>) {
        match (line.stream, &mut self.turn) {
            (Stream::In, _) => return self.told(line, heard),
            (Stream::Wire, Some(turn)) => return turn.seen_on_the_wire(),
            _ => {}
        }
        let message = foreign::object(line).and_then(|text| serde_json::from_str::<Value>(text).ok());
        match message {
            Some(message) if message.get("method").is_some() || message.get("id").is_some() => {
                self.said(&message, line, heard);
            }
            _ => heard.extend(foreign::unread(line).map(Heard::Report)),
        }
    }

    fn on_request(&self, request: &AgentRequest, input_no: u64) -> Option<Vec<u8>> {
        let session = self.session.as_deref().unwrap_or_default();
        let call = |method: &str, params: Value| {
            foreign::lines(&[
                json!({"jsonrpc": "2.0", "id": format!("in-{input_no}"), "method": method, "params": params}),
            ])
        };
        let told = |message: &Message| json!({"sessionId": session, "prompt": [{"type": "text", "text": message.text}]});
        match request {
            AgentRequest::Prompt(message) => call("session/prompt", told(message)),
            AgentRequest::Steer(message) if self.can_steer => call(STEER, told(message)),
            AgentRequest::Interrupt => {
                let cancel =
                    json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
                let cancelled = json!({"outcome": {"outcome": "cancelled"}});
                let answers = self
                    .asks
                    .values()
                    .map(|ask| json!({"jsonrpc": "2.0", "id": ask.id, "result": cancelled}));
                foreign::lines(&std::iter::once(cancel).chain(answers).collect::<Vec<_>>())
            }
            AgentRequest::Answer { ask, allow, message } => {
                let ask = self.asks.get(ask)?;
                let mut outcome = match if *allow { &ask.allow } else { &ask.reject } {
                    Some(option) => json!({"outcome": "selected", "optionId": option}),
                    None => json!({"outcome": "cancelled"}),
                };
                if !message.is_empty() {
                    outcome["_meta"] = json!({"message": message});
                }
                foreign::lines(&[json!({"jsonrpc": "2.0", "id": ask.id, "result": {"outcome": outcome}})])
            }
            AgentRequest::Model(model) => {
                call("session/set_model", json!({"sessionId": session, "modelId": model}))
            }
            AgentRequest::Nudge if self.answers_pings => call(PING, json!({})),
            AgentRequest::Proceed { ask, must_ask } => {
                let ask = self.announced.get(ask)?;
                foreign::lines(&[json!({"jsonrpc": "2.0", "id": ask, "result": {"mustAsk": must_ask}})])
            }
            AgentRequest::Nudge | AgentRequest::Steer(_) | AgentRequest::End => None,
        }
    }

    fn state(&self) -> DialogueState {
        DialogueState { version: STATE_VERSION, bytes: serde_json::to_vec(self).unwrap_or_default() }
    }
}

impl AcpDialogue {
    /// Something was written to the agent.
    fn told(&mut self, line: &Line<'_>, heard: &mut Vec<Heard>) {
        let tag = line.input.as_ref().map_or("", |input| input.tag.as_str());
        if let Some(opening) = tag.strip_prefix(OPENING) {
            self.opening = serde_json::from_str(opening).unwrap_or_default();
        }
        let LineBody::Whole(bytes) = &line.body else { return };
        for message in
            bytes.split(|byte| *byte == b'\n').filter_map(|one| serde_json::from_slice::<Value>(one).ok())
        {
            match (message["method"].as_str(), message.get("id")) {
                (Some(method), Some(id)) => self.requested(method, id, &message["params"], tag, heard),
                (Some("session/cancel"), None) => self.turn.iter_mut().for_each(Turn::cancel),
                (None, Some(id)) => {
                    let ask = id.to_string();
                    self.announced.remove(&ask);
                    // An interrupt answers what the agent had asked; nobody else's word counts any more.
                    if self.asks.remove(&ask).is_some() && tag == AgentRequest::Interrupt.tag() {
                        heard.push(Heard::Report(Report::ApprovalWithdrawn { ask }));
                    }
                }
                _ => {}
            }
        }
    }

    fn requested(&mut self, method: &str, id: &Value, params: &Value, tag: &str, heard: &mut Vec<Heard>) {
        let waiting = match method {
            "initialize" => Waiting::Initialize,
            "session/new" => Waiting::Open { resumed: false },
            "session/load" | "session/resume" | "session/fork" => {
                self.is_loading = true;
                self.session = params["sessionId"].as_str().map(str::to_owned);
                Waiting::Open { resumed: true }
            }
            "session/prompt" => {
                let again = std::mem::take(&mut self.steered);
                let messages: Vec<MessageId> = again.into_iter().chain(AgentRequest::prompted(tag)).collect();
                self.turn.get_or_insert_default();
                heard.push(Heard::Report(Report::TurnStarted { messages }));
                Waiting::Prompt
            }
            STEER => {
                self.steered.extend(AgentRequest::prompted(tag));
                Waiting::Steer { prompt: params["prompt"].clone() }
            }
            PING => Waiting::Ping,
            _ => Waiting::Other,
        };
        if self.waiting.len() >= WAITING {
            self.waiting.pop_first();
        }
        self.waiting.insert(id.to_string(), waiting);
    }

    /// The agent printed a message.
    fn said(&mut self, message: &Value, line: &Line<'_>, heard: &mut Vec<Heard>) {
        match (message["method"].as_str(), message.get("id")) {
            (Some("session/request_permission"), Some(id)) => self.asked(id, &message["params"], heard),
            (Some(ANNOUNCE), Some(id)) => {
                let turn = self.turn.get_or_insert_default();
                let (tool, _, action) = turn.asked_about(&message["params"]["toolCall"], heard);
                self.announced.insert(id.to_string(), id.clone());
                heard.push(Heard::Report(Report::ToolAnnounced { ask: id.to_string(), tool, action }));
            }
            (Some(method), Some(id)) => {
                let error = json!({"code": METHOD_NOT_FOUND, "message": format!("{method} is not offered")});
                heard.extend(
                    Say::line("refuse", &json!({"jsonrpc": "2.0", "id": id, "error": error})).map(Heard::Say),
                );
            }
            (Some("session/update"), None) if !self.is_loading => {
                if let Some(turn) = &mut self.turn {
                    turn.update(&message["params"]["update"], line, heard);
                    self.bind(heard);
                }
            }
            (Some(method), None) => {
                if let Some(turn) = &mut self.turn {
                    turn.own(method, &message["params"], heard);
                }
            }
            (None, Some(id)) => {
                if let Some(waiting) = self.waiting.remove(&id.to_string()) {
                    self.answered(&waiting, message, line, heard);
                }
            }
            (None, None) => {}
        }
    }

    fn answered(&mut self, waiting: &Waiting, message: &Value, line: &Line<'_>, heard: &mut Vec<Heard>) {
        let error = message.get("error").filter(|error| !error.is_null());
        match (waiting, error) {
            (Waiting::Initialize, None) => self.initialized(&message["result"], line, heard),
            (Waiting::Open { .. }, None) => self.opened(&message["result"], line, heard),
            (Waiting::Open { resumed: true }, Some(error)) if error["code"] != LOGIN_REQUIRED => {
                // The agent has lost the conversation: better a new one than none.
                self.is_loading = false;
                heard.push(Heard::Report(Report::ContextReset { why: in_words(error) }));
                heard.extend(self.new_session(line));
            }
            (Waiting::Initialize | Waiting::Open { .. }, Some(error)) => {
                self.is_loading = false;
                heard.push(Heard::Report(match failure(error) {
                    Report::Error(said) => Report::CannotStart(said),
                    refused => refused,
                }));
            }
            (Waiting::Prompt, _) => self.turn_ended(message, error, heard),
            (Waiting::Ping, _) => heard.push(Heard::Report(Report::Alive)),
            (Waiting::Steer { .. }, None) => {
                let messages = std::mem::take(&mut self.steered);
                heard.push(Heard::Report(Report::TurnStarted { messages }));
            }
            // It let go of the turn before its model had read this.
            (Waiting::Steer { .. }, Some(_)) if self.turn.is_some() => {
                let messages = std::mem::take(&mut self.steered);
                heard.push(Heard::Report(Report::Unread { messages }));
            }
            // The turn ended a moment before: what was to go into it begins one of its own.
            (Waiting::Steer { prompt }, Some(_)) => {
                let params = json!({"sessionId": self.session, "prompt": prompt});
                heard.extend(request(line, "session/prompt", &params));
            }
            (Waiting::Other, Some(error)) => heard.push(Heard::Report(Report::Error(in_words(error)))),
            (Waiting::Other, None) => {}
        }
    }

    fn initialized(&mut self, result: &Value, line: &Line<'_>, heard: &mut Vec<Heard>) {
        if result["protocolVersion"] != PROTOCOL_VERSION {
            let version = result["protocolVersion"].to_string();
            let what = format!(
                "the agent speaks version {version} of the Agent Client Protocol, and Ostler {PROTOCOL_VERSION}"
            );
            heard.push(Heard::Report(Report::CannotStart(what)));
            return;
        }
        self.answers_pings = result["agentCapabilities"]["_meta"][PING] == true;
        self.can_steer = result["agentCapabilities"]["_meta"][STEER] == true;
        let Some(before) = self.opening.resume.clone() else { return heard.extend(self.new_session(line)) };
        let can = &result["agentCapabilities"];
        let has = |what: &str| can["sessionCapabilities"].get(what).is_some_and(|can| !can.is_null());
        let method = match self.opening.fork {
            true if has("fork") => "session/fork",
            false if has("resume") => "session/resume",
            false if can["loadSession"] == true => "session/load",
            _ => {
                let why = "the agent cannot go on with a conversation of before".to_owned();
                heard.push(Heard::Report(Report::ContextReset { why }));
                return heard.extend(self.new_session(line));
            }
        };
        let params =
            json!({"sessionId": before, "cwd": self.opening.cwd, "mcpServers": self.opening.servers()});
        heard.extend(request(line, method, &params));
    }

    fn new_session(&self, line: &Line<'_>) -> Option<Heard> {
        request(line, "session/new", &json!({"cwd": self.opening.cwd, "mcpServers": self.opening.servers()}))
    }

    fn opened(&mut self, result: &Value, line: &Line<'_>, heard: &mut Vec<Heard>) {
        self.is_loading = false;
        if let Some(session) = result["sessionId"].as_str() {
            self.session = Some(session.to_owned());
        }
        let option = result["configOptions"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|option| option["category"] == "model" || option["id"] == "model");
        let current = result["models"]["currentModelId"].as_str();
        let current = current.or_else(|| option?["currentValue"].as_str());
        let wanted = self.opening.model.as_deref().filter(|wanted| Some(*wanted) != current);
        if let (Some(wanted), Some(session)) = (wanted, &self.session) {
            let offers = |list: &Value, key: &str| {
                list.as_array().into_iter().flatten().any(|one| one[key] == *wanted)
            };
            if offers(&result["models"]["availableModels"], "modelId") {
                heard.extend(request(
                    line,
                    "session/set_model",
                    &json!({"sessionId": session, "modelId": wanted}),
                ));
            } else if let Some(option) = option.filter(|option| offers(&option["options"], "value")) {
                let params = json!({"sessionId": session, "configId": option["id"], "value": wanted});
                heard.extend(request(line, "session/set_config_option", &params));
            }
        }
        let model = wanted.or(current).map(str::to_owned);
        heard.push(Heard::Report(Report::Ready { provider_id: self.session.clone(), model }));
    }

    fn asked(&mut self, id: &Value, params: &Value, heard: &mut Vec<Heard>) {
        let turn = self.turn.get_or_insert_default();
        let (tool, input, action) = turn.asked_about(&params["toolCall"], heard);
        let option = |kind: &str| {
            let options = params["options"].as_array().into_iter().flatten();
            options.into_iter().find(|option| option["kind"] == kind)?["optionId"].as_str().map(str::to_owned)
        };
        let ask = Ask { id: id.clone(), allow: option("allow_once"), reject: option("reject_once") };
        let name = id.to_string();
        self.asks.insert(name.clone(), ask);
        let kind = AskKind::Leave;
        heard.push(Heard::Report(Report::ApprovalAsked {
            ask: name,
            tool,
            input,
            kind,
            action,
            subagent: None,
        }));
    }

    fn turn_ended(&mut self, message: &Value, error: Option<&Value>, heard: &mut Vec<Heard>) {
        let result = message.get("result").unwrap_or(&Value::Null);
        if error.is_none() {
            self.bind(heard);
        }
        self.announced.clear();
        for (ask, _) in std::mem::take(&mut self.asks) {
            heard.push(Heard::Report(Report::ApprovalWithdrawn { ask }));
        }
        let reason = result["stopReason"].as_str().unwrap_or_default();
        let turn = self.turn.take().unwrap_or_default();
        let is_cut_short = turn.is_cut_short(reason);
        turn.end(result, if is_cut_short { "interrupted" } else { "the turn ended" }, heard);
        let stop_reason = match (error, reason) {
            (Some(error), _) => {
                heard.push(Heard::Report(failure(error)));
                StopReason::Error
            }
            (None, _) if is_cut_short => StopReason::Interrupted,
            (None, "max_tokens" | "max_turn_requests" | "refusal") => {
                let what = match reason {
                    "max_tokens" => "the model's answer was longer than its limit",
                    "refusal" => "the model refused to go on",
                    _ => "the turn took more model calls than the agent allows",
                };
                heard.push(Heard::Report(Report::Error(what.to_owned())));
                StopReason::Error
            }
            (None, _) => StopReason::Completed,
        };
        heard.push(Heard::Report(Report::TurnEnded { stop_reason }));
        // What was said to it meanwhile waited for this.
        if self.waiting.values().any(|waiting| *waiting == Waiting::Prompt) {
            self.turn = Some(Turn::default());
            heard.push(Heard::Report(Report::TurnStarted { messages: Vec::new() }));
        }
    }

    /// A turn runs under the agent's name for the conversation: it really has it.
    fn bind(&mut self, heard: &mut Vec<Heard>) {
        if let (false, Some(provider_id)) = (self.is_bound, self.session.clone()) {
            self.is_bound = true;
            heard.push(Heard::Report(Report::Bound { provider_id, model: None }));
        }
    }
}

/// A request of the dialogue itself, named by the place of the line that it follows from.
fn request(line: &Line<'_>, method: &str, params: &Value) -> Option<Heard> {
    let id = format!("at-{}", line.start);
    Say::line(method, &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
        .map(Heard::Say)
}

fn failure(error: &Value) -> Report {
    if error["code"] == LOGIN_REQUIRED {
        Report::AuthFailed(in_words(error))
    } else {
        Report::Error(foreign::error_words(&foreign::without_json(&in_words(error))))
    }
}

fn in_words(error: &Value) -> String {
    let message = error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned);
    let details = error["data"]["details"].as_str().map(|details| format!(": {details}")).unwrap_or_default();
    one_line(&format!("{message}{details}"), ERROR_BYTES)
}
