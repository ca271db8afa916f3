//! `image`: which events name which pictures. Each is a blob.

use ostler_domain::{event::ImageRecorded, image};
use rusqlite::{Connection, params};

use crate::{convert::signed, error::ReadError, store::Store};

pub(crate) fn add(
    connection: &Connection,
    seq: u64,
    session: i64,
    shown: &ImageRecorded,
) -> rusqlite::Result<()> {
    // One that was deleted names nothing any more.
    let Some(hash) = shown.image.hash() else { return Ok(()) };
    connection
        .prepare_cached("INSERT INTO image(seq, session, blob) VALUES (?1, ?2, ?3)")?
        .execute(params![signed(seq), session, hash])?;
    Ok(())
}

/// The event names it no more. What it had named.
pub(crate) fn forget(connection: &Connection, seq: i64) -> rusqlite::Result<Option<Vec<u8>>> {
    let mut statement = connection.prepare_cached("DELETE FROM image WHERE seq = ?1 RETURNING blob")?;
    let mut rows = statement.query_map([seq], |row| row.get(0))?;
    rows.next().transpose()
}

impl Store {
    /// The bytes of a picture that an event names, by its SHA-256 or the beginning of that. None where there is no such, or
    /// more than one.
    pub async fn image(&self, sha256: &str) -> Result<Option<Vec<u8>>, ReadError> {
        let digits = |filler: &str| {
            let rest = 64_usize.saturating_sub(sha256.len());
            image::hash(&format!("{sha256}{}", filler.repeat(rest)))
        };
        let Some((first, last)) = digits("0").zip(digits("f")) else { return Ok(None) };
        self.read(move |reader| {
            let found = reader
                .connection
                .prepare_cached("SELECT DISTINCT blob FROM image WHERE blob BETWEEN ?1 AND ?2 LIMIT 2")?
                .query_map([first, last], |row| row.get(0))?
                .collect::<rusqlite::Result<Vec<Vec<u8>>>>()?;
            let [hash] = found.as_slice() else { return Ok(None) };
            let bytes = reader.blobs.bytes(hash);
            bytes.map(Some).map_err(|error| ReadError::Row {
                what: "picture",
                text: format!("{}: {error}", reader.blobs.path(hash).display()),
            })
        })
        .await
    }
}
