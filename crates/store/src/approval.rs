//! `approval`: agents' questions for leave, open and answered.

use ostler_domain::{
    ApprovalId, SessionId, Time,
    approval::Applied,
    event::{Answer, ApprovalAnswered, ApprovalRequested, AskKind, By, Resumed},
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
    pub kind: AskKind,
    /// What it asks for, in one line.
    pub asks: String,
    /// Why no rule answered it.
    pub why: String,
    /// When it is denied if nobody answers.
    pub deadline: Option<Time>,
    /// The rules that answered it.
    pub rules: Vec<Applied>,
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
            "INSERT INTO approval(seq, id, tail, session, ask, tool, input, state, asked, kind, asks, why, deadline)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'open', ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            signed(seq),
            id,
            tail(&id),
            num,
            asked.ask,
            asked.tool,
            head(&asked.input, INLINE_BODY_BYTES),
            at.micros(),
            kind_word(asked.kind),
            asked.asks(),
            asked.why,
            asked.deadline.as_ref().map(|deadline| deadline.wall().micros())
        ])?;
    Ok(())
}

/// While a session is paused its questions wait without a limit.
pub(crate) fn pause(connection: &Connection, num: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE approval SET deadline = NULL WHERE state = 'open' AND session = ?1")?
        .execute(params![num])?;
    Ok(())
}

pub(crate) fn resume(connection: &Connection, resumed: &Resumed) -> rusqlite::Result<()> {
    let mut set =
        connection.prepare_cached("UPDATE approval SET deadline = ?2 WHERE id = ?1 AND state = 'open'")?;
    for (id, deadline) in &resumed.approval_deadlines {
        set.execute(params![id.to_string(), deadline.wall().micros()])?;
    }
    Ok(())
}

pub(crate) fn answer(connection: &Connection, at: Time, answered: &ApprovalAnswered) -> rusqlite::Result<()> {
    let message = Some(&answered.message).filter(|message| !message.is_empty());
    // Plain structs: serializing them cannot fail.
    let rules = Some(&answered.rules).filter(|rules| !rules.is_empty());
    let rules = rules.map(|rules| serde_json::to_string(rules).unwrap_or_default());
    connection
        .prepare_cached(
            "UPDATE approval SET state = ?2, answered = ?3, answered_by = ?4, message = ?5, rules = ?6, deadline = NULL
             WHERE id = ?1 AND state = 'open'",
        )?
        .execute(params![
            answered.id.to_string(),
            word(answered.answer),
            at.micros(),
            answered.by.0,
            message,
            rules
        ])?;
    Ok(())
}

/// Closes what a session that ended left open.
pub(crate) fn expire(connection: &Connection, at: Time, num: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE approval SET state = 'expired', answered = ?2, deadline = NULL WHERE state = 'open' AND session = ?1",
        )?
        .execute(params![num, at.micros()])?;
    Ok(())
}

const fn kind_word(kind: AskKind) -> &'static str {
    match kind {
        AskKind::Leave => "leave",
        AskKind::Question => "question",
    }
}

fn kind(word: String) -> Result<AskKind, ReadError> {
    match word.as_str() {
        "leave" => Ok(AskKind::Leave),
        "question" => Ok(AskKind::Question),
        _ => Err(ReadError::Row { what: "approval kind", text: word }),
    }
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

fn rules(text: Option<String>) -> Result<Vec<Applied>, ReadError> {
    let Some(text) = text else { return Ok(Vec::new()) };
    serde_json::from_str(&text).map_err(|_| ReadError::Row { what: "approval rules", text })
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
        kind: kind(row.get("kind")?)?,
        asks: row.get("asks")?,
        why: row.get("why")?,
        deadline: time_if_any(row, "deadline")?,
        rules: rules(row.get("rules")?)?,
    })
}
