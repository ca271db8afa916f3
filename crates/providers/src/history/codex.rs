//! Codex' files: `sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`, lines of `{timestamp, type, payload}`.
//!
//! Newer versions tell the tokens of each call, by the server's name for it. Older ones tell running totals. A thread that was forked, or a sub-agent's, begins with a copy of its parent's lines, and
//! with its parent's totals; so a total is named by all totals before it, which are the same in both files and nowhere else.

use ostler_domain::{
    Time, Usage,
    event::{ContextCompacted, StopReason, ToolCall, ToolResult},
    history::{Call, Told, What, bits},
    image::Image,
    text::one_line,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{About, Reader, pictures, prompt, text_of, time_of, words};
use crate::parts::images;

const SUMMARY_BYTES: usize = 200;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Codex {
    about: About,
    /// What its file is named after.
    named: Option<String>,
    /// Its own first line was read, which says who it is.
    has_meta: bool,
    /// It began as a copy of another thread's lines.
    is_copy: bool,
    /// Each call is told by itself: newer versions do.
    has_calls: bool,
    total: Option<Total>,
    /// All totals so far, as one number.
    trail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Total {
    input: u64,
    cached: u64,
    written: u64,
    output: u64,
    reasoning: u64,
}

impl Total {
    fn read(said: &Value) -> Self {
        let of = |name: &str| said[name].as_u64().unwrap_or(0);
        Self {
            input: of("input_tokens"),
            cached: of("cached_input_tokens"),
            written: of("cache_write_input_tokens"),
            output: of("output_tokens"),
            reasoning: of("reasoning_output_tokens"),
        }
    }

    /// What came to it. One that is smaller began anew.
    fn since(self, before: Option<Total>) -> Usage {
        let before = before.filter(|before| before.input <= self.input && before.output <= self.output);
        let before = before.unwrap_or_default();
        let (cached, written) =
            (self.cached.saturating_sub(before.cached), self.written.saturating_sub(before.written));
        let input = self.input.saturating_sub(before.input);
        Usage {
            // What was cached is a part of the input.
            input: input.saturating_sub(cached).saturating_sub(written),
            cache_read: cached.min(input),
            cache_write: written,
            output: self.output.saturating_sub(before.output),
            reasoning: self.reasoning.saturating_sub(before.reasoning),
        }
    }
}

impl Reader for Codex {
    fn object(&mut self, line: Value, place: u64, told: &mut Vec<Told>) {
        let at = time_of(&line);
        self.about.saw(at);
        // Who it is stands in the first line. Where that is lost, the next one that says so may be its parent's.
        if place > 0 && self.about.dialogue.is_none() {
            self.about.dialogue = self.named.clone();
        }
        let payload = &line["payload"];
        match line["type"].as_str() {
            Some("session_meta") => self.meta(payload),
            Some("turn_context") => {
                self.about.cwd = self.about.cwd.take().or_else(|| text_of(payload, "cwd"));
                if let Some(model) = text_of(payload, "model") {
                    self.about.model = Some(model.clone());
                    told.push(Told { at, what: What::Model(model) });
                }
            }
            Some("event_msg") => self.event(payload, place, at, told),
            Some("response_item") => self.item(payload, None, at, told),
            Some("token_usage_record") => {
                told.extend(self.call(payload).map(|call| Told { at, what: What::Call(call) }))
            }
            Some("compacted") => told.push(Told { at, what: What::Compacted(compacted()) }),
            // The first versions had items alone, and before them who it is.
            Some(_) if payload.is_null() => self.item(&line, Some(place), at, told),
            None if line["id"].is_string() && !self.has_meta => self.meta(&line),
            _ => {}
        }
    }

    fn pause(&mut self, _told: &mut Vec<Told>) {}

    fn is_named(&mut self, stem: &str) {
        self.named = self.named.take().or_else(|| thread_of(stem));
    }

    fn about(&self) -> &About {
        &self.about
    }

    fn memory(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Codex {
    /// Who it is. A copy has its parent's behind its own.
    fn meta(&mut self, meta: &Value) {
        let source = &meta["source"]["subagent"]["thread_spawn"];
        let parent = text_of(meta, "parent_thread_id").or_else(|| text_of(source, "parent_thread_id"));
        let thread = text_of(meta, "id").or_else(|| text_of(meta, "session_id"));
        let known = self.about.dialogue.as_ref();
        let is_first = !self.has_meta && known.is_none_or(|known| Some(known) == thread.as_ref());
        self.is_copy |= !is_first || parent.is_some() || meta["forked_from_id"].is_string();
        if !is_first {
            return;
        }
        self.has_meta = thread.is_some();
        self.about.dialogue = thread;
        self.about.parent = parent;
        self.about.cwd = text_of(meta, "cwd");
        self.about.branch = text_of(&meta["git"], "branch");
    }

    fn event(&mut self, event: &Value, place: u64, at: Option<Time>, told: &mut Vec<Told>) {
        let what = match event["type"].as_str() {
            Some("user_message") => {
                let urls = event["images"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let images: Vec<Image> = urls.filter_map(Image::from_data_url).collect();
                let alone = (!images.is_empty()).then(|| "[image]".to_owned());
                let text = text_of(event, "message").or(alone);
                text.map(|text| What::Prompt { text, place, images })
            }
            Some("item_completed") if event["item"]["type"] == "UserMessage" => {
                let said = prompt(&event["item"]["content"], place);
                (!matches!(&said, What::Prompt { text, .. } if text.is_empty())).then_some(said)
            }
            Some("token_count") => self.count(&event["info"]).map(What::Call),
            Some("task_complete" | "turn_complete") => Some(What::Rests(StopReason::Completed)),
            Some("turn_aborted") => Some(What::Rests(StopReason::Interrupted)),
            Some("error" | "stream_error") => text_of(event, "message").map(What::Error),
            Some("context_compacted") => Some(What::Compacted(compacted())),
            Some("thread_name_updated") => {
                self.about.title = text_of(event, "thread_name").or(self.about.title.take());
                None
            }
            _ => None,
        };
        told.extend(what.map(|what| Told { at, what }));
    }

    fn count(&mut self, info: &Value) -> Option<Call> {
        let total = Total::read(info.get("total_token_usage")?);
        if self.total == Some(total) {
            // Said again, with other news.
            return None;
        }
        let usage = total.since(self.total);
        let numbers = [total.input, total.cached, total.written, total.output, total.reasoning];
        let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.trail = format!("{:032x}", bits(&[self.trail.as_bytes(), &numbers]));
        self.total = Some(total);
        if self.has_calls {
            return None;
        }
        let name = Some(self.trail.clone());
        (!usage.is_zero()).then(|| Call {
            usage,
            model: self.about.model.clone(),
            name,
            is_shared: self.is_copy,
        })
    }

    fn call(&mut self, record: &Value) -> Option<Call> {
        self.has_calls = true;
        let usage = Total::read(&record["usage"]).since(None);
        let name = text_of(record, "response_id");
        (!usage.is_zero()).then(|| Call {
            usage,
            model: self.about.model.clone(),
            is_shared: name.is_some(),
            name,
        })
    }

    /// `typed_at`: where prompts are items, among what nobody said; newer versions tell them as events.
    fn item(&mut self, item: &Value, typed_at: Option<u64>, at: Option<Time>, told: &mut Vec<Told>) {
        let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
        let id = || text_of(item, "call_id").or_else(|| text_of(item, "id")).unwrap_or_default();
        let call = |tool: String, input: String| {
            What::ToolCall(ToolCall {
                summary: one_line(&about_call(&input), SUMMARY_BYTES),
                tool,
                tool_id: id(),
                input,
                subagent: None,
            })
        };
        let what = match item["type"].as_str() {
            Some("message") if item["role"] == "assistant" => {
                What::Completion(words(&item["content"]).into())
            }
            Some("message") if item["role"] == "user" => {
                let Some(place) = typed_at else { return };
                let said = words(&item["content"]);
                // What Codex tells its model of where it is.
                if said.starts_with('<') || said.starts_with("# AGENTS.md") {
                    return;
                }
                prompt(&item["content"], place)
            }
            Some("reasoning") => {
                let summary = words(&item["summary"]);
                What::Thinking(if summary.is_empty() { words(&item["content"]) } else { summary }.into())
            }
            Some("function_call") => call(text("name"), text("arguments")),
            Some("custom_tool_call") => call(text("name"), text("input")),
            Some("local_shell_call") => call("shell".to_owned(), item["action"].to_string()),
            Some("web_search_call") => call("web_search".to_owned(), item["action"].to_string()),
            Some("function_call_output" | "custom_tool_call_output") => {
                let output = &item["output"];
                let found = ["content", "content_items"].iter().flat_map(|name| images(&output[*name]));
                let images = images(output).into_iter().chain(found).collect();
                told.extend(pictures(images, at, &id(), None));
                result(id(), output)
            }
            _ => return,
        };
        let is_empty = matches!(&what, What::Completion(said) | What::Thinking(said) if said.text.is_empty());
        told.extend((!is_empty).then_some(Told { at, what }));
    }
}

/// The thread that a file is named after: `rollout-<time>-<thread>`.
fn thread_of(stem: &str) -> Option<String> {
    let thread = stem.strip_prefix("rollout-")?.get(THREAD_AT..)?.strip_prefix('-')?;
    let is_id = thread.len() == 36 && thread.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_id.then(|| thread.to_owned())
}

/// `2026-11-16T19-21-52` is before it.
const THREAD_AT: usize = 19;

fn compacted() -> ContextCompacted {
    ContextCompacted { automatic: false, before: None, after: None }
}

/// The part of a call's input that says what it is about.
fn about_call(input: &str) -> String {
    let Ok(arguments) = serde_json::from_str::<Value>(input) else { return input.to_owned() };
    let telling = ["command", "cmd", "path", "query", "input"];
    match telling.iter().map(|name| &arguments[*name]).find(|value| !value.is_null()) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().map(|part| part.as_str().unwrap_or_default()).collect::<Vec<_>>().join(" ")
        }
        _ => input.to_owned(),
    }
}

/// What a call gave: plain text, blocks, or text that is JSON with the exit code beside it.
fn result(tool_id: String, output: &Value) -> What {
    let said = match output {
        Value::Object(_) => words(&output["content"]),
        output => words(output),
    };
    let inner = serde_json::from_str::<Value>(&said).ok().filter(|inner| inner["output"].is_string());
    let exit = inner.as_ref().and_then(|inner| inner["metadata"]["exit_code"].as_i64());
    let exit = exit.or_else(|| {
        let (_, rest) =
            said.split_once("Process exited with code ").or_else(|| said.split_once("Exit code: "))?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    });
    let exit = exit.and_then(|code| i32::try_from(code).ok());
    let success = output["success"] != false && exit.is_none_or(|code| code == 0);
    let said = inner.and_then(|inner| text_of(&inner, "output")).unwrap_or(said);
    What::ToolResult(ToolResult { tool_id, success, exit, output: said, subagent: None })
}
