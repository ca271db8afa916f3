//! Sessions brought back to life from their events.

use std::ops::ControlFlow;

use ostler_domain::{Event, SessionId, session::State};
use rusqlite::Connection;

use super::number;
use crate::{
    blob::Blobs,
    commit::{OutboxRow, TapeMark},
    error::ReadError,
    log, node,
    store::Store,
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
    /// Loads a session by folding its events.
    pub async fn load_session(&self, id: SessionId) -> Result<Option<LoadedSession>, ReadError> {
        self.read(move |reader| {
            let connection = &reader.connection;
            let Some(num) = number(connection, id)? else { return Ok(None) };
            let Some(state) = fold(connection, &reader.blobs, num)? else { return Ok(None) };
            let (mark, last_input_no) = node::mark(connection, num)?;
            let outbox = node::outbox(connection, num)?;
            Ok(Some(LoadedSession { state, mark, outbox, last_input_no, number: num.cast_unsigned() }))
        })
        .await
    }
}

/// Folds the events of a session. `None` when they do not begin with its creation.
pub(crate) fn fold(connection: &Connection, blobs: &Blobs, num: i64) -> Result<Option<State>, ReadError> {
    let mut state: Option<State> = None;
    log::for_each_of_session(connection, num, 1, |stored| {
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
