//! Writes one commit inside a transaction. What can be refused is refused before anything is written, so that
//! undoing is rare.

use std::{ops::Range, sync::Arc};

use ostler_domain::{Event, Kind, Recorded, SessionId, Time, session::View};
use rusqlite::{ErrorCode, OptionalExtension};

use super::{Draft, SESSIONS_KNOWN, Writer};
use crate::{
    commit::{Encoded, EncodedEvent, EncodedRow, EncodedSession, TapeMark},
    derive::{Origin, derive},
    error::{CommitError, Doing, Fault},
    log::{self, Appender},
    node,
    published::Published,
    session::{self, Changing},
};

/// What the writer remembers of a session between commits.
pub(super) struct Known {
    num: i64,
    session_seq: u64,
    campaign: String,
    provider: String,
    /// The columns as last written; unknown after a restart.
    columns: Option<Changing>,
    /// The event up to which the row shows the session, likewise.
    shown_seq: u64,
}

/// A session's row as it is to be at the end of the transaction.
pub(super) struct PendingRow {
    row: EncodedRow,
    tape: Option<TapeMark>,
}

/// What a session shows once the transaction is durable, and whether its row says so too.
pub(super) struct Look {
    pub(super) num: i64,
    pub(super) view: Arc<View>,
    pub(super) is_written: bool,
}

impl Writer {
    /// Writes everything of a commit but the session's row, which waits in the draft.
    pub(super) fn apply(&mut self, encoded: Encoded, draft: &mut Draft) -> Result<Range<u64>, CommitError> {
        if let Some(request) = &encoded.request {
            if let Some(done) = node::request(&self.connection, request.id).doing("look for a request")? {
                return Err(CommitError::RequestDone { fingerprint: done.fingerprint, reply: done.reply });
            }
            node::remember(&self.connection, request).doing("remember a request")?;
        }
        let first = self.counters.seq + 1;
        if encoded.node_events.iter().any(|event| event.event.kind() == Kind::SessionCreated) {
            return Err(CommitError::Inconsistent("a session is created outside of it"));
        }
        self.record(encoded.node_events, None, None, draft)?;
        if let Some(session) = encoded.session {
            self.apply_session(session, draft)?;
        }
        Ok(first..self.counters.seq + 1)
    }

    fn apply_session(&mut self, session: EncodedSession, draft: &mut Draft) -> Result<(), CommitError> {
        let EncodedSession { id, expected_seq, events, recorded, row, tape, outbox, outbox_done, snapshot } =
            session;
        if row.view.session_seq != expected_seq + events.len() as u64 {
            return Err(CommitError::Inconsistent("the row does not show the events"));
        }
        let is_new = expected_seq == 0;
        let created_at = events.iter().position(|event| event.event.kind() == Kind::SessionCreated);
        if created_at != is_new.then_some(0) {
            return Err(CommitError::Inconsistent("a session is created by its first event and by no other"));
        }
        let known = match (self.known(id)?, expected_seq) {
            (Some(known), _) if known.session_seq != expected_seq => {
                return Err(CommitError::Conflict {
                    session: id,
                    expected: expected_seq,
                    found: known.session_seq,
                });
            }
            (Some(known), _) => known,
            (None, 0) => self.create_session(id, &events, &row)?,
            (None, _) => return Err(CommitError::SessionUnknown(id)),
        };
        let num = known.num;
        if !outbox.is_empty()
            && !node::put_into_outbox(&self.connection, num, &outbox).doing("write to an outbox")?
        {
            return Err(CommitError::Inconsistent("an input's number was used before"));
        }
        if let Some(state) = &snapshot {
            node::set_snapshot(&self.connection, num, state).doing("keep a session's state")?;
        }
        if let Some(up_to) = outbox_done {
            node::clear_outbox(&self.connection, num, up_to).doing("clear an outbox")?;
        }
        let count = events.len() as u64;
        self.record(events, recorded, Some((id, &known)), draft)?;
        self.remember(id, Known { session_seq: known.session_seq + count, ..known });
        if is_new && tape.is_none() && !row.has_ended() {
            // Its row was just written and says all there is to say.
            return Ok(());
        }
        let earlier = draft.rows.remove(&id);
        let tape = tape.or_else(|| earlier.and_then(|earlier| earlier.tape));
        draft.rows.insert(id, PendingRow { row, tape });
        Ok(())
    }

    fn create_session(
        &mut self,
        id: SessionId,
        events: &[EncodedEvent],
        row: &EncodedRow,
    ) -> Result<Known, CommitError> {
        let names_itself = matches!(events.first().map(|first| &first.event), Some(Event::SessionCreated(created)) if created.id == id);
        let Some(fixed) = row.fixed.as_ref().filter(|_| names_itself) else {
            return Err(CommitError::Inconsistent("a session is created under another id"));
        };
        self.counters.session += 1;
        let num = self.counters.session;
        session::insert(&self.connection, num, fixed, row).map_err(not_created)?;
        node::add_session(&self.connection, num).doing("create a session")?;
        Ok(Known {
            num,
            session_seq: 0,
            campaign: fixed.campaign().to_owned(),
            provider: fixed.provider().to_owned(),
            columns: Some(row.changing.clone()),
            shown_seq: row.view.session_seq,
        })
    }

