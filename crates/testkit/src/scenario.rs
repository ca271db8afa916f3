//! Scenarios for the scripted agent.

use serde_json::{Value, json};

/// A scenario of these steps, as a prompt.
pub fn of(steps: Vec<Value>) -> String {
    json!({ "steps": steps }).to_string()
}

pub fn say(text: &str) -> Value {
    json!({ "say": text })
}

/// `prefix 1` to `prefix n`, one every so often.
pub fn count(prefix: &str, times: u64, every_ms: u64) -> Value {
    json!({ "repeat": times, "every_ms": every_ms, "steps": [{ "say": format!("{prefix} {{i}}") }] })
}
