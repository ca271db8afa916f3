//! What a member is to do and how, with everything that holds for it.

use std::time::Duration;

use super::{CompleteWhen, Given, Member, OnDepFailure, Plan, Worktree};
use crate::{Name, admission::Priority, budget::Amount, limits::MISSION_RETRIES, session::Approve};

/// A member of a plan with the plan's defaults in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    pub role: Name,
    pub agent: Option<Name>,
    pub kind: String,
    pub task: String,
    pub inputs: Vec<Given>,
    pub paths: Vec<String>,
    /// The campaign's or the machine's to say where it is absent. Limits of providers count those that say one.
    pub provider: Option<String>,
    pub model: Option<String>,
    pub account: Option<Name>,
    pub approve: Option<Approve>,
    pub worktree: Worktree,
    pub budget: Option<Amount>,
    pub timeout: Option<Duration>,
    pub retries: u32,
    pub on_dep_failure: OnDepFailure,
    pub complete_when: CompleteWhen,
    pub priority: Priority,
    pub side_effects: bool,
}

impl Plan {
    /// What this member is to do.
    pub fn work(&self, member: &Member) -> Work {
        let settings = member.settings.or(&self.defaults);
        Work {
            role: member.role.clone(),
            agent: member.agent.clone(),
            kind: member.kind.clone(),
            task: member.task.clone(),
            inputs: member.inputs.clone(),
            paths: member.paths.clone(),
            provider: settings.provider,
            model: settings.model,
            account: settings.account,
            approve: settings.approve,
            worktree: settings.worktree.unwrap_or_default(),
            budget: settings.budget,
            timeout: settings.timeout_us.map(Duration::from_micros),
            retries: settings.retries.unwrap_or(MISSION_RETRIES),
            on_dep_failure: settings.on_dep_failure.unwrap_or_default(),
            complete_when: settings.complete_when.unwrap_or_default(),
            priority: settings.priority.unwrap_or(self.priority),
            side_effects: settings.side_effects.unwrap_or_default(),
        }
    }
}
