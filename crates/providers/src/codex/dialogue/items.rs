//! What a turn is made of, and its end.

use std::collections::BTreeMap;

use ostler_domain::{
    event::{ContextCompacted, StopReason, ToolResult},
    session::Report,
};
use ostler_tape::Line;
use serde_json::Value;

use super::{CodexDialogue, remember};
use crate::{
    Heard, Say,
    codex::item::{self, Open},
    parts::shown,
};

impl CodexDialogue {
    pub(super) fn item_started(&mut self, item: &Value, heard: &mut Vec<Heard>) {
        let (id, kind) = (item["id"].as_str().unwrap_or_default(), item["type"].as_str().unwrap_or_default());
        if kind != "userMessage" {
            self.flush(heard);
        }
        if item::is_tool(kind) && !self.open.contains_key(id) {
            let open = Open::of(item);
            heard.push(Heard::Report(Report::ToolCall(open.call(id))));
            self.open.insert(id.to_owned(), open);
        }
    }

    pub(super) fn item_completed(&mut self, item: &Value, heard: &mut Vec<Heard>) {
        let (id, kind) = (item["id"].as_str().unwrap_or_default(), item["type"].as_str().unwrap_or_default());
        match kind {
            "reasoning" => {
                let joined = |key: &str| {
                    let parts = item[key].as_array().into_iter().flatten().filter_map(Value::as_str);
                    parts.collect::<Vec<_>>().join("\n\n")
                };
                let summary = joined("summary");
                let text = if summary.is_empty() { joined("content") } else { summary };
                if !text.trim().is_empty() {
                    heard.push(Heard::Report(Report::Thinking(text.into())));
                }
            }
            "agentMessage" => {
                self.flush(heard);
                self.held = item["text"].as_str().filter(|text| !text.trim().is_empty()).map(str::to_owned);
                if item["phase"] == "commentary" {
                    self.flush(heard);
                }
            }
            "contextCompaction" => {
                let compacted = ContextCompacted { automatic: true, before: None, after: None };
                heard.push(Heard::Report(Report::Compacted(compacted)));
            }
            "userMessage" => self.steered.read(item, heard),
            kind if item::is_tool(kind) && !self.ended.iter().any(|ended| ended == id) => {
                if self.open.remove(id).is_none() {
                    heard.push(Heard::Report(Report::ToolCall(Open::of(item).call(id))));
                }
                remember(&mut self.ended, id);
                heard.extend(shown(item::images(item), Some(id), None));
                heard.push(Heard::Report(Report::ToolResult(item::result(id, item))));
                if self.turn.is_none() {
                    self.tell_background(heard);
                }
            }
            _ => {}
        }
    }

    /// A message that something follows was not the answer.
    pub(super) fn flush(&mut self, heard: &mut Vec<Heard>) {
        if let Some(text) = self.held.take() {
            heard.push(Heard::Report(Report::Thinking(text.into())));
        }
    }

    pub(super) fn turn_completed(&mut self, turn: &Value, line: &Line<'_>, heard: &mut Vec<Heard>) {
        if self.turn.as_deref() != turn["id"].as_str() {
            return;
        }
        self.turn = None;
        let status = turn["status"].as_str().unwrap_or_default();
        for (ask, _) in std::mem::take(&mut self.asks) {
            heard.push(Heard::Report(Report::ApprovalWithdrawn { ask }));
        }
        if status != "completed" {
            self.end_open_calls(status, line, heard);
        } else {
            // Only commands run on; anything else that is open will never end.
            let (running, stale) =
                std::mem::take(&mut self.open).into_iter().partition(|(_, open)| open.is_command());
            self.open = running;
            for (id, _) in stale as BTreeMap<String, Open> {
                self.end_call(&id, "never ended", heard);
            }
        }
        if let Some(text) = self.held.take() {
            heard.push(Heard::Report(Report::Completion(text.into())));
        }
        let stop_reason = match status {
            "interrupted" => StopReason::Interrupted,
            "failed" => StopReason::Error,
            _ => StopReason::Completed,
        };
        self.tell_background(heard);
        self.steered.let_go(status, heard);
        heard.push(Heard::Report(Report::TurnEnded { stop_reason }));
    }

    /// An interrupt leaves commands running; nobody wants them any more.
    fn end_open_calls(&mut self, status: &str, line: &Line<'_>, heard: &mut Vec<Heard>) {
        let open = std::mem::take(&mut self.open);
        if open.values().any(Open::is_command) {
            let clean = self.clean(&format!("at-{}", line.start));
            self.cleans = true;
            heard.extend(Say::line("clean", &clean).map(Heard::Say));
        }
        for id in open.keys() {
            self.end_call(id, status, heard);
        }
    }

    fn end_call(&mut self, id: &str, why: &str, heard: &mut Vec<Heard>) {
        remember(&mut self.ended, id);
        heard.push(Heard::Report(Report::ToolResult(ToolResult {
            tool_id: id.to_owned(),
            success: false,
            exit: None,
            output: why.to_owned(),
            subagent: None,
        })));
    }

    fn tell_background(&mut self, heard: &mut Vec<Heard>) {
        let tasks: Vec<String> = self.open.values().map(|open| open.summary.clone()).collect();
        if tasks != self.background {
            self.background.clone_from(&tasks);
            heard.push(Heard::Report(Report::Background { tasks }));
        }
    }
}
