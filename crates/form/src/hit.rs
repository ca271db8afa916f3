//! What a search found.

use ostler_client::{Received, reply::Hit};
use ostler_domain::TicketId;
use schemars::JsonSchema;
use serde::Serialize;

use crate::EventForm;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Hit")]
pub struct HitForm<'a> {
    #[serde(flatten)]
    event: EventForm<'a>,
    /// The ticket that it is about, where it is no session's.
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<String>,
    snippet: &'a str,
}

impl<'a> HitForm<'a> {
    pub fn new(hit: &'a Hit) -> Self {
        let ticket = ticket_of(hit).map(|id| id.to_string());
        Self { event: EventForm::new(&hit.event), ticket, snippet: &hit.snippet }
    }
}

pub fn ticket_of(hit: &Hit) -> Option<TicketId> {
    match &hit.event {
        Received::Known(recorded) => recorded.event.ticket(),
        Received::Unknown(_) => None,
    }
}
