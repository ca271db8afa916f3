//! `conversation`: dialogues that survive processes.

use ostler_domain::{
    AgentId, CampaignId, ConversationId, Name, SessionId, Time,
    conversation::{CloseReason, Closed, Conversation, Key, Notes},
    event::ConversationOpened,
    id::Fragment,
    query::{ConversationFilter, Listed, Page},
};
use rusqlite::{Connection, OptionalExtension, Params, Row, ToSql, params, params_from_iter};

use crate::{
    convert::{parsed, parsed_if_any, signed, time, time_if_any, unsigned},
    error::ReadError,
    session::{fragment_condition, tail},
    store::Store,
};

pub(crate) fn open(
    connection: &Connection,
    seq: u64,
    at: Time,
    opened: &ConversationOpened,
) -> rusqlite::Result<()> {
    let id = opened.id.to_string();
    connection
        .prepare_cached(
            "INSERT INTO conversation(seq, id, tail, campaign, agent, key, folded, name, opened, active, forked_from,
                                      forked_at, spawned_by, replaces, notes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10, ?11, ?12, ?13, ?14)",
        )?
        .execute(params![
            signed(seq),
            id,
            tail(&id),
            opened.campaign.to_string(),
            opened.agent.map(|id| id.to_string()).unwrap_or_default(),
            opened.key.as_str(),
            opened.key.folded(),
            opened.name.as_str(),
            at.micros(),
            opened.forked_from.map(|id| id.to_string()),
            opened.forked_at.map(|at| serde_json::to_string(&at).unwrap_or_default()),
            opened.spawned_by.map(|id| id.to_string()),
            opened.replaces.map(|id| id.to_string()),
            opened.notes.to_json(),
        ])?;
    Ok(())
}

/// Something was said to it, or a session of it began.
pub(crate) fn touch(connection: &Connection, id: ConversationId, at: Time) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE conversation SET active = ?2 WHERE id = ?1")?
        .execute(params![id.to_string(), at.micros()])?;
    Ok(())
}

pub(crate) fn change(connection: &Connection, id: ConversationId, notes: &Notes) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE conversation SET notes = ?2 WHERE id = ?1")?
        .execute(params![id.to_string(), notes.to_json()])?;
    Ok(())
}

pub(crate) fn close(
    connection: &Connection,
    id: ConversationId,
    at: Time,
    why: CloseReason,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE conversation SET closed = ?2, close_reason = ?3 WHERE id = ?1")?
        .execute(params![id.to_string(), at.micros(), why.as_str()])?;
    Ok(())
}

pub(crate) fn reopen(connection: &Connection, id: ConversationId) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE conversation SET closed = NULL, close_reason = NULL WHERE id = ?1")?
        .execute([id.to_string()])?;
    Ok(())
}

impl Store {
    pub async fn conversation(&self, id: ConversationId) -> Result<Option<Conversation>, ReadError> {
        self.read(move |reader| Ok(query(&reader.connection, "id = ?1", [id.to_string()])?.pop())).await
    }

    /// Where in the log a conversation was opened.
    pub async fn conversation_opened_at(&self, id: ConversationId) -> Result<Option<u64>, ReadError> {
        self.read(move |reader| {
            let mut statement =
                reader.connection.prepare_cached("SELECT seq FROM conversation WHERE id = ?1")?;
            let seq: Option<i64> = statement.query_row([id.to_string()], |row| row.get(0)).optional()?;
            Ok(seq.map(unsigned))
        })
        .await
    }

    /// The conversations of a name, open ones first and the newest of them first.
    pub async fn conversations_named(&self, name: &str) -> Result<Vec<Conversation>, ReadError> {
        let name = name.to_owned();
        self.read(move |reader| {
            query(&reader.connection, "name = ?1 ORDER BY closed IS NOT NULL, seq DESC", [name])
        })
        .await
    }

    /// Says whether a conversation of a campaign has this name, open or closed.
    pub async fn is_conversation_named(&self, campaign: CampaignId, name: &Name) -> Result<bool, ReadError> {
        let (campaign, name) = (campaign.to_string(), name.to_string());
        self.read(move |reader| {
            let mut statement = reader.connection.prepare_cached(
                // By the index of names: a campaign may have any number of conversations.
                "SELECT EXISTS(SELECT 1 FROM conversation WHERE name = ?1 AND +campaign = ?2)",
            )?;
            Ok(statement.query_row([name, campaign], |row| row.get(0))?)
        })
        .await
    }

    /// The conversations that a part of an id fits; a few, if many do.
    pub async fn find_conversations(&self, fragment: &Fragment) -> Result<Vec<Conversation>, ReadError> {
        let fragment = fragment.clone();
        self.read(move |reader| {
            let (condition, params) =
                fragment_condition(&fragment, ConversationId::PREFIX, "conversation", "seq");
            let condition = format!("{condition} ORDER BY seq DESC");
            query(&reader.connection, &condition, params_from_iter(params))
        })
        .await
    }

