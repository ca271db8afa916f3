//! What is shown of a transcript's lines to people, whatever it is shown on.

use serde_json::Value;

use super::{Block, Line, Message, Picture, StopReason, TokenUse};
use crate::{
    price::Dollars,
    text::{head, one_line, visible},
};

/// How much of a call stands in its line.
const CALL_CHARS: usize = 160;

/// One thing to show, in the order in which it happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Shown {
    /// What it is a transcript of.
    Title {
        /// What it is called, where nobody knows better.
        name: String,
        id: String,
        cwd: String,
        at: String,
    },
    /// Somebody said something to the agent.
    Told {
        by: String,
        at: String,
        text: String,
    },
    /// The agent said something.
    Said {
        text: String,
    },
    Thought {
        text: String,
    },
    /// A tool was called: with its arguments in one line, and whole.
    Called {
        tool: String,
        line: String,
        arguments: String,
    },
    Answered {
        tool: String,
        text: String,
        exit: Option<i64>,
        is_error: bool,
    },
    /// A picture in what came before, with its bytes where somebody asked for them.
    Picture(Picture),
    /// What the model took for the message before.
    Spent {
        model: String,
        tokens: u64,
        cost: Dollars,
    },
    /// Something that happened beside.
    Remark {
        text: String,
        is_bad: bool,
    },
}

/// What a transcript is called of which the name is not known.
pub const TITLE: &str = "Transcript";

/// What there is to show of a line; of many there is nothing.
pub fn shown(line: &Line) -> Vec<Shown> {
    match line {
        Line::Session(header) => vec![Shown::Title {
            name: TITLE.to_owned(),
            id: header.id.clone(),
            cwd: visible(&header.cwd),
            at: minute(&header.timestamp),
        }],
        Line::Message { place, message, ostler } => match message {
            Message::User { content, .. } => {
                let by = ostler.by.as_deref().map_or_else(|| "user".to_owned(), |by| one_line(by, 80));
                let told = Shown::Told { by, at: minute(&place.timestamp), text: text_of(content) };
                [told].into_iter().chain(pictures(content)).collect()
            }
            Message::Assistant { content, model, usage, stop_reason, error_message, .. } => {
                let mut all: Vec<Shown> = content.iter().map(said).collect();
                all.extend(spent(model, usage));
                all.extend(stopped(*stop_reason, error_message.as_deref()));
                all
            }
            Message::ToolResult { tool_name, content, details, is_error, .. } => {
                let exit = details.as_ref().and_then(|details| details.get("exitCode")?.as_i64());
                let tool = one_line(tool_name, 80);
                let answered = Shown::Answered { tool, text: text_of(content), exit, is_error: *is_error };
                [answered].into_iter().chain(pictures(content)).collect()
            }
        },
        Line::ModelChange { provider, model_id, .. } => {
            vec![remark(format!("{} answers with {}", one_line(provider, 80), one_line(model_id, 80)))]
        }
        Line::Compaction { tokens_before, .. } => {
            let of = if *tokens_before > 0 { format!(" of {tokens_before} tokens") } else { String::new() };
            vec![remark(format!("the agent's context{of} was compacted"))]
        }
        Line::Custom { custom_type, data, .. } => custom(custom_type, data).into_iter().collect(),
    }
}

fn said(block: &Block) -> Shown {
    match block {
        Block::Text { text } => Shown::Said { text: visible(text) },
        Block::Thinking { thinking } => Shown::Thought { text: visible(thinking) },
        Block::Image(picture) => Shown::Picture(picture.clone()),
        Block::ToolCall { name, arguments, .. } => {
            let only = match arguments.as_object() {
                Some(object) if object.len() == 1 => object.values().next().and_then(Value::as_str),
                _ => None,
            };
            let main = ["command", "file_path", "path", "url", "pattern", "query", "input"];
            let main = main.iter().find_map(|key| arguments.get(key)?.as_str());
            let is_empty = arguments.as_object().is_some_and(serde_json::Map::is_empty);
            let whole = || if is_empty { String::new() } else { arguments.to_string() };
            let line = only.or(main).map_or_else(whole, str::to_owned);
            let whole = serde_json::to_string_pretty(arguments).unwrap_or_default();
            Shown::Called {
                tool: one_line(name, 80),
                line: one_line(&line, CALL_CHARS),
                arguments: visible(&whole),
            }
        }
    }
}

fn spent(model: &str, usage: &TokenUse) -> Option<Shown> {
    let (tokens, cost) = (usage.total_tokens, usage.cost.dollars());
    (tokens > 0).then(|| Shown::Spent { model: one_line(model, 80), tokens, cost })
}

fn stopped(reason: StopReason, why: Option<&str>) -> Option<Shown> {
    let why = |otherwise: &str| one_line(why.unwrap_or(otherwise), 400);
    match reason {
        StopReason::Stop | StopReason::ToolUse => None,
        StopReason::Error => Some(bad(format!("the turn failed: {}", why("the agent did not say why")))),
        StopReason::Aborted => Some(bad(format!("the turn was cut short: {}", why("it was interrupted")))),
    }
}

