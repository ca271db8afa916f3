//! The conversation with `codex app-server`: JSON-RPC without its version, one object a line, requests both ways, each
//! side with numbers of its own.

mod items;
mod words;

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use ostler_domain::{
    MessageId,
    event::{Action, AskKind, StopReason},
    session::{AgentRequest, CallUsage, Report},
};
use ostler_tape::{Line, LineBody, Stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    failure::{failed, in_words},
    item::Open,
    meter::{self, Total},
    notices,
    opening::Opening,
    question::{self, Questions},
    steered::Steered,
};
use crate::{Dialogue, DialogueState, Heard, Say, UnknownState, foreign};

const STATE_VERSION: u32 = 1;
const METHOD_NOT_FOUND: i64 = -32601;
/// How long it may take to end its turn, and the commands that run beside it. Both need a tenth of a second.
const INTERRUPTED_WITHIN: Duration = Duration::from_secs(2);
const CLEANED_WITHIN: Duration = Duration::from_secs(1);
/// How many of each are remembered: requests without an answer, turns of this process, calls that ended.
const REMEMBERED: usize = 64;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct CodexDialogue {
    opening: Opening,
    thread: Option<String>,
    model: Option<String>,
    is_bound: bool,
    /// The turn that is open.
    turn: Option<String>,
    /// Turns that began in this process.
    turns: VecDeque<String>,
    /// Prompts that were written and belong to no turn yet.
    prompts: Vec<MessageId>,
    steered: Steered,
    waiting: BTreeMap<String, Waiting>,
    asks: BTreeMap<String, Ask>,
    open: BTreeMap<String, Open>,
    /// Calls whose result was told: what comes about them later is old.
    ended: VecDeque<String>,
    /// A message that is the answer if nothing follows it.
    held: Option<String>,
    totals: BTreeMap<String, Total>,
    /// What the last report of background work said.
    background: Vec<String>,
    /// The model of the turns to come.
    next_model: Option<String>,
    /// It is ending the commands that run beside its turns.
    cleans: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Waiting {
    Initialize,
    Thread {
        resumed: bool,
    },
    Turn,
    /// Another model, for the turns after the one that is open.
    Model {
        model: String,
    },
    /// Words for the turn that was open when they were written.
    Steer {
        input: Value,
    },
    Ping,
    Clean,
    Other,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Ask {
    id: Value,
    /// What a person answers in words.
    #[serde(default)]
    questions: Option<Questions>,
}

impl CodexDialogue {
    pub(super) fn restore(state: Option<&DialogueState>) -> Result<Self, UnknownState> {
        match state {
            None => Ok(Self::default()),
            Some(state) if state.version != STATE_VERSION => Err(UnknownState(state.version)),
            Some(state) => serde_json::from_slice(&state.bytes).map_err(|_| UnknownState(state.version)),
        }
    }
}

impl Dialogue for CodexDialogue {
    fn on_line(&mut self, line: &Line<'_>, heard: &mut Vec<Heard>) {
        if line.stream == Stream::In {
            return self.told(line, heard);
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
        self.words(request, input_no)
    }

    fn state(&self) -> DialogueState {
        DialogueState { version: STATE_VERSION, bytes: serde_json::to_vec(self).unwrap_or_default() }
    }

    /// With its input it closes whatever its turn was about, and says nothing of it any more.
    fn ends_within(&self) -> Duration {
        match self.turn {
            Some(_) => INTERRUPTED_WITHIN,
            None if self.cleans || !self.open.is_empty() => INTERRUPTED_WITHIN + CLEANED_WITHIN,
            None => Duration::ZERO,
        }
    }
}

impl CodexDialogue {
    /// Something was written to the agent.
    fn told(&mut self, line: &Line<'_>, heard: &mut Vec<Heard>) {
        let tag = line.input.as_ref().map_or("", |input| input.tag.as_str());
        if tag == AgentRequest::End.tag()
            && let Some(text) = self.held.take()
        {
            // It may end before it says that this was the answer.
            heard.push(Heard::Report(Report::Completion(text.into())));
        }
        if let Some(opening) = Opening::of(tag) {
            self.opening = opening;
        }
        let LineBody::Whole(bytes) = &line.body else { return };
        for message in
            bytes.split(|byte| *byte == b'\n').filter_map(|one| serde_json::from_slice::<Value>(one).ok())
        {
            match (message["method"].as_str(), message.get("id")) {
                (Some(method), Some(id)) => {
                    let waiting = match method {
                        "initialize" => Waiting::Initialize,
                        "thread/start" => Waiting::Thread { resumed: false },
                        "thread/resume" | "thread/fork" => Waiting::Thread { resumed: true },
                        "turn/start" | "thread/compact/start" => {
                            self.prompts.extend(AgentRequest::prompted(tag));
                            Waiting::Turn
                        }
                        "turn/steer" => {
                            let input = message["params"]["input"].clone();
                            if let Some(message) = AgentRequest::prompted(tag) {
                                self.steered.written(message, &input);
                            }
                            Waiting::Steer { input }
                        }
                        "_ostler/ping" => Waiting::Ping,
                        words::CLEAN => {
                            self.cleans = true;
                            Waiting::Clean
                        }
                        "thread/settings/update" => {
                            let model = message["params"]["model"].as_str().unwrap_or_default();
                            Waiting::Model { model: model.to_owned() }
                        }
                        _ => Waiting::Other,
                    };
                    if self.waiting.len() >= REMEMBERED {
                        self.waiting.pop_first();
                    }
                    self.waiting.insert(id.to_string(), waiting);
                }
                (None, Some(id)) => {
                    self.asks.remove(&id.to_string());
                }
                _ => {}
            }
        }
    }

    fn said(&mut self, message: &Value, line: &Line<'_>, heard: &mut Vec<Heard>) {
        let params = &message["params"];
        match (message["method"].as_str(), message.get("id")) {
            (Some("item/commandExecution/requestApproval" | "item/fileChange/requestApproval"), Some(id)) => {
                self.asked(id, params, heard);
            }
            (Some("item/tool/requestUserInput"), Some(id)) => self.questioned(id, params, heard),
            (Some(method), Some(id)) => {
                let error = json!({"code": METHOD_NOT_FOUND, "message": format!("{method} is not offered")});
                heard.extend(Say::line("refuse", &json!({"id": id, "error": error})).map(Heard::Say));
            }
            (Some(method), None) => self.notified(method, params, line, heard),
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
        let result = message.get("result").unwrap_or(&Value::Null);
        match (waiting, error) {
            (Waiting::Initialize, None) => {
                heard.extend(Say::line("initialized", &json!({"method": "initialized"})).map(Heard::Say));
                heard.extend(self.opening.thread(line, self.opening.before.as_deref()));
            }
            (Waiting::Thread { .. }, None) => {
                self.thread = result["thread"]["id"].as_str().map(str::to_owned);
                self.model = result["model"].as_str().map(str::to_owned);
                let (provider_id, model) = (self.thread.clone(), self.model.clone());
                heard.push(Heard::Report(Report::Ready { provider_id, model }));
            }
            (Waiting::Thread { resumed: true }, Some(error)) => {
                // Its file is gone, or no turn was ever run in it.
                heard.push(Heard::Report(Report::ContextReset { why: in_words(error) }));
                heard.extend(self.opening.thread(line, None));
            }
            (Waiting::Initialize | Waiting::Thread { resumed: false }, Some(error)) => {
                heard.push(Heard::Report(Report::CannotStart(in_words(error))));
            }
            (Waiting::Ping, _) => heard.push(Heard::Report(Report::Alive)),
            (Waiting::Clean, None) => self.cleans = false,
            (Waiting::Model { model }, None) => self.next_model = Some(model.clone()),
            // The turn ended a moment before: what was to go into it begins one of its own.
            (Waiting::Steer { input }, Some(_)) if self.turn.is_none() => {
                self.prompts.extend(self.steered.take_back(input));
                let params = json!({"threadId": self.thread, "input": input});
                let again =
                    json!({"id": format!("at-{}", line.start), "method": "turn/start", "params": params});
                heard.extend(Say::line("steer-again", &again).map(Heard::Say));
            }
            // It waits for the turn to end: said at once, it would be refused again.
            (Waiting::Steer { input }, Some(error)) => {
                self.steered.answered(input, false);
                heard.push(Heard::Report(Report::Status(format!(
                    "it takes no words now: {}",
                    in_words(error)
                ))));
            }
            (Waiting::Turn, Some(error)) => {
                heard.push(Heard::Report(Report::Error(in_words(error))));
                if self.turn.is_none() {
                    // The prompt was taken and came to nothing: a turn that failed at once.
                    let messages = std::mem::take(&mut self.prompts);
                    heard.push(Heard::Report(Report::TurnStarted { messages }));
                    heard.push(Heard::Report(Report::TurnEnded { stop_reason: StopReason::Error }));
                }
            }
            (Waiting::Turn, None) if self.turn.is_some() && !self.prompts.is_empty() => {
                // It went into the turn that is open.
                let messages = std::mem::take(&mut self.prompts);
                heard.push(Heard::Report(Report::TurnStarted { messages }));
            }
            (_, Some(error)) => {
                self.cleans &= *waiting != Waiting::Clean;
                heard.push(Heard::Report(Report::Error(in_words(error))));
            }
            (Waiting::Steer { input }, None) => self.steered.answered(input, true),
            (Waiting::Turn | Waiting::Other, None) => {}
        }
    }

    fn notified(&mut self, method: &str, params: &Value, line: &Line<'_>, heard: &mut Vec<Heard>) {
        let is_ours = self.thread.is_some() && params["threadId"].as_str() == self.thread.as_deref();
        match method {
            "turn/started" => {
                let id = params["turn"]["id"].as_str().unwrap_or_default();
                remember(&mut self.turns, id);
                if is_ours && self.turn.as_deref() != Some(id) {
                    self.turn = Some(id.to_owned());
                    if self.next_model.is_some() {
                        self.model = self.next_model.take();
                    }
                    let messages = std::mem::take(&mut self.prompts);
                    heard.push(Heard::Report(Report::TurnStarted { messages }));
                    self.bind(heard);
                }
            }
            "thread/tokenUsage/updated" => self.used(params, heard),
            // What other threads do is told by the calls that began them.
            _ if !is_ours && params.get("threadId").is_some() => {}
            method if notices::is_of_no_concern(method) => {}
            _ if !is_ours => heard.extend(foreign::unread(line).map(Heard::Report)),
            "turn/completed" => self.turn_completed(&params["turn"], line, heard),
            "item/started" => self.item_started(&params["item"], heard),
            "item/completed" => self.item_completed(&params["item"], heard),
            "item/agentMessage/delta" => {
                heard.extend(params["delta"].as_str().map(|delta| Heard::Delta(delta.to_owned())));
            }
            "error" => failed(params, heard),
            "serverRequest/resolved" => {
                let ask = params["requestId"].to_string();
                if self.asks.remove(&ask).is_some() {
                    heard.push(Heard::Report(Report::ApprovalWithdrawn { ask }));
                }
            }
            _ => heard.extend(foreign::unread(line).map(Heard::Report)),
        }
    }

    /// A turn runs under the thread's id: its file is there.
    fn bind(&mut self, heard: &mut Vec<Heard>) {
        if let (false, Some(provider_id)) = (self.is_bound, self.thread.clone()) {
            self.is_bound = true;
            heard.push(Heard::Report(Report::Bound { provider_id, model: self.model.clone() }));
        }
    }

    fn used(&mut self, params: &Value, heard: &mut Vec<Heard>) {
        let thread = params["threadId"].as_str().unwrap_or_default();
        let turn = params["turnId"].as_str().unwrap_or_default();
        let is_ours = self.turns.iter().any(|own| own == turn);
        let before = self.totals.get(thread).copied();
        let (total, usage) = meter::added(before, &params["tokenUsage"], is_ours);
        if self.totals.len() >= REMEMBERED && before.is_none() {
            self.totals.pop_first();
        }
        self.totals.insert(thread.to_owned(), total);
        if let Some(usage) = usage {
            let model = self.model.clone();
            heard.push(Heard::Report(Report::Usage(CallUsage { usage, model, call: None })));
        }
        // Threads of sub-agents have contexts of their own.
        if self.thread.as_deref() == Some(thread) {
            heard.extend(
                meter::context(&params["tokenUsage"]).map(|context| Heard::Report(Report::Context(context))),
            );
        }
    }

    fn asked(&mut self, id: &Value, params: &Value, heard: &mut Vec<Heard>) {
        let item = params["itemId"].as_str().unwrap_or_default();
        let open = self.open.get(item);
        let tool = open.map_or("commandExecution", |open| open.kind.as_str()).to_owned();
        let known =
            open.map(|open| if open.is_command() { open.summary.clone() } else { open.input.clone() });
        let input = known.or_else(|| params["command"].as_str().map(str::to_owned)).unwrap_or_default();
        let action = open.map(|open| open.action.clone()).unwrap_or_default();
        let ask = id.to_string();
        self.asks.insert(ask.clone(), Ask { id: id.clone(), questions: None });
        let kind = AskKind::Leave;
        heard.push(Heard::Report(Report::ApprovalAsked { ask, tool, input, kind, action, subagent: None }));
    }

    fn questioned(&mut self, id: &Value, params: &Value, heard: &mut Vec<Heard>) {
        let ask = id.to_string();
        let questions = Some(Questions::of(params));
        self.asks.insert(ask.clone(), Ask { id: id.clone(), questions });
        heard.push(Heard::Report(Report::ApprovalAsked {
            ask,
            tool: "requestUserInput".to_owned(),
            input: question::in_words(params),
            kind: AskKind::Question,
            action: Action::default(),
            subagent: None,
        }));
    }
}

fn remember(list: &mut VecDeque<String>, one: &str) {
    if list.len() >= REMEMBERED {
        list.pop_front();
    }
    list.push_back(one.to_owned());
}
