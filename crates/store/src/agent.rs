//! `agent`: named identities in campaigns. Removed ones stay, because sessions go on naming them.

use ostler_domain::{
    AgentId, CampaignId, Time,
    agent::{Agent, Profile},
    query::{Listed, Page},
};
use rusqlite::{Connection, Params, Row, params};

use crate::{
    convert::{parsed, signed, time, unsigned},
    error::ReadError,
    store::Store,
};

pub(crate) fn add(connection: &Connection, seq: u64, agent: &Agent) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO agent(seq, id, campaign, name, role, added, profile) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            signed(seq),
            agent.id.to_string(),
            agent.campaign.to_string(),
            agent.name.as_str(),
            agent.profile.role.as_str(),
            agent.added.micros(),
            encoded(&agent.profile),
        ])?;
    Ok(())
}

pub(crate) fn change(connection: &Connection, id: AgentId, profile: &Profile) -> rusqlite::Result<()> {
    connection.prepare_cached("UPDATE agent SET role = ?2, profile = ?3 WHERE id = ?1")?.execute(params![
        id.to_string(),
        profile.role.as_str(),
        encoded(profile)
    ])?;
    Ok(())
}

pub(crate) fn remove(connection: &Connection, id: AgentId, at: Time) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE agent SET removed = ?2 WHERE id = ?1 AND removed IS NULL")?
        .execute(params![id.to_string(), at.micros()])?;
    Ok(())
}

fn encoded(profile: &Profile) -> String {
    // A profile is plain fields with string keys: serializing it cannot fail.
    serde_json::to_string(profile).unwrap_or_default()
}

impl Store {
    /// An agent by its id, also one that was removed.
    pub async fn agent(&self, id: AgentId) -> Result<Option<Agent>, ReadError> {
        self.read(move |reader| Ok(query(&reader.connection, "id = ?1", [id.to_string()])?.pop())).await
    }

    /// The registered agent of this name.
    pub async fn agent_named(&self, campaign: CampaignId, name: &str) -> Result<Option<Agent>, ReadError> {
        let params = [campaign.to_string(), name.to_owned()];
        self.read(move |reader| {
            let condition = "campaign = ?1 AND name = ?2 AND removed IS NULL";
            Ok(query(&reader.connection, condition, params)?.pop())
        })
        .await
    }

    /// The registered agents of this name, of any campaign that is registered too.
    pub async fn agents_named(&self, name: &str) -> Result<Vec<Agent>, ReadError> {
        let name = name.to_owned();
        self.read(move |reader| {
            let condition = format!("name = ?1 AND removed IS NULL AND {REGISTERED} ORDER BY seq");
            query(&reader.connection, &condition, [name])
        })
        .await
    }

    /// The registered agents of a campaign that have a budget for all their sessions.
    pub async fn budgeted_agents(&self, campaign: CampaignId) -> Result<Vec<Agent>, ReadError> {
        self.read(move |reader| {
            let condition = "campaign = ?1 AND removed IS NULL ORDER BY seq";
            let mut found = query(&reader.connection, condition, [campaign.to_string()])?;
            found.retain(|agent| agent.profile.period_budget.is_some());
            Ok(found)
        })
        .await
    }

    /// The registered agents, those of one campaign or of all that are registered, oldest first.
    pub async fn agents(&self, campaign: Option<CampaignId>, page: Page) -> Result<Listed<Agent>, ReadError> {
        let campaign = campaign.map(|id| id.to_string());
        self.read(move |reader| {
            let condition = format!(
                "removed IS NULL AND seq > ?1 AND iif(?2 IS NULL, {REGISTERED}, campaign = ?2) ORDER BY seq LIMIT ?3"
            );
            let limit = page.limit.max(1) as usize;
            let after = page.cursor.map_or(0, signed);
            let more = signed(limit as u64 + 1);
            let sql = format!("SELECT seq, {COLUMNS} FROM agent WHERE {condition}");
            let mut statement = reader.connection.prepare_cached(&sql)?;
            let found = statement.query_and_then(params![after, campaign, more], |row| {
                Ok::<_, ReadError>((unsigned(row.get("seq")?), read(row)?))
            })?;
            let mut found = found.collect::<Result<Vec<_>, _>>()?;
            let has_more = found.len() > limit;
            found.truncate(limit);
            let next_cursor = found.last().map(|(seq, _)| *seq).filter(|_| has_more);
            Ok(Listed { rows: found.into_iter().map(|(_, agent)| agent).collect(), next_cursor })
        })
        .await
    }
}

/// Nobody can be named by the campaign that was removed.
const REGISTERED: &str = "campaign NOT IN (SELECT id FROM campaign WHERE removed IS NOT NULL)";

const COLUMNS: &str = "id, campaign, name, added, profile";

fn query(connection: &Connection, condition: &str, params: impl Params) -> Result<Vec<Agent>, ReadError> {
    let mut statement =
        connection.prepare_cached(&format!("SELECT {COLUMNS} FROM agent WHERE {condition}"))?;
    statement.query_and_then(params, read)?.collect()
}

fn read(row: &Row<'_>) -> Result<Agent, ReadError> {
    let profile = row.get_ref("profile")?.as_str().map_err(rusqlite::Error::from)?;
    Ok(Agent {
        id: parsed(row, "id", "agent id")?,
        campaign: parsed(row, "campaign", "campaign id")?,
        name: parsed(row, "name", "agent name")?,
        added: time(row, "added")?,
        profile: serde_json::from_str(profile)
            .map_err(|error| ReadError::Row { what: "agent profile", text: error.to_string() })?,
    })
}