fn custom(kind: &str, data: &Value) -> Option<Shown> {
    let text = |key: &str| one_line(data.get(key).and_then(Value::as_str).unwrap_or_default(), 400);
    let noted = |what: String, note: String| if note.is_empty() { what } else { format!("{what}: {note}") };
    Some(match kind.strip_prefix("ostler.")? {
        "session" => {
            let begins = match text("begins").as_str() {
                "fresh" => String::new(),
                begins => format!(", {begins}"),
            };
            remark(format!("a session with {} begins{begins}", text("provider")))
        }
        "session_stopped" => remark(format!("the session ended: {}", sentence_of(data))),
        "session_failed" => bad(format!("the session ended: {}", sentence_of(data))),
        "context_reset" => bad(format!("the agent began anew: {}", text("why"))),
        "agent_error" | "provider_auth_failed" => bad(text("text")),
        "agent_status" => remark(text("text")),
        "agent_completion" => remark(format!("a sub-agent said: {}", text("text"))),
        "message_unknown" => bad(format!("nobody knows whether the message arrived: {}", text("why"))),
        "message_dropped" => bad(format!("a message was kept from the agent: {}", text("why"))),
        "message_cancelled" => remark(format!("a message was taken back by {}", text("by"))),
        "message_moved" => remark(format!("a message was moved elsewhere by {}", text("by"))),
        "approval_requested" => remark(format!("asked for leave: {} {}", text("tool"), text("input"))),
        "approval_answered" => {
            let answer = format!("{} by {}", text("answer"), text("by"));
            remark(noted(answer, text("message")))
        }
        "denied" => bad(format!("denied {}: {}", text("target"), text("rule"))),
        "step_started" => remark(noted(format!("step {} began", text("name")), text("note"))),
        "step_ended" => {
            let success = data.get("success").and_then(Value::as_bool).unwrap_or_default();
            let word = if success { "is done" } else { "failed" };
            remark(noted(format!("step {} {word}", text("name")), text("note")))
        }
        "handoff_requested" => remark(format!("the work is handed on, asked by {}", text("by"))),
        "handoff_packed" => remark(format!("the work was handed on: {}", text("why"))),
        "output_added" => remark(format!("output {}: {}", text("name"), text("value"))),
        "asked" => remark(match text("ask").as_str() {
            "spawn" => noted(format!("a helper {} is asked for", text("worker")), text("task")),
            "send" => noted(format!("says to {}", text("to")), text("text")),
            other => format!("asked for: {other}"),
        }),
        "ask_settled" => match text("refused") {
            why if why.is_empty() => return None,
            why => bad(format!("that was refused: {why}")),
        },
        "done_reported" => remark(noted("the agent says that it is done".to_owned(), text("note"))),
        _ => return None,
    })
}

fn sentence_of(data: &Value) -> String {
    let sentence = data.pointer("/obituary/sentence").and_then(Value::as_str);
    one_line(sentence.unwrap_or_default(), 400)
}

fn remark(text: String) -> Shown {
    Shown::Remark { text, is_bad: false }
}

fn bad(text: String) -> Shown {
    Shown::Remark { text, is_bad: true }
}

fn text_of(content: &[Block]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(visible(text)),
        Block::Thinking { .. } | Block::ToolCall { .. } | Block::Image(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

fn pictures(content: &[Block]) -> impl Iterator<Item = Shown> {
    content.iter().filter_map(|block| match block {
        Block::Image(picture) => Some(Shown::Picture(picture.clone())),
        Block::Text { .. } | Block::Thinking { .. } | Block::ToolCall { .. } => None,
    })
}

/// Digits of a picture's name that tell it from all others.
const SHORT_NAME: usize = 16;

/// A picture in words: what it is, and how to have it.
pub fn picture_line(picture: &Picture) -> String {
    let size = picture.bytes.map(|bytes| format!(", {} bytes", grouped(bytes))).unwrap_or_default();
    let kind = one_line(&picture.mime_type, 80);
    match &picture.sha256 {
        Some(sha256) => {
            format!("{kind}{size} · ostler transcript image {}", head(&one_line(sha256, 64), SHORT_NAME))
        }
        None => format!("{kind}{size}"),
    }
}

/// `2026-11-16 14:02 UTC`.
fn minute(timestamp: &str) -> String {
    match (timestamp.get(..10), timestamp.get(11..16)) {
        (Some(day), Some(time)) => format!("{day} {time} UTC"),
        _ => one_line(timestamp, 40),
    }
}

/// `12,345`: what people read.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// What a model took, on one line.
pub fn spent_line(model: &str, tokens: u64, cost: Dollars) -> String {
    let model = if model.is_empty() { String::new() } else { format!("{model} · ") };
    let cost = if cost == Dollars::default() { String::new() } else { format!(" · {cost}") };
    format!("{model}{} tokens{cost}", grouped(tokens))
}

/// How a tool's answer is headed.
pub(super) fn answer_line(tool: &str, exit: Option<i64>, is_error: bool) -> String {
    let exit = exit.map(|exit| format!(" (exit {exit})")).unwrap_or_default();
    format!("{tool} {}{exit}", if is_error { "failed" } else { "answered" })
}
