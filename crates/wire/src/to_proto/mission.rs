//! Missions.

use ostler_domain::{
    RequestId,
    budget::Amount,
    mission::{Filter, Listed, Membership, plan::Fault},
    query::Page,
};

use super::{cursor, duration, mission_action, time, usage};
use crate::{
    enums::to,
    pb,
    reply::{
        AssignmentRow, CollisionRow, MissionEta, MissionPreview, MissionPrice, PausedMission, PlannedMission,
        WholeMission,
    },
    request::{CreateMission, MissionAction, PlanMission, ResumeMission, RetryMission},
};

pub fn mission(mission: &Listed) -> pb::Mission {
    let counts = mission.counts;
    pb::Mission {
        id: mission.id.to_string(),
        campaign_id: mission.campaign.to_string(),
        name: mission.name.to_string(),
        objective: mission.objective.clone(),
        strategy: to::mission_strategy(mission.strategy).into(),
        status: to::mission_status(mission.status).into(),
        created_time: Some(time(mission.created_at)),
        started_time: mission.started_at.map(time),
        ended_time: mission.ended_at.map(time),
        updated_time: Some(time(mission.updated_at)),
        counts: Some(pb::MissionCounts {
            total: counts.total,
            completed: counts.completed,
            failed: counts.failed,
            skipped: counts.skipped,
            cancelled: counts.cancelled,
        }),
        usage: Some(usage(mission.spent.usage)),
        micro_usd: mission.spent.cost.0,
        has_unpriced: Some(mission.spent.unpriced),
    }
}

pub fn membership(of: Membership) -> pb::SessionMission {
    pb::SessionMission {
        mission_id: of.mission.to_string(),
        assignment_id: of.assignment.to_string(),
        attempt: of.attempt,
    }
}

pub fn assignment(row: &AssignmentRow) -> pb::Assignment {
    pb::Assignment {
        id: row.id.to_string(),
        name: row.name.clone(),
        role: row.role.clone(),
        instance: row.instance,
        status: to::assignment_status(row.status).into(),
        stage: row.stage,
        needs: row.needs.clone(),
        attempt: row.attempt,
        session_id: row.session.map(|id| id.to_string()),
        started_time: row.started.map(time),
        ended_time: row.ended.map(time),
        usage: Some(usage(row.spent.usage)),
        micro_usd: row.spent.cost.0,
        has_unpriced: Some(row.spent.unpriced),
        why: row.why.clone(),
        wait: row.wait.clone(),
        is_removed: row.is_removed,
        paths: row.paths.clone(),
        outcome: row.outcome.map(|outcome| outcome.as_str().to_owned()).unwrap_or_default(),
    }
}

pub fn whole_mission(whole: &WholeMission) -> pb::GetMissionResponse {
    pb::GetMissionResponse {
        mission: Some(mission(&whole.mission)),
        assignments: whole.assignments.iter().map(assignment).collect(),
        wait: whole.wait.clone(),
        eta: Some(mission_eta(&whole.eta)),
        collisions: whole.collisions.iter().map(collision).collect(),
        why: whole.why.clone(),
        metadata: whole.metadata.clone(),
    }
}

pub fn paused_mission(paused: &PausedMission) -> pb::PauseMissionResponse {
    pb::PauseMissionResponse {
        mission: Some(mission(&paused.mission)),
        by_freezer: paused.by_freezer,
        by_signals: paused.by_signals,
        not_yet: paused.not_yet.iter().map(ToString::to_string).collect(),
    }
}

pub fn plan_mission(wanted: PlanMission) -> pb::PlanMissionRequest {
    pb::PlanMissionRequest {
        campaign: wanted.campaign,
        plan: wanted.plan,
        parameters: wanted.parameters,
        provider: wanted.provider,
        model: wanted.model,
        keys: Default::default(),
    }
}

fn collision(seen: &CollisionRow) -> pb::Collision {
    pb::Collision {
        one: seen.one.clone(),
        other: seen.other.clone(),
        paths: seen.paths.clone(),
        turn: seen.turn,
        since_time: Some(time(seen.since)),
    }
}

