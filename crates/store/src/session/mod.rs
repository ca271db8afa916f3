//! `session` and `session_view`: one row per session, as the fold of its events shows it.

mod family;
mod find;
mod list;
mod load;
mod shown;

use ostler_domain::{
    SessionId, Time,
    price::Dollars,
    session::{Attention, Outcome, Restart, Status, View},
};
use rusqlite::{Connection, OptionalExtension, Statement, params};

pub use family::FamilyOf;
pub(crate) use family::{ROOT_CHAIN, below};
pub(crate) use find::{fragment_condition, tail};
pub(crate) use list::{Condition, marks};
pub use load::LoadedSession;
pub(crate) use load::{fold, fold_to};
pub(crate) use shown::Shown;

use crate::{commit::EncodedRow, error::ReadError, refused, store::Reader};

/// What a new row of `session` is filled with and never changes.
#[derive(Debug)]
pub(crate) struct Fixed {
    id: SessionId,
    campaign: String,
    conversation: String,
    name: String,
    agent: String,
    role: Option<String>,
    branch: Option<String>,
    provider: String,
    ticket: Option<String>,
    mission: Option<String>,
    chain: String,
    continues: Option<String>,
    spawned_by: Option<String>,
    created: Time,
    is_imported: bool,
}

/// The columns that a commit may change. Most change nothing here, and then no index is touched.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Changing {
    model: Option<String>,
    provider_id: Option<String>,
    status: Status,
    attention: Option<Attention>,
    outcome: Option<Outcome>,
    ended: Option<Time>,
    restart_due: Option<Time>,
    cost_class: u32,
}

impl Fixed {
    pub(crate) fn of(view: &View) -> Self {
        Self {
            id: view.id,
            campaign: view.campaign.to_string(),
            conversation: view.conversation.to_string(),
            name: view.name.to_string(),
            agent: view.agent.as_ref().map_or(&view.name, |agent| &agent.name).to_string(),
            role: view.agent.as_ref().map(|agent| agent.role.to_string()),
            branch: view.branch.clone(),
            provider: view.provider.clone(),
            ticket: view.ticket_id.map(|id| id.to_string()).or_else(|| view.ticket.clone()),
            mission: view.mission.map(|member| member.mission.to_string()),
            chain: view.chain.to_string(),
            continues: view.continues.map(|id| id.to_string()),
            spawned_by: view.spawned_by.map(|id| id.to_string()),
            created: view.created_at,
            is_imported: view.imported.is_some(),
        }
    }

    pub(crate) fn campaign(&self) -> &str {
        &self.campaign
    }

    pub(crate) fn provider(&self) -> &str {
        &self.provider
    }
}

impl Changing {
    pub(crate) fn of(view: &View) -> Self {
        let restart_due = match &view.restart {
            Some(Restart::At(deadline)) => Some(deadline.wall()),
            Some(Restart::Quarantined { .. }) | None => None,
        };
        Self {
            model: view.model.clone(),
            provider_id: view.provider_id.clone(),
            status: view.status,
            attention: view.attention,
            outcome: view.outcome,
            ended: view.ended_at,
            restart_due,
            cost_class: match view.cost.unpriced.is_empty() {
                true => cost_class(view.cost.paid),
                false => UNKNOWN_COST,
            },
        }
    }
}

/// The highest class that is told apart: a thousand million dollars.
pub(crate) const COST_CLASSES: u32 = 50;
/// The class of what had no price: it has whatever cost the prices that hold now make of it.
pub(crate) const UNKNOWN_COST: u32 = COST_CLASSES + 1;

/// How many binary digits a cost has.
pub(crate) fn cost_class(Dollars(micros): Dollars) -> u32 {
    (u64::BITS - micros.leading_zeros()).min(COST_CLASSES)
}

/// The number of a session on this node.
pub(crate) fn number(connection: &Connection, id: SessionId) -> Result<Option<i64>, ReadError> {
    let mut statement = connection.prepare_cached("SELECT num FROM session WHERE id = ?1")?;
    Ok(statement.query_row([id.to_string()], |row| row.get(0)).optional()?)
}

/// The highest number given to a session.
pub(crate) fn last_number(connection: &Connection) -> rusqlite::Result<i64> {
    let highest: Option<i64> = connection
        .prepare_cached("SELECT max(session) FROM log_event WHERE session IS NOT NULL")?
        .query_row([], |row| row.get(0))?;
    Ok(highest.unwrap_or(0))
}

