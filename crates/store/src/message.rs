//! `message`: what was said to conversations, and the receipts.

use ostler_domain::{
    ConversationId, MessageId, Mode, Receipt, SessionId, Time,
    event::{
        By, MessageAccepted, MessageDropped, MessageEdited, MessageMark, MessageMoved, MessageUnheard,
        MessageUnknown, MovedTo,
    },
    id::Fragment,
    limits::SCAN_ROWS,
    query::{Listed, Page},
    text::head,
};
use rusqlite::{Connection, Row, ToSql, params};

use crate::{
    convert::{parsed, signed, time, time_if_any, unsigned},
    error::ReadError,
    session,
    store::Store,
};

/// How much of a message its row shows; the event has it whole.
const HEAD_BYTES: usize = 512;
/// Rows that a part of an id may fit before it is hopelessly ambiguous.
const FITTING: u32 = 16;

/// A message as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRow {
    pub id: MessageId,
    pub conversation: ConversationId,
    /// The session that it was last given to.
    pub session: SessionId,
    pub receipt: Receipt,
    pub mode: Mode,
    /// The beginning of the text; `bytes` is the length of the whole, which the event `text_seq` has.
    pub head: String,
    pub bytes: u64,
    pub text_seq: u64,
    pub seq: u64,
    pub by: By,
    /// What let it through, where a policy was asked.
    pub rule: Option<String>,
    /// The sender's own name for it.
    pub key: Option<String>,
    /// The turn that it belongs to, once known.
    pub turn: Option<u32>,
    /// Why nothing more is known of it.
    pub why: Option<String>,
    pub accepted: Time,
    pub sent: Option<Time>,
    pub delivered: Option<Time>,
    pub seen: Option<Time>,
    pub answered: Option<Time>,
    /// When it was dropped or taken back.
    pub ended: Option<Time>,
}

/// A message that its first session could not deliver comes again with the next one, under the same id.
pub(crate) fn accept(
    connection: &Connection,
    seq: u64,
    at: Time,
    accepted: &MessageAccepted,
    num: i64,
) -> rusqlite::Result<()> {
    let message = &accepted.message;
    connection
        .prepare_cached(
            "INSERT INTO message(seq, id, conversation, session, receipt, mode, head, bytes, text_seq, said_by, rule, key,
                                 accepted)
             VALUES (?1, ?2, ?3, ?4, 'accepted', ?5, ?6, ?7, ?1, ?8, ?9, ?10, ?11)
             ON CONFLICT(id) DO UPDATE SET session = excluded.session, receipt = excluded.receipt, sent = NULL",
        )?
        .execute(params![
            signed(seq),
            message.id.to_string(),
            accepted.conversation.to_string(),
            num,
            message.mode.as_str(),
            head(&message.text, HEAD_BYTES),
            signed(message.text.len() as u64),
            accepted.by.0,
            accepted.rule,
            accepted.key,
            at.micros(),
        ])?;
    Ok(())
}

/// A message that nobody was woken for. One for a session that was not created before it leads nowhere, and has no row.
pub(crate) fn unheard(
    connection: &Connection,
    seq: u64,
    at: Time,
    unheard: &MessageUnheard,
) -> rusqlite::Result<()> {
    let message = &unheard.message;
    connection
        .prepare_cached(
            "INSERT INTO message(seq, id, conversation, session, receipt, mode, head, bytes, text_seq, said_by, rule, key,
                                 why, accepted, ended)
             SELECT ?1, ?2, ?3, num, 'dropped', ?5, ?6, ?7, ?1, ?8, ?9, ?10, ?11, ?12, ?12 FROM session WHERE id = ?4
                AND (SELECT e.seq FROM log_event e WHERE e.session = session.num AND e.session_seq = 1) < ?1
             ON CONFLICT(id) DO NOTHING",
        )?
        .execute(params![
            signed(seq),
            message.id.to_string(),
            unheard.conversation.to_string(),
            unheard.session.to_string(),
            message.mode.as_str(),
            head(&message.text, HEAD_BYTES),
            signed(message.text.len() as u64),
            unheard.by.0,
            unheard.rule,
            unheard.key,
            unheard.why,
            at.micros(),
        ])?;
    Ok(())
}

pub(crate) fn sent(connection: &Connection, at: Time, id: MessageId) -> rusqlite::Result<()> {
    update(connection, "UPDATE message SET sent = ?2 WHERE id = ?1", params![id.to_string(), at.micros()])
}

pub(crate) fn delivered(connection: &Connection, at: Time, mark: &MessageMark) -> rusqlite::Result<()> {
    const SQL: &str = "UPDATE message SET receipt = 'delivered', delivered = ?2, why = NULL, turn = coalesce(?3, turn) WHERE id = ?1";
    update(connection, SQL, params![mark.id.to_string(), at.micros(), mark.turn])
}

