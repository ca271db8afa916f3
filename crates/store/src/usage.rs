//! `usage`: one row per model call, added up on demand.

use std::collections::BTreeMap;

use ostler_domain::{
    AgentId, CampaignId, SessionId, Time, Usage,
    agent::Agent,
    event::UsageRecorded,
    price::Dollars,
    query::{UsageBy, UsageFilter, UsageSum},
};
use rusqlite::{Connection, Row, ToSql, params};

use crate::{
    convert::{parsed, signed, unsigned},
    derive::Origin,
    error::ReadError,
    session,
    store::Store,
};

pub(crate) fn add(
    connection: &Connection,
    seq: u64,
    at: Time,
    recorded: &UsageRecorded,
    origin: &Origin<'_>,
) -> rusqlite::Result<()> {
    let usage = &recorded.usage;
    // The other source had told of this call.
    if usage.is_zero() && recorded.said.is_some() {
        return Ok(());
    }
    connection
        .prepare_cached(
            "INSERT INTO usage(seq, session, campaign, provider, model, time, input, cache_read, cache_write, output, reasoning, cost, plan)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?
        .execute(params![
            signed(seq),
            origin.num,
            origin.campaign,
            origin.provider,
            recorded.model,
            at.micros(),
            signed(usage.input),
            signed(usage.cache_read),
            signed(usage.cache_write),
            signed(usage.output),
            signed(usage.reasoning),
            recorded.cost.map(|Dollars(micros)| signed(micros)),
            recorded.plan,
        ])?;
    Ok(())
}

impl Store {
    /// Adds up model calls, the largest sum first.
    pub async fn usage(&self, filter: &UsageFilter, by: UsageBy) -> Result<Vec<UsageSum>, ReadError> {
        let filter = filter.clone();
        self.read(move |reader| sum(&reader.connection, &filter, by)).await
    }
}

/// A call that does not name its model ran with the session's.
pub(crate) const MODEL: &str = "coalesce(u.model, s.model, '')";

/// The buckets of those calls for which a condition holds, added up. total() adds as a float: exact up to 2^53, and
/// nonsense from an agent cannot overflow it into an error.
pub(crate) fn buckets(condition: &str) -> String {
    let bucket = |name: &str| format!("total(CASE WHEN {condition} THEN u.{name} END)");
    ["input", "cache_read", "cache_write", "output", "reasoning"].map(bucket).join(", ")
}

/// What was paid for, and has a price; what was paid for, and has none.
pub(crate) const PAID: &str = "total(CASE WHEN u.plan = 0 THEN u.cost END)";
pub(crate) const UNPRICED: &str = "u.plan = 0 AND u.cost IS NULL";
/// What a subscription covers, and has no price.
pub(crate) const PLAN_UNPRICED: &str = "u.plan = 1 AND u.cost IS NULL";

/// What a session has paid, with what had no price then and has one now.
pub(crate) const PAID_NOW: &str = "(SELECT total(known) + total(priced_now) FROM
    (SELECT total(u.cost) AS known,
            cost_now(coalesce(u.model, session.model, ''),
                     CAST(total(CASE WHEN u.cost IS NULL THEN u.input END) AS INTEGER),
                     CAST(total(CASE WHEN u.cost IS NULL THEN u.cache_read END) AS INTEGER),
                     CAST(total(CASE WHEN u.cost IS NULL THEN u.cache_write END) AS INTEGER),
                     CAST(total(CASE WHEN u.cost IS NULL THEN u.output END) AS INTEGER)) AS priced_now
     FROM usage u WHERE u.session = session.num AND u.plan = 0 GROUP BY u.model))";

/// What calls are added up by.
fn key(by: UsageBy) -> &'static str {
    match by {
        UsageBy::Total => "''",
        // The plus keeps SQLite from going through all calls of all campaigns in their order, where a day's are asked for.
        UsageBy::Campaign => "+u.campaign",
        UsageBy::Session => "s.id",
        UsageBy::Provider => "u.provider",
        UsageBy::Model => MODEL,
        UsageBy::Day => "strftime('%Y-%m-%d', u.time / 1000000, 'unixepoch')",
        // What helpers used is the chain's that they helped.
        UsageBy::Chain => session::ROOT_CHAIN,
        UsageBy::Ticket => "coalesce(s.ticket, '')",
        UsageBy::Mission => "coalesce(s.mission, '')",
    }
}

