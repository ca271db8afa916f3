//! What programs read of retention. Fields are only ever added.

use ostler_domain::retention::{Planned, Standing, Step};
use serde::Serialize;

use crate::words::rfc3339;

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
    session: StandingForm,
}

impl StepForm {
    pub(super) fn new(planned: &Planned) -> Self {
        let due = match planned.step {
            Step::Mark { due } => Some(rfc3339(due)),
            Step::Archive | Step::Unmark | Step::Delete => None,
        };
        Self {
            step: planned.step.as_str(),
            rule: Some(planned.rule.clone()).filter(|rule| !rule.is_empty()),
            due,
            spared: planned.spared.clone(),
            session: StandingForm::new(&planned.standing),
        }
    }
}
