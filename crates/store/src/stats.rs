//! How large the record is, without counting it.

use std::fs;

use crate::{error::ReadError, log, open::sidecar, session, store::Store};

/// Sizes. Numbers of rows are the highest numbers given, so they count what was ever recorded.
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
                sessions: session::last_number(&reader.connection)?.cast_unsigned(),
                events: log::last_seq(&reader.connection)?,
                searchable_to,
            })
        })
        .await
    }
}
