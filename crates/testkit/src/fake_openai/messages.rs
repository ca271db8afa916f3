//! Answers over the Anthropic Messages API, streamed or whole.

use std::io;

use ostler_domain::Usage;
use serde_json::{Value, json};

use super::{connection::Events, script::Step};

/// The answer in one piece, for a request without streaming.
pub(super) fn whole(step: &Step, body: &Value, usage: Usage, number: usize) -> Value {
    let mut message = message(body, number, said(usage));
    message["content"] = blocks(step, number).into();
    message["stop_reason"] = stop_reason(step).into();
    message
}

pub(super) fn send(
    events: &mut Events<'_>,
    step: &Step,
    body: &Value,
    usage: Usage,
    number: usize,
) -> io::Result<()> {
    let mut event = |kind: &str, mut event: Value| {
        event["type"] = kind.into();
        events.data(Some(kind), &event.to_string())
    };
    // The final count of output comes last, as the real server has it.
    let mut first = said(usage);
    first["output_tokens"] = 1.into();
    event("message_start", json!({"message": message(body, number, first)}))?;
    for (index, block) in blocks(step, number).into_iter().enumerate() {
        let (field, kind, text) = match block["type"].as_str() {
            Some("text") => ("text", "text_delta", block["text"].as_str().unwrap_or_default().to_owned()),
            Some("thinking") => {
                ("thinking", "thinking_delta", block["thinking"].as_str().unwrap_or_default().to_owned())
            }
            _ => ("input", "input_json_delta", block["input"].to_string()),
        };
        let mut empty = block.clone();
        empty[field] = if field == "input" { json!({}) } else { "".into() };
        event("content_block_start", json!({"index": index, "content_block": empty}))?;
        let part = if field == "input" { "partial_json" } else { field };
        for piece in step.pieces(&text) {
            event("content_block_delta", json!({"index": index, "delta": {"type": kind, part: piece}}))?;
        }
        if let Some(error) = step.fields.get("failed") {
            return event("error", json!({"error": error}));
        }
        if kind == "thinking_delta" {
            let delta = json!({"type": "signature_delta", "signature": "ZmFrZQ=="});
            event("content_block_delta", json!({"index": index, "delta": delta}))?;
        }
        event("content_block_stop", json!({"index": index}))?;
    }
    let delta = json!({"stop_reason": stop_reason(step), "stop_sequence": null});
    event("message_delta", json!({"delta": delta, "usage": said(usage)}))?;
    event("message_stop", json!({}))
}

fn message(body: &Value, number: usize, usage: Value) -> Value {
    json!({"id": format!("msg_fake_{number:06}"), "type": "message", "role": "assistant", "model": body["model"],
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage})
}

fn said(usage: Usage) -> Value {
    json!({"input_tokens": usage.input, "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read, "output_tokens": usage.output})
}

fn stop_reason(step: &Step) -> String {
    match step.text("finish") {
        "" if step.calls.is_empty() => "end_turn".to_owned(),
        "" => "tool_use".to_owned(),
        finish => finish.to_owned(),
    }
}

fn blocks(step: &Step, number: usize) -> Vec<Value> {
    let mut blocks = Vec::new();
    if !step.text("reasoning").is_empty() {
        blocks.push(json!({"type": "thinking", "thinking": step.text("reasoning"), "signature": "ZmFrZQ=="}));
    }
    if !step.text("text").is_empty() {
        blocks.push(json!({"type": "text", "text": step.text("text")}));
    }
    for (n, call) in step.calls.iter().enumerate() {
        let input: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
        let id = format!("toolu_fake_{number:06}_{n}");
        blocks.push(json!({"type": "tool_use", "id": id, "name": call.name, "input": input}));
    }
    blocks
}
