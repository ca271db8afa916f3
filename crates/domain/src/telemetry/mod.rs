//! What is told to a collector of OpenTelemetry: a session, its turns, model calls and tool calls as spans, made from
//! events alone. Ids are made of the session's own, so that a span that is sent twice is the same span.

mod genai;
mod otlp;
mod spans;

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{SessionId, notice::SecretPlace, session::Created};

pub use otlp::{Sender, request};
pub use spans::{KINDS, SessionTrace, Span, Value};

/// The variable by which a trace goes on in another process.
pub const TRACEPARENT: &str = "TRACEPARENT";

/// The section `otel` of the settings.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OtelSettings {
    /// Where a collector takes OTLP over HTTP; absent: nothing is exported.
    endpoint: Option<String>,
    /// Whether what was said, and what tools were told and answered, goes along.
    content: bool,
    /// A file with a header on each line, `name: value`; or a variable, `name=value,name=value`.
    headers_file: Option<String>,
    headers_env: Option<String>,
}

/// Where to, and what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The whole address of traces.
    pub url: String,
    pub content: bool,
    pub headers: Option<SecretPlace>,
}

impl OtelSettings {
    /// Nothing where nothing is exported.
    pub fn export(&self) -> Result<Option<Export>, String> {
        let headers = match (&self.headers_file, &self.headers_env) {
            (Some(_), Some(_)) => return Err("headers_file or headers_env, not both".to_owned()),
            (Some(file), None) => Some(SecretPlace::File(file.clone())),
            (None, Some(name)) => Some(SecretPlace::Variable(name.clone())),
            (None, None) => None,
        };
        let Some(endpoint) = &self.endpoint else { return Ok(None) };
        let base = endpoint.trim_end_matches('/');
        let url = if base.ends_with("/v1/traces") { base.to_owned() } else { format!("{base}/v1/traces") };
        crate::gateway::Upstream::parse(&url).map_err(|why| format!("endpoint: {why}"))?;
        Ok(Some(Export { url, content: self.content, headers }))
    }
}

/// Headers as they stand in a file, one a line, or in a variable, between commas.
pub fn headers(text: &str) -> Result<Vec<(String, String)>, String> {
    let lines: Vec<&str> = if text.trim().contains('\n') || text.contains(": ") {
        text.lines().collect()
    } else {
        text.split(',').collect()
    };
    let lines = lines.into_iter().map(str::trim).filter(|line| !line.is_empty());
    let header = |line: &str| {
        let (name, value) = line.split_once(['=', ':']).unwrap_or_default();
        let (name, value) = (name.trim(), value.trim());
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        let is_value = value.chars().all(|c| !c.is_control());
        // Not the line itself: it may hold a key.
        (is_name && is_value)
            .then(|| (name.to_owned(), value.to_owned()))
            .ok_or("a header has no name, or an odd value")
    };
    Ok(lines.map(header).collect::<Result<_, _>>()?)
}

/// A place in a trace, as `TRACEPARENT` says it (W3C Trace Context, version 00).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    pub trace: u128,
    pub span: u64,
    /// Whether anybody wants to hear of it.
    pub sampled: bool,
}

impl Context {
    pub fn parse(text: &str) -> Option<Context> {
        let [version, trace, span, flags, ..] = text.trim().split('-').collect::<Vec<_>>()[..] else {
            return None;
        };
        let is_known = hex(version, 2)? != "ff" && (version != "00" || text.trim().len() == 55);
        let trace = u128::from_str_radix(hex(trace, 32)?, 16).ok().filter(|trace| *trace != 0)?;
        let span = u64::from_str_radix(hex(span, 16)?, 16).ok().filter(|span| *span != 0)?;
        let flags = u8::from_str_radix(hex(flags, 2)?, 16).ok()?;
        is_known.then_some(Context { trace, span, sampled: flags & 1 == 1 })
    }

    /// Where a session's agent is: in the trace of whoever started it, else in one of the session's own.
    pub fn of_session(created: &Created) -> Context {
        let parent = Context::parent_of(&created.config.environment);
        Context {
            trace: parent.map_or_else(|| created.id.bits(), |parent| parent.trace),
            span: span_id(created.id, FIRST),
            sampled: parent.is_none_or(|parent| parent.sampled),
        }
    }

    pub(crate) fn parent_of(environment: &BTreeMap<String, String>) -> Option<Context> {
        environment.get(TRACEPARENT).and_then(|text| Context::parse(text))
    }
}

impl std::fmt::Display for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

/// A text of so many digits, in lower case.
fn hex(text: &str, length: usize) -> Option<&str> {
    let is_hex = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    (is_hex && text.len() == length).then_some(text)
}

/// The place of a session's first event among its own.
const FIRST: u64 = 1;

/// The span that begins with an event of a session. No two of one session are the same: every step can be undone.
fn span_id(session: SessionId, session_seq: u64) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "the lower half of the bits")]
    let low = session.bits() as u64;
    let mut mixed = low ^ session_seq.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    // Zero means that there is none.
    mixed.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;

    #[test]
    fn a_place_in_a_trace_is_read_and_said() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context = Context::parse(text).unwrap();
        assert!(context.sampled && context.span == 0x00f0_67aa_0ba9_02b7);
        assert_eq!(context.to_string(), text);
        assert!(Context::parse("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-what").is_some());
        for wrong in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01",
        ] {
            assert_eq!(Context::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn spans_of_a_session_differ() {
        let id = SessionId::new(Time::from_micros(1), 99);
        let mut ids: Vec<u64> = (1..10_000).map(|seq| span_id(id, seq)).collect();
        assert_eq!(ids[0], span_id(id, 1));
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 9_999);
    }

    #[test]
    fn settings_name_a_collector_or_are_refused() {
        let read = |text: &str| toml::from_str::<OtelSettings>(text).unwrap().export();
        assert_eq!(read(""), Ok(None));
        let export = read("endpoint = \"http://127.0.0.1:4318/\"\nheaders_env = \"H\"").unwrap().unwrap();
        assert_eq!(export.url, "http://127.0.0.1:4318/v1/traces");
        assert_eq!((export.content, export.headers), (false, Some(SecretPlace::Variable("H".to_owned()))));
        let whole = read("endpoint = \"https://otel.example/x/v1/traces\"\ncontent = true").unwrap().unwrap();
        assert_eq!((whole.url.as_str(), whole.content), ("https://otel.example/x/v1/traces", true));
        assert!(read("endpoint = \"ftp://x\"").unwrap_err().starts_with("endpoint"));
        assert!(read("endpoint = \"http://x\"\nheaders_env = \"H\"\nheaders_file = \"/f\"").is_err());
    }

    #[test]
    fn headers_stand_on_lines_or_between_commas() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(headers("a=b=, c = d"), Ok(vec![pair("a", "b="), pair("c", "d")]));
        let lines = "Authorization: Bearer x,y\n\nx-team: agents\n";
        assert_eq!(headers(lines), Ok(vec![pair("Authorization", "Bearer x,y"), pair("x-team", "agents")]));
        assert_eq!(headers("authorization: Basic abc=\n"), Ok(vec![pair("authorization", "Basic abc=")]));
        assert_eq!(headers(""), Ok(Vec::new()));
        assert!(headers("just-a-key").is_err() && headers("a b: c").is_err());
    }
}