fn sum(connection: &Connection, filter: &UsageFilter, by: UsageBy) -> Result<Vec<UsageSum>, ReadError> {
    let mut conditions = vec!["1".to_owned()];
    let mut params: Vec<Box<dyn ToSql>> = Vec::new();
    let mut add = |condition: String, value: Box<dyn ToSql>| {
        conditions.push(condition);
        params.push(value);
    };
    if let Some(id) = filter.session {
        match session::number(connection, id)? {
            Some(num) => add("u.session = ?".to_owned(), Box::new(num)),
            None => return Ok(Vec::new()),
        }
    }
    if let Some(name) = &filter.name {
        add("s.name = ?".to_owned(), Box::new(name.clone()));
    }
    if let Some(since) = filter.since {
        add("u.time >= ?".to_owned(), Box::new(since.micros()));
    }
    if let Some(until) = filter.until {
        add("u.time < ?".to_owned(), Box::new(until.micros()));
    }
    let lists = [
        ("u.campaign", filter.campaigns.iter().map(ToString::to_string).collect()),
        ("u.provider", filter.providers.clone()),
        (MODEL, filter.models.clone()),
        ("s.ticket", filter.tickets.clone()),
    ];
    for (column, values) in lists.into_iter().filter(|(_, values)| !values.is_empty()) {
        conditions.push(format!("{column} IN ({})", session::marks(values.len())));
        params.extend(values.into_iter().map(|value| Box::new(value) as Box<dyn ToSql>));
    }
    if !filter.chains.is_empty() {
        let chains = format!("chain IN ({})", session::marks(filter.chains.len()));
        conditions.push(format!("s.id IN ({} SELECT id FROM family)", session::below(&chains)));
        params.extend(filter.chains.iter().map(|chain| Box::new(chain.to_string()) as Box<dyn ToSql>));
    }
    if let Some(sessions) = &filter.sessions {
        let fitting = session::Condition::fitting("u.session", sessions);
        conditions.push(fitting.sql);
        params.extend(fitting.params);
    }
    let key = key(by);
    let of_chain = format!("coalesce((SELECT f.name FROM session f WHERE f.id = {key}), '')");
    let name = match by {
        UsageBy::Campaign => "coalesce((SELECT c.name FROM campaign c WHERE c.id = u.campaign), '')",
        UsageBy::Session => "s.name",
        UsageBy::Chain => of_chain.as_str(),
        UsageBy::Ticket => "coalesce((SELECT t.external FROM ticket t WHERE t.id = s.ticket), '')",
        UsageBy::Mission => "coalesce((SELECT m.name FROM mission m WHERE m.id = s.mission), '')",
        UsageBy::Total | UsageBy::Provider | UsageBy::Model | UsageBy::Day => "''",
    };
    let (all, unpriced) = (buckets("1"), buckets(UNPRICED));
    let plan_unpriced = buckets(PLAN_UNPRICED);
    let sql = format!(
        "SELECT {key} AS key, count(*), count(DISTINCT u.session), {all}, {unpriced}, {plan_unpriced}, {PAID}, total(CASE WHEN u.plan = 1 THEN u.cost END), {name}
         FROM usage u JOIN session s ON s.num = u.session WHERE {} GROUP BY key
         ORDER BY total(u.input) + total(u.output) DESC, key",
        conditions.join(" AND ")
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_and_then(rusqlite::params_from_iter(params.iter()), read)?.collect()
}

fn read(row: &Row<'_>) -> Result<UsageSum, ReadError> {
    Ok(UsageSum {
        key: row.get(0)?,
        calls: unsigned(row.get(1)?),
        sessions: unsigned(row.get(2)?),
        usage: usage_at(row, 3)?,
        unpriced: usage_at(row, 8)?,
        plan_unpriced: usage_at(row, 13)?,
        cost: Dollars(total(row, 18)?),
        plan: Dollars(total(row, 19)?),
        name: row.get(20)?,
    })
}

pub(crate) fn usage_at(row: &Row<'_>, column: usize) -> rusqlite::Result<Usage> {
    Ok(Usage {
        input: total(row, column)?,
        cache_read: total(row, column + 1)?,
        cache_write: total(row, column + 2)?,
        output: total(row, column + 3)?,
        reasoning: total(row, column + 4)?,
    })
}

pub(crate) fn total(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, as wanted"
    )]
    row.get::<_, f64>(column).map(|sum| sum as u64)
}

/// What a campaign's calls took, added up as budgets count it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CampaignSpent {
    /// The last call that is in it.
    pub last_seq: u64,
    pub tokens: u64,
    pub paid: Dollars,
    /// Calls whose model had no price, by its name.
    pub unpriced: BTreeMap<String, Usage>,
}

