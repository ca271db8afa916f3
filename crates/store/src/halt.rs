//! `halt`: whether all agents are halted.

use ostler_domain::{
    Time,
    event::{By, Halted},
};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{error::ReadError, store::Store};

/// A halt in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Halt {
    /// Agents stand still instead of being killed.
    pub freeze: bool,
    pub by: By,
    pub why: String,
    pub since: Time,
}

pub(crate) fn set(connection: &Connection, at: Time, halted: &Halted) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO halt(only, freeze, halted_by, why, since) VALUES (1, ?1, ?2, ?3, ?4)",
        )?
        .execute(params![halted.freeze, halted.by.0, halted.why, at.micros()])?;
    Ok(())
}

pub(crate) fn release(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM halt")?.execute([])?;
    Ok(())
}

impl Store {
    /// The halt in force, if any.
    pub async fn halt(&self) -> Result<Option<Halt>, ReadError> {
        self.read(|reader| {
            let mut statement =
                reader.connection.prepare_cached("SELECT freeze, halted_by, why, since FROM halt")?;
            let read = |row: &rusqlite::Row<'_>| {
                Ok(Halt {
                    freeze: row.get(0)?,
                    by: By(row.get(1)?),
                    why: row.get(2)?,
                    since: Time::from_micros(row.get(3)?),
                })
            };
            Ok(statement.query_row([], read).optional()?)
        })
        .await
    }
}
