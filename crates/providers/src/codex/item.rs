//! Items of a turn that are tool calls.

use ostler_domain::{
    event::{Action, ToolCall, ToolResult},
    image::Image,
    text::one_line,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::parts::{self, parts};

/// Longest summary of a call.
const SUMMARY_BYTES: usize = 200;

/// A call that has begun and not ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Open {
    pub(super) kind: String,
    pub(super) summary: String,
    pub(super) input: String,
    pub(super) action: Action,
}

/// Says whether an item is something that the agent does. Unknown kinds are: new tools come with every version.
pub(super) fn is_tool(kind: &str) -> bool {
    !matches!(
        kind,
        "" | "userMessage"
            | "agentMessage"
            | "reasoning"
            | "plan"
            | "contextCompaction"
            | "hookPrompt"
            | "enteredReviewMode"
            | "exitedReviewMode"
    )
}

impl Open {
    pub(super) fn of(item: &Value) -> Self {
        let kind = item["type"].as_str().unwrap_or_default().to_owned();
        let text = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
        let (summary, input) = match kind.as_str() {
            "commandExecution" => (command(item), text("command")),
            "fileChange" => {
                let paths = item["changes"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|change| change["path"].as_str());
                (paths.collect::<Vec<_>>().join(", "), item["changes"].to_string())
            }
            "mcpToolCall" | "dynamicToolCall" | "collabAgentToolCall" => (
                format!("{} {}", text("server"), text("tool")).trim().to_owned(),
                item["arguments"].to_string(),
            ),
            "webSearch" => (text("query"), text("query")),
            _ => (kind.clone(), item.to_string()),
        };
        let paths =
            || item["changes"].as_array().into_iter().flatten().filter_map(|change| change["path"].as_str());
        let action = match kind.as_str() {
            "commandExecution" => Action::Run { command: unwrapped(&input).to_owned() },
            "fileChange" => Action::Write { paths: paths().map(str::to_owned).collect() },
            _ => Action::Other,
        };
        Self { summary: one_line(&summary, SUMMARY_BYTES), input, kind, action }
    }

    pub(super) fn call(&self, id: &str) -> ToolCall {
        ToolCall {
            tool: self.kind.clone(),
            tool_id: id.to_owned(),
            summary: self.summary.clone(),
            input: self.input.clone(),
            subagent: None,
        }
    }

    pub(super) fn is_command(&self) -> bool {
        self.kind == "commandExecution"
    }
}

/// The command as the model wrote it, without the shell around it.
fn command(item: &Value) -> String {
    let actions = item["commandActions"].as_array().into_iter().flatten();
    let inner: Vec<&str> = actions.filter_map(|action| action["command"].as_str()).collect();
    if inner.is_empty() { item["command"].as_str().unwrap_or_default().to_owned() } else { inner.join("; ") }
}

/// A command line without the shell that it is handed to, where that is beyond doubt.
fn unwrapped(command: &str) -> &str {
    let shells = ["/bin/bash -lc '", "/bin/bash -c '", "/bin/sh -c '", "bash -lc '", "bash -c '"];
    let inner = shells.iter().find_map(|shell| command.strip_prefix(shell)?.strip_suffix('\''));
    inner.filter(|inner| !inner.contains('\'')).unwrap_or(command)
}

/// Pictures that a tool of somebody else's server gave.
pub(super) fn images(item: &Value) -> Vec<Image> {
    let (of_server, of_client) = (&item["result"]["content"], &item["contentItems"]);
    parts::images(of_server).into_iter().chain(parts::images(of_client)).collect()
}

pub(super) fn result(id: &str, item: &Value) -> ToolResult {
    let status = item["status"].as_str().unwrap_or("completed");
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let output = text(&item["aggregatedOutput"])
        .or_else(|| text(&item["error"]["message"]))
        .or_else(|| Some(parts(&item["result"]["content"]).0).filter(|_| !images(item).is_empty()))
        .or_else(|| text(&item["result"]))
        .unwrap_or_else(|| if status == "completed" { String::new() } else { status.to_owned() });
    ToolResult {
        tool_id: id.to_owned(),
        success: status == "completed",
        exit: item["exitCode"].as_i64().and_then(|code| i32::try_from(code).ok()),
        output,
        subagent: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_unwrapped_only_where_nothing_can_hide() {
        assert_eq!(unwrapped("/bin/bash -lc 'git status'"), "git status");
        for strange in ["/bin/bash -lc 'git' 'x'", "/bin/bash -lc \"git $(x)\"", "git status"] {
            assert_eq!(unwrapped(strange), strange);
        }
    }
}
