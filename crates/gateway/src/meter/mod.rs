//! The meter: reads off an answer which model gave it and how many tokens it took, while it passes. Pure, and tolerant:
//! what it does not understand it does not count, and no answer can make it fail.
//!
//! Tokens come out in four buckets that never overlap. Providers differ in what includes what; each dialect's module says
//! how.

mod anthropic;
mod chat;
mod end;
mod gemini;
mod responses;
mod sse;

use ostler_domain::{
    Usage,
    limits::{METER_EVENT_BYTES, METER_NAME_BYTES},
};
use serde::de::IgnoredAny;
use serde_json::Value;

use self::sse::Events;

/// The languages in which models are spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Anthropic,
    Chat,
    Responses,
    Gemini,
}

/// Says whether a model is asked to answer.
pub(crate) fn is_call(method: &str, path: &str) -> bool {
    Dialect::of(method, path).is_some()
}

impl Dialect {
    /// Known by the path, whatever stands before it. Asking again for what was answered before is no call.
    fn of(method: &str, path: &str) -> Option<Dialect> {
        if method != "POST" {
            return None;
        }
        let ends = |with: &[&str]| with.iter().any(|end| path.ends_with(end));
        if ends(&["/messages"]) {
            Some(Dialect::Anthropic)
        } else if ends(&["/responses", "/responses/compact"]) {
            Some(Dialect::Responses)
        } else if ends(&["/chat/completions", "/completions", "/embeddings"]) {
            Some(Dialect::Chat)
        } else if ends(&[":generateContent", ":streamGenerateContent"]) {
            Some(Dialect::Gemini)
        } else {
            None
        }
    }

    /// Takes in one object of the answer.
    fn read(self, object: &Value, found: &mut Found) {
        match self {
            Dialect::Anthropic => anthropic::read(object, found),
            Dialect::Chat => chat::read(object, found),
            Dialect::Responses => responses::read(object, found),
            Dialect::Gemini => gemini::read(object, found),
        }
    }
}

/// What an answer said of itself.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) id: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) usage: Option<Usage>,
}

impl Found {
    /// Names are the provider's word, and go no further if they are none.
    fn name(&mut self, id: Option<&Value>, model: Option<&Value>) {
        let name = |value: Option<&Value>| {
            let name = value?.as_str()?;
            let is_name = !name.is_empty()
                && name.len() <= METER_NAME_BYTES
                && name.chars().all(|char| char.is_ascii_graphic());
            is_name.then(|| name.to_owned())
        };
        self.id = name(id).or(self.id.take());
        self.model = name(model).or(self.model.take());
    }
}

/// Reads along with one answer.
pub(crate) struct Meter {
    dialect: Option<Dialect>,
    form: Form,
    found: Found,
    /// The stream has said that it is over.
    has_ended: bool,
}

enum Form {
    /// Nothing that can be read.
    Unread,
    Events(Events),
    /// One object, or a list of them.
    Whole(Vec<u8>),
}

impl Meter {
    pub(crate) fn new(method: &str, path: &str) -> Meter {
        Meter {
            dialect: Dialect::of(method, path),
            form: Form::Unread,
            found: Found::default(),
            has_ended: false,
        }
    }

    /// The answer's head has come. `content_type` is absent where its content cannot be read.
    pub(crate) fn head(&mut self, status: u16, content_type: Option<&str>) {
        let content_type = content_type.unwrap_or_default().to_ascii_lowercase();
        self.form = match self.dialect {
            Some(_) if !(200..300).contains(&status) => Form::Unread,
            Some(_) if content_type.starts_with("text/event-stream") => Form::Events(Events::default()),
            Some(_) if content_type.contains("json") => Form::Whole(Vec::new()),
            _ => Form::Unread,
        };
    }

    pub(crate) fn content(&mut self, bytes: &[u8]) {
        let Some(dialect) = self.dialect else { return };
        match &mut self.form {
            Form::Unread => {}
            Form::Events(events) => {
                let (found, has_ended) = (&mut self.found, &mut self.has_ended);
                events.push(bytes, &mut |data| {
                    read(dialect, data, found);
                    *has_ended |= end::is_in(dialect, data);
                });
            }
            Form::Whole(whole) if whole.len() + bytes.len() > METER_EVENT_BYTES => self.form = Form::Unread,
            Form::Whole(whole) => whole.extend_from_slice(bytes),
        }
    }

    /// Whether the answer is not all that was to come, if nothing more does: the server may have ended it in good order, as
    /// one that goes down does. What cannot be read is taken for whole.
    pub(crate) fn breaks_off(&self) -> bool {
        match &self.form {
            Form::Unread => false,
            Form::Events(events) => !self.has_ended && !events.has_passed_over(),
            Form::Whole(whole) => serde_json::from_slice::<IgnoredAny>(whole).is_err(),
        }
    }

