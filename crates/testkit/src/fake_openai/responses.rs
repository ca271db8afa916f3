//! Answers over the Responses API.

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
    let at = body["input"].as_array().map_or(0, Vec::len);
    let id = step.id(format!("resp_{number}"));
    let mut number = 0;
    let mut event = |kind: &str, mut event: Value| {
        event["type"] = kind.into();
        event["sequence_number"] = number.into();
        number += 1;
        events.data(Some(kind), &event.to_string())
    };
    let response = |status: &str, output: &[Value], usage: Value| {
        json!({"id": id, "object": "response", "created_at": 1_700_000_000, "status": status, "model": body["model"],
            "output": output, "usage": usage, "error": null, "incomplete_details": null})
    };
    event("response.created", json!({"response": response("in_progress", &[], Value::Null)}))?;
    event("response.in_progress", json!({"response": response("in_progress", &[], Value::Null)}))?;
    if let Some(error) = step.fields.get("failed") {
        let mut failed = response("failed", &[], Value::Null);
        failed["error"] = error.clone();
        return event("response.failed", json!({"response": failed}));
    }
    let mut items = Vec::new();
    if !step.text("reasoning").is_empty() {
        let text = step.text("reasoning");
        let item = json!({"type": "reasoning", "id": format!("rs_{at:x}"), "encrypted_content": "fake",
            "summary": [{"type": "summary_text", "text": text}]});
        let mut empty = item.clone();
        empty["summary"] = json!([]);
        let index = items.len();
        event("response.output_item.added", json!({"output_index": index, "item": empty}))?;
        let part = json!({"type": "summary_text", "text": ""});
        let base = json!({"item_id": item["id"], "output_index": index, "summary_index": 0});
        event("response.reasoning_summary_part.added", with(&base, "part", &part))?;
        for piece in step.pieces(text) {
            event("response.reasoning_summary_text.delta", with(&base, "delta", &piece.into()))?;
        }
        event("response.reasoning_summary_text.done", with(&base, "text", &text.into()))?;
        event("response.reasoning_summary_part.done", with(&base, "part", &item["summary"][0]))?;
        event("response.output_item.done", json!({"output_index": index, "item": item}))?;
        items.push(item);
    }
    if !step.text("text").is_empty() {
        let text = step.text("text");
        let item = json!({"type": "message", "id": format!("msg_{at:x}"), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]});
        let mut empty = item.clone();
        empty["content"] = json!([]);
        let index = items.len();
        event("response.output_item.added", json!({"output_index": index, "item": empty}))?;
        let base = json!({"item_id": item["id"], "output_index": index, "content_index": 0});
        let part = json!({"type": "output_text", "text": "", "annotations": []});
        event("response.content_part.added", with(&base, "part", &part))?;
        for piece in step.pieces(text) {
            event("response.output_text.delta", with(&base, "delta", &piece.into()))?;
        }
        event("response.output_text.done", with(&base, "text", &text.into()))?;
        event("response.content_part.done", with(&base, "part", &item["content"][0]))?;
        event("response.output_item.done", json!({"output_index": index, "item": item}))?;
        items.push(item);
    }
    for (n, call) in step.calls.iter().enumerate() {
        let mut item = json!({"type": "function_call", "id": format!("fc_{at:x}_{n}"), "call_id": format!("call_{at:x}_{n}"),
            "name": call.name, "arguments": call.arguments, "status": "completed"});
        if let Some(namespace) = &call.namespace {
            item["namespace"] = namespace.as_str().into();
        }
        let mut empty = item.clone();
        empty["arguments"] = "".into();
        let index = items.len();
        event("response.output_item.added", json!({"output_index": index, "item": empty}))?;
        let base = json!({"item_id": item["id"], "output_index": index});
        for piece in step.pieces(&call.arguments) {
            event("response.function_call_arguments.delta", with(&base, "delta", &piece.into()))?;
        }
        event(
            "response.function_call_arguments.done",
            with(&base, "arguments", &call.arguments.clone().into()),
        )?;
        event("response.output_item.done", json!({"output_index": index, "item": item}))?;
        items.push(item);
    }
    let input = usage.input + usage.cache_read;
    let said = json!({"input_tokens": input, "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": input + usage.output});
    match step.text("finish") {
        "" => event("response.completed", json!({"response": response("completed", &items, said)})),
        reason => {
            let mut incomplete = response("incomplete", &items, said);
            incomplete["incomplete_details"] = json!({"reason": reason});
            event("response.incomplete", json!({"response": incomplete}))
        }
    }
}

fn with(base: &Value, key: &str, value: &Value) -> Value {
    let mut event = base.clone();
    event[key] = value.clone();
    event
}
