//! Lists of sessions, newest-created first. One index drives each list; further filters look at rows in that
//! order, and a page ends early where it has looked at enough of them.

use ostler_domain::{
    SessionId, Time,
    limits::{CLOCK_SLACK, SCAN_ROWS},
    query::{Listed, Page, Scope, SessionFilter, TRIAL_TICKET},
    session::{Attention, Outcome, Status, View},
};
use rusqlite::{Connection, ToSql, params_from_iter};

use super::{UNKNOWN_COST, cost_class, views_of};
use crate::{
    convert::{signed, unsigned},
    error::ReadError,
    store::{Reader, Store},
    usage::PAID_NOW,
};

impl Store {
    /// The sessions that a filter fits, newest-created first. The cursor stays right while sessions change.
    pub async fn list_sessions(&self, filter: &SessionFilter, page: Page) -> Result<Listed<View>, ReadError> {
        let filter = filter.clone();
        self.read(move |reader| list(reader, &filter, page)).await
    }

    /// Says whether a filter fits a session by now.
    pub async fn session_fits(&self, id: SessionId, filter: &SessionFilter) -> Result<bool, ReadError> {
        let filter = filter.clone();
        self.read(move |reader| {
            let Condition { sql, mut params } = Condition::of(&filter);
            params.push(Box::new(id.to_string()));
            let sql = format!("SELECT EXISTS (SELECT 1 FROM session WHERE {sql} AND id = ?)");
            let mut statement = reader.connection.prepare_cached(&sql)?;
            Ok(statement.query_row(params_from_iter(params.iter()), |row| row.get(0))?)
        })
        .await
    }
}

fn list(reader: &Reader, filter: &SessionFilter, page: Page) -> Result<Listed<View>, ReadError> {
    let limit = page.limit.max(1) as usize;
    let before = page.cursor.map_or(i64::MAX, signed);
    let residual = Condition::of(filter);
    let scans = drivers(filter)
        .iter()
        .map(|driver| scan(&reader.connection, driver, &residual, filter.since, before, limit))
        .collect::<Result<Vec<Scan>, _>>()?;
    // Below the place where one of them stopped, the others' rows are not known to be the newest.
    let floor = scans.iter().filter_map(|scan| scan.stopped_at).max();
    let mut nums: Vec<i64> = scans.into_iter().flat_map(|scan| scan.nums).collect();
    nums.sort_unstable_by_key(|num| std::cmp::Reverse(*num));
    nums.dedup();
    nums.retain(|num| floor.is_none_or(|floor| *num >= floor));
    let has_more = nums.len() > limit;
    nums.truncate(limit);
    let next = if has_more { nums.last().copied() } else { floor };
    Ok(Listed { rows: views_of(reader, &nums)?, next_cursor: next.map(unsigned) })
}

/// A condition in SQL with its parameters.
pub(crate) struct Condition {
    pub(crate) sql: String,
    pub(crate) params: Vec<Box<dyn ToSql>>,
}

/// An index and the rows of it that a list goes through.
struct Driver {
    index: Option<&'static str>,
    condition: Condition,
}

impl Driver {
    fn equal(index: &'static str, column: &'static str, value: String) -> Self {
        Self {
            index: Some(index),
            condition: Condition { sql: format!("{column} = ?"), params: vec![Box::new(value)] },
        }
    }

    /// One for each of the values: each goes through the index in its own order.
    fn each(index: &'static str, column: &'static str, values: Vec<String>) -> Vec<Self> {
        values.into_iter().map(|value| Self::equal(index, column, value)).collect()
    }

    fn of(index: Option<&'static str>, sql: &str) -> Self {
        Self { index, condition: Condition { sql: sql.to_owned(), params: Vec::new() } }
    }

    fn not_ended() -> Self {
        Self::of(Some("session_not_ended"), "ended IS NULL")
    }
}

