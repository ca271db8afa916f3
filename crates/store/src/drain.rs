//! `drain`: whether nothing new starts on this machine.

use ostler_domain::{
    Time,
    event::{By, Drained},
};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{error::ReadError, store::Store};

/// A drain in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drain {
    pub by: By,
    pub why: String,
    pub since: Time,
}

pub(crate) fn set(connection: &Connection, at: Time, drained: &Drained) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO drain(only, drained_by, why, since) VALUES (1, ?1, ?2, ?3)")?
        .execute(params![drained.by.0, drained.why, at.micros()])?;
    Ok(())
}

pub(crate) fn end(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM drain")?.execute([])?;
    Ok(())
}

impl Store {
    /// The drain in force, if any.
    pub async fn drain(&self) -> Result<Option<Drain>, ReadError> {
        self.read(|reader| {
            let mut statement =
                reader.connection.prepare_cached("SELECT drained_by, why, since FROM drain")?;
            let read = |row: &rusqlite::Row<'_>| {
                Ok(Drain { by: By(row.get(0)?), why: row.get(1)?, since: Time::from_micros(row.get(2)?) })
            };
            Ok(statement.query_row([], read).optional()?)
        })
        .await
    }
}
