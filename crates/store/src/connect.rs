//! Opens connections, the only place that does: every one has the same guards.

use std::{path::Path, time::Duration};

use ostler_domain::limits::CHECKPOINT_PAGES;
use rusqlite::{Connection, OpenFlags, config::DbConfig};

use crate::error::{Doing, Fault};

/// Large enough that a session row and its indexes split rarely, measured best of 4, 8 and 16 KiB.
const PAGE_BYTES: u32 = 8192;
/// How long a connection waits for a lock that only another program can hold.
const BUSY: Duration = Duration::from_secs(5);
/// Prepared statements kept per connection: all of the hot path, with room.
const STATEMENTS: usize = 96;
/// What a write-ahead log that once grew large is cut back to.
const WAL_BYTES_KEPT: u32 = 4 * CHECKPOINT_PAGES * PAGE_BYTES;
/// Page caches in KiB: the writer's holds the ends of all indexes of the hot path, the others' are small because
/// the kernel has the pages too.
const WRITER_CACHE_KIB: i64 = 16 * 1024;
const INDEXER_CACHE_KIB: i64 = 4 * 1024;
const READER_CACHE_KIB: i64 = 2 * 1024;

/// Whether what a connection commits must survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    Full,
    /// For what can be built anew.
    Rebuildable,
}

pub(crate) fn writer(path: &Path, durability: Durability) -> Result<Connection, Fault> {
    let open = || -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        guard(&connection)?;
        // Takes effect only in a new database; harmless in any other.
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        let (synchronous, cache_kib) = match durability {
            Durability::Full => ("FULL", WRITER_CACHE_KIB),
            Durability::Rebuildable => ("NORMAL", INDEXER_CACHE_KIB),
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "cache_size", -cache_kib)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        Ok(connection)
    };
    open().doing("open the database")
}

pub(crate) fn reader(path: &Path) -> Result<Connection, Fault> {
    let open = || -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        guard(&connection)?;
        connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    };
    open().doing("open the database for reading")
}

/// A damaged or hostile file must not make SQLite do more than fail.
fn guard(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    Ok(())
}
