//! Sessions that belong together: those that go on with one another, and the helpers of each, at whatever depth.

use ostler_domain::{SessionId, limits::FAMILY_SESSIONS, session::View};
use rusqlite::Connection;

use super::views_of;
use crate::{
    error::ReadError,
    store::{Reader, Store},
};

/// The sessions that a condition names, and everybody below: who goes on with one of them, or was asked for by it. UNION
/// keeps each once, and ends what goes in a circle.
pub(crate) fn below(seed: &str) -> String {
    format!(
        "WITH RECURSIVE family(id) AS (
             SELECT id FROM session WHERE {seed}
             UNION SELECT next.id FROM family f JOIN session next ON next.continues = f.id
             UNION SELECT helper.id FROM family f JOIN session helper ON helper.spawned_by = f.id)"
    )
}

/// The chain at whose top a session stands: its own, or that of whoever it helps in the end.
pub(crate) const ROOT_CHAIN: &str = "CASE WHEN s.spawned_by IS NULL THEN s.chain ELSE coalesce((
    WITH RECURSIVE above(id, chain, spawned_by) AS (
        SELECT s.id, s.chain, s.spawned_by
        UNION SELECT asker.id, asker.chain, asker.spawned_by FROM above a JOIN session asker ON asker.id = a.spawned_by)
    SELECT chain FROM above WHERE spawned_by IS NULL), s.chain) END";

/// Who belongs to a chain, oldest first.
#[derive(Debug, Clone, PartialEq)]
pub struct FamilyOf {
    pub sessions: Vec<View>,
    /// How many there are in all.
    pub count: u64,
}

impl Store {
    /// A session, and everybody below it, oldest first; none where they are more than a budget can be divided among.
    pub async fn family_of(&self, id: SessionId) -> Result<Option<Vec<View>>, ReadError> {
        let found =
            self.read(move |reader| find(reader, "id = ?1", &id.to_string(), FAMILY_SESSIONS)).await?;
        Ok((found.count == found.sessions.len() as u64).then_some(found.sessions))
    }

    /// The sessions of a chain, and everybody below them, oldest first: at most so many.
    pub async fn chain_family(&self, chain: SessionId, most: u32) -> Result<FamilyOf, ReadError> {
        self.read(move |reader| find(reader, "chain = ?1", &chain.to_string(), most)).await
    }
}

fn find(reader: &Reader, seed: &str, value: &str, most: u32) -> Result<FamilyOf, ReadError> {
    let nums = numbers(&reader.connection, seed, value)?;
    let shown = &nums[..nums.len().min(most as usize)];
    Ok(FamilyOf { sessions: views_of(reader, shown)?, count: nums.len() as u64 })
}

fn numbers(connection: &Connection, seed: &str, value: &str) -> Result<Vec<i64>, ReadError> {
    let sql = format!("{} SELECT num FROM session WHERE id IN family ORDER BY num", below(seed));
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([value], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_below_is_found_through_indexes() {
        let mut connection = Connection::open_in_memory().unwrap();
        let connection = connection.transaction().unwrap();
        crate::schema::create_derived(&connection).unwrap();
        for seed in ["id = ?1", "chain = ?1"] {
            let sql =
                format!("EXPLAIN QUERY PLAN {} SELECT num FROM session WHERE id IN family", below(seed));
            let mut statement = connection.prepare(&sql).unwrap();
            let plan: Vec<String> =
                statement.query_map(["x"], |row| row.get("detail")).unwrap().map(Result::unwrap).collect();
            for index in ["session_continues (continues=?)", "session_spawned_by (spawned_by=?)"] {
                assert!(plan.iter().any(|step| step.contains(index)), "{seed}: {plan:#?}");
            }
            assert!(!plan.iter().any(|step| step == "SCAN session"), "{seed}: {plan:#?}");
        }
    }
}