/// Chooses the indexes to go through: together they cover everything that fits, and the most particular are
/// preferred.
fn drivers(filter: &SessionFilter) -> Vec<Driver> {
    let particular = [
        ("session_continues", "continues", written(&filter.continues)),
        ("session_spawned_by", "spawned_by", written(&filter.spawned_by)),
        ("session_chain", "chain", written(&filter.chains)),
        ("session_conversation", "conversation", written(&filter.conversation)),
        ("session_name", "name", written(&filter.name)),
        ("session_ticket", "ticket", written(&filter.tickets)),
        ("session_mission", "mission", written(&filter.missions)),
        ("session_agent", "agent", written(&filter.agents)),
    ];
    if let Some((index, column, values)) = particular.into_iter().find(|(.., values)| !values.is_empty()) {
        return Driver::each(index, column, values);
    }
    let has_ended = |status: &Status| matches!(status, Status::Stopped | Status::Failed);
    let only_live = filter.scope == Scope::NotEnded
        || !filter.attention.is_empty()
        || (!filter.statuses.is_empty() && !filter.statuses.iter().any(has_ended));
    if only_live {
        return vec![Driver::not_ended()];
    }
    if let Scope::Current { failed_since } = filter.scope {
        let mut failed = Driver::of(Some("session_failed"), "status = 'FAILED' AND ended >= ?");
        failed.condition.params.push(Box::new(failed_since.micros()));
        let promised = Driver::of(Some("session_restart_due"), "restart_due IS NOT NULL");
        return vec![Driver::not_ended(), failed, promised];
    }
    if !filter.outcomes.is_empty() {
        let by_outcome =
            |outcome: &Outcome| Driver::equal("session_outcome", "outcome", outcome.as_str().to_owned());
        return filter.outcomes.iter().map(by_outcome).collect();
    }
    if !filter.campaigns.is_empty() {
        return Driver::each("session_campaign", "campaign", written(&filter.campaigns));
    }
    if !filter.branches.is_empty() {
        // Begun there, or begun elsewhere and seen to have made commits there.
        let drivers = |branch: String| {
            let mut seen = Driver::of(None, SEEN_ON_BRANCH);
            let twice = [branch.clone(), branch.clone()].map(|name| Box::new(name) as Box<dyn ToSql>);
            seen.condition.params.extend(twice);
            [Driver::equal("session_branch", "branch", branch), seen]
        };
        return branches(filter).into_iter().flat_map(drivers).collect();
    }
    if !filter.roles.is_empty() {
        return Driver::each("session_role", "role", filter.roles.clone());
    }
    if !filter.statuses.is_empty() {
        let ended = filter.statuses.iter().filter(|status| has_ended(status));
        let mut drivers: Vec<Driver> = ended
            .map(|status| {
                Driver::equal(
                    "session_ended_status",
                    "ended IS NOT NULL AND status",
                    status.as_str().to_owned(),
                )
            })
            .collect();
        if !filter.statuses.iter().all(has_ended) {
            drivers.push(Driver::not_ended());
        }
        return drivers;
    }
    if let Some(least) = filter.min_cost.map(cost_class).filter(|least| *least > 0) {
        // Each class is in the order of its sessions; all of those that may cost so much are gone through together,
        // and with them those of which nobody knew when they were written.
        let of_class = |class: u32| Driver {
            index: Some("session_cost_class"),
            condition: Condition {
                sql: "cost_class > 0 AND cost_class = ?".to_owned(),
                params: vec![Box::new(class)],
            },
        };
        return (least..=UNKNOWN_COST).map(of_class).collect();
    }
    if !filter.models.is_empty() {
        return Driver::each("session_model", "model", filter.models.clone());
    }
    if !filter.providers.is_empty() {
        return Driver::each("session_provider", "provider", filter.providers.clone());
    }
    vec![Driver::of(None, "1")]
}

/// Values as they are stored.
fn written<'a, T: ToString + 'a>(values: impl IntoIterator<Item = &'a T>) -> Vec<String> {
    values.into_iter().map(ToString::to_string).collect()
}

/// The branches that are asked for. Several were written with commas between them, and a branch may have one in its name.
fn branches(filter: &SessionFilter) -> Vec<String> {
    let mut branches = filter.branches.clone();
    if branches.len() > 1 {
        branches.push(branches.join(","));
    }
    branches
}

const SEEN_ON_BRANCH: &str = "branch IS NOT ? AND num IN
    (SELECT s.num FROM seen_commit c JOIN session s ON s.id = c.session WHERE c.branch = ?)";

impl Condition {
    /// That the session of this number, a column of another table, fits.
    pub(crate) fn fitting(number: &str, filter: &SessionFilter) -> Self {
        let Self { sql, params } = Self::of(filter);
        Self { sql: format!("EXISTS (SELECT 1 FROM session WHERE session.num = {number} AND {sql})"), params }
    }

