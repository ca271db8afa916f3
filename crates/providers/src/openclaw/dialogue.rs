//! The conversation with OpenClaw's gateway: requests with ids of ours, answers to them, and events. A frame is a line.

use std::collections::{BTreeSet, VecDeque};

use ostler_domain::{
    MessageId,
    event::{Action, AskKind, ContextMeasured, StopReason, Text, ToolCall, ToolResult},
    session::{AgentRequest, Report},
    text::one_line,
};
use ostler_tape::{Line, Stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    config::model_reference,
    events,
    opening::{CONNECT, CREATE, FIND, Opening, PERMISSION, SUBSCRIBE, WORKS, req, say},
    task::Helpers,
};
use crate::{
    Dialogue, DialogueState, Heard, Say, UnknownState, foreign,
    parts::{images, shown},
};

const STATE_VERSION: u32 = 1;
const NUDGE: &str = "nudge-";
/// Bytes of an error, characters of a line about a call.
const ERROR_BYTES: usize = 2000;
const SUMMARY: usize = 120;
/// Messages whose tokens were told.
const REMEMBERED: usize = 64;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OpenclawDialogue {
    opening: Opening,
    model: Option<String>,
    is_bound: bool,
    /// It was said that the gateway is not ready.
    is_waiting: bool,
    /// The run that is the open turn.
    turn: Option<String>,
    /// Prompts that were written and that no run has taken yet.
    prompts: Vec<MessageId>,
    asks: BTreeSet<String>,
    counted: VecDeque<String>,
    helpers: Helpers,
}

impl OpenclawDialogue {
    pub(super) fn restore(state: Option<&DialogueState>) -> Result<Self, UnknownState> {
        match state {
            None => Ok(Self::default()),
            Some(state) if state.version != STATE_VERSION => Err(UnknownState(state.version)),
            Some(state) => serde_json::from_slice(&state.bytes).map_err(|_| UnknownState(state.version)),
        }
    }
}

impl Dialogue for OpenclawDialogue {
    fn on_line(&mut self, line: &Line<'_>, heard: &mut Vec<Heard>) {
        if line.stream == Stream::In {
            return self.told(line);
        }
        let frame = foreign::object(line).and_then(|text| serde_json::from_str::<Value>(text).ok());
        match frame {
            Some(frame) if frame["type"] == "res" => self.answered(&frame, heard),
            Some(frame) if frame["type"] == "event" => self.happened(&frame, line, heard),
            _ => heard.extend(foreign::unread(line).map(Heard::Report)),
        }
    }

    fn on_request(&self, request: &AgentRequest, input_no: u64) -> Option<Vec<u8>> {
        let id = format!("in-{input_no}");
        let key = &self.opening.key;
        let frame = match request {
            AgentRequest::Prompt(message) => req(
                &id,
                "chat.send",
                json!({
                    "sessionKey": key, "message": message.text, "idempotencyKey": message.id,
                }),
            ),
            AgentRequest::Steer(message) => req(
                &id,
                "chat.send",
                json!({
                    "sessionKey": key, "message": message.text, "idempotencyKey": message.id, "queueMode": "steer",
                }),
            ),
            AgentRequest::Interrupt => {
                req(&id, "chat.abort", json!({"sessionKey": key, "runId": self.turn.as_ref()?}))
            }
            // Closing its input drains what runs, for minutes: it is told to let go first.
            AgentRequest::End => req(&id, "sessions.abort", json!({"key": key, "clearQueued": true})),
            AgentRequest::Model(model) => {
                req(&id, "sessions.patch", json!({"key": key, "model": model_reference(model)}))
            }
            AgentRequest::Answer { ask, allow, message } => {
                let decision = if *allow { "allow-once" } else { "deny" };
                let answer = req(&id, "exec.approval.resolve", json!({"id": ask, "decision": decision}));
                // The answer has no room for words: they go into the turn before it, or the model goes on without them.
                let why = (!allow && !message.is_empty() && self.turn.is_some()).then(|| {
                    let why = format!("why-{input_no}");
                    let said = foreign::denial(message);
                    req(
                        &why,
                        "chat.send",
                        json!({
                            "sessionKey": key, "message": said, "idempotencyKey": why, "queueMode": "steer",
                        }),
                    )
                });
                return foreign::lines(why.iter().chain([&answer]));
            }
            // It announces nothing.
            AgentRequest::Proceed { .. } => return None,
            AgentRequest::Nudge => req(&format!("{NUDGE}{input_no}"), "health", json!({})),
        };
        Some(Say::line("", &frame)?.bytes)
    }

    fn state(&self) -> DialogueState {
        DialogueState { version: STATE_VERSION, bytes: serde_json::to_vec(self).unwrap_or_default() }
    }
}

fn report(heard: &mut Vec<Heard>, report: Report) {
    heard.push(Heard::Report(report));
}