pub(crate) fn seen(connection: &Connection, at: Time, mark: &MessageMark) -> rusqlite::Result<()> {
    const SQL: &str =
        "UPDATE message SET receipt = 'seen', seen = ?2, why = NULL, turn = coalesce(?3, turn) WHERE id = ?1";
    update(connection, SQL, params![mark.id.to_string(), at.micros(), mark.turn])
}

pub(crate) fn answered(connection: &Connection, at: Time, mark: &MessageMark) -> rusqlite::Result<()> {
    const SQL: &str = "UPDATE message SET receipt = 'answered', answered = ?2, why = NULL, turn = coalesce(?3, turn) WHERE id = ?1";
    update(connection, SQL, params![mark.id.to_string(), at.micros(), mark.turn])
}

pub(crate) fn unknown(connection: &Connection, unknown: &MessageUnknown) -> rusqlite::Result<()> {
    const SQL: &str = "UPDATE message SET receipt = 'unknown', why = ?2 WHERE id = ?1";
    update(connection, SQL, params![unknown.id.to_string(), unknown.why])
}

/// It waits again, as if it had not been told yet.
pub(crate) fn returned(connection: &Connection, returned: &MessageUnknown) -> rusqlite::Result<()> {
    const SQL: &str =
        "UPDATE message SET receipt = 'accepted', sent = NULL, delivered = NULL, turn = NULL, why = ?2
         WHERE id = ?1";
    update(connection, SQL, params![returned.id.to_string(), returned.why])
}

pub(crate) fn dropped(connection: &Connection, at: Time, dropped: &MessageDropped) -> rusqlite::Result<()> {
    const SQL: &str =
        "UPDATE message SET receipt = 'dropped', why = ?2, made_room_for = ?3, ended = ?4 WHERE id = ?1";
    let made_room_for = dropped.made_room_for.map(|id| id.to_string());
    update(connection, SQL, params![dropped.id.to_string(), dropped.why, made_room_for, at.micros()])
}

pub(crate) fn cancelled(connection: &Connection, at: Time, id: MessageId, why: &str) -> rusqlite::Result<()> {
    const SQL: &str = "UPDATE message SET receipt = 'cancelled', why = ?2, ended = ?3 WHERE id = ?1";
    update(connection, SQL, params![id.to_string(), why, at.micros()])
}

pub(crate) fn edited(connection: &Connection, seq: u64, edited: &MessageEdited) -> rusqlite::Result<()> {
    const SQL: &str = "UPDATE message SET head = ?2, bytes = ?3, text_seq = ?4 WHERE id = ?1";
    let (head, bytes) = (head(&edited.text, HEAD_BYTES), signed(edited.text.len() as u64));
    update(connection, SQL, params![edited.id.to_string(), head, bytes, signed(seq)])
}

pub(crate) fn moved(connection: &Connection, at: Time, moved: &MessageMoved) -> rusqlite::Result<()> {
    match moved.to {
        // In which order they wait is known to their session.
        MovedTo::Before { .. } => Ok(()),
        MovedTo::Conversation { conversation, message } => {
            let why =
                format!("moved to the conversation {} as message {}", conversation.short(), message.short());
            cancelled(connection, at, moved.id, &why)
        }
    }
}

/// What a conversation that is closed had not told anybody, it never will.
pub(crate) fn cancel_with_conversation(
    connection: &Connection,
    at: Time,
    id: ConversationId,
) -> rusqlite::Result<()> {
    const SQL: &str = "UPDATE message SET receipt = 'cancelled', ended = ?2,
         why = 'its conversation was closed before it was delivered'
         WHERE conversation = ?1 AND receipt = 'accepted'";
    update(connection, SQL, params![id.to_string(), at.micros()])
}

fn update(connection: &Connection, sql: &str, params: &[&dyn ToSql]) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute(params)?;
    Ok(())
}

impl Store {
    pub async fn message(&self, id: MessageId) -> Result<Option<MessageRow>, ReadError> {
        self.read(move |reader| Ok(query(&reader.connection, "m.id = ?1", &[&id.to_string()])?.pop())).await
    }

    /// The message to which its sender gave this name.
    pub async fn message_keyed(&self, key: &str) -> Result<Option<MessageRow>, ReadError> {
        let key = key.to_owned();
        self.read(move |reader| {
            Ok(query(&reader.connection, "m.key = ?1 ORDER BY m.seq LIMIT 1", &[&key])?.pop())
        })
        .await
    }

