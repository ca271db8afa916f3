//! The talk with Claude Code: lines to reports, requests to lines.
//!
//! Silent until it is told something, so `initialize` opens the talk and its answer means ready. A turn ends with its
//! `result`; idle is only what it calls idle, because sub-agents and background commands go on and start turns of
//! their own.

mod said;
mod told;
pub(crate) mod tools;
mod turns;
mod usage;

use std::time::Duration;

use ostler_domain::{
    MessageId,
    event::{Action, AgentRetrying, AskKind, ContextCompacted, Text, ToolCall, ToolResult},
    session::{AgentRequest, Approve, Begin, Report},
    text::one_line,
};
use ostler_tape::{Line, Stream};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::{
    said::{Assistant, Block, Content, Delta, HookInput, Request, Response, Said, StreamEvent, System, User},
    usage::Meter,
};
use crate::{Dialogue, DialogueState, Heard, Say, Terms, UnknownState, foreign, parts::shown};

pub(super) use told::uuid;

const STATE_VERSION: u32 = 1;
/// How long it may take to end its turn, and then itself. Each needs a tenth of a second.
const INTERRUPTED_WITHIN: Duration = Duration::from_secs(2);
const PARTED_WITHIN: Duration = Duration::from_secs(1);
/// Prompts that are remembered until a turn has taken them.
const MOST_PROMPTS: usize = 256;
/// Open questions whose words are remembered.
const MOST_QUESTIONS: usize = 32;
/// The tag of the opening; what follows it says what the dialogue must know.
const OPEN_TAG: &str = "open:";
/// What is shown between the end of background work and the turn in which the agent looks at it.
const ITS_REPORT: &str = "the report of what ended";
/// The tool by which an agent asks a person.
const QUESTION_TOOL: &str = "AskUserQuestion";

/// What is said first. The tag carries what the tape could not tell otherwise.
pub(super) fn opening(id: String, terms: &Terms) -> Vec<Say> {
    let is_resumed = matches!(terms.begin, Begin::Resume { .. } | Begin::Fork { .. });
    let opened = Opened { id, model: terms.model.clone(), is_resumed };
    let tag = serde_json::to_string(&opened).map(|json| format!("{OPEN_TAG}{json}"));
    let announces = terms.approve != Approve::All;
    tag.ok().and_then(|tag| Say::line(tag, &told::initialize(announces))).into_iter().collect()
}

#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
struct Opened {
    id: String,
    model: Option<String>,
    is_resumed: bool,
}

/// A function of the tape.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct State {
    opened: Opened,
    is_ready: bool,
    turn: Option<Turn>,
    /// Delivered, and in no turn that has ended.
    prompts: Vec<MessageId>,
    /// It tells of each prompt when it begins.
    names_prompts: bool,
    questions: Vec<Question>,
    background: Vec<String>,
    /// Background work has ended, and the agent is about to start a turn about it.
    awaits_report: bool,
    parting: Parting,
    meter: Meter,
}

/// How far it is with its end, which its turn comes before.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Parting {
    #[default]
    Not,
    /// Its turn is interrupted.
    Interrupted,
    /// It is told to end, with what runs beside its turns.
    Told,
}

#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
struct Turn {
    /// Prompts that were reported to be in it.
    seen: Vec<MessageId>,
    /// The agent itself said something in it.
    has_spoken: bool,
    /// A limit was told of together with its end.
    is_limited: bool,
}

/// A question that a person answers in words.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
struct Question {
    ask: String,
    input: Value,
}

impl Question {
    /// The tool's input with the answer to each of its questions: a person gives one, or a line for each.
    fn answered(&self, message: &str) -> Value {
        let questions = self.input.get("questions").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut lines = message.lines();
        let mut answers = serde_json::Map::new();
        for question in &questions {
            let answer = if questions.len() == 1 { message } else { lines.next().unwrap_or(message) };
            let asked = question.get("question").and_then(Value::as_str).unwrap_or_default();
            answers.insert(asked.to_owned(), Value::String(answer.trim().to_owned()));
        }
        json!({ "questions": questions, "answers": answers })
    }
}

pub(super) struct ClaudeDialogue {
    state: State,
}

impl ClaudeDialogue {
    pub(super) fn restore(state: Option<&DialogueState>) -> Result<Self, UnknownState> {
        let state = match state {
            None => State::default(),
            Some(state) if state.version != STATE_VERSION => return Err(UnknownState(state.version)),
            Some(state) => serde_json::from_slice(&state.bytes).map_err(|_| UnknownState(state.version))?,
        };
        Ok(Self { state })
    }
}

