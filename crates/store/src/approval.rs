//! `approval`: agents' questions for leave, open and answered.

use ostler_domain::{
    ApprovalId, SessionId, Time,
    event::{Answer, ApprovalAnswered, ApprovalRequested, By},
    id::Fragment,
    limits::INLINE_BODY_BYTES,
    query::{Listed, Page},
    text::head,
};
use rusqlite::{Connection, Row, ToSql, params};

use crate::{
    convert::{parsed, signed, time, time_if_any, unsigned},
    error::ReadError,
    session::{fragment_condition, tail},
    store::Store,
};

/// What became of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalState {
    Open,
    Answered(Answer),
}

/// A question as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRow {
    pub id: ApprovalId,
    pub session: SessionId,
    /// Place of the event that asked.
    pub seq: u64,
    pub ask: String,
    pub tool: String,
    /// What the tool would be given, or its beginning where it is very long.
    pub input: String,
    pub state: ApprovalState,
    pub asked: Time,
    pub answered: Option<Time>,
    pub by: Option<By>,
    pub message: Option<String>,
}

pub(crate) fn ask(
    connection: &Connection,
    seq: u64,
    at: Time,
    asked: &ApprovalRequested,
    num: i64,
) -> rusqlite::Result<()> {
    let id = asked.id.to_string();
    connection
        .prepare_cached(
            "INSERT INTO approval(seq, id, tail, session, ask, tool, input, state, asked)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'open', ?8)",
        )?
        .execute(params![
            signed(seq),
            id,
            tail(&id),
            num,
            asked.ask,
            asked.tool,
            head(&asked.input, INLINE_BODY_BYTES),
            at.micros()
        ])?;
    Ok(())
}

pub(crate) fn answer(connection: &Connection, at: Time, answered: &ApprovalAnswered) -> rusqlite::Result<()> {
    let message = Some(&answered.message).filter(|message| !message.is_empty());
    connection
        .prepare_cached(
            "UPDATE approval SET state = ?2, answered = ?3, answered_by = ?4, message = ?5 WHERE id = ?1 AND state = 'open'",
        )?
        .execute(params![answered.id.to_string(), word(answered.answer), at.micros(), answered.by.0, message])?;
    Ok(())
}

/// Closes what a session that ended left open.
pub(crate) fn expire(connection: &Connection, at: Time, num: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE approval SET state = 'expired', answered = ?2 WHERE state = 'open' AND session = ?1",
        )?
        .execute(params![num, at.micros()])?;
    Ok(())
}

const fn word(answer: Answer) -> &'static str {
    match answer {
        Answer::Allowed => "allowed",
        Answer::Denied => "denied",
        Answer::Expired => "expired",
    }
}

fn state(word: String) -> Result<ApprovalState, ReadError> {
    match word.as_str() {
        "open" => Ok(ApprovalState::Open),
        "allowed" => Ok(ApprovalState::Answered(Answer::Allowed)),
        "denied" => Ok(ApprovalState::Answered(Answer::Denied)),
        "expired" => Ok(ApprovalState::Answered(Answer::Expired)),
        _ => Err(ReadError::Row { what: "approval state", text: word }),
    }
}

impl Store {
    /// All questions that wait, oldest first.
    pub async fn open_approvals(&self) -> Result<Vec<ApprovalRow>, ReadError> {
        self.read(|reader| query(&reader.connection, "a.state = 'open' ORDER BY a.seq", &[])).await
    }

    /// All questions there ever were, newest first. The cursor is a `seq`.
    pub async fn approvals(&self, page: Page) -> Result<Listed<ApprovalRow>, ReadError> {
        self.read(move |reader| {
            let before = signed(page.cursor.unwrap_or(u64::MAX));
            let limit = i64::from(page.limit) + 1;
            let mut rows =
                query(&reader.connection, "a.seq < ?1 ORDER BY a.seq DESC LIMIT ?2", &[&before, &limit])?;
            let has_more = rows.len() > page.limit as usize;
            rows.truncate(page.limit as usize);
            let next_cursor = rows.last().filter(|_| has_more).map(|row| row.seq);
            Ok(Listed { rows, next_cursor })
        })
        .await
    }

    /// Questions whose id begins or ends like this, newest first; more than one means that it is ambiguous.
    pub async fn find_approvals(&self, fragment: &Fragment) -> Result<Vec<ApprovalRow>, ReadError> {
        let (condition, params) = fragment_condition(fragment, ApprovalId::PREFIX, "approval", "seq");
        self.read(move |reader| {
            let condition = format!("a.{condition} ORDER BY a.seq DESC");
            query(&reader.connection, &condition, &params.each_ref().map(|text| text as &dyn ToSql))
        })
        .await
    }
}

fn query(
    connection: &Connection,
    condition: &str,
    params: &[&dyn ToSql],
) -> Result<Vec<ApprovalRow>, ReadError> {
    let sql = format!(
        "SELECT a.*, s.id AS session_id FROM approval a JOIN session s ON s.num = a.session WHERE {condition}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_and_then(params, read)?.collect()
}

fn read(row: &Row<'_>) -> Result<ApprovalRow, ReadError> {
    Ok(ApprovalRow {
        id: parsed(row, "id", "approval id")?,
        session: parsed(row, "session_id", "session id")?,
        seq: unsigned(row.get("seq")?),
        ask: row.get("ask")?,
        tool: row.get("tool")?,
        input: row.get("input")?,
        state: state(row.get("state")?)?,
        asked: time(row, "asked")?,
        answered: time_if_any(row, "answered")?,
        by: row.get::<_, Option<String>>("answered_by")?.map(By),
        message: row.get("message")?,
    })
}
