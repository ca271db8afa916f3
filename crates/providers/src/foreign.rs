//! Lines that are nobody's protocol: standard error, garbage, lines too long or cut off. The same for all
//! providers, because agents change faster than we do and an unknown line is an event, not an error.

use ostler_domain::{
    event::{CONTEXT_FULL, Raw},
    limits,
    session::Report,
    text::head,
};
use ostler_tape::{Line, LineBody, Stream};
use serde_json::Value;

/// Why something was denied, for a model that is told it beside the answer.
pub(crate) fn denial(why: &str) -> String {
    format!("What you asked leave for was denied. The reason: {why}")
}

/// Messages, one a line.
pub(crate) fn lines<'a>(messages: impl IntoIterator<Item = &'a serde_json::Value>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for message in messages {
        serde_json::to_writer(&mut bytes, message).ok()?;
        bytes.push(b'\n');
    }
    Some(bytes)
}

/// What a line that no dialogue reads is reported as; nothing for the streams that are not the agent's.
pub(crate) fn unread(line: &Line<'_>) -> Option<Report> {
    let report = match (line.stream, &line.body) {
        (Stream::Out | Stream::Err, LineBody::Oversize { .. }) => Report::Oversize,
        (Stream::Out | Stream::Err, LineBody::Partial(_)) => Report::Partial,
        (Stream::Err, LineBody::Whole(_)) => Report::Stderr,
        (Stream::Out, LineBody::Whole(_)) => Report::Opaque,
        _ => return None,
    };
    Some(report(raw(line)))
}

fn raw(line: &Line<'_>) -> Raw {
    let bytes = line.body.bytes();
    let len = match line.body {
        LineBody::Oversize { len } => len,
        LineBody::Whole(_) | LineBody::Partial(_) => bytes.len() as u64,
    };
    // Cut before decoding: a line may have megabytes. What the cut breaks at the end is dropped by `head`.
    let near = &bytes[..bytes.len().min(limits::OPAQUE_PREVIEW_BYTES)];
    let text = String::from_utf8_lossy(near);
    Raw { text: head(&text, limits::OPAQUE_PREVIEW_BYTES).to_owned(), bytes: len, at: line.start }
}

/// The line's text, if it is one that a dialogue may parse: whole, UTF-8, an object, and not nested too deep.
pub(crate) fn object<'a>(line: &'a Line<'_>) -> Option<&'a str> {
    let LineBody::Whole(bytes) = &line.body else { return None };
    if line.stream != Stream::Out || bytes.first() != Some(&b'{') || is_deeper_than(bytes, limits::JSON_DEPTH)
    {
        return None;
    }
    std::str::from_utf8(bytes).ok()
}

/// Says whether JSON text nests deeper than a limit, without building anything.
pub(crate) fn is_deeper_than(json: &[u8], most: usize) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                depth += 1;
                if depth > most {
                    return true;
                }
            }
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// What somebody says who passes on a server's answer as it came: with the answer's own message in the place of its JSON.
pub(crate) fn without_json(said: &str) -> String {
    let Some(at) = said.find('{') else { return said.to_owned() };
    let mut values = serde_json::Deserializer::from_str(&said[at..]).into_iter::<Value>();
    let Some(Ok(answer)) = values.next() else { return said.to_owned() };
    let places = [&answer["error"]["message"], &answer["message"], &answer["error"], &answer["detail"]];
    let Some(message) = places.into_iter().find_map(Value::as_str) else { return said.to_owned() };
    format!("{}{message}{}", &said[..at], &said[at + values.byte_offset()..])
}

/// An agent's error in words. That a conversation no longer fits its model is said in as many ways as there are servers;
/// here it is said in one.
pub(crate) fn error_words(said: &str) -> String {
    let lower = said.to_lowercase();
    let signs = [
        "context_length",
        "context length",
        "context window",
        "context size",
        "contextwindow",
        "maximum context",
        "context limit",
        "context overflow",
        "prompt is too long",
        "input is too long",
        "exceeds the maximum number of tokens",
    ];
    if signs.iter().any(|sign| lower.contains(sign)) && !said.contains(CONTEXT_FULL) {
        format!("{CONTEXT_FULL}: {said}")
    } else {
        said.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_s_answer_is_told_by_its_message() {
        for (said, told) in [
            ("Bad Request", "Bad Request"),
            (r#"{"error":{"message":"no such model","type":"invalid"}}"#, "no such model"),
            (
                r#"unexpected status 400 Bad Request: {"error":{"message":"no such model"}}, url: http://x/v1"#,
                "unexpected status 400 Bad Request: no such model, url: http://x/v1",
            ),
            (r#"{"detail":"not here"}"#, "not here"),
            (r#"{"error":"gone"}"#, "gone"),
            (r#"{"code":5}"#, r#"{"code":5}"#),
            ("{broken", "{broken"),
        ] {
            assert_eq!(without_json(said), told);
        }
    }

    #[test]
    fn depth_counts_what_is_outside_texts() {
        assert!(!is_deeper_than(br#"{"a":"[[[[[\"[["}"#, 1));
        assert!(is_deeper_than(b"[[[", 2));
        assert!(!is_deeper_than(b"[][][]", 1));
    }
}
