//! The end of a stream, as each dialect says it. Looked for in bytes, since most of a stream are words: within words every
//! quote has a backslash before it, so that none of them is taken for a name.

use super::Dialect;

/// Whether an event says that its stream is over, be it of a fault.
pub(super) fn is_in(dialect: Dialect, data: &[u8]) -> bool {
    let mut types = strings(data, b"\"type\"");
    match dialect {
        // The sums come at the end, and small servers leave out what is behind them.
        Dialect::Anthropic => types.any(|kind| matches!(kind, b"message_delta" | b"message_stop" | b"error")),
        Dialect::Responses => types.any(|kind| {
            let lasts: [&[u8]; 5] = [
                b"response.completed",
                b"response.incomplete",
                b"response.failed",
                b"response.cancelled",
                b"error",
            ];
            lasts.contains(&kind)
        }),
        // Small servers leave out one or the other.
        Dialect::Chat => {
            data == b"[DONE]"
                || strings(data, b"\"finish_reason\"").next().is_some()
                || has(data, b"\"error\"")
                || has(data, b"\"prompt_tokens\"")
        }
        Dialect::Gemini => {
            strings(data, b"\"finishReason\"").next().is_some()
                || strings(data, b"\"blockReason\"").next().is_some()
                || has(data, b"\"error\"")
        }
    }
}

fn has(data: &[u8], name: &[u8]) -> bool {
    places(data, name).next().is_some()
}

/// The values that have this name, as far as they are strings.
fn strings<'a>(data: &'a [u8], name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    places(data, name).filter_map(|behind| {
        let value = behind.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start().strip_prefix(b"\"")?;
        let end = value.iter().position(|byte| *byte == b'"')?;
        Some(&value[..end])
    })
}

/// What stands behind each place of it.
fn places<'a>(data: &'a [u8], name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let starts = data.windows(name.len()).enumerate().filter(move |(_, window)| *window == name);
    starts.map(move |(at, _)| &data[at + name.len()..])
}

#[cfg(test)]
mod tests {
    use crate::meter::Meter;

    fn breaks_off(path: &str, content_type: &str, answer: &str) -> bool {
        let mut meter = Meter::new("POST", path);
        meter.head(200, Some(content_type));
        meter.content(answer.as_bytes());
        meter.breaks_off()
    }

    #[test]
    fn a_stream_without_its_last_event_breaks_off() {
        for (path, begins, ends) in [
            (
                "/v1/responses",
                r#"{"type":"response.output_text.delta","delta":"{\"type\":\"response.completed\"}"}"#,
                r#"{"type":"response.completed","response":{"id":"r"}}"#,
            ),
            (
                "/v1/messages",
                r#"{"type":"message_start","message":{"id":"m","stop_reason":null,"usage":{"input_tokens":1}}}"#,
                r#"{"type":"message_stop"}"#,
            ),
            (
                "/v1/chat/completions",
                r#"{"id":"c","choices":[{"delta":{"content":"\"finish_reason\":\"stop\""},"finish_reason":null}]}"#,
                r#"{"id":"c","choices":[{"delta":{},"finish_reason": "stop"}]}"#,
            ),
            ("/chat/completions", r#"{"id":"c","choices":[{"finish_reason":null}]}"#, "[DONE]"),
            (
                "/v1beta/models/g:streamGenerateContent",
                r#"{"candidates":[{"content":{}}],"usageMetadata":{"promptTokenCount":1}}"#,
                r#"{"candidates":[{"finishReason":"STOP"}]}"#,
            ),
        ] {
            let begins = format!("data: {begins}\n\n");
            assert!(breaks_off(path, "text/event-stream", &begins), "{begins}");
            assert!(!breaks_off(path, "text/event-stream", &format!("{begins}data: {ends}\n\n")), "{ends}");
        }
    }

    #[test]
    fn what_is_one_object_breaks_off_where_it_is_not_whole_and_what_is_not_read_never_does() {
        assert!(breaks_off("/v1/responses", "application/json", r#"{"id":"r","out"#));
        assert!(!breaks_off("/v1/responses", "application/json", r#"{"id":"r"}"#));
        assert!(!breaks_off("/v1/responses", "text/html", "<html>"));
        assert!(!breaks_off("/v1/messages/count_tokens", "application/json", "{"));
    }
}
