//! OpenAI's Responses. `input_tokens` include what was read from a cache, `output_tokens` include thinking. A stream has
//! the response in its first and last events; only the last says what it took.

use ostler_domain::Usage;
use serde_json::Value;

use super::{Found, count};

pub(super) fn read(object: &Value, found: &mut Found) {
    let response = object.get("response").unwrap_or(object);
    // Items of an answer have ids of their own.
    if object.get("response").is_some() || object.get("type").is_none() {
        found.name(response.get("id"), response.get("model"));
    }
    if let Some(usage) = response.get("usage").and_then(usage) {
        found.usage = Some(usage);
    }
}

fn usage(said: &Value) -> Option<Usage> {
    let (input, output) = (count(said, &["input_tokens"]), count(said, &["output_tokens"]));
    if input.is_none() && output.is_none() {
        return None;
    }
    let (input, output) = (input.unwrap_or(0), output.unwrap_or(0));
    let details = |name| count(said, &["input_tokens_details", name]).unwrap_or(0);
    let cache_read = details("cached_tokens").min(input);
    let cache_write = details("cache_write_tokens").min(input - cache_read);
    let reasoning = count(said, &["output_tokens_details", "reasoning_tokens"]).unwrap_or(0).min(output);
    Some(Usage { input: input - cache_read - cache_write, cache_read, cache_write, output, reasoning })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::tests::found;

    const STREAM: &str = r#"event: response.created
data: {"type":"response.created","response":{"id":"resp_1","object":"response","model":"gpt-5.5","output":[],"usage":null}}

data: {"type":"response.output_item.added","item":{"id":"msg_7","type":"message"}}

data: {"type":"response.output_text.delta","item_id":"msg_7","delta":"hi"}

data: {"type":"response.completed","response":{"id":"resp_1","model":"gpt-5.5","output":[{"id":"msg_7"}],"usage":{"input_tokens":6669,"input_tokens_details":{"cached_tokens":6000},"output_tokens":45,"output_tokens_details":{"reasoning_tokens":30},"total_tokens":6714}}}

"#;

    #[test]
    fn the_last_event_says_what_it_took() {
        let found = found("/v1/responses", "text/event-stream", STREAM);
        assert_eq!((found.id.as_deref(), found.model.as_deref()), (Some("resp_1"), Some("gpt-5.5")));
        let usage = Usage { input: 669, cache_read: 6000, cache_write: 0, output: 45, reasoning: 30 };
        assert_eq!(found.usage, Some(usage));
    }

    #[test]
    fn a_stream_that_is_cut_has_a_name_and_no_sum() {
        let (cut, _) = STREAM.split_once("data: {\"type\":\"response.completed").unwrap();
        let found = found("/v1/responses", "text/event-stream", cut);
        assert_eq!((found.id.as_deref(), found.usage), (Some("resp_1"), None));
    }

    #[test]
    fn one_that_ends_early_and_a_plain_one_are_the_same() {
        let early = STREAM.replace("response.completed", "response.incomplete");
        assert!(found("/responses", "text/event-stream", &early).usage.is_some());
        let plain =
            r#"{"id":"resp_1","object":"response","model":"m","usage":{"input_tokens":3,"output_tokens":1}}"#;
        let found = found("/responses", "application/json", plain);
        assert_eq!(found.id.as_deref(), Some("resp_1"));
        assert_eq!(found.usage, Some(Usage { input: 3, output: 1, ..Usage::default() }));
    }
}
