//! Questions about missions. Each is answered from an index, whatever the number of missions.

use ostler_domain::{
    AssignmentId, CampaignId, Event, MissionId, Recorded, Time, Usage,
    id::Fragment,
    mission::{AssignmentStatus, Counts, Filter, Listed as Mission, Spent, State, Status, Strategy},
    price::Dollars,
    query::{Listed, Page},
};
use rusqlite::{Connection, Params, Row, ToSql, params, params_from_iter};

use crate::{
    convert::{parsed, signed, time, time_if_any, unsigned},
    error::ReadError,
    log::{STORED, Stored},
    session::fragment_condition,
    store::{Reader, Store},
};

/// What an assignment that was completed took: what the like may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoneAssignment {
    pub id: AssignmentId,
    pub mission: MissionId,
    pub role: String,
    pub kind: String,
    pub model: Option<String>,
    pub took_us: u64,
    pub tokens: u64,
    /// Of what had a price when it ended.
    pub cost: Dollars,
}

impl Store {
    /// The mission as its events add up.
    pub async fn load_mission(&self, id: MissionId) -> Result<Option<State>, ReadError> {
        self.read(move |reader| {
            let events = events(reader, id, 0, u32::MAX)?;
            Ok(State::replay(events.iter().map(|recorded| (recorded.time, &recorded.event))))
        })
        .await
    }

    /// A mission's events after a place in the log, oldest first.
    pub async fn mission_events(
        &self,
        id: MissionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Recorded>, ReadError> {
        self.read(move |reader| events(reader, id, after, limit)).await
    }

    /// The missions that are not over, oldest first.
    pub async fn open_missions(&self) -> Result<Vec<MissionId>, ReadError> {
        self.read(|reader| {
            let sql = "SELECT id FROM mission INDEXED BY mission_open WHERE ended IS NULL ORDER BY seq";
            let mut statement = reader.connection.prepare_cached(sql)?;
            statement.query_and_then([], |row| parsed(row, "id", "mission id"))?.collect()
        })
        .await
    }

    pub async fn mission(&self, id: MissionId) -> Result<Option<Mission>, ReadError> {
        self.read(move |reader| Ok(query(&reader.connection, "id = ?1", [id.to_string()])?.pop())).await
    }

    /// The missions of this name, newest first.
    pub async fn missions_named(&self, name: &str) -> Result<Vec<Mission>, ReadError> {
        let name = name.to_owned();
        self.read(move |reader| query(&reader.connection, "name = ?1 ORDER BY seq DESC LIMIT 20", [name]))
            .await
    }

    /// The missions that a part of an id fits; a few, if many do.
    pub async fn find_missions(&self, fragment: &Fragment) -> Result<Vec<Mission>, ReadError> {
        let fragment = fragment.clone();
        self.read(move |reader| {
            let (condition, params) = fragment_condition(&fragment, MissionId::PREFIX, "mission", "seq");
            let condition = format!("{condition} ORDER BY seq DESC");
            query(&reader.connection, &condition, params_from_iter(params))
        })
        .await
    }

    /// The missions that a filter fits, newest first.
    pub async fn missions(&self, filter: &Filter, page: Page) -> Result<Listed<Mission>, ReadError> {
        let filter = filter.clone();
        self.read(move |reader| list(&reader.connection, &filter, page)).await
    }

    /// Assignments of a role that were completed, the newest ones.
    pub async fn done_assignments(&self, role: &str, most: u32) -> Result<Vec<DoneAssignment>, ReadError> {
        let role = role.to_owned();
        self.read(move |reader| {
            let sql =
                "SELECT a.id, m.id AS mission, role, type, model, a.ended - a.started AS took, tokens, cost
                       FROM assignment a INDEXED BY assignment_history JOIN mission m ON m.seq = a.mission
                       WHERE a.status = 'completed' AND role = ?1 AND a.started IS NOT NULL
                       ORDER BY a.ended DESC LIMIT ?2";
            let mut statement = reader.connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| -> Result<DoneAssignment, ReadError> {
                Ok(DoneAssignment {
                    id: parsed(row, "id", "assignment id")?,
                    mission: parsed(row, "mission", "mission id")?,
                    role: row.get("role")?,
                    kind: row.get("type")?,
                    model: row.get("model")?,
                    took_us: unsigned(row.get("took")?),
                    tokens: unsigned(row.get("tokens")?),
                    cost: Dollars(unsigned(row.get("cost")?)),
                })
            };
            statement.query_and_then(params![role, most], read)?.collect()
        })
        .await
    }
}

fn events(reader: &Reader, id: MissionId, after: u64, limit: u32) -> Result<Vec<Recorded>, ReadError> {
    let sql = format!(
        "SELECT {STORED} FROM mission m JOIN mission_event o ON o.mission = m.seq JOIN log_event e ON e.seq = o.seq
         WHERE m.id = ?1 AND o.seq > ?2 ORDER BY o.seq LIMIT ?3"
    );
    let mut statement = reader.connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![id.to_string(), signed(after), limit])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let stored = Stored::read(row)?;
        let event: Event = stored.event(&reader.blobs)?;
        events.push(Recorded { seq: stored.seq, session: None, session_seq: None, time: stored.time, event });
    }
    Ok(events)
}

