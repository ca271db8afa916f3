//! OpenClaw's files: `agents/<agent>/sessions/<session>.jsonl`, of all versions of their form.
//!
//! From version 3 on a message is a line's `message`, and lines have ids; before, a line was a message, with or without a
//! `type` of its own. The lines of a branch that was left are told too: they happened.

use ostler_domain::{
    Time, Usage,
    event::{ContextCompacted, ImageRecorded, StopReason, Text, ToolCall, ToolResult},
    history::{Call, Told, What},
    text::one_line,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{About, Reader, pictures, prompt, text_of, words};
use crate::parts::parts;

const SUMMARY_BYTES: usize = 200;
/// In the place of a model: what the gateway itself put into the transcript.
const NO_MODEL: &str = "gateway-injected";

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OpenClaw {
    about: About,
}

impl Reader for OpenClaw {
    fn object(&mut self, line: Value, place: u64, told: &mut Vec<Told>) {
        let at = moment(&line["timestamp"]).or_else(|| moment(&line["message"]["timestamp"]));
        self.about.saw(at);
        let tell = |what: What| Told { at, what };
        match line["type"].as_str() {
            Some("session") => {
                self.about.dialogue = self.about.dialogue.take().or_else(|| text_of(&line, "id"));
                self.about.cwd = self.about.cwd.take().or_else(|| text_of(&line, "cwd"));
            }
            Some("message") if line["message"].is_object() => self.message(&line["message"], place, at, told),
            Some("message" | "user" | "assistant" | "toolResult") | None if line["content"].is_null() => {}
            Some("message" | "user" | "assistant" | "toolResult") | None => {
                self.message(&line, place, at, told);
            }
            Some("model_change") => {
                told.extend(text_of(&line, "modelId").map(|model| tell(What::Model(model))))
            }
            Some("compaction") => told.push(tell(What::Compacted(ContextCompacted {
                automatic: false,
                before: line["tokensBefore"].as_u64(),
                after: None,
            }))),
            Some("session_info") => self.about.title = text_of(&line, "name").or(self.about.title.take()),
            Some("custom_message") => {
                let said = words(&line["content"]);
                told.extend((!said.is_empty()).then(|| tell(What::Status(said))));
            }
            _ => {}
        }
    }

    fn pause(&mut self, _told: &mut Vec<Told>) {}

    fn about(&self) -> &About {
        &self.about
    }

    fn memory(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl OpenClaw {
    fn message(&mut self, message: &Value, place: u64, at: Option<Time>, told: &mut Vec<Told>) {
        let role = message["role"].as_str().or(message["type"].as_str());
        let tell = |what: What| Told { at, what };
        match role {
            Some("user") => {
                let said = prompt(&message["content"], place);
                let is_empty = matches!(&said, What::Prompt { text, .. } if text.trim().is_empty());
                told.extend((!is_empty).then(|| tell(said)));
            }
            Some("assistant") => self.assistant(message, at, told),
            Some("toolResult" | "tool") => {
                let exit = message["details"]["exitCode"].as_i64().and_then(|code| i32::try_from(code).ok());
                let tool_id = text_of(message, "toolCallId").unwrap_or_default();
                let (output, images) = parts(&message["content"]);
                told.extend(pictures(images, at, &tool_id, None));
                told.push(tell(What::ToolResult(ToolResult {
                    tool_id,
                    success: message["isError"] != true && exit.is_none_or(|code| code == 0),
                    exit,
                    output,
                    subagent: None,
                })));
            }
            Some("bashExecution") => {
                let said = text_of(message, "command").unwrap_or_default();
                told.push(tell(What::Status(format!("ran {said}"))));
            }
            Some("custom" | "hookMessage" | "system") => {
                let said = words(&message["content"]);
                told.extend((!said.is_empty()).then(|| tell(What::Status(said))));
            }
            _ => {}
        }
    }

    fn assistant(&mut self, message: &Value, at: Option<Time>, told: &mut Vec<Told>) {
        let tell = |what: What| Told { at, what };
        let model = text_of(message, "model").filter(|model| model != NO_MODEL);
        if let Some(model) = &model {
            self.about.model = Some(model.clone());
            told.push(tell(What::Model(model.clone())));
        }
        match &message["content"] {
            Value::String(text) if !text.is_empty() => told.push(tell(What::Completion(text.clone().into()))),
            Value::Array(blocks) => told.extend(blocks.iter().filter_map(block).map(tell)),
            _ => {}
        }
        let usage = &message["usage"];
        let of = |name: &str| usage[name].as_u64().unwrap_or(0);
        let usage = Usage {
            input: of("input"),
            cache_read: of("cacheRead"),
            cache_write: of("cacheWrite"),
            output: of("output"),
            reasoning: of("reasoningTokens"),
        };
        if !usage.is_zero() {
            let name = text_of(message, "responseId");
            told.push(tell(What::Call(Call { usage, model, is_shared: name.is_some(), name })));
        }
        let rests = match message["stopReason"].as_str() {
            Some("stop" | "length") => Some(StopReason::Completed),
            Some("aborted") => Some(StopReason::Interrupted),
            Some("error") => Some(StopReason::Error),
            _ => None,
        };
        if let Some(StopReason::Error) = rests {
            told.extend(text_of(message, "errorMessage").map(|words| tell(What::Error(words))));
        }
        told.extend(rests.map(|how| tell(What::Rests(how))));
    }
}

fn block(block: &Value) -> Option<What> {
    let text = |name: &str| text_of(block, name);
    match block["type"].as_str() {
        Some("text") => text("text").map(|said| What::Completion(Text::from(said))),
        Some("thinking") => text("thinking").map(|said| What::Thinking(Text::from(said))),
        Some("toolCall") => {
            let arguments = &block["arguments"];
            let telling = ["command", "path", "file_path", "url", "query", "task"];
            let telling = telling.iter().find_map(|name| arguments[*name].as_str());
            let input = if arguments.is_null() { String::new() } else { arguments.to_string() };
            Some(What::ToolCall(ToolCall {
                tool: text("name").unwrap_or_else(|| "tool".to_owned()),
                tool_id: text("id").unwrap_or_default(),
                summary: one_line(telling.unwrap_or(&input), SUMMARY_BYTES),
                input,
                subagent: None,
            }))
        }
        Some("image") => parts(&Value::Array(vec![block.clone()]))
            .1
            .pop()
            .map(|image| What::Image(ImageRecorded { image, tool_id: None, message: None, subagent: None })),
        _ => None,
    }
}

/// Milliseconds, or a date.
fn moment(said: &Value) -> Option<Time> {
    match said {
        Value::String(text) => Time::from_rfc3339(text),
        said => said.as_i64().and_then(|millis| millis.checked_mul(1_000)).map(Time::from_micros),
    }
}
