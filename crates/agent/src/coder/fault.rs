//! Why a model call gave no reply, and what helps: pure, so that every row of the table is a test.

use std::time::Duration;

use ostler_domain::text::head;
use serde_json::Value;

/// Tries of one request; a success begins anew.
pub(super) const TRIES: u32 = 5;
/// A server that asks for more patience than this is asked again after this.
const LONGEST_ASKED: Duration = Duration::from_secs(60);
const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_secs(30);
/// How much of an error body is shown when it is not the usual object.
const SHOWN_BODY_BYTES: usize = 500;

/// What went wrong with one call.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum Fault {
    #[error("the model server cannot be reached: {0}")]
    Unreachable(String),
    #[error("the model server answered {status}: {message}")]
    Refused { status: u16, code: String, message: String, retry_after: Option<Duration> },
    /// The stream ended, stalled or became unreadable before the reply was complete.
    #[error("the model's reply was cut short: {0}")]
    Cut(String),
    #[error("{0} answered with a web page, not as a model does; the base URL of many servers ends with /v1")]
    NotAModel(String),
    /// An error object inside of a stream that had begun well.
    #[error("the model server failed in mid-reply: {message} ({code})")]
    InStream { code: String, message: String },
}

/// What may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    /// The same request again, after a pause.
    Again,
    /// A shorter conversation.
    Shrink,
    /// The same request without a field that this server does not know.
    Without(&'static str),
    /// Nothing that the agent can do.
    None,
}

/// Fields that we add and that old servers refuse.
const OPTIONAL_FIELDS: [&str; 3] = ["stream_options", "include", "reasoning"];

impl Fault {
    /// Reads an answer that is not 200.
    pub(super) fn refused(status: u16, body: &[u8], retry_after: Option<Duration>) -> Self {
        let parsed: Value = serde_json::from_slice(body).unwrap_or_default();
        let error = parsed.get("error").unwrap_or(&parsed);
        let text = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
        let code = match (text("code"), text("type")) {
            ("", kind) => kind,
            (code, _) => code,
        };
        let message = match text("message") {
            "" => error.as_str().map_or_else(
                || head(&String::from_utf8_lossy(body), SHOWN_BODY_BYTES).trim().to_owned(),
                str::to_owned,
            ),
            message => message.to_owned(),
        };
        // Both are looked at: quota errors name themselves in either.
        let code = if text("type") == "insufficient_quota" { "insufficient_quota" } else { code };
        Fault::Refused { status, code: code.to_owned(), message, retry_after }
    }

    /// Reads an error object inside of a stream.
    pub(super) fn in_stream(error: &Value) -> Self {
        let text = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let code = error.get("code").map(|code| code.as_str().map_or(code.to_string(), str::to_owned));
        Fault::InStream {
            code: code.filter(|code| code != "null").unwrap_or_else(|| text("type")),
            message: match text("message") {
                message if message.is_empty() => error.as_str().unwrap_or("no reason given").to_owned(),
                message => message,
            },
        }
    }

    pub(super) fn remedy(&self) -> Remedy {
        match self {
            Fault::Unreachable(_) | Fault::Cut(_) => Remedy::Again,
            Fault::Refused { status: 429, code, .. }
                if code.contains("quota") || code.contains("billing") =>
            {
                Remedy::None
            }
            // Some say "too many tokens" of what is too much for one minute: nothing is to be forgotten for that.
            Fault::Refused { status: 429, .. } => Remedy::Again,
            Fault::Refused { status: 413, .. } => Remedy::Shrink,
            Fault::Refused { code, message, .. } | Fault::InStream { code, message }
                if is_overflow(code, message) =>
            {
                Remedy::Shrink
            }
            Fault::Refused { status: 408 | 409 | 425 | 500 | 502 | 503 | 504 | 529, .. } => Remedy::Again,
            Fault::Refused { status: 400 | 422, message, .. } => OPTIONAL_FIELDS
                .into_iter()
                .find(|field| message.contains(field))
                .map_or(Remedy::None, Remedy::Without),
            Fault::Refused { .. } | Fault::NotAModel(_) => Remedy::None,
            Fault::InStream { code, .. } => {
                let passing =
                    ["rate_limit", "server_error", "overloaded", "timeout", "unavailable", "500", "503"];
                let helps = code.is_empty() || passing.iter().any(|word| code.contains(word));
                if helps { Remedy::Again } else { Remedy::None }
            }
        }
    }

