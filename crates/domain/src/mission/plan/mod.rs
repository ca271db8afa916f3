//! What a mission is to be: read from a TOML file or made from flags, checked as a whole, and written out again.

mod check;
mod fault;
mod flag;
mod parameters;
mod read;
mod reader;
mod render;
mod template;
mod work;

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

pub use super::assignment::OnDepFailure;
pub use check::{Lines, check, check_added};
pub use fault::{Fault, Faults};
pub use parameters::Parameter;
pub use read::{Read, Terms, parameters, read, read_members, read_members_whole, read_whole};
pub use template::{Template, templates};
pub use work::Work;

use super::words::Strategy;
use crate::{
    Name,
    admission::Priority,
    budget::{Amount, WhenUsedUp},
    limits::{MISSION_ADDED, MISSION_ADDED_DEPTH},
    session::Approve,
};

/// A mission as it was planned.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Plan {
    /// What people call the mission; made from the objective where nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    pub objective: String,
    pub strategy: Strategy,
    #[serde(default, skip_serializing_if = "Priority::is_usual")]
    pub priority: Priority,
    /// What all of its sessions together may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Amount>,
    /// What follows when that, or its time, is used up.
    #[serde(default)]
    pub when_used_up: WhenUsedUp,
    /// How long it may run; while it is paused no time passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_us: Option<u64>,
    /// What holds for each agent that does not say otherwise.
    #[serde(default)]
    pub defaults: Settings,
    #[serde(default)]
    pub limits: Limits,
    /// What becomes of the members' branches at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<Merge>,
    /// Whatever its maker wants to remember.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    pub agents: Vec<Member>,
}

impl Plan {
    pub fn time(&self) -> Option<Duration> {
        self.time_us.map(Duration::from_micros)
    }

    /// Assignments that it has, instances counted.
    pub fn assignments(&self) -> usize {
        self.agents.iter().fold(0, |sum: usize, member| sum.saturating_add(member.instances as usize))
    }

    /// The name that it says, or one made from its objective.
    pub fn named(&self) -> Name {
        let usual = || "mission".parse().unwrap_or_else(|_| unreachable!("it is a name"));
        self.name.clone().or_else(|| Name::slug(&self.objective)).unwrap_or_else(usual)
    }
}

/// One or several agents of a mission with the same task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub name: Name,
    pub role: Name,
    #[serde(default = "one")]
    pub instances: u32,
    /// A registered agent whose identity it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Name>,
    /// What sort of work it is, as with tickets: what it took before says how long it may take now.
    #[serde(default = "usual_type", rename = "type", skip_serializing_if = "is_usual_type")]
    pub kind: String,
    pub task: String,
    /// Names of members, all of whose instances must be over before it, or of single instances.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Name>,
    /// From 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Given>,
    /// Directories and files, below the campaign's root, that it alone may write; empty where nothing is leased.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    #[serde(flatten)]
    pub settings: Settings,
}

impl Member {
    /// One agent with a task, and nothing else said.
    pub fn new(name: Name, task: impl Into<String>) -> Self {
        Self {
            role: name.clone(),
            name,
            instances: 1,
            agent: None,
            kind: usual_type(),
            task: task.into(),
            needs: Vec::new(),
            stage: None,
            inputs: Vec::new(),
            paths: Vec::new(),
            settings: Settings::default(),
        }
    }

    /// The name of one of its instances, from 1.
    pub fn instance(&self, instance: u32) -> Name {
        if self.instances == 1 { self.name.clone() } else { self.name.numbered(instance) }
    }
}

const fn one() -> u32 {
    1
}

fn usual_type() -> String {
    crate::ticket::USUAL_TYPE.to_owned()
}

fn is_usual_type(kind: &str) -> bool {
    kind == crate::ticket::USUAL_TYPE
}

/// Something that an agent is given beside its task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Given {
    /// A file of the campaign.
    File(String),
    Text(String),
}

/// How an agent is run; what is absent is the plan's, the agent's, the campaign's or the machine's to say.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Which of the provider's keys it uses: a name of `providers.NAME.profiles`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve: Option<Approve>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    /// Of each of its sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Amount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_us: Option<u64>,
    /// Tries after the first one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_dep_failure: Option<OnDepFailure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete_when: Option<CompleteWhen>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// It does something that cannot be done twice: it is never tried again by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub side_effects: Option<bool>,
}

impl Settings {
    /// What this says, and the other where this says nothing.
    #[must_use]
    pub fn or(&self, other: &Settings) -> Settings {
        let (one, other) = (self.clone(), other.clone());
        Settings {
            provider: one.provider.or(other.provider),
            model: one.model.or(other.model),
            account: one.account.or(other.account),
            approve: one.approve.or(other.approve),
            worktree: one.worktree.or(other.worktree),
            budget: one.budget.or(other.budget),
            timeout_us: one.timeout_us.or(other.timeout_us),
            retries: one.retries.or(other.retries),
            on_dep_failure: one.on_dep_failure.or(other.on_dep_failure),
            complete_when: one.complete_when.or(other.complete_when),
            priority: one.priority.or(other.priority),
            side_effects: one.side_effects.or(other.side_effects),
        }
    }
}

/// When the work of an assignment is done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompleteWhen {
    /// Its turn ended.
    #[default]
    Turn,
    /// Its agent said so (`ostler done`).
    Done,
    /// This command, run in its sandbox after the turn, succeeds.
    Check(String),
}

/// Where an agent works.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Worktree {
    /// In the campaign's own directory.
    #[default]
    None,
    /// In a work tree of its own, on a branch that is named after it.
    Own,
    /// In a work tree of its own, on this branch.
    Branch(String),
}

/// How much of a mission may go on at once, and how far its agents may make it grow. What is not said is not limited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<String, u32>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub providers: BTreeMap<String, u32>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub accounts: BTreeMap<String, u32>,
    /// Assignments that agents may add, and how deep, those that were added having added others.
    pub added: u32,
    pub depth: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            concurrency: None,
            roles: BTreeMap::new(),
            providers: BTreeMap::new(),
            accounts: BTreeMap::new(),
            added: MISSION_ADDED,
            depth: MISSION_ADDED_DEPTH,
        }
    }
}

/// What becomes of the members' branches once every assignment whose branch is merged is completed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merge {
    /// The branch that they are merged into.
    pub into: String,
    /// Whose branches: names of agents, of single instances, or of roles. Where nothing is said, those of all who have one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<Name>,
    /// The merge stands only if this command succeeds on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
}