impl Store {
    /// Adds to a sum what a campaign's calls since a time took, as far as the sum does not have them yet.
    pub async fn campaign_spent(
        &self,
        campaign: CampaignId,
        since: Time,
        before: CampaignSpent,
    ) -> Result<CampaignSpent, ReadError> {
        self.read(move |reader| spent(&reader.connection, &campaign.to_string(), None, since, before)).await
    }

    /// The same of one of its agents: of all of its sessions, and of whoever helped them.
    pub async fn agent_spent(
        &self,
        agent: &Agent,
        since: Time,
        before: CampaignSpent,
    ) -> Result<CampaignSpent, ReadError> {
        let (campaign, agent) = (agent.campaign.to_string(), agent.id.to_string());
        self.read(move |reader| spent(&reader.connection, &campaign, Some(&agent), since, before)).await
    }

    /// The agent that a session works for: its own, or that of whoever it helps.
    pub async fn agent_worked_for(&self, session: SessionId) -> Result<Option<AgentId>, ReadError> {
        self.read(move |reader| {
            let sql = format!(
                "WITH RECURSIVE {ABOVE_SESSION}
                 SELECT c.agent FROM above a JOIN session s ON s.id = a.id JOIN conversation c ON c.id = s.conversation
                 WHERE c.agent != '' LIMIT 1"
            );
            let mut statement = reader.connection.prepare_cached(&sql)?;
            let found = statement.query_and_then([session.to_string()], |row| parsed(row, "agent", "agent id"))?;
            found.collect::<Result<Vec<_>, ReadError>>().map(|mut found| found.pop())
        })
        .await
    }
}

/// A session, whoever it helps, and so on: helpers have no agent of their own.
const ABOVE_SESSION: &str =
    "above(id) AS (SELECT ?1 UNION SELECT p.spawned_by FROM above JOIN session p ON p.id = above.id
                              WHERE p.spawned_by IS NOT NULL)";

/// Whether a call of a session `s` is one for the agent `?4`.
const FOR_AGENT: &str = "EXISTS (
    WITH RECURSIVE above(id) AS (SELECT s.id UNION SELECT p.spawned_by FROM above JOIN session p ON p.id = above.id
                                 WHERE p.spawned_by IS NOT NULL)
    SELECT 1 FROM above a JOIN session p ON p.id = a.id JOIN conversation c ON c.id = p.conversation WHERE c.agent = ?4)";

fn spent(
    connection: &Connection,
    campaign: &str,
    agent: Option<&str>,
    since: Time,
    mut sum: CampaignSpent,
) -> Result<CampaignSpent, ReadError> {
    // One model a row, so that what has no price has its name.
    let sql = format!(
        "SELECT {MODEL} AS key, max(u.seq), total(u.input) + total(u.output), {PAID}, {}
         FROM usage u JOIN session s ON s.num = u.session
         WHERE u.campaign = ?1 AND u.time >= ?2 AND u.seq > ?3 AND NOT s.imported AND (?4 IS NULL OR {FOR_AGENT})
         GROUP BY key",
        buckets(UNPRICED)
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![campaign, since.micros(), signed(sum.last_seq), agent])?;
    while let Some(row) = rows.next()? {
        sum.last_seq = sum.last_seq.max(unsigned(row.get(1)?));
        sum.tokens = sum.tokens.saturating_add(total(row, 2)?);
        sum.paid = Dollars(sum.paid.0.saturating_add(total(row, 3)?));
        let unpriced = usage_at(row, 4)?;
        if !unpriced.is_zero() {
            *sum.unpriced.entry(row.get(0)?).or_default() += unpriced;
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_s_calls_are_found_by_their_time_whatever_they_are_added_up_by() {
        let mut connection = Connection::open_in_memory().unwrap();
        let connection = connection.transaction().unwrap();
        crate::schema::create_derived(&connection).unwrap();
        for by in [UsageBy::Total, UsageBy::Campaign, UsageBy::Provider, UsageBy::Model, UsageBy::Day] {
            let sql = format!(
                "EXPLAIN QUERY PLAN SELECT {} AS key, count(*) FROM usage u JOIN session s ON s.num = u.session WHERE u.time >= 5 GROUP BY key",
                key(by)
            );
            let plan: String = connection.query_row(&sql, [], |row| row.get("detail")).unwrap();
            assert!(plan.contains("usage_time (time>?)"), "{by:?}: {plan}");
        }
    }
}
