//! `ticket` and its own tables: units of work and what came of them.

mod read;

pub use read::RecentTicket;

use ostler_domain::{
    TicketId, Time,
    ask::OutputAdded,
    call::{StepEnded, StepMark, StepStarted},
    event::{TicketAdded, TicketCheckpointMade, TicketMoved, TicketOutputAdded, TicketStep},
    ticket::{About, Links},
};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{convert::signed, session::tail};

pub(crate) fn add(connection: &Connection, seq: u64, at: Time, added: &TicketAdded) -> rusqlite::Result<()> {
    let id = added.id.to_string();
    connection
        .prepare_cached(
            "INSERT INTO ticket(seq, id, tail, campaign, intent, type, status, external, conversation, added, added_by, moved)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?10)",
        )?
        .execute(params![
            signed(seq),
            id,
            tail(&id),
            added.campaign.to_string(),
            added.about.intent,
            added.about.kind,
            added.status.as_str(),
            added.links.external.as_ref().map(|external| external.as_str()),
            added.links.conversation.map(|id| id.to_string()),
            at.micros(),
            added.by.0,
        ])?;
    depend(connection, &id, &added.links)
}

pub(crate) fn change(connection: &Connection, id: TicketId, about: &About) -> rusqlite::Result<()> {
    connection.prepare_cached("UPDATE ticket SET intent = ?2, type = ?3 WHERE id = ?1")?.execute(params![
        id.to_string(),
        about.intent,
        about.kind
    ])?;
    Ok(())
}

/// Refused where the ticket does not stand as whoever moves it thought.
pub(crate) fn move_on(connection: &Connection, at: Time, moved: &TicketMoved) -> rusqlite::Result<()> {
    let why = Some(moved.why.as_str()).filter(|why| !why.is_empty());
    let rows = connection
        .prepare_cached("UPDATE ticket SET status = ?3, moved = ?4, why = ?5 WHERE id = ?1 AND status = ?2")?
        .execute(params![moved.id.to_string(), moved.from.as_str(), moved.to.as_str(), at.micros(), why])?;
    if rows == 0 { Err(rusqlite::Error::StatementChangedRows(0)) } else { Ok(()) }
}

pub(crate) fn link(connection: &Connection, id: TicketId, links: &Links) -> rusqlite::Result<()> {
    let id = id.to_string();
    connection.prepare_cached("UPDATE ticket SET external = ?2, conversation = ?3 WHERE id = ?1")?.execute(
        params![
            id,
            links.external.as_ref().map(|external| external.as_str()),
            links.conversation.map(|id| id.to_string()),
        ],
    )?;
    depend(connection, &id, links)
}

fn depend(connection: &Connection, id: &str, links: &Links) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM ticket_dependency WHERE ticket = ?1")?.execute([id])?;
    let mut insert = connection
        .prepare_cached("INSERT OR IGNORE INTO ticket_dependency(ticket, depends_on) VALUES (?1, ?2)")?;
    for on in &links.depends_on {
        insert.execute([id, &on.to_string()])?;
    }
    Ok(())
}

pub(crate) fn add_output(
    connection: &Connection,
    seq: u64,
    added: &TicketOutputAdded,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO ticket_output(seq, ticket, name, kind, bytes, session) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            signed(seq),
            added.id.to_string(),
            added.output.name,
            added.output.kind.as_str(),
            signed(added.output.value.len() as u64),
            added.session.map(|id| id.to_string()),
        ])?;
    Ok(())
}

/// What an agent said came of its work is an output of the ticket that it works on.
pub(crate) fn add_output_of_session(
    connection: &Connection,
    seq: u64,
    num: i64,
    added: &OutputAdded,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO ticket_output(seq, ticket, name, kind, bytes, session)
             SELECT ?1, t.id, ?2, ?3, ?4, s.id FROM session s JOIN ticket t ON t.id = s.ticket WHERE s.num = ?5",
        )?
        .execute(params![
            signed(seq),
            added.name,
            added.kind.as_str(),
            signed(added.value.len() as u64),
            num
        ])?;
    Ok(())
}

pub(crate) fn make_checkpoint(
    connection: &Connection,
    seq: u64,
    at: Time,
    made: &TicketCheckpointMade,
) -> rusqlite::Result<()> {
    let checkpoint = &made.checkpoint;
    connection
        .prepare_cached(
            "INSERT INTO ticket_checkpoint(seq, ticket, name, session, turn, snapshot, made, made_by)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            signed(seq),
            made.id.to_string(),
            checkpoint.name,
            checkpoint.at.map(|at| at.session.to_string()),
            checkpoint.at.map(|at| at.turn),
            checkpoint.snapshot,
            at.micros(),
            made.by.0,
        ])?;
    Ok(())
}

/// Something said of a step.
pub(crate) struct Marked<'a> {
    ticket: &'a str,
    /// The session's number; none where a person says it.
    session: Option<i64>,
    name: &'a str,
    mark: StepMark,
    note: &'a str,
}

impl<'a> Marked<'a> {
    pub(crate) fn by_person(ticket: &'a str, step: &'a TicketStep) -> Self {
        Self { ticket, session: None, name: &step.name, mark: step.mark, note: &step.note }
    }

    pub(crate) fn started(ticket: &'a str, session: i64, step: &'a StepStarted) -> Self {
        Self { ticket, session: Some(session), name: &step.name, mark: StepMark::Start, note: &step.note }
    }

    pub(crate) fn ended(ticket: &'a str, session: i64, step: &'a StepEnded) -> Self {
        let mark = if step.success { StepMark::End } else { StepMark::Fail };
        Self { ticket, session: Some(session), name: &step.name, mark, note: &step.note }
    }
}

/// A run of a step begins, or the one that is open ends. An end without a beginning is a run of its own.
pub(crate) fn step(connection: &Connection, seq: u64, at: Time, marked: &Marked<'_>) -> rusqlite::Result<()> {
    let Marked { ticket, session, name, mark, note } = *marked;
    let (started, ended) = match mark {
        StepMark::Start => (Some(at.micros()), None),
        StepMark::End | StepMark::Fail => (None, Some((at.micros(), mark == StepMark::End))),
    };
    let (ended, success) = ended.unzip();
    if started.is_none() {
        let rows = connection
            .prepare_cached(
                "UPDATE ticket_step SET ended = ?4, success = ?5, note = CASE WHEN ?6 = '' THEN note ELSE ?6 END
                 WHERE seq = (SELECT max(seq) FROM ticket_step
                              WHERE ticket = ?1 AND name = ?2 AND session IS ?3 AND ended IS NULL)",
            )?
            .execute(params![ticket, name, session, ended, success, note])?;
        if rows > 0 {
            return Ok(());
        }
    }
    connection
        .prepare_cached(
            "INSERT INTO ticket_step(seq, ticket, name, session, started, ended, success, note)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![signed(seq), ticket, name, session, started, ended, success, note])?;
    Ok(())
}

/// The id of a ticket that there is.
pub(crate) fn known(connection: &Connection, id: TicketId) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT id FROM ticket WHERE id = ?1")?
        .query_row([id.to_string()], |row| row.get(0))
        .optional()
}

/// The ticket that a session works on.
pub(crate) fn of_session(connection: &Connection, num: i64) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT t.id FROM session s JOIN ticket t ON t.id = s.ticket WHERE s.num = ?1")?
        .query_row([num], |row| row.get(0))
        .optional()
}
