//! The large bodies and the pictures of a session's events: compressed when it is archived, plain again when it is restored, gone when
//! nobody names them any more.

use ostler_domain::SessionId;
use rusqlite::Connection;

use crate::{
    blob::Sizes,
    error::{CommitError, Doing, ReadError},
    session,
    store::{Reader, Store},
};

/// Blobs that are looked at between two commits of others.
const AT_ONCE: u32 = 200;

impl Store {
    /// Writes the compressed forms of a session's blobs beside them. What they take, and what they will.
    pub async fn compress_blobs(&self, id: SessionId) -> Result<(u64, u64), ReadError> {
        self.read(move |reader| {
            let mut sum = Sizes::default();
            for hash in of_session(reader, id)? {
                let sizes = reader.blobs.compress(&hash).doing("compress a large event")?;
                sum.plain += sizes.plain;
                sum.compressed += sizes.compressed;
            }
            Ok((sum.plain, sum.compressed))
        })
        .await
    }

    /// Removes the plain forms of a session's blobs where the compressed ones are whole.
    pub async fn drop_plain_blobs(&self, id: SessionId) -> Result<(), ReadError> {
        self.read(move |reader| {
            for hash in of_session(reader, id)? {
                reader.blobs.drop_plain(&hash).doing("remove the plain form of a large event")?;
            }
            Ok(())
        })
        .await
    }

    pub async fn expand_blobs(&self, id: SessionId) -> Result<(), ReadError> {
        self.read(move |reader| {
            for hash in of_session(reader, id)? {
                reader.blobs.expand(&hash).doing("expand a large event")?;
            }
            Ok(())
        })
        .await
    }

    /// Removes blobs that no event names any more. Those that somebody has just asked for are left for another time.
    pub async fn drop_garbage(&self) -> Result<(), CommitError> {
        let mut after = Vec::new();
        loop {
            let blobs = self.blobs().clone();
            let dropped = self.exclusively(move |writer| {
                let connection = writer.connection();
                let hashes = garbage(connection, &after).doing("look for blobs that nobody needs")?;
                for hash in &hashes {
                    let is_named = is_named(connection, hash).doing("look who needs a blob")?;
                    if is_named || blobs.remove(hash).doing("remove a large event")? {
                        forget(connection, hash).doing("forget a blob")?;
                    }
                }
                Ok::<_, CommitError>(hashes.last().cloned())
            });
            match dropped.await.ok_or(CommitError::Closed)?? {
                Some(last) => after = last,
                None => return Ok(()),
            }
        }
    }
}

fn of_session(reader: &Reader, id: SessionId) -> Result<Vec<Vec<u8>>, ReadError> {
    let Some(num) = session::number(&reader.connection, id)? else { return Ok(Vec::new()) };
    let mut statement = reader
        .connection
        .prepare_cached("SELECT blob FROM log_event WHERE session = ?1 AND blob IS NOT NULL UNION SELECT blob FROM image WHERE session = ?1")?;
    Ok(statement.query_map([num], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

fn garbage(connection: &Connection, after: &[u8]) -> rusqlite::Result<Vec<Vec<u8>>> {
    connection
        .prepare_cached("SELECT blob FROM node_garbage WHERE blob > ?1 ORDER BY blob LIMIT ?2")?
        .query_map((after, AT_ONCE), |row| row.get(0))?
        .collect()
}

/// Whether an event has this for its body, or names it as a picture.
pub(super) fn is_named(connection: &Connection, hash: &[u8]) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM log_event WHERE blob = ?1) OR EXISTS (SELECT 1 FROM image WHERE blob = ?1)")?
        .query_row([hash], |row| row.get(0))
}

fn forget(connection: &Connection, hash: &[u8]) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM node_garbage WHERE blob = ?1")?.execute([hash])?;
    Ok(())
}
