//! Sessions brought back to life from their events.

use std::{ops::ControlFlow, sync::Arc};

use ostler_domain::{Event, SessionId, session::State};
use rusqlite::Connection;

use super::{number, row};
use crate::{
    blob::Blobs,
    commit::{OutboxRow, TapeMark},
    error::ReadError,
    log, node,
    store::{Reader, Store},
};

/// Everything that an owner needs to go on with a session.
#[derive(Debug)]
pub struct LoadedSession {
    /// All its events, folded.
    pub state: State,
    /// Absent before the first commit from its tape.
    pub mark: Option<TapeMark>,
    /// What the tape may not have yet, in order.
    pub outbox: Vec<OutboxRow>,
    /// The highest number an input was ever given.
    pub last_input_no: u64,
    /// The session's number on this node.
    pub number: u64,
}

impl Store {
    /// Loads a session by folding its events, from its last snapshot on where it has one.
    pub async fn load_session(&self, id: SessionId) -> Result<Option<LoadedSession>, ReadError> {
        self.read(move |reader| {
            let connection = &reader.connection;
            let Some(num) = number(connection, id)? else { return Ok(None) };
            let kept = node::snapshot(connection, num)?.and_then(|text| State::from_snapshot(&text));
            let Some(state) = go_on(connection, &reader.blobs, num, kept, u64::MAX)? else { return Ok(None) };
            let (mark, last_input_no) = node::mark(connection, num)?;
            let outbox = node::outbox(connection, num)?;
            show_what_a_crash_left_unwritten(reader, num, &state)?;
            Ok(Some(LoadedSession { state, mark, outbox, last_input_no, number: num.cast_unsigned() }))
        })
        .await
    }
}

fn show_what_a_crash_left_unwritten(reader: &Reader, num: i64, state: &State) -> Result<(), ReadError> {
    if row(&reader.connection, num)?.session_seq < state.session_seq() {
        reader.shown.show(num, Arc::new(state.view()), false);
    }
    Ok(())
}

/// Folds all events of a session. `None` when they do not begin with its creation.
pub(crate) fn fold(connection: &Connection, blobs: &Blobs, num: i64) -> Result<Option<State>, ReadError> {
    go_on(connection, blobs, num, None, u64::MAX)
}

/// Folds the events of a session up to one of them.
pub(crate) fn fold_to(
    connection: &Connection,
    blobs: &Blobs,
    num: i64,
    last: u64,
) -> Result<Option<State>, ReadError> {
    go_on(connection, blobs, num, None, last)
}

/// Folds the events that come after a state, or all of them, up to a last one.
fn go_on(
    connection: &Connection,
    blobs: &Blobs,
    num: i64,
    mut state: Option<State>,
    last: u64,
) -> Result<Option<State>, ReadError> {
    let next = state.as_ref().map_or(1, |state| state.session_seq() + 1);
    log::for_each_of_session(connection, num, next, |stored| {
        if stored.session_seq > Some(last) {
            return Ok(ControlFlow::Break(()));
        }
        match (&mut state, stored.event(blobs)?) {
            (Some(state), event) => state.apply(stored.time, &event),
            (state @ None, Event::SessionCreated(created)) => {
                *state = Some(State::new(*created, stored.time))
            }
            (None, _) => return Ok(ControlFlow::Break(())),
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(state)
}