    /// Everything that the filter asks for, whatever the driver has seen to already.
    fn of(filter: &SessionFilter) -> Self {
        let mut all = Self { sql: "1".to_owned(), params: Vec::new() };
        let wanted = [
            ("campaign", written(&filter.campaigns)),
            ("conversation", written(&filter.conversation)),
            ("chain", written(&filter.chains)),
            ("spawned_by", written(&filter.spawned_by)),
            ("continues", written(&filter.continues)),
            ("name", written(&filter.name)),
            ("agent", filter.agents.clone()),
            ("role", filter.roles.clone()),
            ("provider", filter.providers.clone()),
            ("model", filter.models.clone()),
            ("ticket", filter.tickets.clone()),
            ("mission", written(&filter.missions)),
        ];
        for (column, values) in wanted {
            all.one_of(column, values);
        }
        if !filter.branches.is_empty() {
            let branches = branches(filter);
            let some = marks(branches.len());
            let seen = format!(
                "EXISTS (SELECT 1 FROM seen_commit c WHERE c.session = session.id AND c.branch IN ({some}))"
            );
            all.and(&format!("(branch IN ({some}) OR {seen})"), branches.iter().chain(&branches).cloned());
        }
        if let Some(begins) = &filter.name_begins {
            // Without an index: the newest are looked at first, and a name that many share would be all of it.
            all.and("name >= ? AND name < ?", [begins.clone(), format!("{begins}\u{10ffff}")]);
        }
        all.one_of("status", filter.statuses.iter().map(|status| status.as_str()));
        all.one_of("attention", filter.attention.iter().map(|attention: &Attention| attention.as_str()));
        all.one_of("outcome", filter.outcomes.iter().map(|outcome| outcome.as_str()));
        if !filter.asks_for_trials() {
            all.and("(ended IS NULL OR ticket IS NOT ?)", [TRIAL_TICKET]);
        }
        match filter.scope {
            Scope::All => {}
            Scope::NotEnded => all.and::<i64>("ended IS NULL", []),
            Scope::Current { failed_since } => {
                let replaced = "EXISTS (SELECT 1 FROM session child WHERE child.continues = session.id)";
                let refused = "EXISTS (SELECT 1 FROM restart_refused r \
                               WHERE r.session = session.id AND r.refusal IS NOT NULL)";
                let is_news = format!("((status = 'FAILED' AND ended >= ?) OR {refused})");
                all.and(
                    &format!("(ended IS NULL OR ({is_news} AND NOT {replaced}))"),
                    [failed_since.micros()],
                );
            }
        }
        if let Some(since) = filter.since {
            all.and("created >= ?", [since.micros()]);
        }
        if let Some(until) = filter.until {
            all.and("created < ?", [until.micros()]);
        }
        if let Some(cost) = filter.min_cost {
            // A session without a call has cost nothing, which is enough where nothing is asked for.
            all.and(&format!("{PAID_NOW} >= ?"), [signed(cost.0)]);
        }
        all
    }

    fn and<T: ToSql + 'static>(&mut self, sql: &str, params: impl IntoIterator<Item = T>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(sql);
        self.params.extend(params.into_iter().map(|param| Box::new(param) as Box<dyn ToSql>));
    }

    fn one_of<T: ToSql + 'static>(&mut self, column: &str, words: impl IntoIterator<Item = T>) {
        let words: Vec<T> = words.into_iter().collect();
        if !words.is_empty() {
            self.and(&format!("{column} IN ({})", marks(words.len())), words);
        }
    }
}

/// `?,?,?`
pub(crate) fn marks(count: usize) -> String {
    vec!["?"; count].join(",")
}

/// What going through one index gave.
struct Scan {
    nums: Vec<i64>,
    /// The last row looked at, if there may be more behind it.
    stopped_at: Option<i64>,
}

fn scan(
    connection: &Connection,
    driver: &Driver,
    residual: &Condition,
    since: Option<Time>,
    before: i64,
    limit: usize,
) -> Result<Scan, ReadError> {
    let hint = driver.index.map_or_else(String::new, |index| format!("INDEXED BY {index}"));
    // Whether a row fits is asked as a column, not a condition: rows that do not fit are counted too.
    let sql = format!(
        "SELECT num, coalesce(({}), 0), iif(imported, NULL, created) FROM session {hint} WHERE {} AND num < ? ORDER BY num DESC",
        residual.sql, driver.condition.sql
    );
    let params = residual.params.iter().chain(&driver.condition.params).map(|param| &**param as &dyn ToSql);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(params.chain([&before as &dyn ToSql])))?;
    // Created this much before what is asked for means that the rest was too: clocks are set back, but not by days.
    // Those that were imported say nothing of others: they were created before they came in.
    let is_past = |created: Option<i64>| {
        let created = created.map(Time::from_micros);
        since.zip(created).is_some_and(|(since, created)| created.plus(CLOCK_SLACK) < since)
    };
    let mut nums = Vec::new();
    let mut scanned = 0;
    let mut last = before;
    while let Some(row) = rows.next()? {
        if scanned == SCAN_ROWS || nums.len() > limit {
            return Ok(Scan { nums, stopped_at: Some(last) });
        }
        scanned += 1;
        last = row.get(0)?;
        if row.get(1)? {
            nums.push(last);
        } else if is_past(row.get(2)?) {
            break;
        }
    }
    Ok(Scan { nums, stopped_at: None })
}
