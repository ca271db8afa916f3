//! Tools in words: what a call is about, what it would do, what came of it.

use std::borrow::Cow;

use ostler_domain::{event::Action, image::Image, text::head};
use serde_json::Value;

use crate::parts::parts;

/// How much of a call's input a summary shows.
const SUMMARY_BYTES: usize = 400;

/// One readable line.
pub(crate) fn summary(tool: &str, input: &Value) -> String {
    let field = |name: &str| input.get(name).and_then(Value::as_str);
    let said = match tool {
        "Bash" => field("command"),
        "Read" | "Write" | "Edit" | "MultiEdit" => field("file_path"),
        "NotebookEdit" => field("notebook_path"),
        "Glob" | "Grep" => field("pattern"),
        "Agent" | "Task" => field("description"),
        "WebFetch" => field("url"),
        "WebSearch" => field("query"),
        "Skill" => field("skill"),
        _ => None,
    };
    let said = said.map_or_else(|| Cow::Owned(input.to_string()), Cow::Borrowed);
    head(said.lines().next().unwrap_or_default(), SUMMARY_BYTES).to_owned()
}

/// What it would do, for rules to be about.
pub(super) fn action(tool: &str, input: &Value) -> Action {
    let field = |name: &str| input.get(name).and_then(Value::as_str).map(str::to_owned);
    let paths = |name: &str| field(name).into_iter().collect::<Vec<_>>();
    // What is not said is no reason to know a tool by its name alone: then nothing but a person can answer.
    let action = match tool {
        "Bash" => Some(Action::Run { command: field("command").unwrap_or_default() }),
        "Write" | "Edit" | "MultiEdit" => Some(Action::Write { paths: paths("file_path") }),
        "NotebookEdit" => Some(Action::Write { paths: paths("notebook_path") }),
        "Read" => Some(Action::Read { paths: paths("file_path") }),
        // Where it says no place, it searches where it works.
        "Glob" | "Grep" => {
            Some(Action::Read { paths: vec![field("path").unwrap_or_else(|| ".".to_owned())] })
        }
        "WebFetch" => Some(Action::Fetch { url: field("url").unwrap_or_default() }),
        _ => None,
    };
    action.unwrap_or_default()
}

/// A call's input as a person is to judge it.
pub(super) fn shown(tool: &str, input: &Value) -> String {
    match (tool, input.get("command").and_then(Value::as_str)) {
        ("Bash", Some(command)) => command.to_owned(),
        _ => input.to_string(),
    }
}

/// Questions to a person, each with its choices.
pub(super) fn questions(input: &Value) -> String {
    let list =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let asked = list(input, "questions")
        .iter()
        .map(|question| {
            let choices: Vec<String> =
                list(question, "options").iter().map(|choice| text(choice, "label")).collect();
            let choices =
                if choices.is_empty() { String::new() } else { format!(" ({})", choices.join(" | ")) };
            format!("{}{choices}", text(question, "question"))
        })
        .collect::<Vec<_>>();
    asked.join("\n")
}

/// A result's text and pictures: of a string, of blocks, or of a sub-agent's report without the notice around it.
pub(crate) fn output(content: &Value, structured: &Value) -> (String, Vec<Image>) {
    let is_report = structured.get("agentId").is_some();
    parts(structured.get("content").filter(|inner| is_report && inner.is_array()).unwrap_or(content))
}

/// The exit code that a failed command's output begins with.
pub(crate) fn exit(output: &str) -> Option<i32> {
    output.strip_prefix("Exit code ")?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_can_be_about_what_a_tool_would_do() {
        let paths = |path: &str| vec![path.to_owned()];
        for (tool, input, expected) in [
            ("Bash", json!({"command": "ls; rm x"}), Action::Run { command: "ls; rm x".to_owned() }),
            ("Edit", json!({"file_path": "/a"}), Action::Write { paths: paths("/a") }),
            ("Read", json!({"file_path": "/a"}), Action::Read { paths: paths("/a") }),
            ("Grep", json!({"pattern": "x", "path": "/a"}), Action::Read { paths: paths("/a") }),
            ("Grep", json!({"pattern": "x"}), Action::Read { paths: paths(".") }),
            (
                "WebFetch",
                json!({"url": "https://x.example"}),
                Action::Fetch { url: "https://x.example".to_owned() },
            ),
            // Without its command or file no rule is about it.
            ("Bash", json!({}), Action::Run { command: String::new() }),
            ("Write", json!({}), Action::Write { paths: Vec::new() }),
            ("mcp__a__b", json!({"command": "ls"}), Action::Other),
        ] {
            assert_eq!(action(tool, &input), expected, "{tool} {input}");
        }
    }
}