    /// The open conversation of a campaign with this agent and key.
    pub async fn conversation_keyed(
        &self,
        campaign: CampaignId,
        agent: Option<AgentId>,
        key: &Key,
    ) -> Result<Option<Conversation>, ReadError> {
        let agent = agent.map(|id| id.to_string()).unwrap_or_default();
        let params = [campaign.to_string(), agent, key.folded()];
        self.read(move |reader| {
            let condition = "campaign = ?1 AND agent = ?2 AND folded = ?3 AND closed IS NULL";
            Ok(query(&reader.connection, condition, params)?.pop())
        })
        .await
    }

    /// The conversations that a filter fits, newest first.
    pub async fn conversations(
        &self,
        filter: &ConversationFilter,
        page: Page,
    ) -> Result<Listed<Conversation>, ReadError> {
        let filter = filter.clone();
        self.read(move |reader| list(&reader.connection, &filter, page)).await
    }

    /// The conversations that sessions of this one's agent asked for.
    pub async fn spawned(&self, by: SessionId) -> Result<Vec<Conversation>, ReadError> {
        self.read(move |reader| query(&reader.connection, "spawned_by = ?1 ORDER BY seq", [by.to_string()]))
            .await
    }
}

fn list(
    connection: &Connection,
    filter: &ConversationFilter,
    page: Page,
) -> Result<Listed<Conversation>, ReadError> {
    let limit = page.limit.max(1) as usize;
    let mut condition = "seq < ?".to_owned();
    let mut params: Vec<Box<dyn ToSql>> = vec![Box::new(page.cursor.map_or(i64::MAX, signed))];
    let equals = [
        ("campaign", filter.campaign.map(|id| id.to_string())),
        ("agent", filter.agent.map(|id| id.to_string())),
        ("folded", filter.key.as_ref().map(Key::folded)),
        ("name", filter.name.clone()),
    ];
    for (column, value) in equals {
        if let Some(value) = value {
            condition.push_str(&format!(" AND {column} = ?"));
            params.push(Box::new(value));
        }
    }
    if !filter.closed_too {
        condition.push_str(" AND closed IS NULL");
    }
    for (comparison, time) in [("active >= ?", filter.since), ("active < ?", filter.until)] {
        if let Some(time) = time {
            condition.push_str(&format!(" AND {comparison}"));
            params.push(Box::new(time.micros()));
        }
    }
    params.push(Box::new(signed(limit as u64 + 1)));
    let sql = format!("SELECT seq, {COLUMNS} FROM conversation WHERE {condition} ORDER BY seq DESC LIMIT ?");
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement.query_and_then(params_from_iter(params.iter()), |row| {
        Ok::<_, ReadError>((unsigned(row.get("seq")?), read(row)?))
    })?;
    let mut found = found.collect::<Result<Vec<_>, _>>()?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next_cursor = found.last().map(|(seq, _)| *seq).filter(|_| has_more);
    Ok(Listed { rows: found.into_iter().map(|(_, row)| row).collect(), next_cursor })
}

const COLUMNS: &str =
    "id, campaign, agent, key, name, opened, active, forked_from, forked_at, spawned_by, replaces,
    closed, close_reason, notes";

fn query(
    connection: &Connection,
    condition: &str,
    params: impl Params,
) -> Result<Vec<Conversation>, ReadError> {
    let sql = format!("SELECT {COLUMNS} FROM conversation WHERE {condition}");
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_and_then(params, read)?.collect()
}

fn read(row: &Row<'_>) -> Result<Conversation, ReadError> {
    let malformed =
        |error: serde_json::Error| ReadError::Row { what: "conversation row", text: error.to_string() };
    let agent: String = row.get("agent")?;
    let forked_at: Option<String> = row.get("forked_at")?;
    let reason: Option<String> = row.get("close_reason")?;
    let closed = time_if_any(row, "closed")?.zip(reason.as_deref().and_then(CloseReason::parse));
    let notes = row.get_ref("notes")?.as_str().map_err(rusqlite::Error::from)?;
    Ok(Conversation {
        id: parsed(row, "id", "conversation id")?,
        campaign: parsed(row, "campaign", "campaign id")?,
        agent: if agent.is_empty() { None } else { Some(parsed(row, "agent", "agent id")?) },
        key: parsed(row, "key", "conversation key")?,
        name: parsed(row, "name", "conversation name")?,
        opened: time(row, "opened")?,
        active: time(row, "active")?,
        forked_from: parsed_if_any(row, "forked_from", "conversation id")?,
        forked_at: forked_at.map(|text| serde_json::from_str(&text)).transpose().map_err(malformed)?,
        spawned_by: parsed_if_any(row, "spawned_by", "session id")?,
        replaces: parsed_if_any(row, "replaces", "conversation id")?,
        closed: closed.map(|(at, why)| Closed { at, why }),
        notes: Notes::from_json(notes).map_err(malformed)?,
    })
}
