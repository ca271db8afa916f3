//! Retention.

use ostler_domain::retention::{MissionStep, Planned, Standing, Step};

use super::time;
use crate::{
    enums::to,
    pb::{self, RetentionStep as Wire},
};

pub fn retention(standing: &Standing) -> pb::Retention {
    let kept = &standing.kept;
    pb::Retention {
        session_id: standing.session.to_string(),
        name: standing.name.to_string(),
        campaign_id: standing.campaign.to_string(),
        campaign: standing.campaign_name.clone(),
        ended_at: standing.ended.map(time),
        archived_at: kept.archived.map(time),
        due_at: kept.due.map(time),
        deleted_at: kept.deleted.map(time),
        restored_at: kept.restored.map(time),
        hold: kept.held.as_ref().map(|hold| pb::RetentionHold {
            by: hold.by.0.clone(),
            why: hold.why.clone(),
            since: Some(time(hold.since)),
        }),
        rule: kept.rule.clone().unwrap_or_default(),
    }
}

pub fn planned(planned: &Planned) -> pb::PlannedRetention {
    let (step, due) = match planned.step {
        Step::Archive => (Wire::Archive, None),
        Step::Mark { due } => (Wire::Mark, Some(due)),
        Step::Unmark => (Wire::Unmark, None),
        Step::Delete => (Wire::Delete, None),
    };
    pb::PlannedRetention {
        retention: Some(retention(&planned.standing)),
        step: step.into(),
        rule: planned.rule.clone(),
        due_at: due.map(time),
        spared: planned.spared.clone().unwrap_or_default(),
    }
}

pub fn mission_step(step: &MissionStep) -> pb::MissionRetention {
    pb::MissionRetention {
        mission_id: step.mission.to_string(),
        name: step.name.to_string(),
        campaign_id: step.campaign.to_string(),
        campaign: step.campaign_name.clone(),
        status: to::mission_status(step.status).into(),
        ended_at: Some(time(step.ended)),
        rule: step.rule.clone(),
        worktrees: step.worktrees,
        bytes: step.bytes,
        archived_bytes: step.archived_bytes,
        spared: step.spared.clone().unwrap_or_default(),
    }
}
