//! Deleting what was said in a session: its events lose their words, and what is derived from them too, in one transaction
//! with the event that says so. The files follow; see whoever calls this.

use ostler_domain::{
    Event, Reason, Refusal, Time, event::SessionDeleted, limits::INLINE_BODY_BYTES, retention::erased,
    text::head,
};
use rusqlite::{Connection, params};

use super::blobs::is_named;
use crate::{
    blob::Blobs,
    commit::{Commit, Encoded, Urgency},
    convert::signed,
    error::ReadError,
    log::{self, Stored},
    session::{self, Changing},
    store::Store,
};

/// Events that are held in memory at once.
const AT_ONCE: usize = 256;

impl Store {
    /// Deletes what was said in a session that has ended, for good.
    pub async fn delete_session(&self, at: Time, deleted: SessionDeleted) -> Result<(), Refusal> {
        let id = deleted.session;
        // Before the words are gone: whoever forgets a word must know it.
        self.forget_in_search(id).await?;
        let blobs = self.blobs().clone();
        let commit = Commit {
            urgency: Urgency::Control,
            node_events: vec![(at, Event::SessionDeleted(deleted))],
            session: None,
            request: None,
        };
        let done = self.exclusively(move |writer| {
            writer.commit_with(Encoded::new(commit), |connection| {
                let num = session::number(connection, id)?.ok_or_else(|| {
                    Refusal::new(Reason::SessionUnknown, format!("there is no session {id}"))
                })?;
                erase(connection, &blobs, num, at)
            })
        });
        done.await.ok_or_else(|| Refusal::from(ReadError::Closed))?
    }
}

fn erase(connection: &Connection, blobs: &Blobs, num: i64, at: Time) -> Result<(), Refusal> {
    let has_ended: bool = connection
        .query_row("SELECT ended IS NOT NULL FROM session WHERE num = ?1", [num], |row| row.get(0))
        .map_err(ReadError::from)?;
    if !has_ended {
        return Err(Refusal::internal("a session that has not ended was to be deleted"));
    }
    let mut from = 1;
    loop {
        let stored = some_events(connection, num, from)?;
        let Some(last) = stored.last() else { break };
        from = last.session_seq.unwrap_or(from) + 1;
        for stored in stored {
            erase_event(connection, blobs, &stored, at)?;
        }
    }
    rewrite_rows(connection, blobs, num)?;
    Ok(())
}

fn some_events(connection: &Connection, num: i64, from: u64) -> Result<Vec<Stored>, ReadError> {
    let mut found = Vec::new();
    log::for_each_of_session(connection, num, from, |stored| {
        found.push(stored);
        Ok(match found.len() {
            AT_ONCE => std::ops::ControlFlow::Break(()),
            _ => std::ops::ControlFlow::Continue(()),
        })
    })?;
    Ok(found)
}

/// Takes the words from one row of the log, and from what was derived from it.
fn erase_event(connection: &Connection, blobs: &Blobs, stored: &Stored, at: Time) -> Result<(), ReadError> {
    let event = erased(stored.event(blobs)?);
    let seq = signed(stored.seq);
    connection
        .prepare_cached("UPDATE log_event SET body = ?2, blob = NULL WHERE seq = ?1")?
        .execute(params![seq, event.body()])?;
    if let Some(hash) = &stored.blob
        && !is_named(connection, hash)?
    {
        connection
            .prepare_cached("INSERT OR IGNORE INTO node_garbage(blob, since) VALUES (?1, ?2)")?
            .execute(params![hash, at.micros()])?;
    }
    match event {
        Event::MessageAccepted(_) | Event::MessageEdited(_) => {
            connection
                .prepare_cached("UPDATE message SET head = '', bytes = 0 WHERE text_seq = ?1 AND id = ?2")?
                .execute(params![seq, message_id(&event)])?;
        }
        Event::ApprovalRequested(asked) => {
            let (input, asks) = (head(&asked.input, INLINE_BODY_BYTES), asked.asks());
            connection
                .prepare_cached("UPDATE approval SET input = ?2, asks = ?3, why = ?4 WHERE seq = ?1")?
                .execute(params![seq, input, asks, asked.why])?;
        }
        Event::ApprovalAnswered(answered) => {
            connection
                .prepare_cached("UPDATE approval SET message = NULL WHERE id = ?1")?
                .execute([answered.id.to_string()])?;
        }
        _ => {}
    }
    Ok(())
}

fn message_id(event: &Event) -> Option<String> {
    match event {
        Event::MessageAccepted(accepted) => Some(accepted.message.id.to_string()),
        Event::MessageEdited(edited) => Some(edited.id.to_string()),
        _ => None,
    }
}

/// The session's own rows, as its events say now.
fn rewrite_rows(connection: &Connection, blobs: &Blobs, num: i64) -> Result<(), ReadError> {
    connection.prepare_cached("UPDATE ticket_step SET note = '' WHERE session = ?1")?.execute([num])?;
    let Some(state) = session::fold(connection, blobs, num)? else {
        return Err(ReadError::Row { what: "log", text: format!("session number {num} has no beginning") });
    };
    let view = state.view();
    session::update_view(connection, num, &view)?;
    session::update_columns(connection, num, &Changing::of(&view))?;
    Ok(())
}
