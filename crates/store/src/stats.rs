//! How large the record is, without counting it.

use std::fs;

use ostler_domain::query::TRIAL_TICKET;
use rusqlite::Connection;

use crate::{convert::unsigned, error::ReadError, log, open::sidecar, session, store::Store};

/// Sizes. Numbers of rows are the highest numbers given, so they count what was ever recorded; trials of providers that have
/// ended are in no list, and not in these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    pub db_bytes: u64,
    pub wal_bytes: u64,
    pub search_bytes: u64,
    pub sessions: u64,
    pub events: u64,
    /// The last event that can be found by searching, when search is kept up to date.
    pub searchable_to: Option<u64>,
}

impl Store {
    pub async fn stats(&self) -> Result<Stats, ReadError> {
        let paths = self.paths().clone();
        let searchable_to = self.indexer().map(crate::search::Indexer::cursor);
        self.read(move |reader| {
            let bytes = |path: &std::path::Path| fs::metadata(path).map_or(0, |found| found.len());
            Ok(Stats {
                db_bytes: bytes(&paths.db),
                wal_bytes: bytes(&sidecar(&paths.db, "-wal")),
                search_bytes: bytes(&paths.search),
                sessions: sessions(&reader.connection)?,
                events: log::last_seq(&reader.connection)?,
                searchable_to,
            })
        })
        .await
    }
}

fn sessions(connection: &Connection) -> Result<u64, ReadError> {
    let ended_trials = connection
        .prepare_cached("SELECT count(*) FROM session WHERE ticket = ?1 AND ended IS NOT NULL")?
        .query_row([TRIAL_TICKET], |row| row.get(0))?;
    Ok(unsigned(session::last_number(connection)?.saturating_sub(ended_trials)))
}
