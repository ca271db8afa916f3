//! What it says of calls that failed.

use ostler_domain::{event::AgentRetrying, session::Report, text::one_line};
use serde_json::Value;

use crate::{Heard, foreign};

const ERROR_BYTES: usize = 2000;

/// A model call failed; it tries again by itself, or the turn is about to fail.
pub(super) fn failed(params: &Value, heard: &mut Vec<Heard>) {
    let error = &params["error"];
    let status = error["codexErrorInfo"]
        .as_object()
        .and_then(|info| info.values().find_map(|details| details["httpStatusCode"].as_u64()));
    let message = foreign::without_json(error["message"].as_str().unwrap_or_default());
    let details = error["additionalDetails"].as_str().map(foreign::without_json);
    let why = one_line(details.as_deref().unwrap_or(&message), ERROR_BYTES);
    let will_retry = params["willRetry"] == true;
    match status {
        // It would try for seconds, and be refused each time.
        Some(401 | 403) => return heard.push(Heard::Report(Report::AuthFailed(why))),
        Some(429) => heard.push(Heard::Report(Report::RateLimited { what: why.clone(), until: None })),
        _ => {}
    }
    heard.push(Heard::Report(if will_retry {
        let (attempt, most) = tries(&message);
        Report::Retrying(AgentRetrying { why, attempt, most, after_ms: None })
    } else {
        let is_full = error["codexErrorInfo"] == "contextWindowExceeded";
        let said = if is_full { format!("context window exceeded: {message}") } else { message };
        Report::Error(foreign::error_words(&one_line(&said, ERROR_BYTES)))
    }));
}

/// `Reconnecting... 2/5`
fn tries(message: &str) -> (u32, u32) {
    let word = message.split_whitespace().find_map(|word| word.split_once('/'));
    word.and_then(|(this, most)| Some((this.parse().ok()?, most.parse().ok()?))).unwrap_or_default()
}

pub(super) fn in_words(error: &Value) -> String {
    let message = error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned);
    one_line(&foreign::without_json(&message), ERROR_BYTES)
}
