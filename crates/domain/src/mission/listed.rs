//! A mission as lists show it, and a session's part in one.

use serde::{Deserialize, Serialize};

use super::{Spent, Status, Strategy};
use crate::{AssignmentId, CampaignId, MissionId, Name, Time};

/// The assignment that a session works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    pub mission: MissionId,
    pub assignment: AssignmentId,
    /// From 1.
    pub attempt: u32,
}

/// A mission as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    pub id: MissionId,
    pub campaign: CampaignId,
    pub name: Name,
    pub objective: String,
    pub strategy: Strategy,
    pub status: Status,
    pub created_at: Time,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    /// When something last happened to it.
    pub updated_at: Time,
    pub counts: Counts,
    /// What all of its sessions have used.
    pub spent: Spent,
}

/// How many assignments there are, and how many are over, by their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    pub total: u32,
    pub completed: u32,
    pub failed: u32,
    pub skipped: u32,
    pub cancelled: u32,
}

/// Which missions a list is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    pub campaign: Option<CampaignId>,
    pub statuses: Vec<Status>,
    /// Those that are over too, where no status is asked for.
    pub over_too: bool,
    /// Created at or after.
    pub since: Option<Time>,
}
