//! Loads a large record quickly, through the same code as commits: for imports, benchmarks and trials at size.

use std::sync::Arc;

use ostler_domain::{Event, Time, session::State};

use crate::{
    commit::{Commit, Encoded, SessionCommit, Urgency},
    error::{CommitError, Doing, Fault},
    store::Store,
    writer::Writer,
};

/// Events per transaction: enough that the cost of a commit no longer shows.
const EVENTS_AT_ONCE: usize = 100_000;

/// One thing to load.
#[derive(Debug)]
pub enum Bulk {
    Node(Time, Box<Event>),
    /// A whole life; the first event is the session's creation.
    Session(Vec<(Time, Event)>),
}

/// What was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BulkLoaded {
    pub sessions: u64,
    pub events: u64,
}

impl Store {
    /// Loads everything that the iterator gives, with the writer for itself. Durable when it answers, not before:
    /// on an error some of it may be there.
    pub async fn bulk(
        &self,
        items: impl Iterator<Item = Bulk> + Send + 'static,
    ) -> Result<BulkLoaded, CommitError> {
        let blobs = self.blobs().clone();
        let loaded = self.exclusively(move |writer| {
            writer.connection().pragma_update(None, "synchronous", "OFF").doing("prepare to load")?;
            let write_blobs = |encoded: &Encoded| {
                encoded
                    .blobs()
                    .try_for_each(|(hash, bytes)| blobs.write(&hash, bytes))
                    .doing("write a large event")
            };
            let loaded = load(writer, items, write_blobs);
            let connection = writer.connection();
            connection.pragma_update(None, "synchronous", "FULL").doing("finish loading")?;
            connection
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
                .doing("finish loading")?;
            writer.look_again()?;
            loaded
        });
        loaded.await.ok_or(CommitError::Closed)?
    }
}

fn load(
    writer: &mut Writer,
    items: impl Iterator<Item = Bulk>,
    write_blobs: impl Fn(&Encoded) -> Result<(), Fault>,
) -> Result<BulkLoaded, CommitError> {
    let mut done = BulkLoaded::default();
    let mut batch = Vec::new();
    let mut waiting = 0;
    for item in items {
        let commit = match item {
            Bulk::Node(at, event) => commit(vec![(at, *event)], None),
            Bulk::Session(events) => {
                done.sessions += 1;
                commit(Vec::new(), Some(life(events)?))
            }
        };
        let encoded = Encoded::new(commit);
        write_blobs(&encoded)?;
        waiting += encoded.event_count();
        done.events += encoded.event_count() as u64;
        batch.push(encoded);
        if waiting >= EVENTS_AT_ONCE {
            writer.load(std::mem::take(&mut batch))?;
            waiting = 0;
        }
    }
    writer.load(batch)?;
    Ok(done)
}

fn commit(node_events: Vec<(Time, Event)>, session: Option<SessionCommit>) -> Commit {
    Commit { urgency: Urgency::Tape, node_events, session, request: None }
}

fn life(events: Vec<(Time, Event)>) -> Result<SessionCommit, CommitError> {
    let state = State::replay(events.iter().map(|(at, event)| (*at, event)))
        .ok_or(CommitError::Inconsistent("a life does not begin with its creation"))?;
    let view = Arc::new(state.view());
    Ok(SessionCommit {
        id: view.id,
        expected_seq: 0,
        events,
        recorded: None,
        view,
        tape: None,
        outbox: Vec::new(),
        outbox_done: None,
        snapshot: None,
    })
}
