//! `retention`: what was done to the record of sessions that have ended, and what rules look at.

mod blobs;
mod erase;

use ostler_domain::{
    CampaignId, ConversationId, SessionId, Time,
    event::{By, DeletionMarked, RetentionHeld, SessionArchived, SessionDeleted, SessionRestored},
    query::{Listed, Page},
    retention::{Hold, Kept, Stage, Standing},
};
use rusqlite::{Connection, Row, ToSql, params, types::Null};

use crate::{
    convert::{parsed, signed, time_if_any, unsigned},
    error::ReadError,
    refused,
    store::Store,
};

/// A session that rules may have something to say about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub standing: Standing,
    pub chain: SessionId,
    pub conversation: ConversationId,
    /// Another session is going to go on with it, or somebody has to say whether.
    pub is_waited_for: bool,
    /// When somebody removed its conversation.
    pub removed: Option<Time>,
}

/// Some of them, and where to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidates {
    pub rows: Vec<Candidate>,
    pub next: Option<u64>,
}

/// The number of the session that an event speaks of, if that was created before it.
const NUM: &str = "FROM session WHERE id = ?1
    AND (SELECT e.seq FROM log_event e WHERE e.session = session.num AND e.session_seq = 1) < ?2";

/// Where something is said of a session: by which event, and when.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) seq: u64,
    pub(crate) at: Time,
}

pub(crate) fn archived(
    connection: &Connection,
    place: Place,
    archived: &SessionArchived,
) -> rusqlite::Result<()> {
    let (at, rule) = (place.at.micros(), &archived.rule);
    set(connection, place, archived.session, &[("archived", &at), ("rule", rule)])
}

pub(crate) fn restored(
    connection: &Connection,
    place: Place,
    restored: &SessionRestored,
) -> rusqlite::Result<()> {
    let at = place.at.micros();
    let gone = [("due", &Null as &dyn ToSql), ("rule", &Null), ("archived", &Null), ("restored", &at)];
    let gone = if restored.by_rule { &gone[..2] } else { &gone[..] };
    set(connection, place, restored.session, gone)
}

pub(crate) fn marked(connection: &Connection, place: Place, marked: &DeletionMarked) -> rusqlite::Result<()> {
    let due = marked.due.micros();
    set(connection, place, marked.session, &[("due", &due), ("rule", &marked.rule)])
}

pub(crate) fn deleted(
    connection: &Connection,
    place: Place,
    deleted: &SessionDeleted,
) -> rusqlite::Result<()> {
    let at = place.at.micros();
    set(connection, place, deleted.session, &[("deleted", &at), ("rule", &deleted.rule)])
}

pub(crate) fn held(connection: &Connection, place: Place, held: &RetentionHeld) -> rusqlite::Result<()> {
    let since = held.is_held.then(|| place.at.micros());
    let (by, why) = (since.map(|_| &held.by.0), since.map(|_| &held.why));
    set(connection, place, held.session, &[("held", &since), ("held_by", &by), ("held_why", &why)])
}

fn set(
    connection: &Connection,
    place: Place,
    session: SessionId,
    columns: &[(&str, &dyn ToSql)],
) -> rusqlite::Result<()> {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let values: Vec<String> = (0..names.len()).map(|n| format!("?{}", n + 3)).collect();
    let changes: Vec<String> = names.iter().map(|name| format!("{name} = excluded.{name}")).collect();
    let sql = format!(
        "INSERT INTO retention(num, {}) SELECT num, {} {NUM} ON CONFLICT(num) DO UPDATE SET {}",
        names.join(", "),
        values.join(", "),
        changes.join(", ")
    );
    let (session, seq) = (session.to_string(), signed(place.seq));
    let fixed: [&dyn ToSql; 2] = [&session, &seq];
    let params: Vec<&dyn ToSql> = fixed.into_iter().chain(columns.iter().map(|(_, value)| *value)).collect();
    connection.prepare_cached(&sql)?.execute(params.as_slice())?;
    Ok(())
}

const STANDING: &str = "s.num, s.id, s.name, s.campaign, s.ended,
    (SELECT c.name FROM campaign c WHERE c.id = s.campaign) AS campaign_name,
    r.archived, r.due, r.deleted, r.restored, r.held, r.held_by, r.held_why, r.rule";

const REMOVED: &str = "(SELECT c.closed FROM conversation c WHERE c.id = s.conversation AND c.close_reason = 'removed') AS removed";

impl Store {
    /// The sessions of a campaign that ended until a time, are to be deleted, or whose conversation was removed, in the order in which they were created.
    pub async fn retention_candidates(
        &self,
        campaign: CampaignId,
        ended_until: Option<Time>,
        after: u64,
        limit: u32,
    ) -> Result<Candidates, ReadError> {
        self.read(move |reader| {
            let to_go_on = refused::to_go_on("s");
            let sql = format!(
                "SELECT {STANDING}, s.chain, s.conversation, {REMOVED},
                        {to_go_on} OR EXISTS (SELECT 1 FROM lost l WHERE l.num = s.num) AS waited_for
                 FROM session s LEFT JOIN retention r ON r.num = s.num
                 WHERE s.campaign = ?1 AND s.num > ?2 AND s.ended IS NOT NULL AND r.deleted IS NULL
                   AND (s.ended <= ?3 OR r.due IS NOT NULL OR s.conversation IN
                        (SELECT id FROM conversation WHERE campaign = ?1 AND close_reason = 'removed'))
                 ORDER BY s.num LIMIT ?4"
            );
            let mut statement = reader.connection.prepare_cached(&sql)?;
            let until = ended_until.map_or(i64::MIN, Time::micros);
            let mut rows = statement.query(params![campaign.to_string(), signed(after), until, limit])?;
            let (mut found, mut last) = (Vec::new(), after);
            while let Some(row) = rows.next()? {
                last = unsigned(row.get("num")?);
                found.push(candidate(row)?);
            }
            let next = (found.len() == limit as usize).then_some(last);
            Ok(Candidates { rows: found, next })
        })
        .await
    }

