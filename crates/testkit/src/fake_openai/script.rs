//! What to answer: a script inside of the last prompt.
//!
//! `@@fake [STEP, …]` anywhere in it; the JSON ends where it ends. Step n answers the nth request after that prompt.
//! A step is one reply or one failure:
//!
//! | key | meaning |
//! |---|---|
//! | `text`, `reasoning` | what the model says and thinks |
//! | `shell` | a command, or a list of them, as calls of whichever tool the request offers for it |
//! | `write` | `{"path", "content"}`: a file, likewise |
//! | `ostler` | `{"name", "arguments"}`: one of Ostler's own tools, by whatever name the request offers it |
//! | `tools` | any calls: `[{"name", "arguments"}]` |
//! | `usage` | `{"input", "cached", "cache_write", "output", "reasoning"}` |
//! | `aside` | the same of a call beside, such as for a title, where it takes something else |
//! | `id` | the name of the answer, where a server gives several the same |
//! | `chunks`, `delay_ms` | deltas of each text; time between events |
//! | `status`, `headers`, `body` | an error instead; with `times` only the first ones |
//! | `page` | a web page instead |
//! | `cut` | the connection is dropped after so many events; with `times` only the first ones; `cut_closed` closes it instead, so that all that was sent arrives; `cut_clean` ends it in order, without a last event |
//! | `hang` | stalls after so many events, until released or left |
//! | `failed` | `{"code", "message"}`: an error inside of the stream |
//! | `finish` | another finish reason |

use ostler_domain::Usage;
use serde_json::{Map, Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Chat,
    Responses,
    Messages,
    Gemini,
}

/// One answer.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) fields: Map<String, Value>,
    /// The same for every try of the same request.
    pub(super) key: String,
    pub(super) calls: Vec<Call>,
}

