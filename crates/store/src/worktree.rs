//! `worktree`: the work trees that sessions have, or had, of their own.

use ostler_domain::{
    CampaignId, SessionId, Time,
    event::{WorktreeMade, WorktreeRemoved},
    session::Created,
    worktree::Worktree,
};
use rusqlite::{Connection, Row, params};

use crate::{
    convert::{parsed, signed, time_if_any},
    error::ReadError,
    store::Store,
};

/// A work tree as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeRow {
    pub worktree: Worktree,
    pub campaign: CampaignId,
    /// The last session that was to work in it.
    pub session: SessionId,
    pub made: Option<Time>,
    pub removed: Option<Time>,
}

/// A session is to work in one.
pub(crate) fn take(connection: &Connection, seq: u64, created: &Created) -> rusqlite::Result<()> {
    let Some(tree) = &created.config.worktree else { return Ok(()) };
    connection
        .prepare_cached(
            "INSERT INTO worktree(path, seq, campaign, session, branch, base, came_from)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT(path) DO UPDATE SET campaign = ?3, session = ?4, branch = ?5, base = ?6, came_from = ?7,
                 removed = NULL",
        )?
        .execute(params![
            tree.path,
            signed(seq),
            created.campaign.to_string(),
            created.id.to_string(),
            tree.branch,
            tree.base,
            tree.from,
        ])?;
    Ok(())
}

pub(crate) fn make(connection: &Connection, at: Time, made: &WorktreeMade) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE worktree SET made = ?2, removed = NULL WHERE path = ?1")?
        .execute(params![made.worktree.path, at.micros()])?;
    Ok(())
}

pub(crate) fn remove(connection: &Connection, at: Time, removed: &WorktreeRemoved) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE worktree SET removed = ?2 WHERE path = ?1")?
        .execute(params![removed.path, at.micros()])?;
    Ok(())
}

impl Store {
    /// The work trees that were not removed, in the order in which they were first wanted.
    pub async fn worktrees(&self) -> Result<Vec<WorktreeRow>, ReadError> {
        self.read(|reader| {
            let sql = format!("{SELECT} WHERE removed IS NULL ORDER BY seq, path");
            let mut statement = reader.connection.prepare_cached(&sql)?;
            statement.query_and_then([], row)?.collect()
        })
        .await
    }

    /// The one at a path, whether it was removed or not.
    pub async fn worktree(&self, path: &str) -> Result<Option<WorktreeRow>, ReadError> {
        let path = path.to_owned();
        self.read(move |reader| {
            let sql = format!("{SELECT} WHERE path = ?1");
            let mut statement = reader.connection.prepare_cached(&sql)?;
            statement.query_and_then([path], row)?.next().transpose()
        })
        .await
    }
}

const SELECT: &str = "SELECT path, campaign, session, branch, base, came_from, made, removed FROM worktree";

fn row(row: &Row<'_>) -> Result<WorktreeRow, ReadError> {
    Ok(WorktreeRow {
        worktree: Worktree {
            path: row.get("path")?,
            branch: row.get("branch")?,
            base: row.get("base")?,
            from: row.get("came_from")?,
            told: None,
        },
        campaign: parsed(row, "campaign", "campaign id")?,
        session: parsed(row, "session", "session id")?,
        made: time_if_any(row, "made")?,
        removed: time_if_any(row, "removed")?,
    })
}
