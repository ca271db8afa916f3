//! Answers over the Gemini API.

use std::io;

use ostler_domain::Usage;
use serde_json::{Value, json};

use super::{connection::Events, script::Step};

/// Its conversation in the shape of the others.
pub(super) fn items(body: &Value) -> Vec<Value> {
    let contents = body["contents"].as_array().into_iter().flatten();
    contents
        .map(|content| {
            let parts = content["parts"].as_array().map_or(&[][..], Vec::as_slice);
            let role = match content["role"].as_str() {
                Some("model") => "assistant",
                _ if parts.iter().any(|part| part.get("functionResponse").is_some()) => "tool",
                _ => "user",
            };
            json!({"role": role, "content": parts})
        })
        .collect()
}

pub(super) fn send(events: &mut Events<'_>, step: &Step, usage: Usage, number: usize) -> io::Result<()> {
    let mut parts: Vec<Value> = step
        .pieces(step.text("reasoning"))
        .into_iter()
        .map(|text| json!({"text": text, "thought": true}))
        .collect();
    parts.extend(step.pieces(step.text("text")).into_iter().map(|text| json!({"text": text})));
    parts.extend(step.calls.iter().map(|call| {
        let args: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        json!({"functionCall": {"name": call.name, "args": args}})
    }));
    for part in parts {
        events.data(None, &chunk(json!([part]), None, None, number).to_string())?;
    }
    let finish = match step.text("finish") {
        "" => "STOP",
        finish => finish,
    };
    events.data(None, &chunk(json!([{"text": ""}]), Some(finish), Some(usage), number).to_string())
}

/// The same in one piece, for calls that do not stream.
pub(super) fn whole(step: &Step, usage: Usage, number: usize) -> Value {
    chunk(json!([{"text": step.text("text")}]), Some("STOP"), Some(usage), number)
}

fn chunk(parts: Value, finish: Option<&str>, usage: Option<Usage>, number: usize) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if let Some(finish) = finish {
        candidate["finishReason"] = finish.into();
    }
    let mut chunk = json!({"responseId": format!("gemini-{number}"), "modelVersion": "gemini-2.5-flash", "candidates": [candidate]});
    if let Some(usage) = usage {
        let input = usage.input + usage.cache_read;
        chunk["usageMetadata"] = json!({"promptTokenCount": input, "cachedContentTokenCount": usage.cache_read,
            "candidatesTokenCount": usage.output - usage.reasoning, "thoughtsTokenCount": usage.reasoning,
            "totalTokenCount": input + usage.output});
    }
    chunk
}
