//! What programs read of retention. Fields are only ever added.

use ostler_domain::retention::{MissionStep, Standing, Step};
use serde::Serialize;

use crate::{screen::retention::Entry, words::rfc3339};

#[derive(Serialize)]
pub(super) struct StandingForm {
    session: String,
    short: String,
    name: String,
    campaign: String,
    campaign_id: String,
    stage: &'static str,
    ended: Option<String>,
    archived: Option<String>,
    due: Option<String>,
    deleted: Option<String>,
    restored: Option<String>,
    held: Option<HoldForm>,
    rule: Option<String>,
}

#[derive(Serialize)]
struct HoldForm {
    by: String,
    why: String,
    since: String,
}

impl StandingForm {
    pub(super) fn new(standing: &Standing) -> Self {
        let kept = &standing.kept;
        Self {
            session: standing.session.to_string(),
            short: standing.session.short(),
            name: standing.name.to_string(),
            campaign: standing.campaign_name.clone(),
            campaign_id: standing.campaign.to_string(),
            stage: kept.stage().as_str(),
            ended: standing.ended.map(rfc3339),
            archived: kept.archived.map(rfc3339),
            due: kept.due.map(rfc3339),
            deleted: kept.deleted.map(rfc3339),
            restored: kept.restored.map(rfc3339),
            held: kept.held.as_ref().map(|hold| HoldForm {
                by: hold.by.0.clone(),
                why: hold.why.clone(),
                since: rfc3339(hold.since),
            }),
            rule: kept.rule.clone(),
        }
    }
}

#[derive(Serialize)]
pub(super) struct StepForm {
    step: &'static str,
    rule: Option<String>,
    /// For `mark`: when what was said is deleted.
    due: Option<String>,
    /// Why it is not done; null where nothing stands against it.
    spared: Option<String>,
    /// Whose record it is about; absent where it is about what a mission left behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<StandingForm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mission: Option<MissionStepForm>,
}

#[derive(Serialize)]
pub(in crate::commands) struct MissionStepForm {
    mission: String,
    name: String,
    campaign: String,
    campaign_id: String,
    status: &'static str,
    ended: String,
    worktrees: u32,
    bytes: u64,
    archived_bytes: u64,
}

impl MissionStepForm {
    pub(in crate::commands) fn new(step: &MissionStep) -> Self {
        Self {
            mission: step.mission.to_string(),
            name: step.name.to_string(),
            campaign: step.campaign_name.clone(),
            campaign_id: step.campaign.to_string(),
            status: step.status.as_str(),
            ended: rfc3339(step.ended),
            worktrees: step.worktrees,
            bytes: step.bytes,
            archived_bytes: step.archived_bytes,
        }
    }
}

impl StepForm {
    pub(super) fn new(entry: &Entry) -> Self {
        let (step, rule, session, mission) = match entry {
            Entry::Session(planned) => {
                (planned.step, &planned.rule, Some(StandingForm::new(&planned.standing)), None)
            }
            Entry::Mission(step) => (Step::Archive, &step.rule, None, Some(MissionStepForm::new(step))),
        };
        let due = match step {
            Step::Mark { due } => Some(rfc3339(due)),
            Step::Archive | Step::Unmark | Step::Delete => None,
        };
        Self {
            step: step.as_str(),
            rule: Some(rule.clone()).filter(|rule| !rule.is_empty()),
            due,
            spared: entry.spared().map(str::to_owned),
            session,
            mission,
        }
    }
}
