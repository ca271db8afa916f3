//! `history`, `history_call`: how far other programs' stores have been read, and which model calls they told of.

use std::collections::HashSet;

use ostler_domain::{
    SessionId,
    event::{UsageRecorded, UsageSource},
    history::{HistoryRead, Mark, Source},
    session::View,
};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{
    convert::{signed, unsigned},
    derive::Origin,
    error::ReadError,
    session,
    store::Store,
};

/// What is known of a dialogue in another program's store.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownHistory {
    pub file: String,
    pub mark: Mark,
    /// What must be remembered to go on.
    pub memory: String,
    /// The last session made of it.
    pub session: View,
}

pub(crate) fn read(connection: &Connection, read: &HistoryRead, session: i64) -> rusqlite::Result<()> {
    // Plain structs with string keys: serializing them cannot fail.
    let prints = serde_json::to_string(&read.prints).unwrap_or_default();
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO history(source, dialogue, session, file, bytes, prints, memory)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            read.source.as_str(),
            read.dialogue,
            session,
            read.file,
            signed(read.to),
            prints,
            read.memory
        ])?;
    Ok(())
}

pub(crate) fn call(
    connection: &Connection,
    recorded: &UsageRecorded,
    origin: &Origin<'_>,
) -> rusqlite::Result<()> {
    let Some(call) = recorded.call.as_ref().filter(|_| recorded.source == UsageSource::History) else {
        return Ok(());
    };
    connection
        .prepare_cached("INSERT OR IGNORE INTO history_call(provider, call) VALUES (?1, ?2)")?
        .execute([origin.provider, call])?;
    Ok(())
}

impl Store {
    /// How far a dialogue of another program's store has been read.
    pub async fn known_history(
        &self,
        source: Source,
        dialogue: &str,
    ) -> Result<Option<KnownHistory>, ReadError> {
        let dialogue = dialogue.to_owned();
        self.read(move |reader| {
            let mut statement = reader.connection.prepare_cached(
                "SELECT session, file, bytes, prints, memory FROM history WHERE source = ?1 AND dialogue = ?2",
            )?;
            let found = statement
                .query_row(params![source.as_str(), dialogue], |row| {
                    Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?, row.get::<_, String>(3)?, row.get(4)?))
                })
                .optional()?;
            let Some((num, file, bytes, prints, memory)) = found else { return Ok(None) };
            let prints = serde_json::from_str(&prints)
                .map_err(|error| ReadError::Row { what: "history row", text: error.to_string() })?;
            let mark = Mark { to: unsigned(bytes), prints };
            Ok(Some(KnownHistory { file, mark, memory, session: session::view(reader, num)? }))
        })
        .await
    }

    /// Those of these model calls of a provider that stores have told of already.
    pub async fn known_calls(
        &self,
        provider: &'static str,
        calls: Vec<String>,
    ) -> Result<HashSet<String>, ReadError> {
        self.read(move |reader| {
            let mut statement = reader.connection.prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM history_call WHERE provider = ?1 AND call = ?2)",
            )?;
            let mut known = HashSet::new();
            for call in calls {
                if statement.query_row(params![provider, call], |row| row.get(0))? {
                    known.insert(call);
                }
            }
            Ok(known)
        })
        .await
    }

    /// Imported sessions that nobody has ended: whoever followed them is gone.
    pub async fn unended_history(&self) -> Result<Vec<SessionId>, ReadError> {
        self.read(|reader| {
            let mut statement = reader
                .connection
                .prepare_cached("SELECT id FROM session WHERE ended IS NULL AND imported ORDER BY num")?;
            statement.query_and_then([], |row| crate::convert::parsed(row, "id", "session id"))?.collect()
        })
        .await
    }
}
