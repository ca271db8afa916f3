//! Taking a session's words out of the index, before they are gone from the log.

use ostler_domain::SessionId;
use rusqlite::{Connection, params};

use super::{searched_kinds, text_of};
use crate::{
    connect::{self, Durability},
    convert::signed,
    error::{Doing, Fault, ReadError},
    log::{STORED, Stored},
    session,
    store::{Reader, Store},
};

/// Words that are taken out in one transaction: the indexer waits meanwhile.
const AT_ONCE: usize = 500;

impl Store {
    /// Lets nobody find what was said in a session that has ended. Doing it twice does nothing.
    pub(crate) async fn forget_in_search(&self, id: SessionId) -> Result<(), ReadError> {
        if self.indexer().is_none() {
            return Ok(());
        }
        // Else it would come in behind us.
        self.searchable(self.last_seq()).await;
        self.read(move |reader| forget(reader, id)).await
    }
}

fn forget(reader: &Reader, id: SessionId) -> Result<(), ReadError> {
    let Some(num) = session::number(&reader.connection, id)? else { return Ok(()) };
    let index = connect::writer(reader.search.file().path(), Durability::Rebuildable)?;
    let sql = format!(
        "SELECT {STORED} FROM log_event e WHERE e.session = ?1 AND e.kind IN ({}) ORDER BY e.session_seq",
        searched_kinds()
    );
    let mut statement = reader.connection.prepare_cached(&sql)?;
    let mut rows = statement.query([num])?;
    let mut texts = Vec::new();
    while let Some(row) = rows.next()? {
        let stored = Stored::read(row)?;
        if let Some(text) = text_of(&stored.event(&reader.blobs)?) {
            texts.push((stored.seq, text));
        }
        if texts.len() >= AT_ONCE {
            take_out(&index, &std::mem::take(&mut texts)).map_err(ReadError::SearchIndex)?;
        }
    }
    take_out(&index, &texts).map_err(ReadError::SearchIndex)
}

fn take_out(index: &Connection, texts: &[(u64, String)]) -> Result<(), Fault> {
    let take_out = || -> rusqlite::Result<()> {
        let transaction = index.unchecked_transaction()?;
        for (seq, text) in texts {
            // Taking out what is not there would damage the index.
            let is_there: bool = transaction
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM search_text WHERE rowid = ?1)")?
                .query_row([signed(*seq)], |row| row.get(0))?;
            if is_there {
                transaction
                    .prepare_cached(
                        "INSERT INTO search_text(search_text, rowid, text) VALUES ('delete', ?1, ?2)",
                    )?
                    .execute(params![signed(*seq), text])?;
            }
        }
        transaction.commit()
    };
    take_out().doing("take words out of the search index")
}
