//! What a session is started with. Fixed at its creation.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    AgentId, CampaignId, ConversationId, Deadline, Name, Policy, SessionId, TicketId,
    admission::Priority,
    budget::{Budget, WhenUsedUp},
    history, limits,
    mission::Membership,
    worktree::Worktree,
};

/// The first event of a session: everything about it that never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Created {
    pub id: SessionId,
    pub campaign: CampaignId,
    pub conversation: ConversationId,
    pub name: Name,
    /// Whose session it is, where an agent is registered for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentRef>,
    pub config: Config,
    pub sandbox: Sandbox,
    /// What the campaign allowed when the session was created.
    #[serde(default)]
    pub policy: Policy,
    /// The session whose work this one goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<SessionId>,
    /// The first session of the row of sessions joined by `continues`.
    pub chain: SessionId,
    /// The session whose agent asked for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<SessionId>,
    /// The session whose rights this one may not exceed, because its agent wanted it; none where a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounded_by: Option<SessionId>,
    #[serde(default)]
    pub restart_count: u32,
    /// How many short lives in a row ended before this one: what back-off and quarantine count.
    #[serde(default)]
    pub short_lives: u32,
    #[serde(default, skip_serializing_if = "Begin::is_fresh")]
    pub begin: Begin,
    /// It ran outside of Ostler and is only read; none for one that Ostler runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<history::Origin>,
}

/// A registered agent as it was when something of it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRef {
    pub id: AgentId,
    pub name: Name,
    pub role: Name,
}

/// How the provider's dialogue begins.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Begin {
    #[default]
    Fresh,
    /// Goes on with a dialogue that the provider keeps under this id.
    Resume {
        provider_id: String,
        /// What the agent is told first: that it was interrupted, where it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        interrupted: Option<String>,
        /// What it is told instead, should the provider not find that dialogue: what had been said. Empty where that is
        /// known before.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        seed: String,
    },
    /// Goes on with a copy of it, under an id of its own; told what had been said, should there be none to copy.
    Fork {
        provider_id: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        seed: String,
    },
    /// The provider has lost the dialogue: it begins anew, told what had been said.
    Reseed { why: String, seed: String },
}

impl Begin {
    fn is_fresh(&self) -> bool {
        *self == Begin::Fresh
    }

    /// The provider's id that this goes on with, or branches off.
    pub fn provider_id(&self) -> Option<&str> {
        match self {
            Begin::Resume { provider_id, .. } | Begin::Fork { provider_id, .. } => Some(provider_id),
            Begin::Fresh | Begin::Reseed { .. } => None,
        }
    }
}

/// How the session's agent is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    pub provider: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The campaign's root, or a work tree of its own.
    pub working_dir: String,
    /// The branch that was checked out there when the session was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The work tree that this is, where it is no campaign's root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Worktree>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// What follows when a budget of the campaign's is used up; the session's own says it itself.
    #[serde(default)]
    pub when_used_up: WhenUsedUp,
    /// Who pays for the agent's calls.
    #[serde(default)]
    pub billing: Billing,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_us: Option<u64>,
    /// When that limit passes, where the time that it waits to start counts too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    #[serde(default)]
    pub restart: RestartPolicy,
    #[serde(default)]
    pub approve: Approve,
    /// The session ends `done` with its turn, when nothing more waits.
    #[serde(default)]
    pub ends_with_turn: bool,
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The provider's own settings.
    #[serde(default)]
    pub provider_config: BTreeMap<String, String>,
    /// What the agent is told before anything else, of who it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Which of the provider's keys it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_profile: Option<Name>,
    /// Work this belongs to, as it is shown: by external reference (`fest:…`, `bead:…`, `gh:…`), or by its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// The ticket itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket_id: Option<TicketId>,
    /// The assignment of a mission that it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mission: Option<Membership>,
    #[serde(default)]
    pub watchdogs: WatchdogLimits,
    /// A turn that failed of a rate limit goes on when the limit ends, where somebody said when that is.
    #[serde(default = "yes")]
    pub resumes_after_limit: bool,
    /// How long its agent's questions wait for a person; then they are denied.
    #[serde(default = "approval_limit")]
    pub approval_us: u64,
    /// How pressing it is that it starts.
    #[serde(default, skip_serializing_if = "Priority::is_usual")]
    pub priority: Priority,
    /// How long its process is kept when it has nothing to do; absent, for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_stop_us: Option<u64>,
    /// Its agent only answers: it has no tools, is given no leave, and nothing in the campaign is writable for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_tools: bool,
    /// Paths below its root, or patterns for some, that alone are writable for it there; empty where all of it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leases: Vec<String>,
}

/// How long questions wait where nobody says otherwise.
pub fn approval_limit() -> u64 {
    u64::try_from(limits::APPROVAL_WAITS.as_micros()).unwrap_or(u64::MAX)
}

const fn yes() -> bool {
    true
}

impl Config {
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout_us.map(Duration::from_micros)
    }

    /// What the work is asked for by: its id where it has one, since a reference may be another ticket's by now.
    pub fn named_ticket(&self) -> Option<String> {
        self.ticket_id.map(|id| id.to_string()).or_else(|| self.ticket.clone())
    }
}

/// Who pays for an agent's calls to its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Billing {
    /// Each call is paid for.
    #[default]
    Calls,
    /// A subscription that the agent is logged in by covers them.
    Plan,
}

/// Whether a new session replaces one that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestartPolicy {
    #[default]
    Never,
    /// After a crash, a loss or an out-of-memory kill.
    OnFailure,
    /// After every end that nobody asked for.
    Always,
}

impl RestartPolicy {
    pub const fn as_str(self) -> &'static str {
        match self {
            RestartPolicy::Never => "never",
            RestartPolicy::OnFailure => "on-failure",
            RestartPolicy::Always => "always",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Never, Self::OnFailure, Self::Always].into_iter().find(|policy| policy.as_str() == text)
    }
}

/// Who answers an agent that asks for leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approve {
    /// A person, always: the question waits.
    #[default]
    Ask,
    /// Everything is allowed; the sandbox is the boundary.
    All,
    /// The rules; what none decides is denied at once, and the agent is told: nobody is there.
    Nobody,
    /// The rules; what none decides waits for a person.
    Policy,
}

/// What confines the agent. Said with every listing and event of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    /// Namespaces, Landlock, seccomp: all of it, or no start.
    On,
    Off,
}

impl Sandbox {
    pub const fn as_str(self) -> &'static str {
        match self {
            Sandbox::On => "on",
            Sandbox::Off => "off",
        }
    }
}

/// How long a session may be silent before its watchdogs wake, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchdogLimits {
    pub start_us: u64,
    pub first_output_us: u64,
    pub silent_us: u64,
    pub tool_us: u64,
    pub retries_us: u64,
    pub rung_us: u64,
}

impl Default for WatchdogLimits {
    fn default() -> Self {
        let micros = |span: Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        Self {
            start_us: micros(limits::WATCHDOG_START),
            first_output_us: micros(limits::WATCHDOG_FIRST_OUTPUT),
            silent_us: micros(limits::WATCHDOG_SILENT),
            tool_us: micros(limits::WATCHDOG_TOOL),
            retries_us: micros(limits::WATCHDOG_RETRIES),
            rung_us: micros(limits::WATCHDOG_RUNG),
        }
    }
}
