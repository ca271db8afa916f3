//! What an agent says within a turn, until there is enough of it to report.

use std::collections::BTreeMap;

use ostler_domain::{
    event::{Action, AgentRetrying, ContextCompacted, ToolResult},
    limits,
    session::Report,
    text::head,
};
use ostler_tape::Line;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{tool::Tool, usage};
use crate::{
    Heard, foreign,
    parts::{images, shown},
};

/// Open calls that are remembered; an agent that never ends its calls loses the oldest.
const OPEN_TOOLS: usize = 256;
/// What is shown beside the work and says nothing of it: plans, commands, modes, titles, and our own words back.
const DECORATION: [&str; 7] = [
    "plan",
    "available_commands_update",
    "current_mode_update",
    "config_option_update",
    "config_options_update",
    "session_info_update",
    "user_message_chunk",
];
/// Tries that an agent of ours makes of one call.
const OWN_TRIES: u32 = 5;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Turn {
    text: Streaming,
    thought: Streaming,
    tools: BTreeMap<String, Tool>,
    /// Tokens are told call by call: the sum at the end counts no more.
    is_metered: bool,
    /// A call of this turn was read off the wire.
    #[serde(default)]
    is_on_the_wire: bool,
    /// The agent was told to end it.
    #[serde(default)]
    is_cancelled: bool,
}

/// A text that comes in pieces.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Streaming {
    /// Each message that has a piece in it, with its text.
    messages: Vec<(Option<String>, String)>,
}

impl Streaming {
    fn is_empty(&self) -> bool {
        self.messages.iter().all(|(_, text)| text.trim().is_empty())
    }

    fn push(&mut self, message: Option<&str>, text: &str) {
        let size: usize = self.messages.iter().map(|(_, text)| text.len()).sum();
        let text = head(text, limits::LINE_BYTES.saturating_sub(size));
        match self.messages.last_mut() {
            Some((last, so_far)) if last.as_deref() == message => so_far.push_str(text),
            _ => self.messages.push((message.map(str::to_owned), text.to_owned())),
        }
    }

    fn withdraw(&mut self, message: &str) {
        self.messages.retain(|(own, _)| own.as_deref() != Some(message));
    }

    fn take(&mut self) -> Option<String> {
        let messages = std::mem::take(&mut self.messages);
        let texts: Vec<String> = messages.into_iter().map(|(_, text)| text).collect();
        let whole = texts.join("\n\n");
        (!whole.trim().is_empty()).then_some(whole)
    }

    fn is_other_than(&self, message: Option<&str>) -> bool {
        self.messages.last().is_some_and(|(last, _)| last.as_deref() != message)
    }
}

impl Turn {
    pub(super) fn seen_on_the_wire(&mut self) {
        self.is_on_the_wire = true;
    }