    pub(super) fn is_rate_limit(&self) -> bool {
        match self {
            Fault::Refused { status, .. } => *status == 429,
            Fault::InStream { code, .. } => code.contains("rate_limit"),
            _ => false,
        }
    }

    pub(super) fn is_login(&self) -> bool {
        matches!(self, Fault::Refused { status: 401 | 403, .. })
    }

    /// How long to wait before the next try. `chance` is in 0..1 and spreads those who failed together.
    pub(super) fn pause(&self, tries: u32, chance: f64) -> Duration {
        if let Fault::Refused { retry_after: Some(asked), .. } = self {
            return (*asked).min(LONGEST_ASKED);
        }
        let doubled = FIRST_DELAY.saturating_mul(2_u32.saturating_pow(tries.saturating_sub(1)));
        doubled.min(LONGEST_DELAY).mul_f64(0.75 + chance.clamp(0.0, 1.0) / 2.0)
    }
}

/// Servers agree on the fact and differ in the words.
fn is_overflow(code: &str, message: &str) -> bool {
    let words = [
        "context length",
        "context window",
        "context size",
        "context limit",
        "maximum context",
        "too many tokens",
        "prompt is too long",
        "input is too long",
        "exceeds the maximum number of tokens",
    ];
    let message = message.to_lowercase();
    code.contains("context_length")
        || code.contains("context_size")
        || words.iter().any(|word| message.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, body: &str) -> Fault {
        Fault::refused(status, body.as_bytes(), None)
    }

    #[test]
    fn each_failure_has_its_remedy() {
        let quota = r#"{"error":{"message":"You exceeded","type":"insufficient_quota","code":"x"}}"#;
        let unknown = r#"{"error":{"message":"Unrecognized request argument: stream_options"}}"#;
        let overflow = r#"{"error":{"message":"maximum context length is 8192","code":null,"type":"invalid_request_error"}}"#;
        for (fault, remedy) in [
            (refused(429, r#"{"error":{"code":"rate_limit_exceeded","message":"slow"}}"#), Remedy::Again),
            (refused(429, quota), Remedy::None),
            (
                refused(429, r#"{"message":"Too many tokens, please wait before trying again."}"#),
                Remedy::Again,
            ),
            (refused(413, "Request too large"), Remedy::Shrink),
            (
                refused(400, r#"{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}"#),
                Remedy::Shrink,
            ),
            (refused(500, ""), Remedy::Again),
            (refused(529, "overloaded"), Remedy::Again),
            (refused(401, "{}"), Remedy::None),
            (refused(404, "not here"), Remedy::None),
            (refused(400, unknown), Remedy::Without("stream_options")),
            (refused(400, overflow), Remedy::Shrink),
            (Fault::Unreachable("refused".into()), Remedy::Again),
            (Fault::Cut("no finish_reason".into()), Remedy::Again),
            (Fault::InStream { code: "server_error".into(), message: String::new() }, Remedy::Again),
            (
                Fault::InStream { code: "context_length_exceeded".into(), message: String::new() },
                Remedy::Shrink,
            ),
            (Fault::InStream { code: "invalid_prompt".into(), message: String::new() }, Remedy::None),
        ] {
            assert_eq!(fault.remedy(), remedy, "{fault:?}");
        }
        assert!(refused(401, "").is_login());
        assert_eq!(refused(404, "not here").to_string(), "the model server answered 404: not here");
        assert_eq!(refused(503, r#"{"error":"busy"}"#).to_string(), "the model server answered 503: busy");
    }

    #[test]
    fn pauses_grow_have_an_end_and_heed_the_server() {
        let plain = refused(500, "");
        assert_eq!(plain.pause(1, 0.5), Duration::from_millis(500));
        assert_eq!(plain.pause(3, 0.5), Duration::from_secs(2));
        assert_eq!(plain.pause(60, 1.0), LONGEST_DELAY.mul_f64(1.25));
        let asked = |seconds| Fault::refused(429, b"", Some(Duration::from_secs(seconds))).pause(1, 0.5);
        assert_eq!((asked(2), asked(3600)), (Duration::from_secs(2), LONGEST_ASKED));
    }
}
