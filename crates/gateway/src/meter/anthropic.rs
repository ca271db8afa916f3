//! Anthropic's Messages. `input_tokens` are those that no cache was involved in; what was read from a cache and what was
//! written to one are beside it. The end of a stream repeats its running sums: the last of each counts.

use ostler_domain::Usage;
use serde_json::Value;

use super::{Found, count};

pub(super) fn read(object: &Value, found: &mut Found) {
    // The beginning of a stream has the message inside, a plain answer is the message, its end has only the usage.
    let message = object.get("message").unwrap_or(object);
    found.name(message.get("id"), message.get("model"));
    if let Some(said) = message.get("usage").filter(|usage| usage.is_object()) {
        let usage = found.usage.get_or_insert_default();
        for (bucket, path) in [
            (&mut usage.input, &["input_tokens"][..]),
            (&mut usage.cache_read, &["cache_read_input_tokens"]),
            (&mut usage.cache_write, &["cache_creation_input_tokens"]),
            (&mut usage.output, &["output_tokens"]),
            (&mut usage.reasoning, &["output_tokens_details", "thinking_tokens"]),
        ] {
            *bucket = count(said, path).unwrap_or(*bucket);
        }
        *usage = Usage { reasoning: usage.reasoning.min(usage.output), ..*usage };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::tests::found;

    const STREAM: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_01","type":"message","role":"assistant","model":"claude-sonnet-5","content":[],"stop_reason":null,"usage":{"input_tokens":11,"cache_creation_input_tokens":3000,"cache_read_input_tokens":200,"output_tokens":1}}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\"usage\":{\"input_tokens\":99999}"}}

event: ping
data: {"type":"ping"}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":42}}

event: message_stop
data: {"type":"message_stop"}

"#;

    fn is(usage: Usage) -> Found {
        Found { id: Some("msg_01".to_owned()), model: Some("claude-sonnet-5".to_owned()), usage: Some(usage) }
    }

    #[test]
    fn a_stream_is_its_beginning_with_the_sums_of_its_end() {
        let usage = Usage { input: 11, cache_read: 200, cache_write: 3000, output: 42, reasoning: 0 };
        assert_eq!(found("/v1/messages", "text/event-stream; charset=utf-8", STREAM), is(usage));
    }

    #[test]
    fn the_end_may_correct_every_bucket() {
        let corrected = STREAM.replace(
            r#"{"output_tokens":42}"#,
            r#"{"input_tokens":12,"cache_read_input_tokens":201,"cache_creation_input_tokens":null,"output_tokens":42}"#,
        );
        let usage = Usage { input: 12, cache_read: 201, cache_write: 3000, output: 42, reasoning: 0 };
        assert_eq!(found("/v1/messages", "text/event-stream", &corrected), is(usage));
    }

    #[test]
    fn a_stream_that_is_cut_has_what_its_beginning_said() {
        let (cut, _) = STREAM.split_once("event: message_delta").unwrap();
        let usage = Usage { input: 11, cache_read: 200, cache_write: 3000, output: 1, reasoning: 0 };
        assert_eq!(found("/v1/messages", "text/event-stream", cut), is(usage));
    }

    #[test]
    fn a_plain_answer_says_it_once() {
        let answer = r#"{"id":"msg_01","type":"message","model":"claude-sonnet-5","content":[{"type":"text","text":"hi"}],
            "usage":{"input_tokens":5,"output_tokens":7,"output_tokens_details":{"thinking_tokens":3}}}"#;
        let usage = Usage { input: 5, output: 7, reasoning: 3, ..Usage::default() };
        assert_eq!(found("/v1/messages", "application/json", answer), is(usage));
        assert_eq!(found("/v1/messages", "application/json", r#"{"input_tokens":5}"#).usage, None);
    }
}
