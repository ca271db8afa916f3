//! An event.

use ostler_client::Received;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{rfc3339, shape};

/// An event: one line of `events -o jsonl`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Event")]
pub struct EventForm<'a> {
    seq: u64,
    session: Option<String>,
    session_seq: Option<u64>,
    time: String,
    kind: &'a str,
    #[schemars(with = "shape::Body")]
    body: Box<RawValue>,
}

impl<'a> EventForm<'a> {
    pub fn new(received: &'a Received) -> Self {
        let (session_seq, body) = match received {
            Received::Known(event) => (event.session_seq, event.event.body()),
            Received::Unknown(event) => (event.session_seq, event.body.clone()),
        };
        Self {
            seq: received.seq(),
            session: received.session().map(|id| id.to_string()),
            session_seq,
            time: rfc3339(received.time()),
            kind: received.kind(),
            body: RawValue::from_string(body).unwrap_or_else(|_| RawValue::NULL.to_owned()),
        }
    }
}