#[derive(Debug, Clone)]
pub(super) struct Call {
    /// Of tools that come in groups, the group's.
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl Step {
    /// `otherwise` is what prompts without a script are answered with, where that was said.
    pub(super) fn of(body: &Value, wire: Wire, otherwise: &[Value]) -> Self {
        let items = match wire {
            Wire::Chat | Wire::Messages => body["messages"].as_array().cloned().unwrap_or_default(),
            Wire::Responses => body["input"].as_array().cloned().unwrap_or_default(),
            Wire::Gemini => super::gemini::items(body),
        };
        // Claude Code puts words of its own around a prompt, in the same message.
        let scripted = |item: &Value| item["role"] == "user" && text_of(&item["content"]).contains("@@fake");
        let last = items.iter().rposition(scripted).filter(|_| matches!(wire, Wire::Messages | Wire::Gemini));
        let last = last.or_else(|| items.iter().rposition(|item| is_prompt(item, wire)));
        let prompt = last.map(|at| text_of(&items[at]["content"])).unwrap_or_default();
        let after = &items[last.map_or(0, |at| at + 1)..];
        let rounds = rounds(after, wire);
        let steps = match script(&prompt) {
            none if none.is_empty() => otherwise.to_vec(),
            steps => steps,
        };
        let fallback = json!({"text": if steps.is_empty() { format!("fake reply to: {prompt}") } else { "script exhausted".to_owned() }});
        let step = steps.get(rounds).cloned().unwrap_or(fallback);
        let mut fields = step.as_object().cloned().unwrap_or_default();
        let offered = offered(body);
        let calls = if offered.is_empty() {
            // Side calls, such as for a title, carry the prompt and no tools.
            fields.retain(|key, _| ["text", "usage", "aside", "delay_ms"].contains(&key.as_str()));
            if let Some(usage) = fields.remove("aside") {
                fields.insert("usage".to_owned(), usage);
            }
            Vec::new()
        } else {
            calls(&fields, &offered).into_iter().chain(ostlers(&fields, &offered, body)).collect()
        };
        Self { fields, key: format!("{prompt}#{rounds}"), calls }
    }

    pub(super) fn text(&self, key: &str) -> &str {
        self.fields.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// What the answer is called: as it was said, else by a name that no other has.
    pub(super) fn id(&self, otherwise: String) -> String {
        Some(self.text("id")).filter(|id| !id.is_empty()).map_or(otherwise, str::to_owned)
    }

    pub(super) fn number(&self, key: &str) -> Option<u64> {
        self.fields.get(key).and_then(Value::as_u64)
    }

    pub(super) fn is(&self, key: &str) -> bool {
        self.fields.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    /// The tokens that this reply says it cost.
    pub(super) fn usage(&self, body: &Value) -> Usage {
        let said = self.fields.get("usage").cloned().unwrap_or_default();
        let of = |key: &str| said[key].as_u64();
        let words = self.text("text").len() + self.text("reasoning").len();
        let cached = of("cached").unwrap_or(0);
        Usage {
            input: of("input").unwrap_or(body.to_string().len() as u64 / 4).saturating_sub(cached),
            cache_read: cached,
            cache_write: of("cache_write").unwrap_or(0),
            output: of("output").unwrap_or(words as u64 / 4 + 1),
            reasoning: of("reasoning").unwrap_or(0),
        }
    }

    /// A text in as many pieces as the step says.
    pub(super) fn pieces(&self, text: &str) -> Vec<String> {
        let characters: Vec<char> = text.chars().collect();
        let n = usize::try_from(self.number("chunks").unwrap_or(3)).unwrap_or(3).max(1);
        let size = characters.len().div_ceil(n).max(1);
        characters.chunks(size).map(|piece| piece.iter().collect()).collect()
    }
}

/// The last script of a prompt; one inside of another's texts is not its own.
fn script(prompt: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut rest = prompt;
    while let Some((_, after)) = rest.split_once("@@fake") {
        let mut values = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        found = match values.next() {
            Some(Ok(Value::Array(steps))) => steps,
            Some(Ok(step)) => vec![step],
            _ => vec![json!({"text": "bad @@fake script"})],
        };
        rest = &after[values.byte_offset()..];
    }
    found
}

/// A prompt of a person: some agents add items of their own in the user's role, which begin with `<`. Claude Code and Gemini
/// put such words, and what tools gave, into parts of one message.
fn is_prompt(item: &Value, wire: Wire) -> bool {
    let is_own = |text: &str| text.trim_start().starts_with('<');
    let is_said = |text: &str| !text.trim().is_empty() && !is_own(text);
    item["role"] == "user"
        && match (&item["content"], wire) {
            (Value::Array(parts), Wire::Messages | Wire::Gemini) => {
                parts.iter().filter_map(|part| part["text"].as_str()).any(is_said)
            }
            (content, _) => !is_own(&text_of(content)),
        }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// How many replies of the model there are. Over the Responses API a run of the model's items is one.
fn rounds(items: &[Value], wire: Wire) -> usize {
    let is_model = |item: &Value| {
        let kinds = ["reasoning", "function_call", "custom_tool_call", "local_shell_call"];
        item["role"] == "assistant" || item["type"].as_str().is_some_and(|kind| kinds.contains(&kind))
    };
    let mut rounds = 0;
    let mut inside = false;
    for item in items {
        let model = is_model(item);
        rounds += usize::from(model && (wire != Wire::Responses || !inside));
        inside = model;
    }
    rounds
}

fn offered(body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().into_iter().flatten();
    let tools = tools.flat_map(|tool| match &tool["functionDeclarations"] {
        Value::Array(declared) => declared.clone(),
        _ => vec![tool.clone()],
    });
    tools
        .filter_map(|tool| {
            let name = tool["name"].as_str().or_else(|| tool["function"]["name"].as_str());
            name.or_else(|| tool["type"].as_str()).map(str::to_owned)
        })
        .collect()
}

fn calls(step: &Map<String, Value>, offered: &[String]) -> Vec<Call> {
    let has = |name: &str| offered.iter().any(|own| own == name);
    let call = |name: &str, arguments: Value| Call {
        namespace: None,
        name: name.to_owned(),
        arguments: arguments.to_string(),
    };
    let shell = |command: &Value| match command {
        command if has("exec_command") => call("exec_command", json!({"cmd": command})),
        command if has("Bash") => call("Bash", json!({"command": command, "description": "run it"})),
        command if has("run_shell_command") => {
            call("run_shell_command", json!({"command": command, "description": "run it"}))
        }
        command if has("exec") => call("exec", json!({"command": command})),
        command if has("bash") => call("bash", json!({"command": command, "description": "run it"})),
        command => call("run_command", json!({"command": command})),
    };
    let mut calls: Vec<Call> = match step.get("shell") {
        Some(Value::Array(commands)) => commands.iter().map(shell).collect(),
        Some(command) => vec![shell(command)],
        None => Vec::new(),
    };
    if let Some(file) = step.get("write") {
        let (path, content) = (&file["path"], &file["content"]);
        calls.push(if has("Write") {
            call("Write", json!({"file_path": path, "content": content}))
        } else if has("write") {
            call("write", json!({"filePath": path, "content": content}))
        } else {
            call("write_file", json!({"path": path, "content": content}))
        });
    }
    for tool in step.get("tools").and_then(Value::as_array).into_iter().flatten() {
        let arguments = match &tool["arguments"] {
            Value::String(raw) => raw.clone(),
            arguments => arguments.to_string(),
        };
        let name = tool["name"].as_str().unwrap_or_default().to_owned();
        calls.push(Call { namespace: None, name, arguments });
    }
    calls
}

/// A call of one of Ostler's own tools: by the name that is offered, in the group that is, or as one that Claude Code has
/// named and not described yet.
fn ostlers(step: &Map<String, Value>, offered: &[String], body: &Value) -> Option<Call> {
    let tool = step.get("ostler")?;
    let own = tool["name"].as_str().unwrap_or_default();
    let arguments = tool["arguments"].to_string();
    let is_it = |name: &&String| name.contains("ostler") && name.rsplit('_').next() == Some(own);
    let is_group = |tool: &&Value| {
        tool["type"] == "namespace" && tool["name"].as_str().is_some_and(|name| name.contains("ostler"))
    };
    let group = body["tools"].as_array().into_iter().flatten().find(is_group);
    let deferred = format!("mcp__ostler__{own}");
    let (namespace, name) = match (offered.iter().find(is_it), group) {
        (Some(name), _) => (None, name.clone()),
        (None, Some(group)) => (group["name"].as_str().map(str::to_owned), own.to_owned()),
        (None, None) if body["messages"].to_string().contains(&deferred) => (None, deferred),
        (None, None) => (None, "no-such-tool".to_owned()),
    };
    Some(Call { namespace, name, arguments })
}