    /// Appends events to the log and derives rows from them.
    fn record(
        &mut self,
        events: Vec<EncodedEvent>,
        recorded: Option<Time>,
        session: Option<(SessionId, &Known)>,
        draft: &mut Draft,
    ) -> Result<(), CommitError> {
        if events.is_empty() {
            return Ok(());
        }
        let origin = session.map(|(_, known)| Origin {
            num: known.num,
            campaign: &known.campaign,
            provider: &known.provider,
        });
        let mut session_seq = session.map(|(_, known)| known.session_seq);
        let mut log = Appender::new(&self.connection).doing("append to the log")?;
        for EncodedEvent { time, event, body } in events {
            self.counters.seq += 1;
            session_seq = session_seq.map(|seq| seq + 1);
            let place = session.map(|(_, known)| known.num).zip(session_seq);
            log.append(self.counters.seq, place, (time, recorded), event.kind(), &body)
                .doing("append to the log")?;
            let recorded = Recorded {
                seq: self.counters.seq,
                session: session.map(|(id, _)| id),
                session_seq,
                time,
                event,
            };
            derive(&self.connection, &recorded, origin.as_ref())
                .map_err(|error| refused(&recorded, error))?;
            draft.recorded.push(Arc::new(Published::new(recorded)));
        }
        Ok(())
    }

    /// What is known of a session, from memory or from the database.
    fn known(&mut self, id: SessionId) -> Result<Option<Known>, Fault> {
        if let Some(known) = self.known.remove(&id) {
            return Ok(Some(known));
        }
        let look_up = || -> rusqlite::Result<Option<Known>> {
            let found = self
                .connection
                .prepare_cached("SELECT num, campaign, provider FROM session WHERE id = ?1")?
                .query_row([id.to_string()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .optional()?;
            let Some((num, campaign, provider)) = found else { return Ok(None) };
            let session_seq = log::last_session_seq(&self.connection, num)?;
            Ok(Some(Known { num, session_seq, campaign, provider, columns: None, shown_seq: 0 }))
        };
        look_up().doing("look for a session")
    }

    fn remember(&mut self, id: SessionId, known: Known) {
        // Ended sessions are never asked for again; forgetting all now and then is simpler than counting uses.
        if self.known.len() >= SESSIONS_KNOWN {
            self.known.clear();
        }
        self.known.insert(id, known);
    }

    /// Brings the rows of all sessions of the transaction up to date, each once. What they show is written only when
    /// it moves them to another list.
    pub(super) fn write_rows(
        &mut self,
        rows: std::collections::HashMap<SessionId, PendingRow>,
    ) -> Result<Vec<Look>, Fault> {
        let mut looks = Vec::with_capacity(rows.len());
        for (id, PendingRow { row, tape }) in rows {
            let Some(mut known) = self.known(id)? else { continue };
            let connection = &self.connection;
            let moves = known.columns.as_ref() != Some(&row.changing);
            let write = || -> rusqlite::Result<()> {
                if moves {
                    session::update_view(connection, known.num, &row.view)?;
                    session::update_columns(connection, known.num, &row.changing)?;
                }
                if let Some(mark) = &tape {
                    node::set_mark(connection, known.num, mark)?;
                }
                if row.has_ended() {
                    node::retire_session(connection, known.num)?;
                }
                Ok(())
            };
            write().doing("update a session's row")?;
            if moves {
                known.shown_seq = row.view.session_seq;
            }
            let is_written = known.shown_seq == row.view.session_seq;
            looks.push(Look { num: known.num, view: row.view, is_written });
            known.columns = Some(row.changing);
            self.remember(id, known);
        }
        Ok(looks)
    }

    /// Writes what sessions have shown since their rows were last written.
    pub(super) fn write_looks(&mut self) -> Result<(), Fault> {
        let unwritten = self.shown.unwritten();
        if unwritten.is_empty() {
            return Ok(());
        }
        let written = self.transaction(|writer| {
            unwritten
                .iter()
                .try_for_each(|(num, view)| session::update_view(&writer.connection, *num, view))
                .doing("update sessions' rows")
        });
        for (num, view) in written.map(|()| unwritten)? {
            self.shown.show(num, view, true);
        }
        Ok(())
    }
}

/// Tells a conversation that is at work from a failure: nobody ever writes to one twice at a time.
fn not_created(error: rusqlite::Error) -> CommitError {
    let is_taken = error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation);
    if is_taken && error.to_string().contains("session.conversation") {
        return CommitError::Taken { what: "the conversation: a session of it has not ended" };
    }
    CommitError::Fault(Fault::sqlite("create a session", error))
}

/// Tells a name that is in use from a failure.
fn refused(recorded: &Recorded, error: rusqlite::Error) -> CommitError {
    let is_taken = error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation);
    match &recorded.event {
        Event::CampaignAdded(_) if is_taken => {
            CommitError::Taken { what: "the campaign's name or directory" }
        }
        Event::AgentAdded(_) if is_taken => CommitError::Taken { what: "the agent's name" },
        Event::ConversationOpened(_) | Event::ConversationReopened(_) if is_taken => {
            CommitError::Taken { what: "the conversation's key" }
        }
        Event::TicketAdded(_) | Event::TicketLinked(_) if is_taken => {
            CommitError::Taken { what: "the ticket's reference" }
        }
        Event::TicketMoved(_) if matches!(error, rusqlite::Error::StatementChangedRows(0)) => {
            CommitError::Taken { what: "the ticket: it was changed meanwhile" }
        }
        _ => CommitError::Fault(Fault::sqlite("derive rows from an event", error)),
    }
}