pub fn mission_eta(eta: &MissionEta) -> pb::MissionEta {
    let interval = eta.interval;
    pb::MissionEta {
        words: eta.words.clone(),
        likely: interval.map(|interval| duration(interval.likely())),
        low: interval.map(|interval| duration(interval.low())),
        high: interval.map(|interval| duration(interval.high())),
        past: eta.rate.of,
        held: eta.rate.held,
    }
}

pub fn mission_price(price: &MissionPrice) -> pb::MissionPrice {
    pb::MissionPrice {
        words: price.words.clone(),
        likely_micro_usd: price.likely.0,
        high_micro_usd: price.high.0,
        known: price.known,
        unknown: price.unknown,
    }
}

pub fn mission_preview(preview: &MissionPreview) -> pb::PreviewMissionResponse {
    pb::PreviewMissionResponse {
        runs: preview.runs.clone(),
        goes_on: preview.goes_on.clone(),
        price: Some(mission_price(&preview.price)),
        mission: Some(mission(&preview.mission)),
        merges_into: preview.merges_into.clone().unwrap_or_default(),
    }
}

pub fn planned_mission(planned: &PlannedMission) -> pb::PlanMissionResponse {
    match planned {
        PlannedMission::Faulty(faults) => pb::PlanMissionResponse {
            faults: faults.iter().map(plan_fault).collect(),
            ..pb::PlanMissionResponse::default()
        },
        PlannedMission::Sound { plan, waves, price, eta } => pb::PlanMissionResponse {
            faults: Vec::new(),
            plan: plan.to_toml(),
            waves: waves.iter().map(|names| pb::PlanWave { names: names.clone() }).collect(),
            price: Some(mission_price(price)),
            eta: Some(mission_eta(eta)),
        },
    }
}

fn plan_fault(fault: &Fault) -> pb::PlanFault {
    pb::PlanFault {
        line: fault.line.map(|line| u32::try_from(line).unwrap_or(u32::MAX)),
        message: fault.message.clone(),
        hint: fault.hint.clone(),
    }
}

pub fn create_mission(wanted: CreateMission, request_id: RequestId) -> pb::CreateMissionRequest {
    pb::CreateMissionRequest {
        request_id: request_id.to_string(),
        campaign: wanted.campaign,
        plan: wanted.plan,
        parameters: wanted.parameters,
        starts: wanted.starts,
        keys: Default::default(),
    }
}

pub fn resume_mission(wanted: ResumeMission, request_id: RequestId) -> pb::ResumeMissionRequest {
    let (max_tokens, max_micro_usd) = most(wanted.budget);
    pb::ResumeMissionRequest {
        request_id: request_id.to_string(),
        who: wanted.who,
        max_tokens,
        max_micro_usd,
        more_time: wanted.more_time.map(duration),
        which: wanted.which,
        keys: Default::default(),
    }
}

pub fn preview_mission(action: MissionAction, wanted: ResumeMission) -> pb::PreviewMissionRequest {
    let (max_tokens, max_micro_usd) = most(wanted.budget);
    pb::PreviewMissionRequest {
        who: wanted.who,
        action: mission_action(action).into(),
        which: wanted.which,
        max_tokens,
        max_micro_usd,
        more_time: wanted.more_time.map(duration),
    }
}

pub fn retry_mission(wanted: RetryMission, request_id: RequestId) -> pb::RetryMissionRequest {
    let (max_tokens, max_micro_usd) = most(wanted.budget);
    pb::RetryMissionRequest {
        request_id: request_id.to_string(),
        who: wanted.who,
        which: wanted.which,
        max_tokens,
        max_micro_usd,
        keys: Default::default(),
        more_time: wanted.more_time.map(duration),
    }
}

fn most(budget: Option<Amount>) -> (Option<u64>, Option<u64>) {
    let budget = budget.unwrap_or_default();
    (budget.tokens, budget.dollars.map(|dollars| dollars.0))
}

pub fn list_missions(filter: &Filter, page: Page) -> pb::ListMissionsRequest {
    pb::ListMissionsRequest {
        campaign: filter.campaign.map(|id| id.to_string()),
        statuses: filter.statuses.iter().map(|status| to::mission_status(*status).into()).collect(),
        over_too: filter.over_too,
        since: filter.since.map(time),
        limit: page.limit,
        cursor: cursor(page.cursor),
    }
}
