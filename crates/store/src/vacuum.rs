//! Gives room back to the disk: what was taken out of the database leaves pages that nobody uses.

use rusqlite::Connection;

use crate::{
    convert::unsigned,
    error::{Doing, ReadError},
    store::Store,
};

/// How large the database was, and is, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vacuumed {
    pub before: u64,
    pub after: u64,
}

impl Store {
    /// Writes the database anew without what nobody uses. Commits wait meanwhile; nothing changes when it fails. Needs as
    /// much room on the disk again while it works.
    pub async fn vacuum(&self) -> Result<Vacuumed, ReadError> {
        let done = self.exclusively(|writer| vacuum(writer.connection()));
        done.await.ok_or(ReadError::Closed)?
    }
}

fn vacuum(connection: &Connection) -> Result<Vacuumed, ReadError> {
    let before = size(connection)?;
    connection.execute_batch("VACUUM").doing("vacuum the database")?;
    // What was written anew is in the log of the database first. A reader may hold it there: then it goes later.
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .doing("take the vacuumed pages over")?;
    Ok(Vacuumed { before, after: size(connection)? })
}

fn size(connection: &Connection) -> Result<u64, ReadError> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get(0).map(unsigned));
    Ok(number("page_count")?.saturating_mul(number("page_size")?))
}