    /// What was found when nothing more comes.
    pub(crate) fn finish(mut self) -> Found {
        if let (Form::Whole(whole), Some(dialect)) = (&self.form, self.dialect) {
            read(dialect, whole, &mut self.found);
        }
        self.found
    }
}

fn read(dialect: Dialect, data: &[u8], found: &mut Found) {
    // Most of a stream are words: only its beginning and what speaks of tokens is looked into.
    let is_of_interest = found.id.is_none() || data.windows(6).any(|window| window == b"\"usage");
    if !is_of_interest {
        return;
    }
    match serde_json::from_slice(data) {
        Ok(Value::Array(objects)) => objects.iter().for_each(|object| dialect.read(object, found)),
        Ok(object) => dialect.read(&object, found),
        Err(_) => {}
    }
}

/// A number of tokens; what is none is not said.
fn count(object: &Value, path: &[&str]) -> Option<u64> {
    let found = path.iter().try_fold(object, |object, name| object.get(name))?;
    found.as_u64().or_else(|| found.as_f64().filter(|number| *number >= 0.0).map(|number| number as u64))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// What a meter finds in an answer that comes in portions.
    pub(super) fn metered(path: &str, content_type: &str, answer: &str, portion: usize) -> Found {
        let mut meter = Meter::new("POST", path);
        meter.head(200, Some(content_type));
        for bytes in answer.as_bytes().chunks(portion) {
            meter.content(bytes);
        }
        meter.finish()
    }

    /// The same, whatever the portions.
    pub(super) fn found(path: &str, content_type: &str, answer: &str) -> Found {
        let whole = metered(path, content_type, answer, answer.len().max(1));
        for portion in [1, 2, 7, 100] {
            assert_eq!(metered(path, content_type, answer, portion), whole, "in portions of {portion}");
        }
        whole
    }

    #[test]
    fn a_dialect_is_known_by_its_path() {
        for (path, dialect) in [
            ("/v1/messages", Some(Dialect::Anthropic)),
            ("/messages/count_tokens", None),
            ("/v1/chat/completions", Some(Dialect::Chat)),
            ("/responses", Some(Dialect::Responses)),
            ("/responses/resp_1/cancel", None),
            ("/v1beta/models/gemini-3-pro:streamGenerateContent", Some(Dialect::Gemini)),
            ("/v1beta/models/gemini-3-pro:countTokens", None),
            ("/models", None),
        ] {
            assert_eq!(Dialect::of("POST", path), dialect, "{path}");
            assert_eq!(Dialect::of("GET", path), None, "{path}");
        }
    }

    #[test]
    fn errors_other_forms_and_names_that_are_none_are_not_read() {
        let answer = r#"{"id":"a","model":"m","usage":{"input_tokens":5,"output_tokens":1}}"#;
        for (status, content_type) in [(400, Some("application/json")), (200, Some("text/html")), (200, None)]
        {
            let mut meter = Meter::new("POST", "/v1/messages");
            meter.head(status, content_type);
            meter.content(answer.as_bytes());
            assert_eq!(meter.finish(), Found::default(), "{status} {content_type:?}");
        }
        let odd = r#"{"id":"a b","model":17,"usage":{"input_tokens":5,"output_tokens":"many"}}"#;
        let found = found("/v1/messages", "application/json", odd);
        assert_eq!((found.id, found.model), (None, None));
        assert_eq!(found.usage, Some(Usage { input: 5, ..Usage::default() }));
    }

    #[test]
    fn an_answer_that_is_too_long_is_not_held() {
        let mut meter = Meter::new("POST", "/v1/messages");
        meter.head(200, Some("application/json"));
        for _ in 0..=METER_EVENT_BYTES / 1024 {
            meter.content(&[b' '; 1024]);
        }
        assert!(matches!(meter.form, Form::Unread));
        assert_eq!(meter.finish(), Found::default());
    }

    proptest! {
        #[test]
        fn no_answer_panics(
            bytes in vec(any::<u8>(), 0..200),
            text in "(data: )?\\{\"(usage|message|response|usageMetadata|type)\":[\\[\\{\"a-z:0-9,\\}\\]]{0,60}\n\n",
            path in "(/messages|/responses|/completions|:generateContent)",
            portion in 1_usize..20,
        ) {
            for content_type in ["text/event-stream", "application/json"] {
                let mut meter = Meter::new("POST", &path);
                meter.head(200, Some(content_type));
                bytes.chunks(portion).for_each(|bytes| meter.content(bytes));
                text.as_bytes().chunks(portion).for_each(|bytes| meter.content(bytes));
                meter.finish();
            }
        }
    }
}