impl OpenclawDialogue {
    /// Something of ours that is on the tape, so that it was written.
    fn told(&mut self, line: &Line<'_>) {
        let Some(input) = &line.input else { return };
        if let Some(opening) = Opening::of(&input.tag) {
            self.opening = opening;
        } else if let Some(message) = AgentRequest::prompted(&input.tag) {
            self.prompts.push(message);
        } else if let Some(ask) = input.tag.strip_prefix("answer:") {
            self.asks.remove(ask);
        }
    }

    fn answered(&mut self, frame: &Value, heard: &mut Vec<Heard>) {
        let id = frame["id"].as_str().unwrap_or_default();
        if frame["ok"] != true {
            return self.refused(id, &frame["error"], heard);
        }
        let session = &frame["payload"]["session"];
        match id {
            CONNECT if self.opening.is_resumed => heard.extend(self.opening.find()),
            CONNECT => heard.extend(self.opening.create()),
            FIND => {
                if session.is_null() {
                    report(heard, Report::ContextReset { why: self.opening.lost() });
                }
                heard.extend(self.opening.create());
            }
            CREATE => {
                self.model = frame["payload"]["resolved"]["model"].as_str().map(str::to_owned);
                heard.extend(self.opening.subscribe());
            }
            SUBSCRIBE if self.opening.is_resumed => heard.extend(self.opening.look_for_work()),
            SUBSCRIBE => self.ready(heard),
            WORKS => {
                // It goes on by itself with what it was doing when it died: that is the open turn, and nothing is told to
                // it before that has ended.
                if let Some(run) = session["activeRunIds"][0].as_str() {
                    self.begin(run, heard);
                }
                self.ready(heard);
            }
            _ if id.starts_with(NUDGE) => report(heard, Report::Alive),
            _ if frame["payload"]["status"] == "started" => self.taken(&frame["payload"], heard),
            _ => {}
        }
    }

    fn ready(&self, heard: &mut Vec<Heard>) {
        let (provider_id, model) = (Some(self.opening.key.clone()), self.model.clone());
        report(heard, Report::Ready { provider_id, model });
    }

    /// A prompt was taken. Its run says that it began only seconds later, when its context is prepared: it is at work
    /// from now on, unless it waits in line behind another run.
    fn taken(&mut self, payload: &Value, heard: &mut Vec<Heard>) {
        let run = payload["runId"].as_str().unwrap_or_default();
        let is_ours = run.parse().is_ok_and(|prompt: MessageId| self.prompts.contains(&prompt));
        if is_ours && self.turn.is_none() {
            self.begin(run, heard);
        }
    }

    fn refused(&mut self, id: &str, error: &Value, heard: &mut Vec<Heard>) {
        let text = error["message"].as_str().or(error["code"].as_str()).unwrap_or("refused without a reason");
        let text = one_line(text, ERROR_BYTES);
        // It closes the connection and the bridge comes again: a challenge follows.
        if id == CONNECT && error["code"] == "UNAVAILABLE" {
            if !std::mem::replace(&mut self.is_waiting, true) {
                report(heard, Report::Status("the gateway is not ready yet".to_owned()));
            }
            return;
        }
        // Who cannot be asked what it remembers is taken to remember it.
        match id {
            FIND => return heard.extend(self.opening.create()),
            WORKS => return self.ready(heard),
            _ => {}
        }
        let said = format!("{}: {text}", what_was_asked(id));
        // Without one of these it is never ready.
        let opens = [CONNECT, CREATE, SUBSCRIBE].contains(&id);
        report(heard, if opens { Report::CannotStart(said) } else { Report::Error(said) });
        // A prompt that it did not take is over.
        if id.starts_with("in-") && self.turn.is_none() && !self.prompts.is_empty() {
            report(heard, Report::TurnStarted { messages: std::mem::take(&mut self.prompts) });
            report(heard, Report::TurnEnded { stop_reason: StopReason::Error });
        }
    }

    fn happened(&mut self, frame: &Value, line: &Line<'_>, heard: &mut Vec<Heard>) {
        let payload = &frame["payload"];
        match frame["event"].as_str().unwrap_or_default() {
            "connect.challenge" => heard.extend(say(CONNECT, "connect", self.opening.introduction())),
            "agent" if payload["isHeartbeat"] == true => {}
            "agent" => self.agent(payload, heard),
            "chat" => self.chat(payload, heard),
            "session.message" => self.message(payload, heard),
            "sessions.changed" => self.changed(payload, heard),
            "exec.approval.requested" => self.asked(payload, heard),
            "exec.approval.resolved" => self.resolved(payload, heard),
            "task" => self.task(&payload["task"], heard),
            "shutdown" => report(heard, Report::Status("the gateway shuts down".to_owned())),
            event if events::are_of_others(event) => {}
            _ => heard.extend(foreign::unread(line).map(Heard::Report)),
        }
    }

