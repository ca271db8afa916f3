//! Answers of the daemon for which the core has no type: what is known only to the shell around it, and pages.

mod audit;
mod http;
mod message;
mod mission;
mod share;
mod tape;

use std::collections::BTreeMap;

use ostler_domain::{
    ApprovalId, CampaignId, Name, NodeId, Recorded, SessionId, Time, Usage,
    approval::Applied,
    event::{Answer, AskKind, By},
    price::Dollars,
    reboot::MachineRestart,
};

pub use audit::{Audit, BrokenLine};
pub use http::{HttpToken, NewToken, WayIn};
pub use message::{Delivery, Sent, Taken};
pub use mission::{
    AssignmentRow, CollisionRow, MissionEta, MissionPreview, MissionPrice, PausedMission, PlannedMission,
    WholeMission,
};
pub use share::{NewShare, Share};
pub use tape::{NativeCommand, TapePart, TapeRecord};

/// A question of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The question.
    pub id: ApprovalId,
    /// The session whose agent asks.
    pub session: SessionId,
    /// The tool it wants to use.
    pub tool: String,
    /// What it would do with it.
    pub input: String,
    /// What it asks for, in one line.
    pub asks: String,
    /// What it wants of a person.
    pub kind: AskKind,
    /// Why no rule answered it.
    pub why: String,
    /// When it asked.
    pub asked: Time,
    /// When it is denied if nobody answers.
    pub deadline: Option<Time>,
    /// None while it is open.
    pub answer: Option<Answered>,
}

/// What came of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerGiven {
    /// The question with its answer.
    pub approval: Approval,
    /// The rules that allow the same from now on, where that was asked for.
    pub rules: Vec<Applied>,
}

/// How a question was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The answer itself.
    pub answer: Answer,
    /// Who gave it.
    pub by: By,
    /// What the agent is told beside it; may be empty.
    pub message: String,
    /// When it was given.
    pub at: Time,
    /// The rules that decided; none where a person did.
    pub rules: Vec<Applied>,
}

/// An event as received: one that this version knows, or one that it can only pass on.
#[derive(Debug, Clone, PartialEq)]
pub enum Received {
    /// Understood.
    Known(Box<Recorded>),
    /// Of a kind or form that came after this version.
    Unknown(UnknownEvent),
}

/// An event that this version does not know, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownEvent {
    /// Place in the node's log.
    pub seq: u64,
    /// The session that it is about.
    pub session: Option<SessionId>,
    /// Place in the session's own sequence.
    pub session_seq: Option<u64>,
    /// When it was recorded.
    pub time: Time,
    /// What sort of fact it is.
    pub kind: String,
    /// What happened, as a JSON object.
    pub body: String,
}

impl Received {
    /// Place in the node's log.
    pub fn seq(&self) -> u64 {
        match self {
            Received::Known(recorded) => recorded.seq,
            Received::Unknown(unknown) => unknown.seq,
        }
    }

    /// The session that it is about.
    pub fn session(&self) -> Option<SessionId> {
        match self {
            Received::Known(recorded) => recorded.session,
            Received::Unknown(unknown) => unknown.session,
        }
    }

    /// When it was recorded.
    pub fn time(&self) -> Time {
        match self {
            Received::Known(recorded) => recorded.time,
            Received::Unknown(unknown) => unknown.time,
        }
    }

    /// The name of what sort of fact it is.
    pub fn kind(&self) -> &str {
        match self {
            Received::Known(recorded) => recorded.event.kind().name(),
            Received::Unknown(unknown) => &unknown.kind,
        }
    }
}

/// A piece of the log.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EventPage {
    /// In the order asked for.
    pub events: Vec<Received>,
    /// Where the next piece begins: give it as `after` or `before`. With fewer events than asked for it means that
    /// the search reached its limit, not the end.
    pub next: Option<u64>,
}

/// An event that has the words searched for.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The event.
    pub event: Received,
    /// The text around the first of the words, on one line.
    pub snippet: String,
}

/// A piece of text that an agent is just writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// The session whose agent writes.
    pub session: SessionId,
    /// What was added.
    pub text: String,
}

/// How the daemon is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    /// Its process number.
    pub pid: u32,
    /// The version of its program.
    pub version: String,
    /// This node.
    pub node: NodeId,
    /// One more at each start.
    pub epoch: u64,
    /// When it started.
    pub started: Time,
    /// Where it keeps its state.
    pub state_dir: String,
    /// Sessions that have not ended.
    pub live_sessions: u64,
    /// Those of them whose keeper is not connected.
    pub detached_sessions: u64,
    /// Set while all agents are halted.
    pub halt: Option<HaltState>,
    /// Set while nothing new starts.
    pub drain: Option<DrainState>,
    /// What is kept on disk.
    pub store: StoreSizes,
    /// The last place in the log.
    pub last_seq: u64,
    /// The version of the store's form.
    pub schema_version: u32,
    /// What holds sessions to their memory limit: `cgroup v2`, `cgroup v1` or `keeper`. Empty: an older daemon does not
    /// say.
    pub memory_held_by: String,
    /// Sessions that wait to start; part of those that have not ended.
    pub waiting_sessions: u64,
    /// The disk that the state is on; absent, an older daemon does not say.
    pub disk: Option<DiskRoom>,
    /// Set while sessions that were lost with the machine wait for a word.
    pub machine_restart: Option<MachineRestart>,
    /// How many keepers of each version are connected. Empty: an older daemon does not say.
    pub keeper_versions: BTreeMap<String, u64>,
}

