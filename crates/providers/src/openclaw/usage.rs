//! The tokens of one model call, as the gateway tells them.

use ostler_domain::{Usage, session::CallUsage};
use serde_json::Value;

/// `input` is without what came from the cache.
pub(super) fn call_usage(message: &Value) -> Option<CallUsage> {
    let usage = message.get("usage")?;
    let count = |name: &str| usage[name].as_u64().unwrap_or(0);
    let usage = Usage {
        input: count("input"),
        cache_read: count("cacheRead"),
        cache_write: count("cacheWrite"),
        output: count("output"),
        ..Usage::default()
    };
    // What it put into the transcript itself, such as the half of an answer that was interrupted.
    (usage != Usage::default()).then(|| CallUsage {
        usage,
        model: message["model"].as_str().map(str::to_owned),
        call: message["responseId"].as_str().map(str::to_owned),
    })
}
