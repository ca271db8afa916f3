//! `snapshot`, `seen_commit` and `seen_head`: what became of campaigns' files.

use ostler_domain::{
    CampaignId, SessionId, Time,
    event::{CommitsSeen, SeenCommit, SnapshotTaken},
    snapshot::{Cause, Changed, Snapshot},
};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use crate::{
    convert::{parsed, signed, time, unsigned},
    error::ReadError,
    store::Store,
};

/// What was last seen of a session's tree, and what it has made there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SeenWork {
    pub branch: Option<String>,
    pub head: Option<String>,
    /// Newest first.
    pub commits: Vec<SeenCommit>,
}

pub(crate) fn add(
    connection: &Connection,
    seq: u64,
    at: Time,
    taken: &SnapshotTaken,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO snapshot(seq, session, campaign, turn, cause, time, commit_name, files, added, removed, why)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            signed(seq),
            taken.session.to_string(),
            taken.campaign.to_string(),
            taken.turn,
            taken.cause.as_str(),
            at.micros(),
            taken.commit,
            signed(taken.changed.files),
            signed(taken.changed.added),
            signed(taken.changed.removed),
            taken.why,
        ])?;
    Ok(())
}

pub(crate) fn see(connection: &Connection, seq: u64, seen: &CommitsSeen) -> rusqlite::Result<()> {
    let session = seen.session.to_string();
    connection
        .prepare_cached("INSERT OR REPLACE INTO seen_head(session, branch, head) VALUES (?1, ?2, ?3)")?
        .execute(params![session, seen.branch, seen.head])?;
    let mut statement = connection.prepare_cached(
        "INSERT INTO seen_commit(seq, place, session, turn, branch, hash, subject) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for (place, commit) in (0_i64..).zip(&seen.commits) {
        statement.execute(params![
            signed(seq),
            place,
            session,
            seen.turn,
            seen.branch,
            commit.hash,
            commit.subject
        ])?;
    }
    Ok(())
}

impl Store {
    /// A session's snapshots, oldest first.
    pub async fn snapshots(&self, session: SessionId) -> Result<Vec<Snapshot>, ReadError> {
        self.read(move |reader| {
            snapshots(&reader.connection, "session = ?1 ORDER BY seq", [session.to_string()])
        })
        .await
    }

    /// The first snapshot that a commit of Ostler's own repository was.
    pub async fn snapshot_of(
        &self,
        campaign: CampaignId,
        commit: &str,
    ) -> Result<Option<Snapshot>, ReadError> {
        let params = [commit.to_owned(), campaign.to_string()];
        self.read(move |reader| {
            let condition = "commit_name = ?1 AND campaign = ?2 ORDER BY seq LIMIT 1";
            Ok(snapshots(&reader.connection, condition, params)?.pop())
        })
        .await
    }

    /// What was seen of a session's tree.
    pub async fn seen_work(&self, session: SessionId) -> Result<SeenWork, ReadError> {
        let session = session.to_string();
        self.read(move |reader| {
            let connection = &reader.connection;
            let head = connection
                .prepare_cached("SELECT branch, head FROM seen_head WHERE session = ?1")?
                .query_row([&session], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let (branch, head) = head.unwrap_or_default();
            let mut statement = connection.prepare_cached(
                "SELECT hash, subject FROM seen_commit WHERE session = ?1 ORDER BY seq DESC, place",
            )?;
            let commit =
                |row: &Row<'_>| Ok(SeenCommit { hash: row.get("hash")?, subject: row.get("subject")? });
            let commits = statement.query_map([&session], commit)?.collect::<rusqlite::Result<_>>()?;
            Ok(SeenWork { branch, head, commits })
        })
        .await
    }
}

fn snapshots(
    connection: &Connection,
    condition: &str,
    params: impl Params,
) -> Result<Vec<Snapshot>, ReadError> {
    let sql = format!(
        "SELECT session, campaign, turn, cause, time, commit_name, files, added, removed, why FROM snapshot WHERE {condition}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_and_then(params, snapshot)?.collect()
}

fn snapshot(row: &Row<'_>) -> Result<Snapshot, ReadError> {
    let cause: String = row.get("cause")?;
    Ok(Snapshot {
        session: parsed(row, "session", "session id")?,
        campaign: parsed(row, "campaign", "campaign id")?,
        turn: row.get("turn")?,
        cause: Cause::parse(&cause).ok_or(ReadError::Row { what: "cause of a snapshot", text: cause })?,
        time: time(row, "time")?,
        commit: row.get("commit_name")?,
        changed: Changed {
            files: unsigned(row.get("files")?),
            added: unsigned(row.get("added")?),
            removed: unsigned(row.get("removed")?),
        },
        why: row.get("why")?,
    })
}
