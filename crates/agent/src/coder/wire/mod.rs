//! The two ways in which model servers are spoken to. Pure: a conversation to a request, the data of a stream to a
//! reply. Servers agree on the shape and differ in every detail, so everything is read loosely.

mod chat;
mod responses;

use std::collections::BTreeSet;

use ostler_domain::Usage;
use serde_json::{Map, Value};

use super::{
    conversation::{Item, Reply},
    fault::Fault,
    think::Piece,
    tools::Tool,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    /// Chat Completions: what every server has.
    Chat,
    /// The Responses API.
    Responses,
}

/// What a request is made from.
pub(super) struct Ask<'a> {
    pub(super) model: &'a str,
    pub(super) system: &'a str,
    pub(super) items: &'a [Item],
    pub(super) tools: &'a [Tool],
    /// Fields that this server has refused.
    pub(super) without: &'a BTreeSet<&'static str>,
    pub(super) extra: &'a Map<String, Value>,
}

/// A reply with what it cost.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Replied {
    pub(super) reply: Reply,
    /// Nothing when the server does not say.
    pub(super) usage: Option<Usage>,
    /// The server's name for the call.
    pub(super) call: Option<String>,
}

/// What had come of a reply before it was cut.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Begun {
    /// The server's name for the call.
    pub(super) call: Option<String>,
    /// Of the model's words, not of what they were wrapped in.
    pub(super) bytes: usize,
}

impl Begun {
    pub(super) fn is_nothing(&self) -> bool {
        self.call.is_none() && self.bytes == 0
    }
}

/// Puts a reply together from the data of its stream.
pub(super) trait Assembler {
    /// Takes in one event. `true` when nothing more is to come.
    fn take(&mut self, data: &str, pieces: &mut Vec<Piece>) -> Result<bool, Fault>;

    /// What has come so far.
    fn begun(&self) -> Begun;

    /// The stream has ended.
    fn finish(self: Box<Self>, pieces: &mut Vec<Piece>) -> Result<Replied, Fault>;
}

impl Wire {
    pub(super) const fn path(self) -> &'static str {
        match self {
            Wire::Chat => "/chat/completions",
            Wire::Responses => "/responses",
        }
    }

    pub(super) fn body(self, ask: &Ask<'_>) -> Value {
        let mut body = match self {
            Wire::Chat => chat::body(ask),
            Wire::Responses => responses::body(ask),
        };
        for field in ask.without {
            body.remove(*field);
        }
        body.extend(ask.extra.clone());
        Value::Object(body)
    }

    pub(super) fn assembler(self) -> Box<dyn Assembler> {
        match self {
            Wire::Chat => Box::new(chat::ChatAssembler::default()),
            Wire::Responses => Box::new(responses::ResponsesAssembler::default()),
        }
    }
}

fn parse(data: &str) -> Result<Value, Fault> {
    serde_json::from_str(data).map_err(|error| Fault::Cut(format!("an event is not JSON: {error}")))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// What a server says of a call.
struct Told<'a> {
    input: &'a Value,
    cached: &'a Value,
    written: &'a Value,
    output: &'a Value,
    reasoning: &'a Value,
}

/// Four buckets that do not overlap, from words that do: what a cache was read or written for is a part of input, thinking
/// a part of output. As the gateway's meter reads them, so that both say the same.
fn usage(told: &Told<'_>) -> Option<Usage> {
    let input = told.input.as_u64()?;
    let cache_read = told.cached.as_u64().unwrap_or(0).min(input);
    let cache_write = told.written.as_u64().unwrap_or(0).min(input - cache_read);
    let output = told.output.as_u64().unwrap_or(0);
    Some(Usage {
        input: input - cache_read - cache_write,
        cache_read,
        cache_write,
        output,
        reasoning: told.reasoning.as_u64().unwrap_or(0).min(output),
    })
}
