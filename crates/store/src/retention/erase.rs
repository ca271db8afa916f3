//! Deleting what was said in a session, after the event that says so: its events lose their words, and what is derived from
//! them too, some at a time, so that nobody waits long. Doing it again does nothing. The files follow; see whoever calls this.

use std::ops::ControlFlow;

use ostler_domain::{Event, SessionId, Time, limits::INLINE_BODY_BYTES, retention::erased, text::head};
use rusqlite::{Connection, params};

use super::blobs::is_named;
use crate::{
    blob::Blobs,
    convert::signed,
    error::ReadError,
    image,
    log::{self, STORED, Stored},
    mirrored,
    session::{self, Changing},
    store::Store,
};

/// Events that lose their words in one transaction.
const AT_ONCE: usize = 500;

impl Store {
    /// Takes the words from some events of a session that has ended, from a place in its own sequence on. The place to go
    /// on from; none when all is done.
    pub async fn erase(&self, id: SessionId, from: u64, at: Time) -> Result<Option<u64>, ReadError> {
        // Before the words are gone: whoever forgets a word must know it.
        self.forget_in_search(id, from, AT_ONCE).await?;
        let blobs = self.blobs().clone();
        let erased = self.exclusively(move |writer| {
            let transaction = writer.connection().unchecked_transaction()?;
            let next = erase(&transaction, &blobs, id, from, at)?;
            transaction.commit()?;
            Ok(next)
        });
        erased.await.ok_or(ReadError::Closed)?
    }
}

fn erase(
    connection: &Connection,
    blobs: &Blobs,
    id: SessionId,
    from: u64,
    at: Time,
) -> Result<Option<u64>, ReadError> {
    let Some(num) = session::number(connection, id)? else { return Ok(None) };
    let has_ended: bool = connection
        .prepare_cached("SELECT ended IS NOT NULL FROM session WHERE num = ?1")?
        .query_row([num], |row| row.get(0))?;
    if !has_ended {
        return Err(ReadError::Row { what: "deletion", text: format!("session {id} has not ended") });
    }
    let stored = some_events(connection, num, from)?;
    for stored in &stored {
        erase_event(connection, blobs, stored, at)?;
    }
    match stored.last().and_then(|last| last.session_seq) {
        Some(last) if stored.len() == AT_ONCE => Ok(Some(last + 1)),
        _ => {
            let beside = mirrored::of_session(connection, id)?.into_iter().chain(unheard(connection, num)?);
            for stored in beside {
                erase_event(connection, blobs, &stored, at)?;
            }
            rewrite_rows(connection, blobs, num)?;
            Ok(None)
        }
    }
}

/// What was said to it after its end, and is in nobody's log.
fn unheard(connection: &Connection, num: i64) -> Result<Vec<Stored>, ReadError> {
    let sql = format!(
        "SELECT {STORED} FROM message m JOIN log_event e ON e.seq = m.text_seq
         WHERE m.session = ?1 AND e.session IS NULL AND m.bytes > 0"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement.query_map([num], Stored::read)?.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(found)
}

fn some_events(connection: &Connection, num: i64, from: u64) -> Result<Vec<Stored>, ReadError> {
    let mut found = Vec::new();
    log::for_each_of_session(connection, num, from, |stored| {
        found.push(stored);
        Ok(if found.len() == AT_ONCE { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(found)
}

/// Takes the words from one row of the log, and from what was derived from it.
fn erase_event(connection: &Connection, blobs: &Blobs, stored: &Stored, at: Time) -> Result<(), ReadError> {
    let event = stored.event(blobs).map(erased);
    // One that cannot be read is no more readable without its words, and they are gone.
    let body = event.as_ref().map_or_else(|_| "{}".to_owned(), Event::body);
    let seq = signed(stored.seq);
    connection
        .prepare_cached("UPDATE log_event SET body = ?2, blob = NULL WHERE seq = ?1")?
        .execute(params![seq, body])?;
    for hash in stored.blob.iter().chain(&image::forget(connection, seq)?) {
        if !is_named(connection, hash)? {
            connection
                .prepare_cached("INSERT OR IGNORE INTO node_garbage(blob, since) VALUES (?1, ?2)")?
                .execute(params![hash, at.micros()])?;
        }
    }
    match event {
        Ok(Event::MessageAccepted(accepted)) => {
            erase_message(connection, seq, &accepted.message.id.to_string())?;
        }
        Ok(Event::MessageUnheard(unheard)) => {
            erase_message(connection, seq, &unheard.message.id.to_string())?;
        }
        Ok(Event::MessageEdited(edited)) => erase_message(connection, seq, &edited.id.to_string())?,
        Ok(Event::ApprovalRequested(asked)) => {
            let (input, asks) = (head(&asked.input, INLINE_BODY_BYTES), asked.asks());
            connection
                .prepare_cached("UPDATE approval SET input = ?2, asks = ?3, why = ?4 WHERE seq = ?1")?
                .execute(params![seq, input, asks, asked.why])?;
        }
        Ok(Event::ApprovalAnswered(answered)) => {
            connection
                .prepare_cached("UPDATE approval SET message = NULL WHERE id = ?1")?
                .execute([answered.id.to_string()])?;
        }
        _ => {}
    }
    Ok(())
}

fn erase_message(connection: &Connection, text_seq: i64, id: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE message SET head = '', bytes = 0 WHERE text_seq = ?1 AND id = ?2")?
        .execute(params![text_seq, id])?;
    Ok(())
}

/// The session's own rows, as its events say now.
fn rewrite_rows(connection: &Connection, blobs: &Blobs, num: i64) -> Result<(), ReadError> {
    connection.prepare_cached("UPDATE ticket_step SET note = '' WHERE session = ?1")?.execute([num])?;
    match session::fold(connection, blobs, num) {
        Ok(Some(state)) => {
            let view = state.view();
            session::update_view(connection, num, &view)?;
            session::update_columns(connection, num, &Changing::of(&view))?;
        }
        // Its events cannot be folded; what its row shows of them goes all the same.
        _ => {
            let mut view = session::row(connection, num)?;
            view.last_completion = None;
            if let Some(obituary) = &mut view.obituary {
                obituary.last = None;
            }
            session::update_view(connection, num, &view)?;
        }
    }
    Ok(())
}