    /// One session, as rules see it.
    pub async fn retention_candidate(&self, id: SessionId) -> Result<Option<Candidate>, ReadError> {
        self.read(move |reader| {
            let to_go_on = refused::to_go_on("s");
            let sql = format!(
                "SELECT {STANDING}, s.chain, s.conversation, {REMOVED},
                        {to_go_on} OR EXISTS (SELECT 1 FROM lost l WHERE l.num = s.num) AS waited_for
                 FROM session s LEFT JOIN retention r ON r.num = s.num WHERE s.id = ?1"
            );
            let mut statement = reader.connection.prepare_cached(&sql)?;
            statement.query_and_then([id.to_string()], candidate)?.next().transpose()
        })
        .await
    }

    /// Whether anything is announced to be deleted, or somebody has removed a conversation.
    pub async fn has_marked_or_removed(&self) -> Result<bool, ReadError> {
        self.read(|reader| {
            const SQL: &str =
                "SELECT EXISTS (SELECT 1 FROM retention WHERE due IS NOT NULL AND deleted IS NULL)
                     OR EXISTS (SELECT 1 FROM conversation WHERE close_reason = 'removed')";
            Ok(reader.connection.prepare_cached(SQL)?.query_row([], |row| row.get(0))?)
        })
        .await
    }

    /// Sessions that somebody or a rule touched, newest-created first.
    pub async fn retention(&self, page: Page) -> Result<Listed<Standing>, ReadError> {
        self.read(move |reader| {
            let sql = format!(
                "SELECT {STANDING} FROM retention r JOIN session s ON s.num = r.num
                 WHERE r.num < ?1 AND coalesce(r.archived, r.due, r.deleted, r.held) IS NOT NULL
                 ORDER BY r.num DESC LIMIT ?2"
            );
            let mut statement = reader.connection.prepare_cached(&sql)?;
            let before = page.cursor.map_or(i64::MAX, signed);
            let mut rows = statement.query(params![before, page.limit])?;
            let (mut found, mut last) = (Vec::new(), 0);
            while let Some(row) = rows.next()? {
                last = unsigned(row.get("num")?);
                found.push(standing(row)?);
            }
            let next_cursor = (found.len() == page.limit as usize).then_some(last);
            Ok(Listed { rows: found, next_cursor })
        })
        .await
    }

    /// Whether all sessions of a conversation, but perhaps one, have come to a stage or further.
    pub async fn is_all_kept(
        &self,
        id: ConversationId,
        stage: Stage,
        but: Option<SessionId>,
    ) -> Result<bool, ReadError> {
        self.read(move |reader| {
            let reached = match stage {
                Stage::Hot => "1",
                Stage::Archived | Stage::Marked => "coalesce(r.archived, r.deleted)",
                Stage::Deleted => "r.deleted",
            };
            let sql = format!(
                "SELECT NOT EXISTS (SELECT 1 FROM session s LEFT JOIN retention r ON r.num = s.num
                                    WHERE s.conversation = ?1 AND s.id IS NOT ?2 AND {reached} IS NULL)"
            );
            let mut statement = reader.connection.prepare_cached(&sql)?;
            Ok(statement.query_row([Some(id.to_string()), but.map(|id| id.to_string())], |row| row.get(0))?)
        })
        .await
    }
}

fn candidate(row: &Row<'_>) -> Result<Candidate, ReadError> {
    Ok(Candidate {
        standing: standing(row)?,
        chain: parsed(row, "chain", "session id")?,
        conversation: parsed(row, "conversation", "conversation id")?,
        is_waited_for: row.get("waited_for")?,
        removed: time_if_any(row, "removed")?,
    })
}

fn standing(row: &Row<'_>) -> Result<Standing, ReadError> {
    let held = match (time_if_any(row, "held")?, row.get::<_, Option<String>>("held_by")?) {
        (Some(since), Some(by)) => {
            Some(Hold { by: By(by), why: row.get::<_, Option<_>>("held_why")?.unwrap_or_default(), since })
        }
        _ => None,
    };
    Ok(Standing {
        session: parsed(row, "id", "session id")?,
        name: parsed(row, "name", "session name")?,
        campaign: parsed(row, "campaign", "campaign id")?,
        campaign_name: row.get::<_, Option<String>>("campaign_name")?.unwrap_or_default(),
        ended: time_if_any(row, "ended")?,
        kept: Kept {
            archived: time_if_any(row, "archived")?,
            due: time_if_any(row, "due")?,
            deleted: time_if_any(row, "deleted")?,
            restored: time_if_any(row, "restored")?,
            held,
            rule: row.get("rule")?,
        },
    })
}
