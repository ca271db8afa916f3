//! Answers over Chat Completions.

use std::io;

use ostler_domain::Usage;
use serde_json::{Value, json};

use super::{connection::Events, script::Step};

pub(super) fn send(
    events: &mut Events<'_>,
    step: &Step,
    body: &Value,
    usage: Usage,
    number: usize,
) -> io::Result<()> {
    let id = step.id(format!("chatcmpl-{number}"));
    let wants_usage = body["stream_options"]["include_usage"] == true;
    let mut chunk = |choices: Value, usage: Value| {
        let mut chunk = json!({"id": id, "object": "chat.completion.chunk", "created": 1_700_000_000,
            "model": body["model"], "choices": choices});
        if wants_usage {
            chunk["usage"] = usage;
        }
        events.data(None, &chunk.to_string())
    };
    let mut delta =
        |delta: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), Value::Null);
    delta(json!({"role": "assistant", "content": ""}))?;
    for piece in step.pieces(step.text("reasoning")) {
        delta(json!({"reasoning_content": piece}))?;
    }
    for piece in step.pieces(step.text("text")) {
        delta(json!({"content": piece}))?;
    }
    if let Some(error) = step.fields.get("failed") {
        return events.data(None, &json!({"error": error}).to_string());
    }
    for (index, call) in step.calls.iter().enumerate() {
        // The same in every answer to the same request, and in no other.
        let id = format!("call_{:x}_{index}", body["messages"].as_array().map_or(0, Vec::len));
        let function = json!({"name": call.name, "arguments": ""});
        delta(json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}))?;
        for piece in step.pieces(&call.arguments) {
            delta(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))?;
        }
    }
    let finish = match step.text("finish") {
        "" if step.calls.is_empty() => "stop",
        "" => "tool_calls",
        finish => finish,
    };
    chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish}]), Value::Null)?;
    if wants_usage {
        let input = usage.input + usage.cache_read;
        let said = json!({"prompt_tokens": input, "completion_tokens": usage.output,
            "total_tokens": input + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning}});
        chunk(json!([]), said)?;
    }
    events.data(None, "[DONE]")
}
