//! The schema and its versions. A database is brought up to date in one transaction; a newer one is refused.

use std::cmp::Ordering;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::error::{Doing, Fault};

/// The version this program writes.
pub const VERSION: u32 = 1;
/// Tells our files from other SQLite databases: "OSTL".
pub(crate) const APPLICATION_ID: i32 = 0x4f53_544c;

const LOG: &str = include_str!("schema/log.sql");
const NODE: &str = include_str!("schema/node.sql");
const DERIVED: &str = include_str!("schema/derived.sql");

/// The tables that [`create_derived`] makes.
pub(crate) const DERIVED_TABLES: &[&str] = &[
    "campaign",
    "agent",
    "conversation",
    "ticket",
    "ticket_dependency",
    "ticket_output",
    "ticket_checkpoint",
    "ticket_step",
    "mission",
    "mission_event",
    "assignment",
    "session",
    "session_view",
    "message",
    "approval",
    "usage",
    "history",
    "history_call",
    "snapshot",
    "seen_commit",
    "seen_head",
    "worktree",
    "lost",
    "restart_refused",
    "drain",
    "halt",
    "retention",
    "image",
    "mirrored",
];

/// Each brings a database from the version that is its place, counted from 1, to the next.
const MIGRATIONS: &[fn(&Transaction<'_>) -> rusqlite::Result<()>] = &[];

/// What a file turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Current,
    Older(u32),
    Newer(u32),
    /// A SQLite database, but not one of ours.
    Foreign,
}

pub(crate) fn inspect(connection: &Connection) -> rusqlite::Result<Found> {
    let application: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if application != APPLICATION_ID || version == 0 {
        return Ok(Found::Foreign);
    }
    Ok(match version.cmp(&VERSION) {
        Ordering::Less => Found::Older(version),
        Ordering::Equal => Found::Current,
        Ordering::Greater => Found::Newer(version),
    })
}

/// Fills an empty database.
pub(crate) fn create(connection: &mut Connection) -> Result<(), Fault> {
    let make = |connection: &mut Connection| {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(LOG)?;
        transaction.execute_batch(NODE)?;
        transaction.execute_batch(DERIVED)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.commit()
    };
    make(connection).doing("create the database")
}

/// Brings an older database up to date: all steps or none.
pub(crate) fn migrate(connection: &mut Connection, from: u32) -> Result<(), Fault> {
    let steps = |connection: &mut Connection| {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for step in MIGRATIONS.iter().skip(from.saturating_sub(1) as usize) {
            step(&transaction)?;
        }
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.commit()
    };
    steps(connection).doing("migrate the database")
}

/// Whether a database of this version has all derived tables: one that was begun before the version was first released may
/// lack some.
pub(crate) fn has_derived(connection: &Connection) -> rusqlite::Result<bool> {
    let mut is_there = connection
        .prepare("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1)")?;
    for table in DERIVED_TABLES {
        if !is_there.query_row([table], |row| row.get(0))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Throws the derived tables away, whatever is in them.
pub(crate) fn drop_derived(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    for table in DERIVED_TABLES {
        transaction.execute_batch(&format!("DROP TABLE IF EXISTS {table}"))?;
    }
    Ok(())
}

pub(crate) fn create_derived(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(DERIVED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_step_for_every_older_version() {
        assert_eq!(MIGRATIONS.len() + 1, VERSION as usize);
    }

    #[test]
    fn every_derived_table_is_named() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(DERIVED).unwrap();
        let mut tables: Vec<String> = connection
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let mut named = DERIVED_TABLES.to_vec();
        named.sort_unstable();
        tables.sort_unstable();
        assert_eq!(tables, named);
    }
}
