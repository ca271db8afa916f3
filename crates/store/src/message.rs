//! `message`: what was said to conversations, and the receipts.

use ostler_domain::{
    ConversationId, MessageId, Receipt, SessionId, Time,
    event::{By, MessageAccepted, MessageMark, MessageUnknown},
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

const RECEIPTS: [Receipt; 5] =
    [Receipt::Accepted, Receipt::Delivered, Receipt::Seen, Receipt::Answered, Receipt::Unknown];

/// A message as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRow {
    pub id: MessageId,
    pub conversation: ConversationId,
    /// The session that it was last given to.
    pub session: SessionId,
    pub receipt: Receipt,
    /// The beginning of the text; `bytes` is the length of the whole, which the event `seq` has.
    pub head: String,
    pub bytes: u64,
    pub seq: u64,
    pub by: By,
    /// The turn that it belongs to, once known.
    pub turn: Option<u32>,
    /// Why nothing more is known of it.
    pub why: Option<String>,
    pub accepted: Time,
    pub sent: Option<Time>,
    pub delivered: Option<Time>,
    pub seen: Option<Time>,
    pub answered: Option<Time>,
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
            "INSERT INTO message(seq, id, conversation, session, receipt, head, bytes, said_by, accepted)
             VALUES (?1, ?2, ?3, ?4, 'accepted', ?5, ?6, ?7, ?8)
             ON CONFLICT(id) DO UPDATE SET session = excluded.session, receipt = excluded.receipt, sent = NULL",
        )?
        .execute(params![
            signed(seq),
            message.id.to_string(),
            accepted.conversation.to_string(),
            num,
            head(&message.text, HEAD_BYTES),
            signed(message.text.len() as u64),
            accepted.by.0,
            at.micros(),
        ])?;
    Ok(())
}

pub(crate) fn sent(connection: &Connection, at: Time, id: MessageId) -> rusqlite::Result<()> {
    update(connection, "UPDATE message SET sent = ?2 WHERE id = ?1", params![id.to_string(), at.micros()])
}

pub(crate) fn delivered(connection: &Connection, at: Time, mark: &MessageMark) -> rusqlite::Result<()> {
    const SQL: &str =
        "UPDATE message SET receipt = 'delivered', delivered = ?2, turn = coalesce(?3, turn) WHERE id = ?1";
    update(connection, SQL, params![mark.id.to_string(), at.micros(), mark.turn])
}

pub(crate) fn seen(connection: &Connection, at: Time, mark: &MessageMark) -> rusqlite::Result<()> {
    const SQL: &str =
        "UPDATE message SET receipt = 'seen', seen = ?2, turn = coalesce(?3, turn) WHERE id = ?1";
    update(connection, SQL, params![mark.id.to_string(), at.micros(), mark.turn])
}

pub(crate) fn answered(connection: &Connection, at: Time, mark: &MessageMark) -> rusqlite::Result<()> {
    const SQL: &str =
        "UPDATE message SET receipt = 'answered', answered = ?2, turn = coalesce(?3, turn) WHERE id = ?1";
    update(connection, SQL, params![mark.id.to_string(), at.micros(), mark.turn])
}

pub(crate) fn unknown(connection: &Connection, unknown: &MessageUnknown) -> rusqlite::Result<()> {
    const SQL: &str = "UPDATE message SET receipt = 'unknown', why = ?2 WHERE id = ?1";
    update(connection, SQL, params![unknown.id.to_string(), unknown.why])
}

fn update(connection: &Connection, sql: &str, params: &[&dyn ToSql]) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute(params)?;
    Ok(())
}

impl Store {
    pub async fn message(&self, id: MessageId) -> Result<Option<MessageRow>, ReadError> {
        self.read(move |reader| Ok(query(&reader.connection, "m.id = ?1", &[&id.to_string()])?.pop())).await
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
    let receipt = RECEIPTS
        .into_iter()
        .find(|known| known.as_str() == receipt)
        .ok_or(ReadError::Row { what: "receipt", text: receipt })?;
    Ok(MessageRow {
        id: parsed(row, "id", "message id")?,
        conversation: parsed(row, "conversation", "conversation id")?,
        session: parsed(row, "session_id", "session id")?,
        receipt,
        head: row.get("head")?,
        bytes: unsigned(row.get("bytes")?),
        seq: unsigned(row.get("seq")?),
        by: By(row.get("said_by")?),
        turn: row.get("turn")?,
        why: row.get("why")?,
        accepted: time(row, "accepted")?,
        sent: time_if_any(row, "sent")?,
        delivered: time_if_any(row, "delivered")?,
        seen: time_if_any(row, "seen")?,
        answered: time_if_any(row, "answered")?,
    })
}
