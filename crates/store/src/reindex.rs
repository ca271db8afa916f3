//! Builds the derived tables anew from the log, in one transaction: readers see the old ones until the new
//! ones are whole.

use std::sync::Arc;

use ostler_domain::{Kind, Recorded, session::State};
use rusqlite::{Connection, TransactionBehavior, params};

use crate::{
    blob::Blobs,
    commit::EncodedRow,
    convert::parsed_if_any,
    derive::{Origin, derive, derives},
    error::{Doing, ReadError},
    log::{STORED, Stored},
    schema, session,
    session::Fixed,
    store::Store,
};

/// What was gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reindexed {
    pub sessions: u64,
    pub events: u64,
}

impl Store {
    /// Rebuilds everything derived. Commits wait meanwhile; nothing changes when it fails.
    pub async fn reindex(&self) -> Result<Reindexed, ReadError> {
        let blobs = self.blobs().clone();
        let rebuilt = self.exclusively(move |writer| {
            let rebuilt = rebuild(writer.connection(), &blobs)?;
            writer.look_again()?;
            Ok(rebuilt)
        });
        rebuilt.await.ok_or(ReadError::Closed)?
    }
}

pub(crate) fn rebuild(connection: &mut Connection, blobs: &Blobs) -> Result<Reindexed, ReadError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    schema::drop_derived(&transaction)?;
    schema::create_derived(&transaction)?;
    let mut done = Reindexed::default();
    fold_sessions(&transaction, blobs, &mut done)?;
    derive_rest(&transaction, blobs, &mut done)?;
    transaction.commit().doing("commit the rebuilt tables")?;
    Ok(done)
}

/// Folds each session's events into its row, in the order of their numbers: that is the order in which they
/// were created.
fn fold_sessions(connection: &Connection, blobs: &Blobs, done: &mut Reindexed) -> Result<(), ReadError> {
    let sql = format!(
        "SELECT {STORED}, e.session AS num FROM log_event e WHERE e.session IS NOT NULL ORDER BY e.session, e.session_seq"
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    let mut current: Option<(i64, State)> = None;
    while let Some(row) = rows.next()? {
        let num: i64 = row.get("num")?;
        let stored = Stored::read(row)?;
        let event = stored.event(blobs)?;
        done.events += 1;
        match (&mut current, event) {
            (Some((folding, state)), event) if *folding == num => state.apply(stored.time, &event),
            (_, ostler_domain::Event::SessionCreated(created)) => {
                let finished = current.replace((num, State::new(*created, stored.time)));
                write_row(connection, finished, done)?;
            }
            _ => {
                let text =
                    format!("session number {num} does not begin with its creation (event {})", stored.seq);
                return Err(ReadError::Row { what: "log", text });
            }
        }
    }
    write_row(connection, current, done)
}

fn write_row(
    connection: &Connection,
    folded: Option<(i64, State)>,
    done: &mut Reindexed,
) -> Result<(), ReadError> {
    if let Some((num, state)) = folded {
        let view = Arc::new(state.view());
        session::insert(connection, num, &Fixed::of(&view), &EncodedRow::new(view, false))?;
        done.sessions += 1;
    }
    Ok(())
}

/// Derives the other rows in the order of the log.
fn derive_rest(connection: &Connection, blobs: &Blobs, done: &mut Reindexed) -> Result<(), ReadError> {
    let kinds: Vec<String> =
        Kind::ALL.iter().filter(|kind| derives(**kind)).map(|kind| kind.code().to_string()).collect();
    let sql = format!(
        "SELECT {STORED}, e.session AS num, s.id AS session_id, s.campaign AS campaign, s.provider AS provider
         FROM log_event e LEFT JOIN session s ON s.num = e.session WHERE e.kind IN ({}) ORDER BY e.seq",
        kinds.join(",")
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query(params![])?;
    while let Some(row) = rows.next()? {
        let stored = Stored::read(row)?;
        let event = stored.event(blobs)?;
        let session = parsed_if_any(row, "session_id", "session id")?;
        let origin: Option<(i64, String, String)> = match row.get("num")? {
            Some(num) => Some((num, row.get("campaign")?, row.get("provider")?)),
            None => None,
        };
        let origin =
            origin.as_ref().map(|(num, campaign, provider)| Origin { num: *num, campaign, provider });
        let recorded =
            Recorded { seq: stored.seq, session, session_seq: stored.session_seq, time: stored.time, event };
        derive(connection, &recorded, origin.as_ref())?;
        done.events += u64::from(session.is_none());
    }
    Ok(())
}
