//! Wishes to the daemon, in plain types, where a wish has more than a word or two. `who` is what a person types: an
//! id or a unique part of one, a name, a provider's id.

use std::{collections::BTreeMap, time::Duration};

use ostler_domain::{
    Budget, Mode, Name, SessionId, Time,
    admission::Priority,
    budget::{Amount, WhenUsedUp},
    conversation::{Inbound, Key},
    price::Dollars,
    query::{EventFilter, SessionFilter},
    session::{Approve, RestartPolicy, WatchdogLimits},
    worktree::Wanted,
};

use crate::reply::UsageBy;

/// Registers a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddCampaign {
    /// Absolute.
    pub path: String,
    /// Without one it gets the directory's name.
    pub name: Option<Name>,
}

/// Starts a session.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateSession {
    /// Name, id, or a path in it.
    pub campaign: String,
    /// Which agent program.
    pub provider: String,
    /// Without one, the provider's default.
    pub model: Option<String>,
    /// The conversation's name; without one it is made from the first message.
    pub name: Option<Name>,
    /// What the agent is told first; without it, it starts and waits.
    pub initial_message: Option<String>,
    /// What it may use; without one, anything.
    pub budget: Option<Budget>,
    /// What follows when its campaign's budget is used up.
    pub when_used_up: WhenUsedUp,
    /// How long it may live; without one, for ever.
    pub timeout: Option<Duration>,
    /// Whether the time that it waits to start counts too: for who waits for its answer.
    pub timeout_counts_waiting: bool,
    /// Whether a new session replaces it when it ends.
    pub restart: RestartPolicy,
    /// Who answers its agent's questions.
    pub approve: Approve,
    /// It ends with its turn, when nothing more waits.
    pub ends_with_turn: bool,
    /// Environment variables of the agent.
    pub environment: BTreeMap<String, String>,
    /// The provider's own settings.
    pub provider_config: BTreeMap<String, String>,
    /// The work it belongs to, by external reference.
    pub ticket: Option<String>,
    /// The session whose agent asks for this one.
    pub spawned_by: Option<SessionId>,
    /// How long it may be silent.
    pub watchdogs: WatchdogLimits,
    /// How pressing it is that it starts.
    pub priority: Priority,
    /// A registered agent of the campaign whose session it is.
    pub agent: Option<String>,
    /// Which of the agent's conversations; without one, its `main`.
    pub key: Option<Key>,
    /// A git work tree of its own; without one, it works where the session before it did, or in the campaign.
    pub worktree: Option<Wanted>,
    /// Which of the provider's accounts pays for it.
    pub auth_profile: Option<Name>,
}

impl CreateSession {
    /// A session with nothing but defaults.
    pub fn new(campaign: impl Into<String>, provider: impl Into<String>) -> Self {
        Self {
            campaign: campaign.into(),
            provider: provider.into(),
            model: None,
            name: None,
            initial_message: None,
            budget: None,
            when_used_up: WhenUsedUp::default(),
            timeout: None,
            timeout_counts_waiting: false,
            restart: RestartPolicy::default(),
            approve: Approve::default(),
            ends_with_turn: false,
            environment: BTreeMap::new(),
            provider_config: BTreeMap::new(),
            ticket: None,
            spawned_by: None,
            watchdogs: WatchdogLimits::default(),
            priority: Priority::default(),
            agent: None,
            key: None,
            worktree: None,
            auth_profile: None,
        }
    }
}

/// Says something to a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SendMessage {
    /// The session or conversation.
    pub who: String,
    /// What to say.
    pub text: String,
    /// When to say it to a busy agent; as the conversation's messages are queued where it is unset.
    pub mode: Option<Mode>,
    /// Which of an agent's conversations; then `who` is that agent.
    pub key: Option<Key>,
    /// The sender's own name for it: the same one again is the same message.
    pub idempotency_key: Option<String>,
    /// Where it comes from and where answers to it are delivered.
    pub inbound: Option<Inbound>,
}

/// Where a message that waits is to wait instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessagePlace {
    /// Before all others of its conversation.
    First,
    /// Before this message of its conversation.
    Before(String),
    /// In the inbox of this session, conversation or agent.
    To(String),
}

/// Lets a session go on, with larger limits where they are given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResumeSession {
    /// The session.
    pub who: String,
    /// Tokens it may use from now on, those used included; 0 means no limit.
    pub max_tokens: Option<u64>,
    /// Dollars it may cost from now on, those spent included; none at all means no limit.
    pub max_dollars: Option<Dollars>,
    /// How large its tape may become.
    pub tape_bytes: Option<u64>,
}