impl Dialogue for ClaudeDialogue {
    fn on_line(&mut self, line: &Line<'_>, heard: &mut Vec<Heard>) {
        if line.stream == Stream::In {
            if let Some(input) = &line.input {
                self.state.told(&input.tag);
            }
            return;
        }
        let said = foreign::object(line).and_then(|text| serde_json::from_str::<Said>(text).ok());
        match said {
            Some(said) => self.state.hear(said, line, heard),
            None => heard.extend(foreign::unread(line).map(Heard::Report)),
        }
    }

    fn on_request(&self, request: &AgentRequest, input_no: u64) -> Option<Vec<u8>> {
        match request {
            AgentRequest::End if self.state.turn.is_some() => told::let_go(input_no),
            _ => told::request(request, input_no, &self.state.questions),
        }
    }

    /// With its input it closes its turn without a word of what was said into it.
    fn ends_within(&self) -> Duration {
        match self.state.parting {
            Parting::Told => INTERRUPTED_WITHIN + PARTED_WITHIN,
            Parting::Not | Parting::Interrupted if self.state.turn.is_some() => INTERRUPTED_WITHIN,
            Parting::Not | Parting::Interrupted => Duration::ZERO,
        }
    }

    fn state(&self) -> DialogueState {
        DialogueState { version: STATE_VERSION, bytes: serde_json::to_vec(&self.state).unwrap_or_default() }
    }
}

impl State {
    /// Something was written to the agent.
    fn told(&mut self, tag: &str) {
        if let Some(opened) = tag.strip_prefix(OPEN_TAG) {
            self.opened = serde_json::from_str(opened).unwrap_or_default();
        } else if let Some(id) = AgentRequest::prompted(tag) {
            self.prompts.push(id);
            if self.prompts.len() > MOST_PROMPTS {
                self.prompts.remove(0);
            }
        } else if tag == AgentRequest::End.tag() && self.turn.is_some() {
            self.parting = Parting::Interrupted;
        } else if let Some(ask) = tag.strip_prefix("answer:") {
            self.questions.retain(|question| question.ask != ask);
        }
    }

    fn hear(&mut self, said: Said, line: &Line<'_>, heard: &mut Vec<Heard>) {
        match said {
            Said::ControlResponse { response } => self.answered(response, heard),
            Said::ControlRequest { request_id, request } => self.asked(request_id, request, heard),
            Said::ControlCancelRequest { request_id } => {
                self.questions.retain(|question| question.ask != request_id);
                report(heard, Report::ApprovalWithdrawn { ask: request_id });
            }
            Said::System(system) => self.system(*system, line, heard),
            Said::CommandLifecycle { command_uuid, state } => {
                self.names_prompts = true;
                match state.as_str() {
                    "started" => self.begin_turn(std::slice::from_ref(&command_uuid), heard),
                    "cancelled" => self.let_go_of(&command_uuid, heard),
                    _ => {}
                }
            }
            Said::StreamEvent { event, parent_tool_use_id: None } => self.streamed(event, heard),
            // A sub-agent's stream; what matters of it comes whole.
            Said::StreamEvent { .. } => {}
            Said::Assistant(assistant) => self.assistant(*assistant, heard),
            Said::User(user) => user_line(*user, heard),
            Said::RateLimitEvent { rate_limit_info } => self.limited(&rate_limit_info, heard),
            // That it runs was told when it began.
            Said::ToolProgress {} => {}
            Said::ConversationReset { trigger } => {
                self.meter.forget_totals();
                report(
                    heard,
                    Report::ContextReset { why: format!("the agent was told to forget (/{trigger})") },
                );
            }
            Said::Result(result) => self.end_turn(*result, heard),
        }
    }

    fn answered(&mut self, response: Response, heard: &mut Vec<Heard>) {
        if response.request_id == told::OPENING && !self.is_ready {
            if response.subtype == "success" {
                self.is_ready = true;
                let provider_id = Some(self.opened.id.clone()).filter(|id| !id.is_empty());
                report(heard, Report::Ready { provider_id, model: self.opened.model.clone() });
            } else {
                report(
                    heard,
                    Report::CannotStart(
                        response.error.unwrap_or_else(|| "it does not open a dialogue".to_owned()),
                    ),
                );
            }
        } else if response.request_id == told::PARTING {
            self.parting = Parting::Not;
        } else if response.request_id.starts_with(told::NUDGE) {
            report(heard, Report::Alive);
        } else if let Some(error) = response.error {
            report(heard, Report::Status(format!("refused: {error}")));
        }
    }

