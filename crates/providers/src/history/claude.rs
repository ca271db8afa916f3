//! Claude Code's files: `projects/<directory>/<session>.jsonl`, and those of its sub-agents.
//!
//! One call of the model is several lines, one for each block, and each of them repeats the call's tokens. Dialogues that were
//! gone on with may repeat all lines of the one before in a file of their own. So a call counts once for all files, by the
//! server's name for it and the request's, and what its last line says holds.

use ostler_domain::{
    Time, Usage,
    event::{ContextCompacted, StopReason, Text, ToolCall, ToolResult},
    history::{Call, Told, What},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{About, Reader, Recent, pictures, prompt, text_of, time_of, words};
use crate::claude_code::tools;

/// Beside the model that a call names: Claude Code's own words in its place.
const NO_MODEL: &str = "<synthetic>";
const INTERRUPTED: &str = "[Request interrupted by user";
/// What its own commands print, for the model to read.
const ASIDE: [&str; 4] = ["<local-command-", "<bash-", "<task-notification>", "<system-reminder>"];

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Claude {
    about: About,
    /// Whether the whole file is a sub-agent's: its first line says so.
    is_helper: Option<bool>,
    open: Option<OpenCall>,
    recent: Recent,
}

/// A call whose lines may not have ended.
#[derive(Debug, Serialize, Deserialize)]
struct OpenCall {
    name: String,
    model: String,
    usage: Usage,
    at: Option<Time>,
}

impl Reader for Claude {
    fn object(&mut self, line: Value, place: u64, told: &mut Vec<Told>) {
        let at = time_of(&line);
        self.learn(&line, at);
        let tell = |what: What| Told { at, what };
        match line["type"].as_str() {
            Some("user") => self.user(&line, place, at, told),
            Some("assistant") => self.assistant(&line, at, told),
            Some("system") if line["subtype"] == "compact_boundary" => {
                let about = &line["compactMetadata"];
                told.push(tell(What::Compacted(ContextCompacted {
                    automatic: about["trigger"] == "auto",
                    before: about["preTokens"].as_u64(),
                    after: about["postTokens"].as_u64(),
                })));
            }
            Some("system") if line["subtype"] == "api_error" => {
                let words = text_of(&line["error"], "message").or_else(|| text_of(&line, "content"));
                told.extend(words.map(|words| tell(What::Error(words))));
            }
            _ => {}
        }
    }

    fn pause(&mut self, told: &mut Vec<Told>) {
        self.book(told);
    }

    fn about(&self) -> &About {
        &self.about
    }

    fn memory(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Claude {
    fn learn(&mut self, line: &Value, at: Option<Time>) {
        self.about.saw(at);
        let about = &mut self.about;
        let is_titled = match line["type"].as_str() {
            Some("summary") => text_of(line, "summary"),
            Some("custom-title") => text_of(line, "customTitle"),
            Some("ai-title") => text_of(line, "aiTitle"),
            _ => None,
        };
        about.title = is_titled.or(about.title.take());
        if !matches!(line["type"].as_str(), Some("user" | "assistant")) {
            return;
        }
        about.cwd = about.cwd.take().or_else(|| text_of(line, "cwd"));
        about.branch =
            about.branch.take().or_else(|| text_of(line, "gitBranch").filter(|name| name != "HEAD"));
        let is_helper = *self.is_helper.get_or_insert(line["isSidechain"] == true);
        if about.dialogue.is_none() {
            let session = text_of(line, "sessionId");
            let helper = text_of(line, "agentId").filter(|_| is_helper);
            about.parent = session.clone().filter(|_| helper.is_some());
            about.dialogue = helper.map(|helper| format!("agent-{helper}")).or(session);
        }
    }

    /// The call that started the sub-agent whose line this is; none for the agent whose file it is.
    fn subagent(&self, line: &Value) -> Option<String> {
        let is_inside = line["isSidechain"] == true && self.is_helper != Some(true);
        is_inside.then(|| text_of(line, "sourceToolUseID").unwrap_or_else(|| "sidechain".to_owned()))
    }

    fn user(&mut self, line: &Value, place: u64, at: Option<Time>, told: &mut Vec<Told>) {
        let subagent = self.subagent(line);
        let content = &line["message"]["content"];
        for block in content.as_array().into_iter().flatten().filter(|block| block["type"] == "tool_result") {
            let (output, images) = tools::output(&block["content"], &line["toolUseResult"]);
            let success = block["is_error"] != true;
            let tool_id = text_of(block, "tool_use_id").unwrap_or_default();
            told.extend(pictures(images, at, &tool_id, subagent.as_ref()));
            told.push(Told {
                at,
                what: What::ToolResult(ToolResult {
                    tool_id,
                    success,
                    exit: tools::exit(&output).filter(|_| !success),
                    output,
                    subagent: subagent.clone(),
                }),
            });
        }
        let said = match content {
            Value::Array(blocks) => {
                let said = blocks.iter().filter(|block| block["type"] != "tool_result").cloned().collect();
                prompt(&Value::Array(said), place)
            }
            content => prompt(content, place),
        };
        let What::Prompt { text: said, images, .. } = said else { return };
        let is_aside = line["isMeta"] == true || line["isCompactSummary"] == true;
        if said.trim().is_empty() || is_aside || ASIDE.iter().any(|aside| said.starts_with(aside)) {
            return;
        }
        let what = if said.starts_with(INTERRUPTED) {
            What::Rests(StopReason::Interrupted)
        } else if subagent.is_some() {
            What::Status(format!("asked of a sub-agent: {said}"))
        } else {
            What::Prompt { text: typed(said), place, images }
        };
        told.push(Told { at, what });
    }

    fn assistant(&mut self, line: &Value, at: Option<Time>, told: &mut Vec<Told>) {
        let message = &line["message"];
        let model = text_of(message, "model").filter(|model| model != NO_MODEL);
        if line["isApiErrorMessage"] == true {
            let what = What::Error(words(&message["content"]));
            told.extend([Told { at, what }, Told { at, what: What::Rests(StopReason::Error) }]);
            return;
        }
        let subagent = self.subagent(line);
        if let (Some(model), None) = (&model, &subagent) {
            self.about.model = Some(model.clone());
            told.push(Told { at, what: What::Model(model.clone()) });
        }
        let blocks = match &message["content"] {
            Value::String(text) => vec![serde_json::json!({"type": "text", "text": text})],
            Value::Array(blocks) => blocks.clone(),
            _ => Vec::new(),
        };
        for block in &blocks {
            let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
            let said = |name: &str| Text { text: text(name), subagent: subagent.clone() };
            let what = match block["type"].as_str() {
                Some("text") => What::Completion(said("text")),
                Some("thinking") => What::Thinking(said("thinking")),
                Some("tool_use" | "server_tool_use") => What::ToolCall(ToolCall {
                    summary: tools::summary(&text("name"), &block["input"]),
                    tool: text("name"),
                    tool_id: text("id"),
                    input: block["input"].to_string(),
                    subagent: subagent.clone(),
                }),
                _ => continue,
            };
            let is_empty =
                matches!(&what, What::Completion(said) | What::Thinking(said) if said.text.is_empty());
            told.extend((!is_empty).then_some(Told { at, what }));
        }
        self.count(line, model, at, told);
        let rests = match message["stop_reason"].as_str() {
            Some("end_turn" | "stop_sequence" | "max_tokens" | "refusal") => Some(StopReason::Completed),
            _ => None,
        };
        told.extend(rests.filter(|_| subagent.is_none()).map(|how| Told { at, what: What::Rests(how) }));
    }

    /// What a call took is told when its last line has been seen.
    fn count(&mut self, line: &Value, model: Option<String>, at: Option<Time>, told: &mut Vec<Told>) {
        let message = &line["message"];
        let (Some(model), Some(id)) = (model, text_of(message, "id")) else { return };
        let name = match text_of(line, "requestId") {
            Some(request) => format!("{id} {request}"),
            None => id,
        };
        let of = |name: &str| message["usage"][name].as_u64().unwrap_or(0);
        let usage = Usage {
            input: of("input_tokens"),
            cache_read: of("cache_read_input_tokens"),
            cache_write: of("cache_creation_input_tokens"),
            output: of("output_tokens"),
            reasoning: message["usage"]["output_tokens_details"]["thinking_tokens"].as_u64().unwrap_or(0),
        };
        match &mut self.open {
            Some(open) if open.name == name => *open = OpenCall { name, model, usage, at },
            _ => {
                self.book(told);
                self.open = Some(OpenCall { name, model, usage, at });
            }
        }
    }

    fn book(&mut self, told: &mut Vec<Told>) {
        let Some(OpenCall { name, model, usage, at }) = self.open.take() else { return };
        let before = self.recent.of(&name);
        let more = usage.less(&before.unwrap_or_default());
        self.recent.set(&name, usage);
        if !more.is_zero() {
            let is_shared = before.is_none();
            let call = Call { usage: more, model: Some(model), name: Some(name), is_shared };
            told.push(Told { at, what: What::Call(call) });
        }
    }
}

/// What a person typed, without the marks around a command of Claude Code's own.
fn typed(said: String) -> String {
    let part = |name: &str| {
        let (_, rest) = said.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(part, _)| part.trim())
    };
    match part("command-name") {
        Some(command) => format!("{command} {}", part("command-args").unwrap_or_default()).trim().to_owned(),
        None => said,
    }
}