    /// Whose event this is: the agent's own (nothing), a helper's (its key), or nobody's whom we know.
    fn whose(&self, payload: &Value) -> Option<Option<String>> {
        let key = payload["sessionKey"].as_str()?;
        if key == self.opening.key {
            Some(None)
        } else {
            self.helpers.is_one(key).then(|| Some(key.to_owned()))
        }
    }

    fn agent(&mut self, payload: &Value, heard: &mut Vec<Heard>) {
        let Some(subagent) = self.whose(payload) else { return };
        let data = &payload["data"];
        match payload["stream"].as_str().unwrap_or_default() {
            "lifecycle" if subagent.is_none() => self.lifecycle(payload, heard),
            "assistant" if subagent.is_none() => {
                heard.extend(data["delta"].as_str().map(|text| Heard::Delta(text.to_owned())));
            }
            // What was said before a tool is called comes only here.
            "item" if data["kind"] == "preamble" && data["phase"] == "end" => {
                if let Some(text) = data["progressText"].as_str().filter(|text| !text.is_empty()) {
                    report(heard, Report::Completion(Text { text: text.to_owned(), subagent }));
                }
            }
            "tool" => tool(data, subagent, heard),
            _ => {}
        }
    }

    fn lifecycle(&mut self, payload: &Value, heard: &mut Vec<Heard>) {
        let data = &payload["data"];
        match data["phase"].as_str() {
            Some("start") => self.begin(payload["runId"].as_str().unwrap_or_default(), heard),
            Some("model") => {
                if let Some(model) = data["model"].as_str() {
                    self.model = Some(model.to_owned());
                }
            }
            _ => {}
        }
    }

    /// A run began: of a prompt whose id is the run's, of prompts that waited, or by itself.
    fn begin(&mut self, run: &str, heard: &mut Vec<Heard>) {
        if self.turn.as_deref() == Some(run) {
            return;
        }
        self.turn = Some(run.to_owned());
        let own: Option<MessageId> = run.parse().ok();
        let messages = match own {
            Some(own) => {
                self.prompts.retain(|prompt| *prompt != own);
                vec![own]
            }
            None => Vec::new(),
        };
        report(heard, Report::TurnStarted { messages });
        if !self.is_bound {
            self.is_bound = true;
            let provider_id = self.opening.key.clone();
            report(heard, Report::Bound { provider_id, model: self.model.clone() });
        }
    }

    /// The first end of a run counts. A `final` without a message only says that a prompt was put in line.
    fn chat(&mut self, payload: &Value, heard: &mut Vec<Heard>) {
        let run = payload["runId"].as_str();
        if payload["sessionKey"] != self.opening.key.as_str() || run != self.turn.as_deref() || run.is_none()
        {
            return;
        }
        match payload["state"].as_str() {
            Some("final") if payload.get("message").is_some() => self.end(StopReason::Completed, heard),
            Some("aborted") => self.end(StopReason::Interrupted, heard),
            Some("error") => {
                report(heard, failure(payload));
                self.end(StopReason::Error, heard);
            }
            _ => {}
        }
    }

    fn end(&mut self, stop_reason: StopReason, heard: &mut Vec<Heard>) {
        if self.turn.take().is_some() {
            report(heard, Report::TurnEnded { stop_reason });
        }
    }

    /// A run that ended without a word in the chat.
    fn changed(&mut self, payload: &Value, heard: &mut Vec<Heard>) {
        let is_ours = payload["sessionKey"] == self.opening.key.as_str() && self.turn.is_some();
        if !is_ours || payload["runId"].as_str() != self.turn.as_deref() {
            return;
        }
        let is_over = matches!(payload["phase"].as_str(), Some("end" | "error"))
            && payload["session"]["hasActiveRun"] == false;
        if is_over {
            let is_failed = payload["phase"] == "error";
            self.end(if is_failed { StopReason::Error } else { StopReason::Completed }, heard);
        }
    }

