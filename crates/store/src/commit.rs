//! What owners hand to the writer, and its encoding, which is done on the owner's thread.

use std::{ops::Range, sync::Arc};

use ostler_domain::{Event, RequestId, SessionId, Time, limits::INLINE_BODY_BYTES, session::View};

use crate::{
    blob::{self, Hash},
    derive::derives,
    session::{Changing, Fixed},
};

/// How soon a commit must happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// Somebody waits: commits at once and takes along what waits.
    Control,
    /// Nobody waits: gathers with others for a moment.
    Tape,
}

/// Everything that one owner wants to become true at once. All of it is written, or nothing.
#[derive(Debug)]
pub struct Commit {
    pub urgency: Urgency,
    /// Events without a session; written before the session's.
    pub node_events: Vec<(Time, Event)>,
    pub session: Option<SessionCommit>,
    pub request: Option<RequestReply>,
}

/// One session's part of a commit.
#[derive(Debug)]
pub struct SessionCommit {
    pub id: SessionId,
    /// `session_seq` of the last event that the owner knows; 0 for a session that is created here.
    pub expected_seq: u64,
    pub events: Vec<(Time, Event)>,
    /// When they are written down, where that is long after they happened; none where it is the same moment.
    pub recorded: Option<Time>,
    /// The session's row after these events: [`State::view`](ostler_domain::session::State::view).
    pub view: Arc<View>,
    pub tape: Option<TapeMark>,
    pub outbox: Vec<OutboxRow>,
    /// Inputs up to this number are on the tape: their rows go.
    pub outbox_done: Option<u64>,
    /// The state after these events, now and then: [`State::snapshot`](ostler_domain::session::State::snapshot).
    pub snapshot: Option<String>,
}

/// How far a tape has been taken in, and what must be known to go on from there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapeMark {
    pub offset: u64,
    pub assembler: String,
    pub dialogue: Vec<u8>,
    pub dialogue_version: u32,
}

/// Bytes for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxRow {
    /// Counts up within a session and is never used twice.
    pub input_no: u64,
    pub tag: String,
    pub bytes: Vec<u8>,
}

/// A change that must not be done twice, and what its caller is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestReply {
    pub id: RequestId,
    /// What tells this request from another one that uses the same id.
    pub fingerprint: String,
    pub reply: String,
}

/// What became true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Places of the node's events, then of the session's.
    pub seqs: Range<u64>,
    /// The end of the log when this was committed; everything up to it is durable.
    pub last_seq: u64,
}

/// A commit ready to be written.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) urgency: Urgency,
    pub(crate) node_events: Vec<EncodedEvent>,
    pub(crate) session: Option<EncodedSession>,
    pub(crate) request: Option<RequestReply>,
}

#[derive(Debug)]
pub(crate) struct EncodedSession {
    pub(crate) id: SessionId,
    pub(crate) expected_seq: u64,
    pub(crate) events: Vec<EncodedEvent>,
    pub(crate) recorded: Option<Time>,
    pub(crate) row: EncodedRow,
    pub(crate) tape: Option<TapeMark>,
    pub(crate) outbox: Vec<OutboxRow>,
    pub(crate) outbox_done: Option<u64>,
    pub(crate) snapshot: Option<String>,
}

/// A session's derived row.
#[derive(Debug)]
pub(crate) struct EncodedRow {
    /// Only for a session that is created here.
    pub(crate) fixed: Option<Fixed>,
    pub(crate) changing: Changing,
    pub(crate) view: Arc<View>,
}

#[derive(Debug)]
pub(crate) struct EncodedEvent {
    pub(crate) time: Time,
    pub(crate) event: Event,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    Inline(String),
    Blob { hash: Hash, text: String },
}

impl Encoded {
    pub(crate) fn new(commit: Commit) -> Self {
        Self {
            urgency: commit.urgency,
            node_events: encode_events(commit.node_events),
            session: commit.session.map(EncodedSession::new),
            request: commit.request,
        }
    }

    pub(crate) fn event_count(&self) -> usize {
        self.node_events.len() + self.session.as_ref().map_or(0, |session| session.events.len())
    }

    /// Whether something of it may turn out to be refused when something else of it is already written. What a tape
    /// says is checked before anything is written.
    pub(crate) fn may_be_refused(&self) -> bool {
        let is_plain = |session: &EncodedSession| {
            session.expected_seq > 0
                && session.outbox.is_empty()
                && session.events.iter().all(|event| !derives(event.event.kind()))
        };
        self.request.is_some()
            || !self.node_events.is_empty()
            || self.session.as_ref().is_some_and(|session| !is_plain(session))
    }

    /// The bodies and pictures that must be files before the commit.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = (Hash, &[u8])> {
        let session_events = self.session.iter().flat_map(|session| &session.events);
        self.node_events.iter().chain(session_events).flat_map(|event| {
            let body = match &event.body {
                Body::Inline(_) => None,
                Body::Blob { hash, text } => Some((*hash, text.as_bytes())),
            };
            let picture = match &event.event {
                Event::ImageRecorded(shown) => shown.image.hash().zip(shown.image.data()),
                _ => None,
            };
            body.into_iter().chain(picture)
        })
    }

    /// They are files now: nobody who follows the log holds pictures in memory.
    pub(crate) fn forget_pictures(&mut self) {
        let session_events = self.session.iter_mut().flat_map(|session| &mut session.events);
        for event in self.node_events.iter_mut().chain(session_events) {
            if let Event::ImageRecorded(shown) = &mut event.event {
                shown.image.forget_data();
            }
        }
    }
}

impl EncodedSession {
    fn new(commit: SessionCommit) -> Self {
        Self {
            id: commit.id,
            expected_seq: commit.expected_seq,
            events: encode_events(commit.events),
            recorded: commit.recorded,
            row: EncodedRow::new(commit.view, commit.expected_seq == 0),
            tape: commit.tape,
            outbox: commit.outbox,
            outbox_done: commit.outbox_done,
            snapshot: commit.snapshot,
        }
    }
}

impl EncodedRow {
    pub(crate) fn new(view: Arc<View>, is_new: bool) -> Self {
        Self { fixed: is_new.then(|| Fixed::of(&view)), changing: Changing::of(&view), view }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.view.ended_at.is_some()
    }
}

impl EncodedEvent {
    pub(crate) fn new(time: Time, event: Event) -> Self {
        let text = event.body();
        let body = if text.len() > INLINE_BODY_BYTES {
            Body::Blob { hash: blob::hash(text.as_bytes()), text }
        } else {
            Body::Inline(text)
        };
        Self { time, event, body }
    }
}

fn encode_events(events: Vec<(Time, Event)>) -> Vec<EncodedEvent> {
    events.into_iter().map(|(time, event)| EncodedEvent::new(time, event)).collect()
}