    fn asked(&mut self, request_id: String, request: Request, heard: &mut Vec<Heard>) {
        match request {
            Request::CanUseTool { tool_name, input, agent_id } if tool_name == QUESTION_TOOL => {
                let shown = tools::questions(&input);
                if self.questions.len() == MOST_QUESTIONS {
                    self.questions.remove(0);
                }
                self.questions.push(Question { ask: request_id.clone(), input });
                report(
                    heard,
                    Report::ApprovalAsked {
                        ask: request_id,
                        tool: tool_name,
                        input: shown,
                        kind: AskKind::Question,
                        action: Action::Other,
                        subagent: agent_id,
                    },
                );
            }
            Request::CanUseTool { tool_name, input, agent_id } => {
                report(
                    heard,
                    Report::ApprovalAsked {
                        ask: request_id,
                        input: tools::shown(&tool_name, &input),
                        kind: AskKind::Leave,
                        action: tools::action(&tool_name, &input),
                        tool: tool_name,
                        subagent: agent_id,
                    },
                );
            }
            Request::HookCallback { callback_id, input } if callback_id == told::ANNOUNCEMENT => {
                announced(request_id, input, heard);
            }
            Request::HookCallback { .. } | Request::Unknown => {
                heard.extend(Say::line("refuse", &told::not_known(&request_id)).map(Heard::Say));
            }
        }
    }

    fn system(&mut self, system: System, line: &Line<'_>, heard: &mut Vec<Heard>) {
        match system.subtype.as_str() {
            "init" => {
                self.begin_turn(&[], heard);
                if let Some(provider_id) = system.session_id {
                    report(heard, Report::Bound { provider_id, model: system.model });
                }
            }
            "session_state_changed" => {
                if system.state.as_deref() == Some("idle") && self.awaits_report {
                    self.awaits_report = false;
                    self.report_background(heard);
                }
            }
            "status" => {
                if system.status.as_deref() == Some("compacting") {
                    report(heard, Report::Status("compacting its context".to_owned()));
                }
            }
            "background_tasks_changed" => {
                self.background = system.tasks.iter().map(|task| one_line(&task.description, 120)).collect();
                self.report_background(heard);
            }
            "task_notification" => {
                // What was stopped is not reported on; what ended by itself is.
                let has_ended = matches!(system.status.as_deref(), Some("completed" | "failed"));
                self.awaits_report |= has_ended && !self.background.is_empty();
            }
            "compact_boundary" => {
                let compacted = system.compact_metadata.map(|data| ContextCompacted {
                    automatic: data.trigger == "auto",
                    before: data.pre_tokens,
                    after: data.post_tokens,
                });
                let unknown = ContextCompacted { automatic: false, before: None, after: None };
                report(heard, Report::Compacted(compacted.unwrap_or(unknown)));
            }
            "api_retry" => retry(system, heard),
            "permission_denied" => {
                let tool = system.tool_name.unwrap_or_default();
                let why = system.message.unwrap_or_default();
                report(heard, Report::Status(one_line(&format!("{tool} was refused: {why}"), 400)));
            }
            "informational" => report(heard, Report::Status(system.content.unwrap_or_default())),
            "thinking_tokens" | "hook_started" | "hook_response" | "task_started" | "task_progress"
            | "task_updated" => {}
            _ => heard.extend(foreign::unread(line).map(Heard::Report)),
        }
    }

    fn report_background(&self, heard: &mut Vec<Heard>) {
        let mut tasks = self.background.clone();
        if tasks.is_empty() && self.awaits_report {
            tasks.push(ITS_REPORT.to_owned());
        }
        report(heard, Report::Background { tasks });
    }

    fn streamed(&mut self, event: StreamEvent, heard: &mut Vec<Heard>) {
        let booked = match event {
            StreamEvent::MessageStart { message } => self.meter.start(message),
            StreamEvent::MessageDelta { usage } => {
                self.meter.update(usage.unwrap_or_default());
                None
            }
            StreamEvent::MessageStop => self.meter.book(),
            StreamEvent::ContentBlockDelta { delta: Delta::TextDelta { text } } => {
                heard.push(Heard::Delta(text));
                None
            }
            StreamEvent::ContentBlockDelta { delta: Delta::Other } | StreamEvent::Other => None,
        };
        if let Some(call) = booked {
            report(heard, Report::Usage(call));
            heard.extend(self.meter.context().map(|context| Heard::Report(Report::Context(context))));
        }
    }

