//! Chat completions, as OpenAI and everybody who speaks its protocol have them. `prompt_tokens` include what was read
//! from a cache, `completion_tokens` include thinking. Some servers repeat a running sum in each chunk: the last counts.
//!
//! A stream says its usage only to who asks (`stream_options.include_usage`). The gateway does not ask in the agent's
//! place: the answer is a further chunk without choices, and clients that did not ask for it have failed on it.

use ostler_domain::Usage;
use serde_json::Value;

use super::{Found, count};

pub(super) fn read(object: &Value, found: &mut Found) {
    found.name(object.get("id"), object.get("model"));
    if let Some(usage) = object.get("usage").and_then(usage) {
        found.usage = Some(usage);
    }
}

fn usage(said: &Value) -> Option<Usage> {
    let (prompt, output) = (count(said, &["prompt_tokens"]), count(said, &["completion_tokens"]));
    // An empty object says nothing, and nothing is not zero.
    if prompt.is_none() && output.is_none() {
        return None;
    }
    let (prompt, output) = (prompt.unwrap_or(0), output.unwrap_or(0));
    let details = |name| count(said, &["prompt_tokens_details", name]);
    let cached = details("cached_tokens").or_else(|| count(said, &["prompt_cache_hit_tokens"]));
    let cache_read = cached.unwrap_or(0).min(prompt);
    let cache_write = details("cache_write_tokens").unwrap_or(0).min(prompt - cache_read);
    let reasoning = count(said, &["completion_tokens_details", "reasoning_tokens"]).unwrap_or(0).min(output);
    Some(Usage { input: prompt - cache_read - cache_write, cache_read, cache_write, output, reasoning })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::tests::found;

    const STREAM: &str = r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-1","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}

data: {"id":"chatcmpl-1","model":"m","choices":[],"usage":{"prompt_tokens":47,"completion_tokens":6,"total_tokens":53,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens_details":{"reasoning_tokens":4}}}

data: [DONE]

"#;

    fn of(answer: &str) -> Option<Usage> {
        found("/v1/chat/completions", "text/event-stream", answer).usage
    }

    #[test]
    fn what_was_cached_is_taken_out_of_the_prompt_and_thinking_is_left_in_the_output() {
        let found = found("/v1/chat/completions", "text/event-stream", STREAM);
        assert_eq!((found.id.as_deref(), found.model.as_deref()), (Some("chatcmpl-1"), Some("m")));
        let usage = Usage { input: 7, cache_read: 40, cache_write: 0, output: 6, reasoning: 4 };
        assert_eq!(found.usage, Some(usage));
    }

    #[test]
    fn running_sums_are_not_added_up() {
        let running = "data: {\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":1}}\n\n\
            data: {\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\ndata: {\"usage\":{}}\n\n";
        assert_eq!(of(running), Some(Usage { input: 5, output: 2, ..Usage::default() }));
    }

    #[test]
    fn who_did_not_ask_is_told_nothing_and_nothing_is_not_zero() {
        let silent: Vec<&str> =
            STREAM.split("\n\n").filter(|event| !event.contains("prompt_tokens")).collect();
        assert_eq!(of(&silent.join("\n\n")), None);
    }

    #[test]
    fn plain_answers_and_other_servers_words() {
        let plain = r#"{"id":"x","model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"prompt_cache_hit_tokens":8}}"#;
        let found = found("/completions", "application/json", plain);
        assert_eq!(found.usage, Some(Usage { input: 1, cache_read: 8, output: 3, ..Usage::default() }));
        let lying = r#"data: {"usage":{"prompt_tokens":2,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":9}}}"#;
        assert_eq!(of(&format!("{lying}\n\n")), Some(Usage { cache_read: 2, output: 1, ..Usage::default() }));
    }
}
