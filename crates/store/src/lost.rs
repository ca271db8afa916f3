//! `lost`: sessions that were lost with the machine, while nobody has said what becomes of them.

use ostler_domain::{SessionId, Time, Usage, session::View};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{convert::unsigned, error::ReadError, session, store::Store};

/// A session that was lost, and the last call of its model.
#[derive(Debug, Clone, PartialEq)]
pub struct Lost {
    pub session: View,
    pub restarted: Time,
    pub last_call: Option<LastCall>,
}

/// What a session's last model call took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastCall {
    pub usage: Usage,
    /// A subscription covered it.
    pub is_on_plan: bool,
}

pub(crate) fn add(connection: &Connection, num: i64, restarted: Option<Time>) -> rusqlite::Result<()> {
    let Some(restarted) = restarted else { return Ok(()) };
    connection
        .prepare_cached("INSERT OR REPLACE INTO lost(num, restarted) VALUES (?1, ?2)")?
        .execute(params![num, restarted.micros()])?;
    Ok(())
}

/// A session that is continued is not lost any more.
pub(crate) fn gone_on(connection: &Connection, continued: Option<SessionId>) -> rusqlite::Result<()> {
    continued.map_or(Ok(()), |id| leave(connection, &[id]))
}

pub(crate) fn leave(connection: &Connection, sessions: &[SessionId]) -> rusqlite::Result<()> {
    let mut statement =
        connection.prepare_cached("DELETE FROM lost WHERE num = (SELECT num FROM session WHERE id = ?1)")?;
    for id in sessions {
        statement.execute([id.to_string()])?;
    }
    Ok(())
}

impl Store {
    /// The sessions that were lost with the machine and are not answered for, the oldest first.
    pub async fn lost(&self) -> Result<Vec<Lost>, ReadError> {
        self.read(|reader| {
            let mut statement =
                reader.connection.prepare_cached("SELECT num, restarted FROM lost ORDER BY num")?;
            let rows = statement
                .query_map([], |row| Ok((row.get(0)?, Time::from_micros(row.get(1)?))))?
                .collect::<rusqlite::Result<Vec<(i64, Time)>>>()?;
            let lost = |(num, restarted)| {
                let session = session::view(reader, num)?;
                Ok(Lost { session, restarted, last_call: last_call(&reader.connection, num)? })
            };
            rows.into_iter().map(lost).collect()
        })
        .await
    }
}

/// Of the session's own model: an agent calls smaller ones for trifles, which say nothing of what it has in mind.
fn last_call(connection: &Connection, num: i64) -> Result<Option<LastCall>, ReadError> {
    let mut statement = connection.prepare_cached(
        "SELECT u.input, u.cache_read, u.cache_write, u.output, u.reasoning, u.plan
         FROM usage u JOIN session s ON s.num = u.session
         WHERE u.session = ?1 AND coalesce(u.model, s.model, '') = coalesce(s.model, u.model, '')
         ORDER BY u.seq DESC LIMIT 1",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        Ok(LastCall {
            usage: Usage {
                input: unsigned(row.get(0)?),
                cache_read: unsigned(row.get(1)?),
                cache_write: unsigned(row.get(2)?),
                output: unsigned(row.get(3)?),
                reasoning: unsigned(row.get(4)?),
            },
            is_on_plan: row.get(5)?,
        })
    };
    Ok(statement.query_row([num], read).optional()?)
}
