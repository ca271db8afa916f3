//! Missions.

use ostler_domain::{
    budget::Amount,
    mission::{
        Counts, Filter, Interval, Listed, Membership, Spent,
        eta::HitRate,
        plan::{Fault, Terms, read},
    },
    price::Dollars,
    session::Outcome,
};

use super::{
    Result, duration, id, mission_action, optional_id, optional_time, required, required_time, text, usage,
};
use crate::{
    InvalidField,
    enums::from,
    pb,
    reply::{
        AssignmentRow, CollisionRow, EventPage, MissionEta, MissionPreview, MissionPrice, PausedMission,
        PlannedMission, WholeMission,
    },
    request::{CreateMission, MissionAction, PlanMission, ResumeMission, RetryMission},
};

pub fn mission(mission: pb::Mission) -> Result<Listed> {
    let counts = mission.counts.unwrap_or_default();
    Ok(Listed {
        id: id(&mission.id, "id")?,
        campaign: id(&mission.campaign_id, "campaign_id")?,
        name: id(&mission.name, "name")?,
        objective: mission.objective,
        strategy: from::mission_strategy(mission.strategy, "strategy")?,
        status: from::mission_status(mission.status, "status")?,
        created_at: required_time(mission.created_time, "created_time")?,
        started_at: optional_time(mission.started_time, "started_time")?,
        ended_at: optional_time(mission.ended_time, "ended_time")?,
        updated_at: required_time(mission.updated_time, "updated_time")?,
        counts: Counts {
            total: counts.total,
            completed: counts.completed,
            failed: counts.failed,
            skipped: counts.skipped,
            cancelled: counts.cancelled,
        },
        spent: spent(mission.usage, mission.micro_usd, mission.has_unpriced),
    })
}

fn spent(used: Option<pb::Usage>, micro_usd: u64, has_unpriced: Option<bool>) -> Spent {
    let (usage, cost) = (used.map(usage).unwrap_or_default(), Dollars(micro_usd));
    // An older daemon does not say: what was used and cost nothing had no price, then.
    let unpriced = has_unpriced.unwrap_or(cost == Dollars(0) && usage.total() > 0);
    Spent { usage, cost, unpriced }
}

/// The mission of an answer, which must have one.
pub fn answered_mission(answer: Option<pb::Mission>) -> Result<Listed> {
    mission(required(answer, "mission")?).map_err(|e| e.within("mission"))
}

pub fn membership(of: pb::SessionMission) -> Result<Membership> {
    Ok(Membership {
        mission: id(&of.mission_id, "mission_id")?,
        assignment: id(&of.assignment_id, "assignment_id")?,
        attempt: of.attempt,
    })
}

pub fn assignment(row: pb::Assignment) -> Result<AssignmentRow> {
    Ok(AssignmentRow {
        id: id(&row.id, "id")?,
        name: text(row.name, "name")?,
        role: text(row.role, "role")?,
        instance: row.instance,
        status: from::assignment_status(row.status, "status")?,
        stage: row.stage,
        needs: row.needs,
        attempt: row.attempt,
        session: optional_id(row.session_id, "session_id")?,
        started: optional_time(row.started_time, "started_time")?,
        ended: optional_time(row.ended_time, "ended_time")?,
        spent: spent(row.usage, row.micro_usd, row.has_unpriced),
        why: row.why,
        wait: row.wait,
        is_removed: row.is_removed,
        paths: row.paths,
        outcome: Outcome::parse(&row.outcome),
    })
}

pub fn whole_mission(answer: pb::GetMissionResponse) -> Result<WholeMission> {
    let assignments = answer.assignments.into_iter().map(assignment).collect::<Result<_>>();
    let collisions = answer.collisions.into_iter().map(collision).collect::<Result<_>>();
    Ok(WholeMission {
        mission: answered_mission(answer.mission)?,
        assignments: assignments.map_err(|e: InvalidField| e.within("assignments"))?,
        wait: answer.wait,
        eta: mission_eta(answer.eta.unwrap_or_default()).map_err(|e| e.within("eta"))?,
        collisions: collisions.map_err(|e: InvalidField| e.within("collisions"))?,
        why: answer.why,
        metadata: answer.metadata,
    })
}

pub fn paused_mission(answer: pb::PauseMissionResponse) -> Result<PausedMission> {
    Ok(PausedMission {
        mission: answered_mission(answer.mission)?,
        by_freezer: answer.by_freezer,
        by_signals: answer.by_signals,
        not_yet: answer.not_yet.iter().map(|session| id(session, "not_yet")).collect::<Result<_>>()?,
    })
}

pub fn plan_mission(asked: pb::PlanMissionRequest) -> Result<PlanMission> {
    Ok(PlanMission {
        campaign: text(asked.campaign, "campaign")?,
        plan: asked.plan,
        parameters: asked.parameters,
        provider: asked.provider,
        model: asked.model,
    })
}

