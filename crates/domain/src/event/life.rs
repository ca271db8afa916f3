//! Bodies: the life of a session's process.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    ApprovalId, Time,
    event::By,
    session::{Hold, Watchdog, WatchdogRung},
    time::{BootId, Deadline},
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Starting {
    /// Which try this is: a keeper of an earlier one that comes late gives up.
    pub attempt: u32,
}

/// A process as it can be known again: never by its number alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    /// Field 22 of `/proc/<pid>/stat`: clock ticks after boot.
    pub start_time: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spawned {
    pub agent: Process,
    pub boot: BootId,
    /// Its calls go through a gateway, which holds them at the end of an allowance.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub holds_calls: bool,
}

/// What an agent that has no key of its own calls its model with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoginLent {
    pub until: Time,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// The provider's own name for the dialogue: a claim until a turn confirms it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Paused {
    pub by: By,
    /// What was left of the session's timeout: it stands still meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_left_us: Option<u64>,
    /// And of the time that open approvals wait for an answer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub approvals_left_us: BTreeMap<ApprovalId, u64>,
    /// What a person is to decide, where Ostler paused it for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Asks>,
}

/// What Ostler asks of a person by pausing a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asks {
    pub about: AsksAbout,
    /// Why, and the command that lets it go on.
    pub words: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AsksAbout {
    /// Something is used up.
    Budget,
    /// It does not get on.
    Progress,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resumed {
    pub by: By,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// When open approvals are denied if nobody answers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub approval_deadlines: BTreeMap<ApprovalId, Deadline>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Held {
    pub hold: Hold,
    pub reason: String,
    /// Its open turn may say first what was paid for: no call begins, and the tree stands still when the turn is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub settles: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Released {
    pub hold: Hold,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stalled {
    pub watchdog: Watchdog,
    pub evidence: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recovered {}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WatchdogFired {
    pub watchdog: Watchdog,
    pub rung: WatchdogRung,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntakeChanged {
    /// `open`, `throttled`, `disk_full` or `tape_limit`.
    pub intake: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TapeLimitRaised {
    pub bytes: u64,
    pub by: By,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    pub pid: u32,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeftoversEnded {
    pub processes: Vec<Leftover>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProviderBound {
    pub provider_id: String,
    /// The model that runs the turn, where the agent says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelChanged {
    pub model: String,
    pub by: By,
    /// The agent cannot change its model while it lives: the conversation's next session begins with this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_next_session: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextReset {
    pub why: String,
}

/// Paths below the campaign's root, such as `.git/hooks/pre-commit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tamper {
    pub names: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TapeDamaged {
    pub from: u64,
    pub to: u64,
}
