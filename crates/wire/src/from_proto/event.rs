//! Events and what is asked about them.

use ostler_domain::{Event, Kind, Recorded, query::EventFilter};

use super::{Result, id, optional_id, optional_time, required, required_time, text};
use crate::{
    InvalidField, pb,
    reply::{Delta, EventPage, Hit, Received, UnknownEvent},
};

/// Reads an event. A kind or a body that this version does not know is no error: it is passed on whole.
pub fn received(event: pb::Event) -> Result<Received> {
    let session = optional_id(event.session_id, "session_id")?;
    let time = required_time(event.time, "time")?;
    let kind = text(event.kind, "kind")?;
    let known = Kind::from_name(&kind).and_then(|kind| Event::decode(kind, &event.body).ok());
    let (seq, session_seq) = (event.seq, event.session_seq);
    Ok(match known {
        Some(event) => Received::Known(Box::new(Recorded { seq, session, session_seq, time, event })),
        None => Received::Unknown(UnknownEvent { seq, session, session_seq, time, kind, body: event.body }),
    })
}

pub fn event_filter(filter: pb::EventFilter) -> Result<EventFilter> {
    Ok(EventFilter {
        session: optional_id(filter.session, "session")?,
        kinds: filter.kinds.iter().map(|name| kind(name)).collect::<Result<_>>()?,
        since: optional_time(filter.since, "since")?,
        until: optional_time(filter.until, "until")?,
        sessions: match filter.sessions {
            Some(sessions) => {
                Some(Box::new(super::session_filter(sessions).map_err(|e| e.within("sessions"))?))
            }
            None => None,
        },
    })
}

fn kind(name: &str) -> Result<Kind> {
    Kind::from_name(name)
        .ok_or_else(|| InvalidField::new("kinds", format_args!("no events are called {name:?}")))
}

pub fn event_page(page: pb::ListEventsResponse) -> Result<EventPage> {
    Ok(EventPage {
        events: page
            .events
            .into_iter()
            .map(received)
            .collect::<Result<_>>()
            .map_err(|e| e.within("events"))?,
        next: page.next_cursor,
    })
}

pub fn hit(hit: pb::SearchHit) -> Result<Hit> {
    let event = received(required(hit.event, "event")?).map_err(|e| e.within("event"))?;
    Ok(Hit { event, snippet: hit.snippet })
}

pub fn delta(delta: pb::WatchDeltasResponse) -> Result<Delta> {
    Ok(Delta { session: id(&delta.session_id, "session_id")?, text: delta.text })
}
