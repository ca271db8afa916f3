//! `usage`: one row per model call, added up on demand.

use ostler_domain::{
    Time, Usage,
    event::UsageRecorded,
    query::{UsageBy, UsageFilter, UsageSum},
};
use rusqlite::{Connection, Row, ToSql, params};

use crate::{
    convert::{signed, unsigned},
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
            "INSERT INTO usage(seq, session, campaign, provider, model, time, input, cache_read, cache_write, output, reasoning)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
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

fn sum(connection: &Connection, filter: &UsageFilter, by: UsageBy) -> Result<Vec<UsageSum>, ReadError> {
    // A call that does not name its model ran with the session's.
    const MODEL: &str = "coalesce(u.model, s.model, '')";
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
    if let Some(campaign) = filter.campaign {
        add("u.campaign = ?".to_owned(), Box::new(campaign.to_string()));
    }
    if let Some(provider) = &filter.provider {
        add("u.provider = ?".to_owned(), Box::new(provider.clone()));
    }
    if let Some(model) = &filter.model {
        add(format!("{MODEL} = ?"), Box::new(model.clone()));
    }
    if let Some(name) = &filter.name {
        add("s.name = ?".to_owned(), Box::new(name.clone()));
    }
    if let Some(ticket) = &filter.ticket {
        add("s.ticket = ?".to_owned(), Box::new(ticket.clone()));
    }
    if let Some(chain) = filter.chain {
        add("s.chain = ?".to_owned(), Box::new(chain.to_string()));
    }
    if let Some(since) = filter.since {
        add("u.time >= ?".to_owned(), Box::new(since.micros()));
    }
    if let Some(until) = filter.until {
        add("u.time < ?".to_owned(), Box::new(until.micros()));
    }
    let key = match by {
        UsageBy::Total => "''",
        UsageBy::Campaign => "u.campaign",
        UsageBy::Session => "s.id",
        UsageBy::Provider => "u.provider",
        UsageBy::Model => MODEL,
        UsageBy::Day => "strftime('%Y-%m-%d', u.time / 1000000, 'unixepoch')",
        UsageBy::Chain => "s.chain",
        UsageBy::Ticket => "coalesce(s.ticket, '')",
    };
    // total() adds as a float: exact up to 2^53, and nonsense from an agent cannot overflow it into an error.
    let sql = format!(
        "SELECT {key} AS key, count(*), count(DISTINCT u.session), total(u.input), total(u.cache_read), total(u.cache_write), total(u.output), total(u.reasoning)
         FROM usage u JOIN session s ON s.num = u.session WHERE {} GROUP BY key
         ORDER BY total(u.input) + total(u.output) DESC, key",
        conditions.join(" AND ")
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_and_then(rusqlite::params_from_iter(params.iter()), read)?.collect()
}

fn read(row: &Row<'_>) -> Result<UsageSum, ReadError> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, as wanted"
    )]
    let tokens = |column: usize| row.get::<_, f64>(column).map(|sum| sum as u64);
    Ok(UsageSum {
        key: row.get(0)?,
        calls: unsigned(row.get(1)?),
        sessions: unsigned(row.get(2)?),
        usage: Usage {
            input: tokens(3)?,
            cache_read: tokens(4)?,
            cache_write: tokens(5)?,
            output: tokens(6)?,
            reasoning: tokens(7)?,
        },
    })
}