/// What takes the space in the state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskUse {
    /// The disk that it is on.
    pub disk: DiskRoom,
    /// All of it, by what it is.
    pub parts: Vec<PartUse>,
    /// Tapes and homes by campaign, the largest first.
    pub campaigns: Vec<CampaignUse>,
    /// The largest sessions.
    pub sessions: Vec<SessionUse>,
}

/// One part of the state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartUse {
    /// What it is: `database`, `search`, `blobs`, `tapes`, `homes`, `logs` or `other`.
    pub part: String,
    /// Bytes that it takes on the disk.
    pub bytes: u64,
    /// Its files.
    pub files: u64,
}

/// What a campaign's sessions take, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CampaignUse {
    /// The campaign.
    pub campaign: CampaignId,
    /// Its sessions that take any.
    pub sessions: u64,
    /// Their tapes.
    pub tapes: u64,
    /// Their conversations' homes.
    pub homes: u64,
}

/// What a session takes, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionUse {
    /// The session.
    pub id: SessionId,
    /// Its conversation's name.
    pub name: Name,
    /// Its campaign.
    pub campaign: CampaignId,
    /// Whether it has ended.
    pub has_ended: bool,
    /// Its tape.
    pub tape: u64,
    /// Its conversation's home; with the conversation's last session only.
    pub home: u64,
}

/// What a disk has free, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskRoom {
    /// What is free.
    pub free: u64,
    /// What it has.
    pub total: u64,
    /// Below this much, nothing new starts.
    pub least: u64,
}

impl DiskRoom {
    /// Says whether nothing new starts.
    pub fn is_short(&self) -> bool {
        self.free < self.least
    }
}

/// A drain in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainState {
    /// Who asked.
    pub by: By,
    /// Why; may be empty.
    pub why: String,
    /// Since when.
    pub since: Time,
}

/// A halt in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HaltState {
    /// Agents are frozen rather than killed.
    pub freeze: bool,
    /// Who asked.
    pub by: By,
    /// Why; may be empty.
    pub why: String,
    /// Since when.
    pub since: Time,
}

/// A halt that was just asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Halt {
    /// The halt in force.
    pub state: HaltState,
    /// How many sessions it struck.
    pub sessions: u64,
}

/// Bytes on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreSizes {
    /// The database with its write-ahead log.
    pub database_bytes: u64,
    /// The search index.
    pub search_bytes: u64,
    /// Sessions there have ever been.
    pub sessions: u64,
    /// Events that searching does not find yet.
    pub unsearched_events: u64,
}

/// A daemon that is about to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DaemonStopping {
    /// Its process number.
    pub pid: u32,
    /// Sessions that go on without it.
    pub sessions_left_running: u64,
}

/// What a sum of tokens is split by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageBy {
    /// Day, in UTC.
    Day,
    /// Model.
    Model,
    /// Provider.
    Provider,
    /// Campaign.
    Campaign,
    /// Session.
    Session,
    /// Chain.
    Chain,
    /// Ticket.
    Ticket,
    /// Mission.
    Mission,
}

impl UsageBy {
    /// Every way there is.
    pub const ALL: &'static [UsageBy] = &[
        UsageBy::Day,
        UsageBy::Model,
        UsageBy::Provider,
        UsageBy::Campaign,
        UsageBy::Session,
        UsageBy::Chain,
        UsageBy::Ticket,
        UsageBy::Mission,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            UsageBy::Day => "day",
            UsageBy::Model => "model",
            UsageBy::Provider => "provider",
            UsageBy::Campaign => "campaign",
            UsageBy::Session => "session",
            UsageBy::Chain => "chain",
            UsageBy::Ticket => "ticket",
            UsageBy::Mission => "mission",
        }
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|by| by.as_str() == text)
    }
}

/// Sums of tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageSums {
    /// Everything asked for, rows left out included.
    pub total: UsageRow,
    /// One for each day, model, …
    pub rows: Vec<UsageRow>,
}

/// One sum.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageRow {
    /// What it is the sum of; empty where it is not known, and for the total.
    pub key: String,
    /// The key's name, where it has one.
    pub name: String,
    /// The tokens.
    pub usage: Usage,
    /// How many sessions they come from.
    pub sessions: u64,
    /// How many model calls.
    pub calls: u64,
    /// What those that are paid for one by one cost, as far as they had a price.
    pub cost: Dollars,
    /// The same of those that a subscription covers.
    pub plan: Dollars,
    /// The tokens of those that had no price.
    pub unpriced: Usage,
    /// The same of those that a subscription covers.
    pub plan_unpriced: Usage,
}

/// How far a long piece of work has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub step: String,
    /// How much of it is done.
    pub done: u64,
    /// How much there is; 0 when that is not known.
    pub total: u64,
}

/// What a check of the store says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckNews {
    /// It goes on.
    Progress(Progress),
    /// It found something.
    Finding(Finding),
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Where it was found.
    pub place: String,
    /// What was found.
    pub message: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Derived content is wrong; a reindex makes it right.
    Repairable,
    /// The record itself is damaged.
    Damage,
}

/// How to have a provider's program log in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoginPlan {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables to be set for it.
    pub environment: BTreeMap<String, String>,
    /// Where the login is when it is done.
    pub file: String,
}