/// Adds a session. The one it goes on with no longer waits for that.
pub(crate) fn insert(
    connection: &Connection,
    num: i64,
    fixed: &Fixed,
    row: &EncodedRow,
) -> rusqlite::Result<()> {
    let id = fixed.id.to_string();
    let changing = &row.changing;
    connection
        .prepare_cached(
            "INSERT INTO session(num, id, tail, campaign, conversation, name, agent, role, provider, ticket, chain, continues,
                                 spawned_by, branch, created, imported, model, provider_id, status, attention, outcome, ended, restart_due, mission, cost_class)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,
                     iif(EXISTS (SELECT 1 FROM session next WHERE next.continues = ?2), NULL, ?23), ?24, ?25)",
        )?
        .execute(params![
            num,
            id,
            tail(&id),
            fixed.campaign,
            fixed.conversation,
            fixed.name,
            fixed.agent,
            fixed.role,
            fixed.provider,
            fixed.ticket,
            fixed.chain,
            fixed.continues,
            fixed.spawned_by,
            fixed.branch,
            fixed.created.micros(),
            fixed.is_imported,
            changing.model,
            changing.provider_id,
            changing.status.as_str(),
            changing.attention.map(Attention::as_str),
            changing.outcome.map(Outcome::as_str),
            changing.ended.map(Time::micros),
            changing.restart_due.map(Time::micros),
            fixed.mission,
            changing.cost_class,
        ])?;
    connection
        .prepare_cached("INSERT INTO session_view(num, view) VALUES (?1, ?2)")?
        .execute(params![num, encoded(&row.view)])?;
    if let Some(continued) = &fixed.continues {
        connection
            .prepare_cached(
                "UPDATE session SET restart_due = NULL WHERE id = ?1 AND restart_due IS NOT NULL",
            )?
            .execute([continued])?;
    }
    Ok(())
}

pub(crate) fn update_view(connection: &Connection, num: i64, view: &View) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE session_view SET view = ?2 WHERE num = ?1")?
        .execute(params![num, encoded(view)])?;
    Ok(())
}

fn encoded(view: &View) -> String {
    // A view is plain structs with string keys: serializing it cannot fail.
    serde_json::to_string(view).unwrap_or_default()
}

pub(crate) fn update_columns(connection: &Connection, num: i64, changing: &Changing) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE session SET model = ?2, provider_id = ?3, status = ?4, attention = ?5, outcome = ?6, ended = ?7,
                    restart_due = iif(EXISTS (SELECT 1 FROM session next WHERE next.continues = session.id), NULL, ?8), cost_class = ?9
             WHERE num = ?1",
        )?
        .execute(params![
            num,
            changing.model,
            changing.provider_id,
            changing.status.as_str(),
            changing.attention.map(Attention::as_str),
            changing.outcome.map(Outcome::as_str),
            changing.ended.map(Time::micros),
            changing.restart_due.map(Time::micros),
            changing.cost_class,
        ])?;
    Ok(())
}

/// A session as it is now.
pub(crate) fn view(reader: &Reader, num: i64) -> Result<View, ReadError> {
    let row = row(&reader.connection, num)?;
    refused::with_what_follows(&reader.connection, reader.shown.latest(num, row))
}

/// Sessions as they are now, in this order.
pub(crate) fn views_of(reader: &Reader, nums: &[i64]) -> Result<Vec<View>, ReadError> {
    let mut statement = reader.connection.prepare_cached(ROW)?;
    let view = |num: &i64| {
        let row = read(&mut statement, *num)?;
        refused::with_what_follows(&reader.connection, reader.shown.latest(*num, row))
    };
    nums.iter().map(view).collect()
}

/// A session as its row has it, which may be a moment behind its events.
pub(crate) fn row(connection: &Connection, num: i64) -> Result<View, ReadError> {
    read(&mut *connection.prepare_cached(ROW)?, num)
}

const ROW: &str = "SELECT view FROM session_view WHERE num = ?1";

fn read(statement: &mut Statement<'_>, num: i64) -> Result<View, ReadError> {
    let mut rows = statement.query([num])?;
    let Some(row) = rows.next()? else {
        return Err(ReadError::Row { what: "session row", text: format!("number {num} is missing") });
    };
    let text = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
    serde_json::from_str(text)
        .map_err(|error| ReadError::Row { what: "session row", text: error.to_string() })
}

/// Compares a session's rows with what its events add up to; says what differs.
pub(crate) fn compare(
    connection: &Connection,
    num: i64,
    folded: &View,
) -> Result<Result<(), String>, ReadError> {
    let expected = Changing::of(folded);
    let stored = connection
        .prepare_cached(
            "SELECT v.view, s.status, s.attention, s.outcome, s.ended FROM session s JOIN session_view v ON v.num = s.num
             WHERE s.num = ?1 AND s.id = ?2",
        )?
        .query_row(params![num, folded.id.to_string()], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
        })
        .optional()?;
    let Some((view, status, attention, outcome, ended)) = stored else {
        return Ok(Err(format!("has no row under its number {num}")));
    };
    let words = (
        expected.status.as_str().to_owned(),
        expected.attention.map(|word| word.as_str().to_owned()),
        expected.outcome.map(|word| word.as_str().to_owned()),
        expected.ended.map(Time::micros),
    );
    Ok(if view != encoded(folded) {
        Err("is not shown as its events say".to_owned())
    } else if (status, attention, outcome, ended) != words {
        Err("is filed under another state than its events say".to_owned())
    } else {
        Ok(())
    })
}
