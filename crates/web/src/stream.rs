//! The log: a page of it, or all of it as it grows. A stream has the places of its events for ids, so that a browser
//! which lost it goes on where it was, by itself.

use std::{convert::Infallible, time::Duration};

use axum::{
    Extension,
    http::{HeaderMap, header},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
    routing::get,
};
use ostler_client::{ListEvents, Place, Received, Watched};
use ostler_domain::{Kind as EventKind, Refusal, query::EventFilter};
use ostler_form::{EventForm, Object, to_json};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::{
    api::{Endpoint, Form, of},
    guard::Visitor,
    reply::{Answer, Asked, Failure, json},
};

/// Events that wait for a browser; beyond them the log waits, and nobody else does.
const WAITING: usize = 64;
/// How often a silent stream says that it is there: proxies end what is silent.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![Endpoint {
        method: "get",
        path: "/v1/events",
        id: "watchEvents",
        about: "The log. With `Accept: text/event-stream` it is followed: the id of each message is its place, and \
                whoever comes back with `Last-Event-ID` misses nothing and has nothing twice. Else a page of it",
        query: Some(of::<EventsAsked>),
        body: None,
        answer: Form::Stream(of::<EventForm<'static>>),
        serve: get(events),
    }]
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
struct EventsAsked {
    /// The place after which to begin; `Last-Event-ID` says the same. Without one, a stream has what comes from now on, and a page begins with the first.
    after: Option<u64>,
    /// Only of this session.
    session: Option<String>,
    /// Kinds of events, such as AGENT_COMPLETION.
    kind: Option<String>,
    /// Rows of a page.
    limit: Option<u32>,
}

async fn events(
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    Asked(asked): Asked<EventsAsked>,
) -> Answer {
    let session = match asked.session.as_deref().filter(|who| !who.is_empty()) {
        Some(who) => Some(visitor.client.session(who).await?.id),
        None => None,
    };
    let words = asked.kind.as_deref().unwrap_or_default().split(',').filter(|word| !word.is_empty());
    let kind = |word: &str| {
        EventKind::from_name(word).ok_or_else(|| Refusal::invalid(format!("kind: there is no \"{word}\"")))
    };
    let kinds = words.map(kind).collect::<Result<_, _>>()?;
    let filter = EventFilter { session, kinds, ..EventFilter::default() };
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match accepted.contains("text/event-stream") {
        true => stream(visitor, filter, last_seen(&headers)?.or(asked.after)).await,
        false => page(&visitor, filter, &asked).await,
    }
}

/// Where a browser was when it lost the stream.
pub(crate) fn last_seen(headers: &HeaderMap) -> Result<Option<u64>, Failure> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let seen = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    Ok(Some(seen.ok_or_else(|| Refusal::invalid("Last-Event-ID: not a place in the log"))?))
}

async fn page(visitor: &Visitor, filter: EventFilter, asked: &EventsAsked) -> Answer {
    let from = Place::After(asked.after.unwrap_or(0));
    let request = ListEvents { filter, from, limit: asked.limit.unwrap_or(0) };
    let found = visitor.client.events(&request).await?;
    let rows = found.events.iter().map(EventForm::new).collect();
    Ok(json(&Object { name: "events", rows, next_cursor: found.next }))
}

async fn stream(visitor: Visitor, filter: EventFilter, after: Option<u64>) -> Answer {
    let mut watch = visitor.client.watch(filter, after).await?;
    let (news, waiting) = mpsc::channel::<Result<Event, Infallible>>(WAITING);
    tokio::spawn(async move {
        // Without an id of its own, a stream that breaks before its first event would begin elsewhere.
        let mut leaves = std::pin::pin!(visitor.turned_out());
        let begin = Event::default().event("begin").id(watch.cursor().unwrap_or(0).to_string()).data("{}");
        if news.send(Ok(begin)).await.is_err() {
            return;
        }
        loop {
            let watched = tokio::select! {
                watched = watch.next() => watched,
                () = news.closed() => return,
                () = &mut leaves => return,
            };
            let received = match watched {
                Some(Ok(Watched::Event(recorded))) => Received::Known(recorded),
                Some(Ok(Watched::Unknown(unknown))) => Received::Unknown(unknown),
                Some(Ok(Watched::Reconnected)) => continue,
                // The browser comes back by itself, and hears then what is wrong.
                Some(Err(_)) | None => return,
            };
            let told =
                Event::default().id(received.seq().to_string()).data(to_json(&EventForm::new(&received)));
            if news.send(Ok(told)).await.is_err() {
                return;
            }
        }
    });
    Ok(sse(waiting))
}

pub(crate) fn sse(waiting: mpsc::Receiver<Result<Event, Infallible>>) -> Response {
    let alive = KeepAlive::new().interval(SIGN_OF_LIFE);
    Sse::new(ReceiverStream::new(waiting)).keep_alive(alive).into_response()
}
