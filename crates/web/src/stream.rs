//! The log: a page of it, or all of it as it grows. A stream has the places of its events for ids, so that a browser
//! which lost it goes on where it was, by itself.

use std::{convert::Infallible, time::Duration};

use axum::{
    Extension,
    body::Body,
    http::{HeaderMap, HeaderName, header},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
    routing::get,
};
use bytes::{Bytes, BytesMut};
use ostler_client::{ListEvents, Place, Received};
use ostler_domain::{Kind as EventKind, Reason, Refusal, query::EventFilter};
use ostler_form::{ErrorForm, EventForm, Object, to_json};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::{broadcast::error::RecvError, mpsc};
use tokio_stream::wrappers::ReceiverStream;

use crate::{
    api::{Endpoint, Form, of},
    feed::{self, Batch, PIECE_BYTES, Tap},
    guard::Visitor,
    reply::{Answer, Asked, Failure, json},
};

/// Pieces that wait for a browser; beyond them it is late, and nobody else is.
const WAITING: usize = 2;
/// Events read from the log in one go by whoever is late.
const READ: u32 = 100;
/// When a browser comes back that was told to begin anew.
const AGAIN: Duration = Duration::from_millis(200);
const STREAM: (HeaderName, &str) = (header::CONTENT_TYPE, "text/event-stream");
/// How often a silent stream says that it is there: proxies end what is silent.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![Endpoint {
        method: "get",
        path: "/v1/events",
        id: "watchEvents",
        about: "The log. With `Accept: text/event-stream` it is followed: the id of each message is its place, and \
                whoever comes back with `Last-Event-ID` misses nothing and has nothing twice. An event `reset` \
                says that the log ends before that place, since it was put back from a copy: begin anew. Else a \
                page of it",
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
        true => stream(visitor, filter, &headers, asked.after).await,
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

type Pieces = mpsc::Sender<Result<Bytes, Infallible>>;

async fn stream(visitor: Visitor, filter: EventFilter, headers: &HeaderMap, asked: Option<u64>) -> Answer {
    let seen = last_seen(headers)?;
    let tap = visitor.door.tap().await?;
    let mut following = Following { cursor: tap.end(), is_behind: false, tap, filter, visitor };
    if let Some(after) = seen.or(asked) {
        (following.cursor, following.is_behind) = (after, true);
        match following.read().await {
            Ok(first) => return Ok(following.begin(after, first)),
            // A browser takes nothing but a stream for an answer, and would never come again.
            Err(failure) if seen.is_some() && failure.refusal.reason == Reason::CursorUnknown => {
                return Ok(anew(&failure.refusal));
            }
            Err(failure) => return Err(failure),
        }
    }
    let begin = following.cursor;
    Ok(following.begin(begin, Vec::new()))
}

/// Tells whoever comes back to a log that was put back from a copy to begin anew. With the empty id a browser forgets the
/// place it was at: it comes again as it came first.
fn anew(refusal: &Refusal) -> Response {
    let error = to_json(&ErrorForm::new(refusal, None));
    let said = format!("event: reset\nid:\nretry: {}\ndata: {error}\n\n", AGAIN.as_millis());
    ([STREAM], said).into_response()
}

/// Somebody who follows the log.
struct Following {
    visitor: Visitor,
    filter: EventFilter,
    tap: Tap,
    /// Everything up to here was sent or is not wanted.
    cursor: u64,
    /// The log has what the tap no longer hands out.
    is_behind: bool,
}

impl Following {
    /// Answers with a stream: where it begins, what was read already, and what follows.
    fn begin(self, place: u64, first: Vec<Bytes>) -> Response {
        let (to, pieces) = mpsc::channel(WAITING);
        tokio::spawn(async move {
            // Without an id of its own, a stream that breaks before its first event would begin elsewhere.
            let begin = Bytes::from(format!("event: begin\nid: {place}\ndata: {{}}\n\n"));
            let first = std::iter::once(begin).chain(first).collect();
            let visitor = self.visitor.clone();
            // A stream that cannot go on ends: the browser comes back by itself, and hears then what is wrong.
            tokio::select! {
                _ = self.run(first, &to) => {}
                () = visitor.turned_out() => {}
                () = to.closed() => {}
            }
        });
        ([STREAM], Body::from_stream(ReceiverStream::new(pieces))).into_response()
    }

    async fn run(mut self, mut ready: Vec<Bytes>, to: &Pieces) -> Result<(), Failure> {
        loop {
            for piece in ready.drain(..).filter(|piece| !piece.is_empty()) {
                if to.send(Ok(piece)).await.is_err() {
                    return Ok(());
                }
            }
            ready = match self.is_behind {
                true => self.read().await?,
                false => match tokio::time::timeout(SIGN_OF_LIFE, self.tap.batches.recv()).await {
                    Ok(Ok(batch)) => self.take(&batch).into_iter().collect(),
                    Ok(Err(RecvError::Lagged(_))) => {
                        self.is_behind = true;
                        continue;
                    }
                    Ok(Err(RecvError::Closed)) => return Ok(()),
                    Err(_) => vec![Bytes::from_static(b":\n\n")],
                },
            };
        }
    }

    fn take(&mut self, batch: &Batch) -> Option<Bytes> {
        if batch.after > self.cursor {
            // It was handed out while the log was read: the log has it.
            self.is_behind = true;
            return None;
        }
        let wanted = batch.wanted(&self.filter, self.cursor);
        self.cursor = self.cursor.max(batch.last);
        Some(wanted)
    }

    /// A page of the log behind the cursor.
    async fn read(&mut self) -> Result<Vec<Bytes>, Failure> {
        let end = self.tap.end();
        let request =
            ListEvents { filter: self.filter.clone(), from: Place::After(self.cursor), limit: READ };
        let page = self.visitor.client.events(&request).await?;
        let (mut pieces, mut piece) = (Vec::new(), BytesMut::new());
        for received in &page.events {
            feed::write(&mut piece, received);
            if piece.len() >= PIECE_BYTES {
                pieces.push(piece.split().freeze());
            }
        }
        pieces.push(piece.freeze());
        let last = page.events.last().map_or(self.cursor, Received::seq);
        self.is_behind = page.next.is_some();
        self.cursor = page.next.unwrap_or_else(|| last.max(end).max(self.cursor));
        Ok(pieces)
    }
}

pub(crate) fn sse(waiting: mpsc::Receiver<Result<Event, Infallible>>) -> Response {
    let alive = KeepAlive::new().interval(SIGN_OF_LIFE);
    Sse::new(ReceiverStream::new(waiting)).keep_alive(alive).into_response()
}
