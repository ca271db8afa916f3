//! `mission`, `mission_event` and `assignment`: which missions there are, how they stand, and where their events are.
//!
//! What a mission's rows say is for lists. The mission itself is the fold of its events, which [`Store::load_mission`]
//! reads.

mod costs;
mod forecasts;
mod read;

pub use read::DoneAssignment;

use ostler_domain::{
    AssignmentId, Event, MissionId, Time,
    event::MissionCreated,
    mission::{Assignment, Plan, Spent},
};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{convert::signed, session::tail};

/// Brings a mission's rows up to one of its events.
pub(crate) fn take_in(
    connection: &Connection,
    seq: u64,
    at: Time,
    mission: MissionId,
    event: &Event,
) -> rusqlite::Result<()> {
    if let Event::MissionCreated(created) = event {
        add(connection, seq, at, created)?;
    }
    let Some(number) = number(connection, mission)? else { return Ok(()) };
    connection
        .prepare_cached("INSERT INTO mission_event(mission, seq) VALUES (?1, ?2)")?
        .execute(params![number, signed(seq)])?;
    change(connection, number, at, event)?;
    // Over, or not begun, or kept still, or running: as the mission's own state says it.
    connection
        .prepare_cached(
            "UPDATE mission SET updated = ?2, status = CASE
                 WHEN ended IS NOT NULL THEN status
                 WHEN started IS NULL THEN 'created'
                 WHEN paused OR held THEN 'paused'
                 ELSE 'running' END
             WHERE seq = ?1",
        )?
        .execute(params![number, at.micros()])?;
    Ok(())
}

/// The place of a mission's first event.
fn number(connection: &Connection, id: MissionId) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT seq FROM mission WHERE id = ?1")?
        .query_row([id.to_string()], |row| row.get(0))
        .optional()
}

fn add(connection: &Connection, seq: u64, at: Time, created: &MissionCreated) -> rusqlite::Result<()> {
    let id = created.id.to_string();
    connection
        .prepare_cached(
            "INSERT INTO mission(seq, id, tail, campaign, name, objective, strategy, status, created, updated)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'created', ?8, ?8)",
        )?
        .execute(params![
            signed(seq),
            id,
            tail(&id),
            created.campaign.to_string(),
            created.name.as_str(),
            created.plan.objective,
            created.plan.strategy.as_str(),
            at.micros(),
        ])?;
    add_assignments(connection, signed(seq), &created.plan, 0, &created.assignments)
}

/// `first` is the place among all members of the plan's first one.
fn add_assignments(
    connection: &Connection,
    mission: i64,
    plan: &Plan,
    first: usize,
    assignments: &[Assignment],
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT OR IGNORE INTO assignment(id, mission, role, type, model) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for assignment in assignments {
        let member = (assignment.member as usize).checked_sub(first).and_then(|place| plan.agents.get(place));
        let work = member.map(|member| plan.work(member));
        insert.execute(params![
            assignment.id.to_string(),
            mission,
            assignment.role.as_str(),
            work.as_ref().map(|work| work.kind.as_str()).unwrap_or_default(),
            work.as_ref().and_then(|work| work.model.as_deref()),
        ])?;
    }
    Ok(())
}

/// How an assignment that is no longer wanted stands: no status, for it is counted nowhere.
const REMOVED: &str = "removed";

fn change(connection: &Connection, mission: i64, at: Time, event: &Event) -> rusqlite::Result<()> {
    let set = |sql: &str| {
        connection
            .prepare_cached(&format!("UPDATE mission SET {sql} WHERE seq = ?1"))?
            .execute([mission])
            .map(drop)
    };
    match event {
        Event::MissionStarted(_) => connection
            .prepare_cached("UPDATE mission SET started = ?2 WHERE seq = ?1")?
            .execute(params![mission, at.micros()])
            .map(drop),
        Event::MissionPaused(_) => set("paused = 1"),
        Event::MissionResumed(_) => set("paused = 0"),
        Event::MissionHeld(held) if held.assignment.is_none() => set("held = 1"),
        Event::MissionReleased(released) if released.assignment.is_none() => set("held = 0"),
        Event::MissionStopRequested(_) => set("paused = 0, held = 0"),
        Event::MissionEnded(ended) => connection
            .prepare_cached(
                "UPDATE mission SET status = ?2, ended = ?3, paused = 0, held = 0 WHERE seq = ?1",
            )?
            .execute(params![mission, ended.status.as_str(), at.micros()])
            .map(drop),
        Event::AssignmentsAdded(added) => {
            let first = added.assignments.iter().map(|one| one.member as usize).min().unwrap_or(0);
            let plan = Plan { agents: added.members.clone(), ..Plan::default() };
            add_assignments(connection, mission, &plan, first, &added.assignments)
        }
        Event::AssignmentStarted(started) => connection
            .prepare_cached("UPDATE assignment SET started = coalesce(started, ?2) WHERE id = ?1")?
            .execute(params![started.assignment.to_string(), at.micros()])
            .map(drop),
        Event::AssignmentBegan(began) => connection
            .prepare_cached("UPDATE assignment SET started = started + ?2 WHERE id = ?1")?
            .execute(params![began.assignment.to_string(), signed(began.waited_us)])
            .map(drop),
        Event::AssignmentCheckStarted(check) => spend(connection, check.assignment, &check.spent),
        Event::AssignmentRetried(retried) => spend(connection, retried.assignment, &retried.spent),
        Event::AssignmentEnded(ended) => {
            spend(connection, ended.assignment, &ended.spent)?;
            settle(connection, ended.assignment, Some((ended.status.as_str(), at)))?;
            took(connection, ended.assignment, ended.took_us)
        }
        Event::AssignmentsRemoved(removed) => {
            removed.assignments.iter().try_for_each(|id| settle(connection, *id, Some((REMOVED, at))))
        }
        Event::AssignmentsReopened(reopened) => {
            set("ended = NULL")?;
            reopened.assignments.iter().try_for_each(|id| settle(connection, *id, None))
        }
        _ => Ok(()),
    }
}

fn settle(
    connection: &Connection,
    id: AssignmentId,
    end: Option<(&'static str, Time)>,
) -> rusqlite::Result<()> {
    let (status, ended) = end.map(|(status, at)| (status, at.micros())).unzip();
    connection
        .prepare_cached("UPDATE assignment SET status = ?2, ended = ?3 WHERE id = ?1")?
        .execute(params![id.to_string(), status, ended])?;
    Ok(())
}

/// It counts as begun so long before its end as it took: pauses are no part of that.
fn took(connection: &Connection, id: AssignmentId, took_us: Option<u64>) -> rusqlite::Result<()> {
    let Some(took) = took_us else { return Ok(()) };
    connection
        .prepare_cached("UPDATE assignment SET started = ended - ?2 WHERE id = ?1")?
        .execute(params![id.to_string(), signed(took)])?;
    Ok(())
}

fn spend(connection: &Connection, id: AssignmentId, spent: &Spent) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE assignment SET tokens = tokens + ?2, cost = cost + ?3 WHERE id = ?1")?
        .execute(params![id.to_string(), signed(spent.usage.total()), signed(spent.cost.0)])?;
    Ok(())
}