    fn assistant(&mut self, assistant: Assistant, heard: &mut Vec<Heard>) {
        if assistant.is_api_error_message || assistant.error.is_some() {
            let is_limited = self.turn.as_ref().is_some_and(|turn| turn.is_limited);
            return failed(&assistant, is_limited, heard);
        }
        let subagent = assistant.parent_tool_use_id;
        let blocks = match assistant.message.content {
            Content::Text(text) => vec![Block::Text { text }],
            Content::Blocks(blocks) => blocks,
        };
        for block in blocks {
            match block {
                Block::Text { text } if !text.is_empty() => {
                    if subagent.is_none()
                        && let Some(turn) = &mut self.turn
                    {
                        turn.has_spoken = true;
                    }
                    report(heard, Report::Completion(Text { text, subagent: subagent.clone() }));
                }
                Block::Thinking { thinking } if !thinking.is_empty() => {
                    report(heard, Report::Thinking(Text { text: thinking, subagent: subagent.clone() }));
                }
                Block::ToolUse { id, name, input } => report(
                    heard,
                    Report::ToolCall(ToolCall {
                        summary: tools::summary(&name, &input),
                        tool: name,
                        tool_id: id,
                        input: input.to_string(),
                        subagent: subagent.clone(),
                    }),
                ),
                Block::Text { .. } | Block::Thinking { .. } | Block::ToolResult { .. } | Block::Other => {}
            }
        }
    }
}

/// It stands before a tool, and waits.
fn announced(request_id: String, input: HookInput, heard: &mut Vec<Heard>) {
    if input.tool_name == QUESTION_TOOL {
        // It always asks by itself before it asks a person something.
        return heard.extend(Say::line("proceed", &told::proceed(&request_id, false)).map(Heard::Say));
    }
    let action = tools::action(&input.tool_name, &input.tool_input);
    report(heard, Report::ToolAnnounced { ask: request_id, tool: input.tool_name, action });
}

fn report(heard: &mut Vec<Heard>, report: Report) {
    heard.push(Heard::Report(report));
}

/// Results of tools. Everything else in a line of the user's is an echo, or a word of Claude Code to its model.
fn user_line(user: User, heard: &mut Vec<Heard>) {
    let Content::Blocks(blocks) = user.message.content else { return };
    for block in blocks {
        if let Block::ToolResult { tool_use_id, content, is_error } = block {
            let (output, images) = tools::output(&content, &user.tool_use_result);
            heard.extend(shown(images, Some(&tool_use_id), user.parent_tool_use_id.as_ref()));
            let success = !is_error.unwrap_or(false);
            report(
                heard,
                Report::ToolResult(ToolResult {
                    tool_id: tool_use_id,
                    success,
                    exit: tools::exit(&output).filter(|_| !success),
                    output,
                    subagent: user.parent_tool_use_id.clone(),
                }),
            );
        }
    }
}

/// Claude Code's own words about a call that failed for good; the turn's result says them again.
fn failed(assistant: &Assistant, is_limited: bool, heard: &mut Vec<Heard>) {
    let text = match &assistant.message.content {
        Content::Text(text) => text.clone(),
        Content::Blocks(blocks) => blocks
            .iter()
            .filter_map(|block| if let Block::Text { text } = block { Some(text.as_str()) } else { None })
            .collect(),
    };
    match assistant.error.as_deref() {
        Some("rate_limit") if is_limited => {}
        Some("rate_limit") => report(heard, Report::RateLimited { what: one_line(&text, 300), until: None }),
        Some("authentication_failed" | "oauth_org_not_allowed") => report(heard, Report::AuthFailed(text)),
        _ if assistant.api_error_status == Some(401) => report(heard, Report::AuthFailed(text)),
        _ => {}
    }
}

fn retry(system: System, heard: &mut Vec<Heard>) {
    let error = system.error.unwrap_or_else(|| "failed".to_owned());
    let why = match system.error_status {
        Some(status) => format!("{status} {error}"),
        None => error.clone(),
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, as wanted"
    )]
    let after_ms = system.retry_delay_ms.map(|delay| delay.max(0.0) as u64);
    match (error.as_str(), system.error_status) {
        // It would be tried for minutes, and refused each time.
        ("authentication_failed", _) | (_, Some(401)) => report(heard, Report::AuthFailed(why)),
        ("rate_limit", _) | (_, Some(429)) => {
            // How long it waits is its own affair; what the server said of the limit's end is on the wire.
            report(heard, Report::RateLimited { what: why, until: None });
        }
        _ => report(
            heard,
            Report::Retrying(AgentRetrying {
                why,
                attempt: system.attempt,
                most: system.max_retries,
                after_ms,
            }),
        ),
    }
}