    /// Takes in a `session/update`.
    pub(super) fn update(&mut self, update: &Value, line: &Line<'_>, heard: &mut Vec<Heard>) {
        let message = update["messageId"].as_str();
        let text = update["content"]["text"].as_str().unwrap_or_default();
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => {
                self.flush_thought(heard);
                heard.extend(shown(images(&Value::Array(vec![update["content"].clone()])), None, None));
                self.text.push(message, text);
                heard.push(Heard::Delta(text.to_owned()));
            }
            "agent_thought_chunk" => {
                if self.thought.is_other_than(message) {
                    self.flush_thought(heard);
                }
                self.thought.push(message, text);
            }
            "tool_call" | "tool_call_update" => self.tool(update, heard),
            "usage_update" => {
                if let Some(call) = usage::of_call(update) {
                    self.is_metered = true;
                    heard.push(Heard::Report(Report::Usage(call)));
                }
                heard.extend(usage::context(update).map(|context| Heard::Report(Report::Context(context))));
            }
            kind if DECORATION.contains(&kind) => {}
            // What later versions of the protocol add.
            _ => heard.extend(foreign::unread(line).map(Heard::Report)),
        }
    }

    /// Takes in what is said about a tool call, and says whether it is an open one.
    pub(super) fn tool(&mut self, said: &Value, heard: &mut Vec<Heard>) {
        let Some(id) = said["toolCallId"].as_str() else { return };
        if !self.tools.contains_key(id) && self.tools.len() >= OPEN_TOOLS {
            self.tools.pop_first();
        }
        let tool = self.tools.entry(id.to_owned()).or_default();
        tool.merge(said);
        let pictures = tool.new_pictures(said);
        if !tool.is_told && (tool.is_known() || tool.has_ended()) {
            self.tell_call(id, heard);
        }
        heard.extend(shown(pictures, Some(id), None));
        if self.tools.get(id).is_some_and(Tool::has_ended)
            && let Some(tool) = self.tools.remove(id)
        {
            heard.push(Heard::Report(Report::ToolResult(tool.result(id))));
        }
    }

    /// The name, the input and the action of a call that leave is asked for; the call is reported if it was not.
    pub(super) fn asked_about(&mut self, said: &Value, heard: &mut Vec<Heard>) -> (String, String, Action) {
        self.tool(said, heard);
        let id = said["toolCallId"].as_str().unwrap_or_default();
        if self.tools.get(id).is_some_and(|tool| !tool.is_told) {
            self.tell_call(id, heard);
        }
        self.tools.get(id).map(|tool| (tool.name(), tool.input(), tool.action())).unwrap_or_default()
    }

    fn tell_call(&mut self, id: &str, heard: &mut Vec<Heard>) {
        self.flush_thought(heard);
        self.flush_text(heard);
        if let Some(tool) = self.tools.get_mut(id) {
            tool.is_told = true;
            heard.push(Heard::Report(Report::ToolCall(tool.call(id))));
        }
    }

    /// What only agents of ours say.
    pub(super) fn own(&mut self, method: &str, params: &Value, heard: &mut Vec<Heard>) {
        let why = params["reason"].as_str().unwrap_or_default().to_owned();
        match method {
            "_ostler/withdrawn" => {
                let message = params["messageId"].as_str().unwrap_or_default();
                self.text.withdraw(message);
                self.thought.withdraw(message);
            }
            "_ostler/waiting" => {
                let after_ms = params["retryAfterMs"].as_u64();
                if params["rateLimit"] == true {
                    // How long it waits is its own affair; what the server said of the limit's end is on the wire.
                    heard.push(Heard::Report(Report::RateLimited { what: why.clone(), until: None }));
                }
                let attempt = params["attempt"].as_u64().and_then(|tried| u32::try_from(tried).ok());
                let attempt = attempt.unwrap_or_default();
                let retrying = AgentRetrying { why, attempt, most: OWN_TRIES, after_ms };
                heard.push(Heard::Report(Report::Retrying(retrying)));
            }
            "_ostler/compacted" => {
                let compacted = ContextCompacted { automatic: true, before: None, after: None };
                heard.push(Heard::Report(Report::Compacted(compacted)));
            }
            _ => {}
        }
    }

    /// The turn is over: what was said last is its answer, and no call stays without a result.
    /// The agent is told to end it.
    pub(super) fn cancel(&mut self) {
        self.is_cancelled = true;
    }

    /// Whether it comes to nothing because the agent was told so. opencode 1.18.33 calls such a turn one that it ended by
    /// itself, but with no answer.
    pub(super) fn is_cut_short(&self, reason: &str) -> bool {
        reason == "cancelled" || (self.is_cancelled && reason == "end_turn" && self.text.is_empty())
    }

    pub(super) fn end(mut self, result: &Value, why: &str, heard: &mut Vec<Heard>) {
        self.flush_thought(heard);
        for (id, tool) in std::mem::take(&mut self.tools) {
            if tool.is_told {
                let cut = ToolResult { success: false, output: why.to_owned(), ..tool.result(&id) };
                heard.push(Heard::Report(Report::ToolResult(cut)));
            }
        }
        if let Some(text) = self.text.take() {
            heard.push(Heard::Report(Report::Completion(text.into())));
        }
        let is_counted = self.is_metered || self.is_on_the_wire && usage::is_coarse(result);
        if !is_counted {
            heard.extend(usage::of_turn(result).into_iter().map(|call| Heard::Report(Report::Usage(call))));
        }
    }

    fn flush_thought(&mut self, heard: &mut Vec<Heard>) {
        if let Some(text) = self.thought.take() {
            heard.push(Heard::Report(Report::Thinking(text.into())));
        }
    }

    /// Words before a call are not the answer.
    fn flush_text(&mut self, heard: &mut Vec<Heard>) {
        if let Some(text) = self.text.take() {
            heard.push(Heard::Report(Report::Thinking(text.into())));
        }
    }
}
