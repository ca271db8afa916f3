//! `restart_refused`: what keeps sessions that have ended from going on by themselves, until somebody goes on with them or
//! leaves them.

use ostler_domain::{
    SessionId, Time,
    event::RestartRefused,
    session::{RestartRefusal, Status, View},
};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{convert::parsed, error::ReadError, store::Store};

pub(crate) fn add(connection: &Connection, at: Time, refused: &RestartRefused) -> rusqlite::Result<()> {
    let RestartRefused { session, reason, why, cures } = refused.clone();
    let refusal = RestartRefusal { since: at, reason, why, cures };
    // Plain structs with string keys: serializing them cannot fail.
    let refusal = serde_json::to_string(&refusal).unwrap_or_default();
    connection
        .prepare_cached(
            "INSERT INTO restart_refused(session, refusal) VALUES (?1, ?2)
             ON CONFLICT DO UPDATE SET refusal = excluded.refusal WHERE refusal IS NOT NULL",
        )?
        .execute(params![session.to_string(), refusal])?;
    Ok(())
}

/// A session that is continued waits for nothing any more.
pub(crate) fn gone_on(connection: &Connection, continued: Option<SessionId>) -> rusqlite::Result<()> {
    let Some(id) = continued else { return Ok(()) };
    connection.prepare_cached("DELETE FROM restart_refused WHERE session = ?1")?.execute([id.to_string()])?;
    Ok(())
}

/// They are to stay as they are, and nothing goes on with them by itself.
pub(crate) fn leave(connection: &Connection, sessions: &[SessionId]) -> rusqlite::Result<()> {
    let mut statement = connection
        .prepare_cached("INSERT OR REPLACE INTO restart_refused(session, refusal) VALUES (?1, NULL)")?;
    for id in sessions {
        statement.execute([id.to_string()])?;
    }
    Ok(())
}

/// Of a row of `session`, by the name that a query gives it: it is to go on in another one by itself, and no person wants it
/// otherwise.
pub(crate) fn to_go_on(row: &str) -> String {
    format!(
        "({row}.restart_due IS NOT NULL AND NOT EXISTS \
          (SELECT 1 FROM restart_refused given WHERE given.session = {row}.id AND given.refusal IS NULL))"
    )
}

/// A session's row with what became of it after its end, which its own events do not say.
pub(crate) fn with_what_follows(connection: &Connection, view: View) -> Result<View, ReadError> {
    let is_asked = view.ended_at.is_some() && (view.restart.is_some() || view.status == Status::Failed);
    if !is_asked {
        return Ok(view);
    }
    let continued_by = connection
        .prepare_cached("SELECT id FROM session WHERE continues = ?1 ORDER BY num DESC LIMIT 1")?
        .query_and_then([view.id.to_string()], |row| parsed(row, "id", "session id"))?
        .next()
        .transpose()?;
    let refusal: Option<Option<String>> = connection
        .prepare_cached("SELECT refusal FROM restart_refused WHERE session = ?1")?
        .query_row([view.id.to_string()], |row| row.get(0))
        .optional()?;
    let refusal = refusal.flatten().filter(|_| continued_by.is_none());
    let read = |text: String| {
        let what = "refused restart";
        serde_json::from_str(&text).map_err(|error| ReadError::Row { what, text: error.to_string() })
    };
    Ok(View { continued_by, restart_refused: refusal.map(read).transpose()?, ..view })
}

impl Store {
    /// Whether a session is still to go on in another one by itself.
    pub async fn is_to_go_on(&self, id: SessionId) -> Result<bool, ReadError> {
        self.read(move |reader| {
            let mut statement = reader.connection.prepare_cached(&format!(
                "SELECT EXISTS (SELECT 1 FROM session WHERE id = ?1 AND {})",
                to_go_on("session")
            ))?;
            Ok(statement.query_row([id.to_string()], |row| row.get(0))?)
        })
        .await
    }
}
