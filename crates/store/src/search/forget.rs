//! Taking a session's words out of the index, before they are gone from the log.

use ostler_domain::SessionId;
use rusqlite::{Connection, params};

use super::{searched_kinds, session_word, text_of};
use crate::{
    connect::{self, Durability},
    convert::signed,
    error::{Doing, Fault, ReadError},
    log::{STORED, Stored},
    session,
    store::{Reader, Store},
};

impl Store {
    /// Lets nobody find what some events of a session said, from a place in its own sequence on. Doing it twice does
    /// nothing.
    pub(crate) async fn forget_in_search(
        &self,
        id: SessionId,
        from: u64,
        count: usize,
    ) -> Result<(), ReadError> {
        if self.indexer().is_none() {
            return Ok(());
        }
        // Else it would come in behind us.
        self.searchable(self.last_seq()).await;
        self.read(move |reader| forget(reader, id, from, count)).await
    }
}

fn forget(reader: &Reader, id: SessionId, from: u64, count: usize) -> Result<(), ReadError> {
    let Some(num) = session::number(&reader.connection, id)? else { return Ok(()) };
    let sql = format!(
        "SELECT {STORED} FROM log_event e
         WHERE e.session = ?1 AND e.session_seq >= ?2 AND e.session_seq < ?3 AND e.kind IN ({})",
        searched_kinds()
    );
    let mut statement = reader.connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![num, signed(from), signed(from.saturating_add(count as u64))])?;
    let mut texts = Vec::new();
    while let Some(row) = rows.next()? {
        let stored = Stored::read(row)?;
        // What cannot be read was never found.
        let text = stored.event(&reader.blobs).ok().and_then(|event| text_of(&event));
        texts.extend(text.map(|text| (stored.seq, text)));
    }
    let index = connect::writer(reader.search.file().path(), Durability::Rebuildable)?;
    take_out(&index, num, &texts).map_err(ReadError::SearchIndex)
}

fn take_out(index: &Connection, session: i64, texts: &[(u64, String)]) -> Result<(), Fault> {
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
                        "INSERT INTO search_text(search_text, rowid, text, session) VALUES ('delete', ?1, ?2, ?3)",
                    )?
                    .execute(params![signed(*seq), text, session_word(session)])?;
            }
        }
        transaction.commit()
    };
    take_out().doing("take words out of the search index")
}
