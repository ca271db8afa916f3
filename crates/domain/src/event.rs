//! Events: recorded facts, in the past tense. The log of them is the truth; everything listed is derived.
//!
//! Each kind has a stable name (API, CLI) and a stable number (database), and a body whose JSON form is the
//! stored form. Fields are only ever added, with a default; golden files pin what is stored today.

use serde::{Deserialize, Serialize};

use crate::{
    ConversationId, Message, MessageId, Name, SessionId, Time, Usage,
    budget::Budget,
    call::{DoneReported, StepEnded, StepStarted},
    campaign::Campaign,
    denied::Denied,
    gateway::Network,
    id::{ApprovalId, CampaignId},
    policy::Policy,
    session::{Created, Ended, Hold, StopRequested, Watchdog, WatchdogRung},
    time::{BootId, Deadline},
};

/// An event with its place in the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Place in the node's log: the only order.
    pub seq: u64,
    pub session: Option<SessionId>,
    /// Place in the session's own sequence, from 1, without holes.
    pub session_seq: Option<u64>,
    pub time: Time,
    pub event: Event,
}

/// In the place of an event that is damaged, or of a newer version's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// The number of its kind, if that much can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    pub why: String,
}

/// A stored event whose kind or body this version does not know.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("event kind {0} is not known to this version")]
    UnknownKind(u16),
    #[error("the body does not fit the kind {kind}")]
    Body {
        kind: Kind,
        #[source]
        source: serde_json::Error,
    },
}

