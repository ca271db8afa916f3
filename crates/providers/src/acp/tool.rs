//! A tool call, put together from all that is said about it: agents tell it in pieces, in any order.

use ostler_domain::{
    event::{Action, ToolCall, ToolResult},
    image::Image,
    limits,
    text::{head, one_line},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::parts::images;

/// Longest summary of a call.
const SUMMARY_BYTES: usize = 200;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Tool {
    name: Option<String>,
    kind: Option<String>,
    title: Option<String>,
    paths: Vec<String>,
    input: Option<Value>,
    output: Option<Value>,
    content: Option<String>,
    /// What came over a terminal that we do not have.
    terminal: String,
    exit: Option<i32>,
    /// The names of pictures that were told of: agents say all that there is again and again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pictures: Vec<String>,
    status: Option<String>,
    /// Whether the call has been reported.
    pub(super) is_told: bool,
}

impl Tool {
    /// Takes in what is said about it; what is not said stays.
    pub(super) fn merge(&mut self, said: &Value) {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let meta = &said["_meta"];
        let name = text(&said["name"]).or_else(|| text(&meta["claudeCode"]["toolName"]));
        self.name = name.or(self.name.take());
        self.kind = text(&said["kind"]).or(self.kind.take());
        self.title = text(&said["title"]).or(self.title.take());
        self.status = text(&said["status"]).or(self.status.take());
        let input = said.get("rawInput").filter(|input| !is_empty(input));
        self.input = input.cloned().or(self.input.take());
        self.output =
            said.get("rawOutput").filter(|output| !output.is_null()).cloned().or(self.output.take());
        let located =
            said["locations"].as_array().into_iter().flatten().filter_map(|place| text(&place["path"]));
        let located: Vec<String> = located.collect();
        if !located.is_empty() {
            self.paths = located;
        }
        self.content = content(&said["content"]).or(self.content.take());
        if let Some(more) = meta["terminal_output_delta"]["data"].as_str()
            && self.terminal.len() < limits::INLINE_BODY_BYTES * 4
        {
            self.terminal.push_str(more);
        }
        let code = &meta["terminal_exit"]["exit_code"];
        self.exit = code.as_i64().and_then(|code| i32::try_from(code).ok()).or(self.exit);
    }

    /// The pictures that are said to be in its result, and were not before.
    pub(super) fn new_pictures(&mut self, said: &Value) -> Vec<Image> {
        let raw = images(&said["rawOutput"]["content"]);
        let mut found = images(&said["content"]);
        found.extend(raw);
        found.retain(|image| {
            let is_new = !self.pictures.contains(&image.sha256);
            self.pictures.extend(is_new.then(|| image.sha256.clone()));
            is_new
        });
        found
    }

    /// Whether enough is known to tell of the call.
    pub(super) fn is_known(&self) -> bool {
        self.input.is_some() || self.status.as_deref().is_some_and(|status| status != "pending")
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.status.as_deref(), Some("completed" | "failed"))
    }

    pub(super) fn name(&self) -> String {
        let first_word =
            || self.title.as_deref().and_then(|title| title.split_whitespace().next()).map(str::to_owned);
        self.name
            .clone()
            .or_else(|| self.kind.clone())
            .or_else(first_word)
            .unwrap_or_else(|| "tool".to_owned())
    }

    pub(super) fn input(&self) -> String {
        match &self.input {
            Some(Value::String(text)) => text.clone(),
            Some(input) => input.to_string(),
            None => self.title.clone().unwrap_or_default(),
        }
    }

    /// What it is about to do, as far as the protocol says it.
    pub(super) fn action(&self) -> Action {
        let said = |keys: &[&str]| {
            keys.iter().find_map(|key| self.input.as_ref()?[*key].as_str().map(str::to_owned))
        };
        let paths = || {
            let named = said(&["path", "filePath", "file_path", "filepath", "absolute_path"]);
            named.map_or_else(|| self.paths.clone(), |path| vec![path])
        };
        // What is not said is no reason to know a tool by its name alone: then nothing but a person can answer.
        match self.kind.as_deref() {
            Some("execute") => Action::Run { command: said(&["command", "cmd"]).unwrap_or_default() },
            Some("edit" | "delete" | "move") => Action::Write { paths: paths() },
            Some("read") => Action::Read { paths: paths() },
            // Who names no place may search the web.
            Some("search") if !paths().is_empty() => Action::Read { paths: paths() },
            Some("fetch") => Action::Fetch { url: said(&["url"]).unwrap_or_default() },
            _ => Action::Other,
        }
    }

    pub(super) fn call(&self, id: &str) -> ToolCall {
        let summary = match (&self.title, &self.input) {
            (Some(title), _) => title.clone(),
            (None, Some(input)) => input.to_string(),
            (None, None) => String::new(),
        };
        ToolCall {
            tool: self.name(),
            tool_id: id.to_owned(),
            summary: one_line(&summary, SUMMARY_BYTES),
            input: self.input(),
            subagent: None,
        }
    }

    pub(super) fn result(&self, id: &str) -> ToolResult {
        let exit = self.exit.or_else(|| self.output.as_ref().and_then(exit));
        ToolResult {
            tool_id: id.to_owned(),
            // opencode 1.18 calls a command completed that ended with 1: it was carried out, and it failed. So does one that
            // was ended before it had a code.
            success: self.status.as_deref() == Some("completed")
                && exit.map_or(!self.was_cut_off(), |code| code == 0),
            exit,
            output: self.said_output(),
            subagent: None,
        }
    }

    /// Whether it is a command that was ended: opencode 1.18 says then that there is no code, and why between tags.
    fn was_cut_off(&self) -> bool {
        self.output.as_ref().is_some_and(|output| output["metadata"].get("exit").is_some_and(Value::is_null))
    }

    fn said_output(&self) -> String {
        let raw = match &self.output {
            Some(Value::String(text)) => Some(text.clone()),
            Some(output) => ["output", "stdout", "aggregated_output"]
                .iter()
                .find_map(|key| output[*key].as_str().map(str::to_owned))
                .or_else(|| content(&output["content"])),
            None => None,
        };
        let said = raw.or_else(|| self.content.clone()).filter(|text| !text.is_empty());
        let said = said.unwrap_or_else(|| self.terminal.clone());
        match (&said, &self.output) {
            (said, Some(output)) if said.is_empty() && output.is_object() && self.pictures.is_empty() => {
                output.to_string()
            }
            _ if self.was_cut_off() => head(&without_tags(&said), limits::LINE_BYTES).to_owned(),
            _ => head(&said, limits::LINE_BYTES).to_owned(),
        }
    }
}

fn without_tags(said: &str) -> String {
    let is_tag = |line: &&str| matches!(line.trim(), "<shell_metadata>" | "</shell_metadata>");
    said.lines().filter(|line| !is_tag(line)).collect::<Vec<_>>().join("\n")
}

/// An input that says nothing yet: some agents name the directory first and the rest later.
fn is_empty(input: &Value) -> bool {
    match input {
        Value::Null => true,
        Value::Object(fields) => fields.keys().all(|key| key == "cwd"),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

fn exit(output: &Value) -> Option<i32> {
    let places = [
        &output["exitCode"],
        &output["exit_code"],
        &output["metadata"]["exit"],
        &output["details"]["exitCode"],
    ];
    places.into_iter().find_map(Value::as_i64).and_then(|code| i32::try_from(code).ok())
}

/// The text in a list of contents.
fn content(list: &Value) -> Option<String> {
    let texts: Vec<&str> = list
        .as_array()?
        .iter()
        .filter_map(|one| one["content"]["text"].as_str().or_else(|| one["text"].as_str()))
        .collect();
    Some(texts.join("\n"))
}