/// Answers a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerApproval {
    /// Its id, or a unique part of one.
    pub approval: String,
    /// Whether the agent may.
    pub allow: bool,
    /// What the agent is told beside it; may be empty.
    pub message: String,
    /// Whether the campaign gets rules that allow the same from now on.
    pub always: bool,
}

/// Where in the log to begin, and which way to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Forwards: greater places, the oldest first.
    After(u64),
    /// Backwards: smaller places, the newest first.
    Before(u64),
    /// Backwards from the end of the log.
    End,
}

/// Reads a piece of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListEvents {
    /// Which events.
    pub filter: EventFilter,
    /// Where to begin.
    pub from: Place,
    /// How many at most; 0 asks for the usual number.
    pub limit: u32,
}

/// Adds up tokens.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GetUsage {
    /// Of which sessions.
    pub filter: SessionFilter,
    /// Of model calls at or after this time.
    pub since: Option<Time>,
    /// Of model calls before this time.
    pub until: Option<Time>,
    /// What gets a row of its own; without it there is only the total.
    pub by: Option<UsageBy>,
    /// How many rows at most; 0 asks for the usual number.
    pub limit: u32,
}

/// Writes a ticket down.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AddTicket {
    /// Name, id, or a path in it.
    pub campaign: String,
    /// What is to be done.
    pub intent: String,
    /// What sort of work it is; without one, `task`.
    pub kind: Option<String>,
    /// What it is elsewhere: `gh:shop#412`.
    pub external: Option<String>,
    /// The conversation in which it is to be worked on.
    pub conversation: Option<String>,
    /// Tickets that must be done before it.
    pub depends_on: Vec<String>,
    /// It is to be worked on next.
    pub queued: bool,
}

/// Changes what a ticket belongs to. What is not given stays; what is empty is taken away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkTicket {
    /// The ticket.
    pub who: String,
    /// What it is elsewhere.
    pub external: Option<String>,
    /// The conversation in which it is worked on.
    pub conversation: Option<String>,
    /// Tickets that must be done before it, besides those it has.
    pub depends_on: Vec<String>,
    /// Tickets that need not be done before it any more.
    pub no_depends_on: Vec<String>,
}

/// Names a point to return to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MakeCheckpoint {
    /// The ticket.
    pub who: String,
    /// What it is called.
    pub name: String,
    /// Without one, the last session that worked on the ticket.
    pub session: Option<String>,
    /// Without one, the last turn of that session.
    pub turn: Option<u32>,
    /// The files as they are: the id of a snapshot, or a commit.
    pub snapshot: Option<String>,
}

/// Looks at a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlanMission {
    /// Name, id, or a path in it.
    pub campaign: String,
    /// The text of a TOML file.
    pub plan: String,
    /// Values for the parameters that it declares.
    pub parameters: BTreeMap<String, String>,
    /// The provider of agents for whom it names none.
    pub provider: Option<String>,
    /// The model of agents for whom it names none.
    pub model: Option<String>,
}

/// Makes a mission.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CreateMission {
    /// Name, id, or a path in it.
    pub campaign: String,
    /// The text of a TOML file.
    pub plan: String,
    /// Values for the parameters that it declares.
    pub parameters: BTreeMap<String, String>,
    /// It starts at once.
    pub starts: bool,
}

/// Lets a mission go on, with more of what was used up where that is given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResumeMission {
    /// The mission.
    pub who: String,
    /// What it may use from now on, what it used included.
    pub budget: Option<Amount>,
    /// Time that it gets besides what is left of its own.
    pub more_time: Option<Duration>,
    /// Names or ids of the assignments that wait for a person and go on; all of them where none is named.
    pub which: Vec<String>,
}

/// Does again what was not completed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetryMission {
    /// The mission.
    pub who: String,
    /// Names or ids of assignments; all that were not completed where none is named.
    pub which: Vec<String>,
    /// What the mission may use from now on, what it used included.
    pub budget: Option<Amount>,
    /// Time that it gets: besides what is left of its own, or for all that is done again where it is over.
    pub more_time: Option<Duration>,
}

/// What is asked of a mission, where it has something run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissionAction {
    /// One that was made and not started begins.
    Start,
    /// One that stands still goes on.
    Resume,
    /// What was not completed is done again.
    Retry,
}
