//! `mirrored`: what was delivered in agents' names, outside of their sessions.

use ostler_domain::{ConversationId, Recorded, SessionId, event::DeliveryMirrored};
use rusqlite::{Connection, Params, params};

use crate::{
    convert::signed,
    error::ReadError,
    log::{STORED, Stored},
    store::Store,
};

pub(crate) fn add(connection: &Connection, seq: u64, mirrored: &DeliveryMirrored) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO mirrored(seq, conversation, session) VALUES (?1, ?2, ?3)")?
        .execute(params![signed(seq), mirrored.conversation.to_string(), mirrored.session.to_string()])?;
    Ok(())
}

/// Those that came behind a session: they are deleted with it.
pub(crate) fn of_session(connection: &Connection, session: SessionId) -> rusqlite::Result<Vec<Stored>> {
    query(connection, "m.session = ?1 ORDER BY m.seq", [session.to_string()])
}

fn query(connection: &Connection, which: &str, params: impl Params) -> rusqlite::Result<Vec<Stored>> {
    let sql = format!("SELECT {STORED} FROM mirrored m JOIN log_event e ON e.seq = m.seq WHERE {which}");
    connection.prepare_cached(&sql)?.query_map(params, Stored::read)?.collect()
}

impl Store {
    /// What was delivered in a conversation behind a place in the log, in its order; so many at most.
    pub async fn mirrored(
        &self,
        conversation: ConversationId,
        after: u64,
        most: u32,
    ) -> Result<Vec<Recorded>, ReadError> {
        self.read(move |reader| {
            let which = "m.conversation = ?1 AND m.seq > ?2 ORDER BY m.seq LIMIT ?3";
            let params = params![conversation.to_string(), signed(after), most];
            let found = query(&reader.connection, which, params)?;
            Ok(found.into_iter().map(|stored| stored.shown(None, &reader.blobs)).collect())
        })
        .await
    }
}
