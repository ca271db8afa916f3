//! Retention.

use ostler_domain::{
    event::By,
    retention::{Hold, Kept, MissionStep, Planned, Standing, Step},
};

use super::{Result, id, optional_time, required, required_time};
use crate::{
    InvalidField,
    enums::from,
    pb::{self, RetentionStep as Wire},
};

pub fn retention(answer: pb::Retention) -> Result<Standing> {
    let hold = |hold: pb::RetentionHold| {
        let since = required_time(hold.since, "since").map_err(|error| error.within("hold"))?;
        Ok(Hold { by: By(hold.by), why: hold.why, since })
    };
    Ok(Standing {
        session: id(&answer.session_id, "session_id")?,
        name: id(&answer.name, "name")?,
        campaign: id(&answer.campaign_id, "campaign_id")?,
        campaign_name: answer.campaign,
        ended: optional_time(answer.ended_at, "ended_at")?,
        kept: Kept {
            archived: optional_time(answer.archived_at, "archived_at")?,
            due: optional_time(answer.due_at, "due_at")?,
            deleted: optional_time(answer.deleted_at, "deleted_at")?,
            restored: optional_time(answer.restored_at, "restored_at")?,
            held: answer.hold.map(hold).transpose()?,
            rule: Some(answer.rule).filter(|rule| !rule.is_empty()),
        },
    })
}

pub fn planned(answer: pb::PlannedRetention) -> Result<Planned> {
    let step = match Wire::try_from(answer.step) {
        Ok(Wire::Archive) => Step::Archive,
        Ok(Wire::Mark) => Step::Mark { due: required_time(answer.due_at, "due_at")? },
        Ok(Wire::Unmark) => Step::Unmark,
        Ok(Wire::Delete) => Step::Delete,
        Ok(Wire::Unspecified) | Err(_) => {
            let number = answer.step;
            return Err(InvalidField::new("step", format_args!("{number} is not known to this version")));
        }
    };
    let standing = required(answer.retention, "retention")?;
    Ok(Planned {
        standing: retention(standing).map_err(|error| error.within("retention"))?,
        step,
        rule: answer.rule,
        spared: Some(answer.spared).filter(|why| !why.is_empty()),
    })
}

pub fn mission_step(answer: pb::MissionRetention) -> Result<MissionStep> {
    Ok(MissionStep {
        mission: id(&answer.mission_id, "mission_id")?,
        name: id(&answer.name, "name")?,
        campaign: id(&answer.campaign_id, "campaign_id")?,
        campaign_name: answer.campaign,
        status: from::mission_status(answer.status, "status")?,
        ended: required_time(answer.ended_at, "ended_at")?,
        rule: answer.rule,
        worktrees: answer.worktrees,
        bytes: answer.bytes,
        archived_bytes: answer.archived_bytes,
        spared: Some(answer.spared).filter(|why| !why.is_empty()),
    })
}