    /// A message of the transcript: what was thought and said in one call of the model, and its tokens.
    fn message(&mut self, payload: &Value, heard: &mut Vec<Heard>) {
        let Some(subagent) = self.whose(payload) else { return };
        let message = &payload["message"];
        if message["role"] == "user" && subagent.is_none() {
            return self.steered(message, heard);
        }
        if message["role"] != "assistant" || !self.is_new(payload) {
            return;
        }
        for block in message["content"].as_array().into_iter().flatten() {
            let text = |name: &str| block[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
            match block["type"].as_str() {
                Some("thinking") => {
                    if let Some(text) = text("thinking") {
                        report(heard, Report::Thinking(Text { text, subagent: subagent.clone() }));
                    }
                }
                Some("text") => {
                    if let Some(text) = text("text") {
                        report(heard, Report::Completion(Text { text, subagent: subagent.clone() }));
                    }
                }
                _ => {}
            }
        }
        if let Some(call) = super::usage::call_usage(message) {
            if subagent.is_none() {
                // The window that it knows is a guess of ours.
                let used = call.usage.total();
                report(heard, Report::Context(ContextMeasured { used, window: None }));
            }
            report(heard, Report::Usage(call));
        }
    }

    /// A prompt that went into a turn that was open: it has no run of its own.
    fn steered(&mut self, message: &Value, heard: &mut Vec<Heard>) {
        let key = message["idempotencyKey"].as_str().unwrap_or_default();
        let Ok(id) = key.trim_end_matches(":user").parse::<MessageId>() else { return };
        let is_own_run = self.turn.as_deref().is_none_or(|run| run.parse() == Ok(id));
        if !is_own_run && self.prompts.contains(&id) {
            self.prompts.retain(|prompt| *prompt != id);
            report(heard, Report::TurnStarted { messages: vec![id] });
        }
    }

    fn is_new(&mut self, payload: &Value) -> bool {
        let Some(id) = payload["messageId"].as_str() else { return true };
        if self.counted.iter().any(|counted| counted == id) {
            return false;
        }
        self.counted.push_back(id.to_owned());
        if self.counted.len() > REMEMBERED {
            self.counted.pop_front();
        }
        true
    }

    fn asked(&mut self, payload: &Value, heard: &mut Vec<Heard>) {
        let request = &payload["request"];
        let (Some(id), Some(subagent)) = (payload["id"].as_str(), self.whose(request)) else { return };
        self.asks.insert(id.to_owned());
        let command = request["command"].as_str().unwrap_or_default().to_owned();
        report(
            heard,
            Report::ApprovalAsked {
                ask: id.to_owned(),
                tool: "exec".to_owned(),
                input: command.clone(),
                kind: AskKind::Leave,
                action: Action::Run { command },
                subagent,
            },
        );
    }

    fn resolved(&mut self, payload: &Value, heard: &mut Vec<Heard>) {
        let Some(id) = payload["id"].as_str() else { return };
        if self.asks.remove(id) {
            report(heard, Report::ApprovalWithdrawn { ask: id.to_owned() });
        }
    }

    fn task(&mut self, task: &Value, heard: &mut Vec<Heard>) {
        let Some(change) = self.helpers.take(task, &self.opening.key) else { return };
        if let Some(key) = change.fresh {
            let wanted = json!({"key": key, "includeApprovals": true});
            heard.extend(say(&format!("helper-{key}"), "sessions.messages.subscribe", wanted));
        }
        if let Some(tasks) = change.running {
            report(heard, Report::Background { tasks });
        }
    }
}

fn what_was_asked(id: &str) -> &str {
    match id {
        CONNECT => "the gateway does not let us in",
        CREATE => "the gateway does not open the session",
        PERMISSION => "the gateway does not take the mode of asking",
        SUBSCRIBE => "the gateway does not tell of the session",
        _ => "the gateway refuses",
    }
}

fn tool(data: &Value, subagent: Option<String>, heard: &mut Vec<Heard>) {
    let Some(tool_id) = data["toolCallId"].as_str().map(str::to_owned) else { return };
    let tool = data["name"].as_str().unwrap_or("tool").to_owned();
    match data["phase"].as_str() {
        Some("start") => {
            let args = &data["args"];
            let telling = ["command", "path", "file_path", "url", "query", "task"];
            let telling = telling.iter().find_map(|name| args[*name].as_str());
            let input = if args.is_null() { String::new() } else { args.to_string() };
            let summary = one_line(telling.unwrap_or(&input), SUMMARY);
            report(heard, Report::ToolCall(ToolCall { tool, tool_id, summary, input, subagent }));
        }
        Some("result") => {
            let result = &data["result"];
            let texts = result["content"].as_array().into_iter().flatten();
            let output = texts.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n");
            let exit = result["details"]["exitCode"].as_i64().and_then(|code| i32::try_from(code).ok());
            let success = data["isError"] != true && exit.is_none_or(|code| code == 0);
            heard.extend(shown(images(&result["content"]), Some(&tool_id), subagent.as_ref()));
            report(heard, Report::ToolResult(ToolResult { tool_id, success, exit, output, subagent }));
        }
        _ => {}
    }
}

fn failure(payload: &Value) -> Report {
    let text = one_line(payload["errorMessage"].as_str().unwrap_or("the turn failed"), ERROR_BYTES);
    match payload["errorDetail"]["failoverReason"].as_str() {
        Some("auth" | "billing") => Report::AuthFailed(text),
        Some("rate_limit") => Report::RateLimited { what: text, until: None },
        _ => Report::Error(foreign::error_words(&text)),
    }
}
