//! Events and what is asked about them.

use ostler_domain::{Recorded, query::EventFilter};

use super::time;
use crate::{
    pb,
    reply::{Delta, EventPage, Hit, Received, UnknownEvent},
};

pub fn recorded(recorded: &Recorded) -> pb::Event {
    pb::Event {
        seq: recorded.seq,
        session_id: recorded.session.map(String::from),
        session_seq: recorded.session_seq,
        time: Some(time(recorded.time)),
        kind: recorded.event.kind().name().to_owned(),
        body: recorded.event.body(),
    }
}

pub fn received(received: &Received) -> pb::Event {
    match received {
        Received::Known(known) => recorded(known),
        Received::Unknown(event) => unknown(event),
    }
}

fn unknown(event: &UnknownEvent) -> pb::Event {
    pb::Event {
        seq: event.seq,
        session_id: event.session.map(String::from),
        session_seq: event.session_seq,
        time: Some(time(event.time)),
        kind: event.kind.clone(),
        body: event.body.clone(),
    }
}

pub fn event_filter(filter: &EventFilter) -> pb::EventFilter {
    pb::EventFilter {
        session: filter.session.map(String::from),
        kinds: filter.kinds.iter().map(|kind| kind.name().to_owned()).collect(),
        since: filter.since.map(time),
        until: filter.until.map(time),
        sessions: filter.sessions.as_deref().map(super::session_filter),
    }
}

pub fn event_page(page: &EventPage) -> pb::ListEventsResponse {
    pb::ListEventsResponse { events: page.events.iter().map(received).collect(), next_cursor: page.next }
}

pub fn hit(hit: &Hit) -> pb::SearchHit {
    pb::SearchHit { event: Some(received(&hit.event)), snippet: hit.snippet.clone() }
}

pub fn delta(delta: &Delta) -> pb::WatchDeltasResponse {
    pb::WatchDeltasResponse { session_id: delta.session.to_string(), text: delta.text.clone() }
}