macro_rules! events {
    ($($(#[$doc:meta])* $variant:ident($body:ty) = $code:literal, $name:literal;)*) => {
        /// One recorded fact.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Event {
            /// Never stored: stands in a listing for an event that is in the log and cannot be read.
            Unreadable(Unreadable),
            $($(#[$doc])* $variant($body),)*
        }

        /// What sort of fact an event is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { Unreadable, $($(#[$doc])* $variant,)* }

        impl Kind {
            /// All that are stored.
            pub const ALL: &'static [Kind] = &[$(Kind::$variant),*];

            pub const fn name(self) -> &'static str {
                match self { Kind::Unreadable => "UNREADABLE", $(Kind::$variant => $name,)* }
            }

            pub const fn code(self) -> u16 {
                match self { Kind::Unreadable => 0, $(Kind::$variant => $code,)* }
            }

            pub const fn from_code(code: u16) -> Option<Kind> {
                match code { $($code => Some(Kind::$variant),)* _ => None }
            }

            pub fn from_name(name: &str) -> Option<Kind> {
                match name { "UNREADABLE" => Some(Kind::Unreadable), $($name => Some(Kind::$variant),)* _ => None }
            }
        }

        impl Event {
            pub const fn kind(&self) -> Kind {
                match self { Event::Unreadable(_) => Kind::Unreadable, $(Event::$variant(_) => Kind::$variant,)* }
            }

            /// The stored form of the body.
            pub fn body(&self) -> String {
                let body = match self { Event::Unreadable(body) => serde_json::to_string(body), $(Event::$variant(body) => serde_json::to_string(body),)* };
                // Bodies are plain structs with string keys: serializing them cannot fail.
                body.unwrap_or_else(|_| "{}".to_owned())
            }

            /// Reads a stored body back.
            pub fn decode(kind: Kind, body: &str) -> Result<Event, DecodeError> {
                match kind {
                    Kind::Unreadable => serde_json::from_str(body)
                        .map(Event::Unreadable)
                        .map_err(|source| DecodeError::Body { kind, source }),
                    $(Kind::$variant => serde_json::from_str(body)
                        .map(Event::$variant)
                        .map_err(|source| DecodeError::Body { kind, source }),)*
                }
            }
        }
    };
}

events! {
    // The node.
    DaemonStarted(DaemonStarted) = 1, "DAEMON_STARTED";
    DaemonStopped(DaemonStopped) = 2, "DAEMON_STOPPED";
    CampaignAdded(Box<Campaign>) = 3, "CAMPAIGN_ADDED";
    CampaignRemoved(CampaignRemoved) = 4, "CAMPAIGN_REMOVED";
    ConversationOpened(ConversationOpened) = 5, "CONVERSATION_OPENED";
    Halted(Halted) = 6, "HALTED";
    HaltReleased(HaltReleased) = 7, "HALT_RELEASED";
    CampaignPolicyChanged(Box<CampaignPolicyChanged>) = 8, "CAMPAIGN_POLICY_CHANGED";

    // A session's life.
    SessionCreated(Box<Created>) = 20, "SESSION_CREATED";
    /// Committed before the keeper is spawned.
    SessionStarting(Starting) = 21, "SESSION_STARTING";
    /// The agent's process exists.
    SessionSpawned(Spawned) = 22, "SESSION_SPAWNED";
    /// The agent is ready for messages.
    SessionStarted(Started) = 23, "SESSION_STARTED";
    SessionStopRequested(StopRequested) = 24, "SESSION_STOP_REQUESTED";
    /// Ended, and not by a failure.
    SessionStopped(Ended) = 25, "SESSION_STOPPED";
    /// Ended by a failure.
    SessionFailed(Ended) = 26, "SESSION_FAILED";
    SessionPaused(Paused) = 27, "SESSION_PAUSED";
    SessionResumed(Resumed) = 28, "SESSION_RESUMED";
    SessionHeld(Held) = 29, "SESSION_HELD";
    SessionReleased(Released) = 30, "SESSION_RELEASED";
    SessionStalled(Stalled) = 31, "SESSION_STALLED";
    SessionRecovered(Recovered) = 32, "SESSION_RECOVERED";
    WatchdogFired(WatchdogFired) = 33, "WATCHDOG_FIRED";
    IntakeChanged(IntakeChanged) = 34, "INTAKE_CHANGED";
    TapeLimitRaised(TapeLimitRaised) = 36, "TAPE_LIMIT_RAISED";
    /// The provider's own name for the dialogue is no longer a claim: a turn was run under it.
    ProviderBound(ProviderBound) = 37, "PROVIDER_BOUND";
    ModelChanged(ModelChanged) = 38, "MODEL_CHANGED";
    /// The agent no longer knows what was said before.
    ContextReset(ContextReset) = 39, "CONTEXT_RESET";
    /// Processes of the agent's tree that outlived it were ended.
    LeftoversEnded(LeftoversEnded) = 35, "LEFTOVERS_ENDED";

    // Turns.
    TurnStarted(TurnStarted) = 40, "TURN_STARTED";
    TurnEnded(TurnEnded) = 41, "TURN_ENDED";
    InterruptRequested(InterruptRequested) = 42, "INTERRUPT_REQUESTED";
    /// What the agent left running beside its turns; all of it.
    BackgroundChanged(BackgroundChanged) = 43, "BACKGROUND_CHANGED";
    ContextCompacted(ContextCompacted) = 44, "CONTEXT_COMPACTED";
    /// A model call failed and is made again.
    AgentRetrying(AgentRetrying) = 45, "AGENT_RETRYING";
    RateLimited(RateLimited) = 46, "RATE_LIMITED";
    /// The model's server does not accept the agent's key or login.
    ProviderAuthFailed(Text) = 47, "PROVIDER_AUTH_FAILED";

    // What the agent said of its own work, on the session socket.
    StepStarted(StepStarted) = 100, "STEP_STARTED";
    StepEnded(StepEnded) = 101, "STEP_ENDED";
    DoneReported(DoneReported) = 102, "DONE_REPORTED";

    // Activities: what the agent did.
    AgentThinking(Text) = 50, "AGENT_THINKING";
    AgentToolCall(ToolCall) = 51, "AGENT_TOOL_CALL";
    AgentToolResult(ToolResult) = 52, "AGENT_TOOL_RESULT";
    AgentCompletion(Text) = 53, "AGENT_COMPLETION";
    AgentStatus(Text) = 54, "AGENT_STATUS";
    AgentError(Text) = 55, "AGENT_ERROR";
    /// A line on the agent's standard error.
    AgentStderr(Raw) = 56, "AGENT_STDERR";
    /// A line that is no protocol we know; the tape has it whole.
    Opaque(Raw) = 57, "OPAQUE";
    /// A line too long to parse.
    Oversize(Raw) = 58, "OVERSIZE";
    /// A last line without an end: the agent died within it.
    Partial(Raw) = 59, "PARTIAL";

    // Tokens.
    UsageRecorded(UsageRecorded) = 60, "USAGE_RECORDED";
    BudgetWarned(BudgetReached) = 61, "BUDGET_WARNED";
    BudgetExceeded(BudgetReached) = 62, "BUDGET_EXCEEDED";
    BudgetChanged(BudgetChanged) = 63, "BUDGET_CHANGED";

    // Messages and their receipts.
    MessageAccepted(MessageAccepted) = 70, "MESSAGE_ACCEPTED";
    /// Put into the outbox: it will be written to the agent once.
    MessageSent(MessageSent) = 71, "MESSAGE_SENT";
    MessageDelivered(MessageMark) = 72, "MESSAGE_DELIVERED";
    MessageSeen(MessageMark) = 73, "MESSAGE_SEEN";
    MessageAnswered(MessageMark) = 74, "MESSAGE_ANSWERED";
    MessageUnknown(MessageUnknown) = 75, "MESSAGE_UNKNOWN";

    // Approvals.
    ApprovalRequested(ApprovalRequested) = 80, "APPROVAL_REQUESTED";
    ApprovalAnswered(ApprovalAnswered) = 81, "APPROVAL_ANSWERED";

    // The record itself.
    TapeDamaged(TapeDamaged) = 90, "TAPE_DAMAGED";
    /// Files that make the host run code were changed while the agent ran.
    Tamper(Tamper) = 91, "TAMPER";
    /// A connection through the gateway was denied, or was allowed and has ended.
    Network(Network) = 92, "NETWORK";
    /// Ostler did not allow something.
    Denied(Denied) = 93, "DENIED";
    /// Hidden files whose content git has all the same, when a session was created.
    HiddenTracked(Tamper) = 94, "HIDDEN_TRACKED";
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Who asked for a change: a person's login, or a part of Ostler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct By(pub String);

impl By {
    /// Ostler itself, by one of its rules.
    pub fn ostler() -> Self {
        By("ostler".to_owned())
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DaemonStarted {
    pub version: String,
    pub epoch: u64,
    pub pid: u32,
    pub boot: BootId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DaemonStopped {
    pub by: By,
    pub sessions_left_running: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CampaignRemoved {
    pub id: CampaignId,
    pub by: By,
}

/// What a campaign's agents may do was changed; sessions that are started from now on follow it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CampaignPolicyChanged {
    pub campaign: CampaignId,
    /// As they were typed: `read+=@rust`.
    pub settings: Vec<String>,
    /// All of it, after the change.
    pub policy: Policy,
    pub by: By,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationOpened {
    pub id: ConversationId,
    pub campaign: CampaignId,
    pub key: String,
    pub name: Name,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Halted {
    /// Agents are frozen where they stand instead of killed.
    pub freeze: bool,
    pub by: By,
    #[serde(default)]
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HaltReleased {
    pub by: By,
}

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
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resumed {
    pub by: By,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Held {
    pub hold: Hold,
    pub reason: String,
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
pub struct TurnStarted {
    pub turn: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnEnded {
    pub turn: u32,
    pub stop_reason: StopReason,
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    Completed,
    Interrupted,
    Error,
    /// The process ended within the turn.
    ProcessEnded,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterruptRequested {
    pub by: By,
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
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextReset {
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BackgroundChanged {
    /// One readable line for each thing that still runs.
    pub tasks: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContextCompacted {
    /// The agent did it by itself, because its context was full.
    #[serde(default)]
    pub automatic: bool,
    /// Tokens of context, where the agent says them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentRetrying {
    pub why: String,
    #[serde(default)]
    pub attempt: u32,
    /// Tries that there are at most; 0 when the agent does not say.
    #[serde(default)]
    pub most: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateLimited {
    pub what: String,
    /// When the limit ends; absent when nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Text {
    pub text: String,
    /// The tool call that started the sub-agent whose words these are; absent for the agent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Self {
        Text { text: text.into(), subagent: None }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub tool: String,
    /// Joins a call with its result.
    pub tool_id: String,
    /// One readable line.
    pub summary: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub input: String,
    /// The call that started the sub-agent who makes this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    pub tool_id: String,
    pub success: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
}

/// Bytes that were not understood, and where the tape has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Raw {
    /// The beginning, lossily as text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    pub bytes: u64,
    /// Tape position.
    pub at: u64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct UsageRecorded {
    /// What this adds to every sum. Less than what was said when another source had told of the same tokens.
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default)]
    pub source: UsageSource,
    /// The model server's name for the call, by which both sources mean the same one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// What the source said, where that is not what is added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Usage>,
}

impl UsageRecorded {
    /// What the source said.
    pub fn said(&self) -> Usage {
        self.said.unwrap_or(self.usage)
    }
}

/// Who told of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageSource {
    /// The agent.
    #[default]
    Report,
    /// The model gateway, which read it off the wire.
    Wire,
}

impl UsageSource {
    pub const fn as_str(self) -> &'static str {
        match self {
            UsageSource::Report => "report",
            UsageSource::Wire => "wire",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BudgetReached {
    pub used: u64,
    pub tokens: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BudgetChanged {
    pub budget: Option<Budget>,
    pub by: By,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageAccepted {
    pub message: Message,
    pub conversation: ConversationId,
    pub by: By,
    /// The session that ended before it could be delivered there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<SessionId>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageSent {
    pub id: MessageId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageMark {
    pub id: MessageId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageUnknown {
    pub id: MessageId,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequested {
    pub id: ApprovalId,
    /// The provider's own name for the question.
    pub ask: String,
    pub tool: String,
    pub input: String,
    #[serde(default, skip_serializing_if = "AskKind::is_leave")]
    pub kind: AskKind,
    #[serde(default, skip_serializing_if = "Action::is_other")]
    pub action: Action,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<String>,
}

/// What the tool would do, as far as a rule can be about it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A shell's command line.
    Run {
        command: String,
    },
    /// Paths as the agent names them.
    Write {
        paths: Vec<String>,
    },
    Read {
        paths: Vec<String>,
    },
    Fetch {
        url: String,
    },
    #[default]
    Other,
}

impl Action {
    fn is_other(&self) -> bool {
        *self == Action::Other
    }
}

/// What an agent wants of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    /// Leave to do something.
    #[default]
    Leave,
    /// An answer in words, which is the message of whoever allows.
    Question,
}

impl AskKind {
    fn is_leave(&self) -> bool {
        *self == AskKind::Leave
    }
}

/// How an approval was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Allowed,
    Denied,
    /// Nobody answered before the turn or the agent ended.
    Expired,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalAnswered {
    pub id: ApprovalId,
    pub answer: Answer,
    pub by: By,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
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