fn list(connection: &Connection, filter: &Filter, page: Page) -> Result<Listed<Mission>, ReadError> {
    let mut condition = "seq < ?".to_owned();
    let mut params: Vec<Box<dyn ToSql>> = vec![Box::new(page.cursor.map_or(i64::MAX, signed))];
    if let Some(campaign) = filter.campaign {
        condition.push_str(" AND campaign = ?");
        params.push(Box::new(CampaignId::to_string(&campaign)));
    }
    if !filter.statuses.is_empty() {
        condition.push_str(&format!(" AND status IN ({})", vec!["?"; filter.statuses.len()].join(",")));
        params.extend(filter.statuses.iter().map(|status| Box::new(status.as_str()) as Box<dyn ToSql>));
    } else if !filter.over_too {
        condition.push_str(" AND ended IS NULL");
    }
    if let Some(since) = filter.since {
        condition.push_str(" AND created >= ?");
        params.push(Box::new(Time::micros(since)));
    }
    let limit = page.limit.max(1);
    condition.push_str(" ORDER BY seq DESC LIMIT ?");
    params.push(Box::new(i64::from(limit) + 1));
    let mut found = numbered(connection, &condition, params_from_iter(params))?;
    let has_more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next_cursor = found.last().filter(|_| has_more).map(|(seq, _)| unsigned(*seq));
    Ok(Listed { rows: found.into_iter().map(|(_, row)| row).collect(), next_cursor })
}

fn query(connection: &Connection, condition: &str, params: impl Params) -> Result<Vec<Mission>, ReadError> {
    Ok(numbered(connection, condition, params)?.into_iter().map(|(_, row)| row).collect())
}

fn numbered(
    connection: &Connection,
    condition: &str,
    params: impl Params,
) -> Result<Vec<(i64, Mission)>, ReadError> {
    let sql = format!(
        "SELECT seq, id, campaign, name, objective, strategy, status, created, started, ended, updated FROM mission WHERE {condition}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows: Vec<(i64, Mission)> = statement
        .query_and_then(params, |row| Ok((row.get("seq")?, read(row)?)))?
        .collect::<Result<_, ReadError>>()?;
    for (seq, mission) in &mut rows {
        mission.counts = counts(connection, *seq)?;
        mission.spent = spent(connection, mission.id)?;
    }
    Ok(rows)
}

fn read(row: &Row<'_>) -> Result<Mission, ReadError> {
    let (strategy, status): (String, String) = (row.get("strategy")?, row.get("status")?);
    Ok(Mission {
        id: parsed(row, "id", "mission id")?,
        campaign: parsed(row, "campaign", "campaign id")?,
        name: parsed(row, "name", "mission name")?,
        objective: row.get("objective")?,
        strategy: Strategy::parse(&strategy).ok_or(ReadError::Row { what: "strategy", text: strategy })?,
        status: Status::parse(&status).ok_or(ReadError::Row { what: "mission status", text: status })?,
        created_at: time(row, "created")?,
        started_at: time_if_any(row, "started")?,
        ended_at: time_if_any(row, "ended")?,
        updated_at: time(row, "updated")?,
        counts: Counts::default(),
        spent: Spent::default(),
    })
}

fn counts(connection: &Connection, mission: i64) -> Result<Counts, ReadError> {
    let sql = "SELECT status, count(*) AS n FROM assignment
               WHERE mission = ?1 AND status IS NOT 'removed' GROUP BY status";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([mission])?;
    let mut counts = Counts::default();
    while let Some(row) = rows.next()? {
        let n: u32 = row.get("n")?;
        let status: Option<String> = row.get("status")?;
        counts.total += n;
        match status.as_deref().and_then(AssignmentStatus::parse) {
            Some(AssignmentStatus::Completed) => counts.completed += n,
            Some(AssignmentStatus::Failed) => counts.failed += n,
            Some(AssignmentStatus::Skipped) => counts.skipped += n,
            Some(AssignmentStatus::Cancelled) => counts.cancelled += n,
            _ => {}
        }
    }
    Ok(counts)
}

/// What the sessions of a mission have used, those that still work too.
fn spent(connection: &Connection, mission: MissionId) -> Result<Spent, ReadError> {
    let sql = "SELECT total(u.input) AS input, total(u.cache_read) AS cache_read, total(u.cache_write) AS cache_write,
                      total(u.output) AS output, total(u.reasoning) AS reasoning,
                      total(CASE WHEN u.plan = 0 THEN u.cost END) AS cost,
                      max(u.plan = 0 AND u.cost IS NULL AND u.input + u.cache_read + u.cache_write + u.output > 0) AS unpriced
               FROM session s INDEXED BY session_mission JOIN usage u ON u.session = s.num WHERE s.mission = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    statement
        .query_row([mission.to_string()], |row| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the cast saturates, as wanted"
            )]
            let total = |column: &str| row.get::<_, f64>(column).map(|sum| sum as u64);
            Ok(Spent {
                unpriced: row.get::<_, Option<bool>>("unpriced")?.unwrap_or_default(),
                usage: Usage {
                    input: total("input")?,
                    cache_read: total("cache_read")?,
                    cache_write: total("cache_write")?,
                    output: total("output")?,
                    reasoning: total("reasoning")?,
                },
                cost: Dollars(total("cost")?),
            })
        })
        .map_err(ReadError::from)
}
