//! `node_*`: what this node knows of itself, requests done, and where each session's tape and outbox stand.

use ostler_domain::{NodeId, RequestId, limits::REQUEST_MEMORY};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{
    commit::{OutboxRow, RequestReply, TapeMark},
    convert::{signed, unsigned, wall_clock},
    error::{CommitError, Doing, Fault, ReadError},
    store::Store,
};

const NODE_ID: &str = "node_id";
const EPOCH: &str = "epoch";
/// Before the name of whoever works through the log.
const CURSOR: &str = "cursor:";

/// Forgotten requests that one commit clears away.
const PRUNED_AT_ONCE: u32 = 100;

/// Gives a new database its node.
pub(crate) fn initialize(connection: &Connection) -> Result<(), Fault> {
    let mut entropy = [0; 16];
    rustix::rand::getrandom(&mut entropy, rustix::rand::GetRandomFlags::empty())
        .map_err(std::io::Error::from)
        .doing("make an id for this node")?;
    let id = NodeId::new(wall_clock(), u128::from_le_bytes(entropy));
    set_meta(connection, NODE_ID, &id.to_string()).doing("name this node")
}

pub(crate) fn node_id(connection: &Connection) -> Result<NodeId, Fault> {
    let damaged = || {
        rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT),
            Some("the database does not say which node it belongs to".to_owned()),
        )
    };
    let text = meta(connection, NODE_ID).and_then(|found| found.ok_or_else(damaged));
    text.and_then(|text| text.parse().map_err(|_| damaged())).doing("read this node's id")
}

pub(crate) fn meta(connection: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT value FROM node_meta WHERE key = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()
}

pub(crate) fn set_meta(connection: &Connection, key: &str, value: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO node_meta(key, value) VALUES (?1, ?2) ON CONFLICT(key) DO UPDATE SET value = excluded.value")?
        .execute([key, value])?;
    Ok(())
}

pub(crate) fn set_cursor_of(connection: &Connection, whose: &str, seq: u64) -> rusqlite::Result<()> {
    set_meta(connection, &format!("{CURSOR}{whose}"), &seq.to_string())
}

fn epoch(connection: &Connection) -> rusqlite::Result<u64> {
    Ok(meta(connection, EPOCH)?.and_then(|text| text.parse().ok()).unwrap_or(0))
}

impl Store {
    /// Begins the next epoch, durably: keepers serve only the daemon with the highest.
    pub async fn next_epoch(&self) -> Result<u64, CommitError> {
        self.set_epoch(|epoch| epoch + 1).await
    }

    /// The epoch that [`Store::next_epoch`] would begin, for whoever cannot write it down now.
    pub async fn epoch_to_come(&self) -> Result<u64, ReadError> {
        self.read(|reader| Ok(epoch(&reader.connection)? + 1)).await
    }

    /// Makes the epoch at least this, durably, and says what it is.
    pub async fn raise_epoch(&self, least: u64) -> Result<u64, CommitError> {
        self.set_epoch(move |epoch| epoch.max(least)).await
    }

    async fn set_epoch(&self, change: impl FnOnce(u64) -> u64 + Send + 'static) -> Result<u64, CommitError> {
        let changed = self.exclusively(move |writer| -> rusqlite::Result<u64> {
            let connection = writer.connection();
            let epoch = change(epoch(connection)?);
            set_meta(connection, EPOCH, &epoch.to_string())?;
            Ok(epoch)
        });
        Ok(changed.await.ok_or(CommitError::Closed)?.doing("begin an epoch")?)
    }

    /// How far somebody who works through the log has come; none who has not begun.
    pub async fn cursor(&self, whose: &str) -> Result<Option<u64>, ReadError> {
        let key = format!("{CURSOR}{whose}");
        self.read(move |reader| Ok(meta(&reader.connection, &key)?.and_then(|text| text.parse().ok()))).await
    }

    /// Remembers it, durably.
    pub async fn set_cursor(&self, whose: &str, seq: u64) -> Result<(), CommitError> {
        let whose = whose.to_owned();
        let set = self.exclusively(move |writer| set_cursor_of(writer.connection(), &whose, seq));
        Ok(set.await.ok_or(CommitError::Closed)?.doing("remember a place in the log")?)
    }

    /// Forgets it: whoever has this name next begins anew.
    pub async fn forget_cursor(&self, whose: &str) -> Result<(), CommitError> {
        let key = format!("{CURSOR}{whose}");
        let forgotten = self.exclusively(move |writer| -> rusqlite::Result<()> {
            writer.connection().prepare_cached("DELETE FROM node_meta WHERE key = ?1")?.execute([key])?;
            Ok(())
        });
        Ok(forgotten.await.ok_or(CommitError::Closed)?.doing("forget a place in the log")?)
    }

    /// The answer given to a request, if it was done.
    pub async fn request(&self, id: RequestId) -> Result<Option<RequestReply>, ReadError> {
        self.read(move |reader| Ok(request(&reader.connection, id)?)).await
    }
}