fn collision(seen: pb::Collision) -> Result<CollisionRow> {
    Ok(CollisionRow {
        one: seen.one,
        other: seen.other,
        paths: seen.paths,
        turn: seen.turn,
        since: required_time(seen.since_time, "since_time")?,
    })
}

pub fn mission_eta(eta: pb::MissionEta) -> Result<MissionEta> {
    let interval = match (eta.low, eta.likely, eta.high) {
        (Some(low), Some(likely), Some(high)) => {
            Some(Interval::new(duration(low, "low")?, duration(likely, "likely")?, duration(high, "high")?))
        }
        _ => None,
    };
    Ok(MissionEta { words: eta.words, interval, rate: HitRate { held: eta.held, of: eta.past } })
}

pub fn mission_price(price: pb::MissionPrice) -> MissionPrice {
    MissionPrice {
        words: price.words,
        likely: Dollars(price.likely_micro_usd),
        high: Dollars(price.high_micro_usd),
        known: price.known,
        unknown: price.unknown,
    }
}

pub fn mission_preview(answer: pb::PreviewMissionResponse) -> Result<MissionPreview> {
    Ok(MissionPreview {
        mission: answered_mission(answer.mission)?,
        runs: answer.runs,
        goes_on: answer.goes_on,
        price: mission_price(answer.price.unwrap_or_default()),
        merges_into: Some(answer.merges_into).filter(|into| !into.is_empty()),
    })
}

pub fn planned_mission(answer: pb::PlanMissionResponse) -> Result<PlannedMission> {
    if !answer.faults.is_empty() {
        let fault = |fault: pb::PlanFault| Fault {
            line: fault.line.map(|line| line as usize),
            message: fault.message,
            hint: fault.hint,
        };
        return Ok(PlannedMission::Faulty(answer.faults.into_iter().map(fault).collect()));
    }
    let plan = read(&answer.plan, &Terms::default()).map_err(|faults| InvalidField::new("plan", faults))?;
    Ok(PlannedMission::Sound {
        plan: Box::new(plan),
        waves: answer.waves.into_iter().map(|wave| wave.names).collect(),
        price: mission_price(answer.price.unwrap_or_default()),
        eta: mission_eta(answer.eta.unwrap_or_default()).map_err(|e| e.within("eta"))?,
    })
}

pub fn mission_events(answer: pb::ListMissionEventsResponse) -> Result<EventPage> {
    let events = answer.events.into_iter().map(super::received).collect::<Result<_>>();
    Ok(EventPage { events: events.map_err(|e| e.within("events"))?, next: answer.next_cursor })
}

pub fn create_mission(asked: pb::CreateMissionRequest) -> Result<CreateMission> {
    Ok(CreateMission {
        campaign: text(asked.campaign, "campaign")?,
        plan: asked.plan,
        parameters: asked.parameters,
        starts: asked.starts,
    })
}

pub fn resume_mission(asked: pb::ResumeMissionRequest) -> Result<ResumeMission> {
    Ok(ResumeMission {
        who: text(asked.who, "who")?,
        budget: budget_amount(asked.max_tokens, asked.max_micro_usd),
        more_time: asked.more_time.map(|span| duration(span, "more_time")).transpose()?,
        which: asked.which,
    })
}

pub fn preview_mission(asked: pb::PreviewMissionRequest) -> Result<(MissionAction, ResumeMission)> {
    let wanted = ResumeMission {
        who: text(asked.who, "who")?,
        budget: budget_amount(asked.max_tokens, asked.max_micro_usd),
        more_time: asked.more_time.map(|span| duration(span, "more_time")).transpose()?,
        which: asked.which,
    };
    Ok((mission_action(asked.action, "action")?, wanted))
}

pub fn retry_mission(asked: pb::RetryMissionRequest) -> Result<RetryMission> {
    Ok(RetryMission {
        who: text(asked.who, "who")?,
        budget: budget_amount(asked.max_tokens, asked.max_micro_usd),
        more_time: asked.more_time.map(|span| duration(span, "more_time")).transpose()?,
        which: asked.which,
    })
}

fn budget_amount(tokens: Option<u64>, micro_usd: Option<u64>) -> Option<Amount> {
    let amount = Amount { tokens, dollars: micro_usd.map(Dollars) };
    (amount != Amount::default()).then_some(amount)
}

/// The filter of a list whose words a daemon has replaced by ids.
pub fn mission_filter(asked: pb::ListMissionsRequest) -> Result<Filter> {
    let status = |number| from::mission_status(number, "statuses");
    Ok(Filter {
        campaign: optional_id(asked.campaign, "campaign")?,
        statuses: asked.statuses.into_iter().map(status).collect::<Result<_>>()?,
        over_too: asked.over_too,
        since: optional_time(asked.since, "since")?,
    })
}