    /// The messages that were dropped when this one came, the oldest first.
    pub async fn dropped_for(&self, id: MessageId) -> Result<Vec<MessageRow>, ReadError> {
        self.read(move |reader| {
            query(&reader.connection, "m.made_room_for = ?1 ORDER BY m.seq", &[&id.to_string()])
        })
        .await
    }

    /// A conversation's messages that wait, the newest first.
    pub async fn messages_waiting(&self, id: ConversationId) -> Result<Vec<MessageRow>, ReadError> {
        self.read(move |reader| {
            let condition = "m.conversation = ?1 AND m.receipt = 'accepted' ORDER BY m.seq DESC";
            query(&reader.connection, condition, &[&id.to_string()])
        })
        .await
    }

    /// Messages whose id begins or ends like this, newest first, among the newest that a scan may look at.
    pub async fn find_messages(&self, fragment: &Fragment) -> Result<Vec<MessageRow>, ReadError> {
        let part = fragment.as_str().to_owned();
        let condition = format!(
            "m.seq IN (SELECT seq FROM (SELECT seq, substr(id, {}) AS ulid FROM message ORDER BY seq DESC LIMIT {SCAN_ROWS})
                       WHERE substr(ulid, -length(?1)) = ?1 OR substr(ulid, 1, length(?1)) = ?1 LIMIT {FITTING})
             ORDER BY m.seq DESC",
            MessageId::PREFIX.len() + 2
        );
        self.read(move |reader| query(&reader.connection, &condition, &[&part])).await
    }

    /// A conversation's messages, newest first. The cursor is the `seq` of a row.
    pub async fn messages_of_conversation(
        &self,
        id: ConversationId,
        page: Page,
    ) -> Result<Listed<MessageRow>, ReadError> {
        self.read(move |reader| list(&reader.connection, "m.conversation", &id.to_string(), page)).await
    }

    /// The messages last given to a session, newest first. The cursor is the `seq` of a row.
    pub async fn messages_of_session(
        &self,
        id: SessionId,
        page: Page,
    ) -> Result<Listed<MessageRow>, ReadError> {
        self.read(move |reader| match session::number(&reader.connection, id)? {
            Some(num) => list(&reader.connection, "m.session", &num, page),
            None => Ok(Listed { rows: Vec::new(), next_cursor: None }),
        })
        .await
    }
}

fn list(
    connection: &Connection,
    column: &str,
    value: &dyn ToSql,
    page: Page,
) -> Result<Listed<MessageRow>, ReadError> {
    let condition = format!("{column} = ?1 AND m.seq < ?2 ORDER BY m.seq DESC LIMIT ?3");
    let before = signed(page.cursor.unwrap_or(u64::MAX));
    let limit = page.limit.max(1);
    let mut rows = query(connection, &condition, &[value, &before, &(i64::from(limit) + 1)])?;
    let has_more = rows.len() > limit as usize;
    rows.truncate(limit as usize);
    let next_cursor = rows.last().filter(|_| has_more).map(|row| row.seq);
    Ok(Listed { rows, next_cursor })
}

fn query(
    connection: &Connection,
    condition: &str,
    params: &[&dyn ToSql],
) -> Result<Vec<MessageRow>, ReadError> {
    let sql = format!(
        "SELECT m.*, s.id AS session_id FROM message m JOIN session s ON s.num = m.session WHERE {condition}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_and_then(params, read)?.collect()
}

fn read(row: &Row<'_>) -> Result<MessageRow, ReadError> {
    let receipt: String = row.get("receipt")?;
    let receipt = Receipt::ALL
        .iter()
        .copied()
        .find(|known| known.as_str() == receipt)
        .ok_or(ReadError::Row { what: "receipt", text: receipt })?;
    let mode: String = row.get("mode")?;
    let mode = Mode::parse(&mode).ok_or(ReadError::Row { what: "mode", text: mode })?;
    Ok(MessageRow {
        id: parsed(row, "id", "message id")?,
        conversation: parsed(row, "conversation", "conversation id")?,
        session: parsed(row, "session_id", "session id")?,
        receipt,
        mode,
        head: row.get("head")?,
        bytes: unsigned(row.get("bytes")?),
        text_seq: unsigned(row.get("text_seq")?),
        seq: unsigned(row.get("seq")?),
        by: By(row.get("said_by")?),
        rule: row.get("rule")?,
        key: row.get("key")?,
        turn: row.get("turn")?,
        why: row.get("why")?,
        accepted: time(row, "accepted")?,
        sent: time_if_any(row, "sent")?,
        delivered: time_if_any(row, "delivered")?,
        seen: time_if_any(row, "seen")?,
        answered: time_if_any(row, "answered")?,
        ended: time_if_any(row, "ended")?,
    })
}