pub(crate) fn request(connection: &Connection, id: RequestId) -> rusqlite::Result<Option<RequestReply>> {
    connection
        .prepare_cached("SELECT fingerprint, reply FROM node_request WHERE request_id = ?1")?
        .query_row([id.to_string()], |row| {
            Ok(RequestReply { id, fingerprint: row.get(0)?, reply: row.get(1)? })
        })
        .optional()
}

/// Remembers a request, and forgets some that are too old for anyone to repeat.
pub(crate) fn remember(connection: &Connection, request: &RequestReply) -> rusqlite::Result<()> {
    let now = wall_clock();
    connection
        .prepare_cached(
            "INSERT INTO node_request(request_id, fingerprint, reply, time) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![request.id.to_string(), request.fingerprint, request.reply, now.micros()])?;
    connection
        .prepare_cached(
            "DELETE FROM node_request WHERE request_id IN
             (SELECT request_id FROM node_request WHERE time < ?1 ORDER BY time LIMIT ?2)",
        )?
        .execute(params![now.minus(REQUEST_MEMORY).micros(), PRUNED_AT_ONCE])?;
    Ok(())
}

pub(crate) fn add_session(connection: &Connection, num: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("INSERT INTO node_session(session) VALUES (?1)")?.execute([num])?;
    Ok(())
}

pub(crate) fn set_mark(connection: &Connection, num: i64, mark: &TapeMark) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE node_session SET tape_offset = ?2, assembler = ?3, dialogue = ?4, dialogue_version = ?5 WHERE session = ?1",
        )?
        .execute(params![num, signed(mark.offset), mark.assembler, mark.dialogue, mark.dialogue_version])?;
    Ok(())
}

pub(crate) fn set_snapshot(connection: &Connection, num: i64, state: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO node_snapshot(session, state) VALUES (?1, ?2)")?
        .execute(params![num, state])?;
    Ok(())
}

pub(crate) fn snapshot(connection: &Connection, num: i64) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT state FROM node_snapshot WHERE session = ?1")?
        .query_row([num], |row| row.get(0))
        .optional()
}

/// An ended session reads no tape and is told nothing: only its numbers stay.
pub(crate) fn retire_session(connection: &Connection, num: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM node_outbox WHERE session = ?1")?.execute([num])?;
    connection.prepare_cached("DELETE FROM node_snapshot WHERE session = ?1")?.execute([num])?;
    connection
        .prepare_cached("UPDATE node_session SET assembler = '', dialogue = x'' WHERE session = ?1")?
        .execute([num])?;
    Ok(())
}

/// The mark of a session that has one, and the highest input number it was ever given.
pub(crate) fn mark(connection: &Connection, num: i64) -> rusqlite::Result<(Option<TapeMark>, u64)> {
    connection
        .prepare_cached(
            "SELECT tape_offset, assembler, dialogue, dialogue_version, last_input_no FROM node_session WHERE session = ?1",
        )?
        .query_row([num], |row| {
            let mark = TapeMark {
                offset: unsigned(row.get(0)?),
                assembler: row.get(1)?,
                dialogue: row.get(2)?,
                dialogue_version: row.get(3)?,
            };
            let was_set = mark.offset > 0 || !mark.dialogue.is_empty() || !mark.assembler.is_empty();
            Ok((was_set.then_some(mark), unsigned(row.get(4)?)))
        })
        .optional()
        .map(Option::unwrap_or_default)
}

/// Adds rows to a session's outbox. Says false, having written some, when a number was used before.
pub(crate) fn put_into_outbox(
    connection: &Connection,
    num: i64,
    rows: &[OutboxRow],
) -> rusqlite::Result<bool> {
    let mut count_up = connection.prepare_cached(
        "UPDATE node_session SET last_input_no = ?2 WHERE session = ?1 AND last_input_no < ?2",
    )?;
    let mut insert = connection
        .prepare_cached("INSERT INTO node_outbox(session, input_no, tag, bytes) VALUES (?1, ?2, ?3, ?4)")?;
    for row in rows {
        let input_no = signed(row.input_no);
        if count_up.execute([num, input_no])? == 0 {
            return Ok(false);
        }
        insert.execute(params![num, input_no, row.tag, row.bytes])?;
    }
    Ok(true)
}

pub(crate) fn clear_outbox(connection: &Connection, num: i64, up_to: u64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM node_outbox WHERE session = ?1 AND input_no <= ?2")?
        .execute([num, signed(up_to)])?;
    Ok(())
}

pub(crate) fn outbox(connection: &Connection, num: i64) -> rusqlite::Result<Vec<OutboxRow>> {
    connection
        .prepare_cached("SELECT input_no, tag, bytes FROM node_outbox WHERE session = ?1 ORDER BY input_no")?
        .query_map([num], |row| {
            Ok(OutboxRow { input_no: unsigned(row.get(0)?), tag: row.get(1)?, bytes: row.get(2)? })
        })?
        .collect()
}
