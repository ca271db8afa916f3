//! Events: recorded facts, in the past tense. The log of them is the truth; everything listed is derived.
//!
//! Each kind has a stable name (API, CLI) and a stable number (database), and a body whose JSON form is the
//! stored form. Fields are only ever added, with a default; golden files pin what is stored today.

use serde::{Deserialize, Serialize};

use crate::{
    SessionId, TicketId, Time,
    agent::Agent,
    ask::{AskSettled, Asked, OutputAdded},
    budget::Lent,
    call::{DoneReported, StepEnded, StepStarted},
    campaign::Campaign,
    denied::Denied,
    gateway::Network,
    handoff::{HandoffRequested, Pack},
    history::HistoryRead,
    session::{Created, Ended, StopRequested},
};

mod activity;
mod approval;
mod conversation;
mod git;
mod life;
mod message;
mod mission;
mod node;
mod retention;
mod ticket;
mod tokens;
mod turn;

pub use activity::*;
pub use approval::*;
pub use conversation::*;
pub use git::*;
pub use life::*;
pub use message::*;
pub use mission::*;
pub use node::*;
pub use retention::*;
pub use ticket::*;
pub use tokens::*;
pub use turn::*;

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
    ConversationOpened(Box<ConversationOpened>) = 5, "CONVERSATION_OPENED";
    Halted(Halted) = 6, "HALTED";
    HaltReleased(HaltReleased) = 7, "HALT_RELEASED";
    CampaignPolicyChanged(Box<CampaignPolicyChanged>) = 8, "CAMPAIGN_POLICY_CHANGED";
    LostLeft(LostLeft) = 9, "LOST_LEFT";
    CampaignRelinked(CampaignRelinked) = 10, "CAMPAIGN_RELINKED";
    Drained(Drained) = 11, "DRAINED";
    DrainEnded(DrainEnded) = 12, "DRAIN_ENDED";
    AgentAdded(Box<Agent>) = 13, "AGENT_ADDED";
    AgentChanged(Box<AgentChanged>) = 14, "AGENT_CHANGED";
    AgentRemoved(AgentRemoved) = 15, "AGENT_REMOVED";
    ConversationChanged(Box<ConversationChanged>) = 16, "CONVERSATION_CHANGED";
    ConversationClosed(ConversationClosed) = 17, "CONVERSATION_CLOSED";
    ConversationReopened(ConversationReopened) = 18, "CONVERSATION_REOPENED";

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
    /// It was to go on in another session by itself, and cannot: the node's, for the session has ended.
    RestartRefused(RestartRefused) = 215, "RESTART_REFUSED";
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
    ContextMeasured(ContextMeasured) = 48, "CONTEXT_MEASURED";
    /// A model call failed and is made again.
    AgentRetrying(AgentRetrying) = 45, "AGENT_RETRYING";
    RateLimited(RateLimited) = 46, "RATE_LIMITED";
    /// The model's server does not accept the agent's key or login.
    ProviderAuthFailed(Text) = 47, "PROVIDER_AUTH_FAILED";

    /// The session was lent a login that ends by itself.
    LoginLent(LoginLent) = 210, "LOGIN_LENT";

    // What the agent said of its own work, on the session socket.
    StepStarted(StepStarted) = 100, "STEP_STARTED";
    StepEnded(StepEnded) = 101, "STEP_ENDED";
    DoneReported(DoneReported) = 102, "DONE_REPORTED";
    /// The session ends, and another one goes on with its work.
    HandoffRequested(Box<HandoffRequested>) = 103, "HANDOFF_REQUESTED";
    /// What this session was handed by the one that it goes on with.
    HandoffPacked(Box<Pack>) = 104, "HANDOFF_PACKED";
    OutputAdded(OutputAdded) = 105, "OUTPUT_ADDED";
    /// The agent asked for something outside of its session.
    Asked(Box<Asked>) = 106, "ASKED";
    AskSettled(AskSettled) = 107, "ASK_SETTLED";

    // Tickets.
    TicketAdded(Box<TicketAdded>) = 110, "TICKET_ADDED";
    TicketChanged(TicketChanged) = 111, "TICKET_CHANGED";
    TicketMoved(TicketMoved) = 112, "TICKET_MOVED";
    TicketLinked(TicketLinked) = 113, "TICKET_LINKED";
    TicketOutputAdded(TicketOutputAdded) = 114, "TICKET_OUTPUT_ADDED";
    TicketCheckpointMade(TicketCheckpointMade) = 115, "TICKET_CHECKPOINT_MADE";
    TicketStep(TicketStep) = 116, "TICKET_STEP";

    /// A stretch of an agent program's own store has been taken in.
    HistoryRead(Box<HistoryRead>) = 120, "HISTORY_READ";

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
    /// A rule kept it from the agent.
    MessageDropped(MessageDropped) = 76, "MESSAGE_DROPPED";
    /// Taken back before it was delivered.
    MessageCancelled(MessageCancelled) = 77, "MESSAGE_CANCELLED";
    MessageEdited(MessageEdited) = 78, "MESSAGE_EDITED";
    MessageMoved(MessageMoved) = 79, "MESSAGE_MOVED";

    // Approvals.
    ApprovalRequested(Box<ApprovalRequested>) = 80, "APPROVAL_REQUESTED";
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

    // What became of a campaign's files: the node's, with the session they are about in them.
    WorktreeMade(WorktreeMade) = 95, "WORKTREE_MADE";
    WorktreeRemoved(WorktreeRemoved) = 96, "WORKTREE_REMOVED";
    CommitsSeen(CommitsSeen) = 97, "COMMITS_SEEN";
    SnapshotTaken(SnapshotTaken) = 98, "SNAPSHOT_TAKEN";
    Rewound(Rewound) = 99, "REWOUND";

    // What became of the record of sessions that have ended.
    SessionArchived(SessionArchived) = 130, "SESSION_ARCHIVED";
    SessionRestored(SessionRestored) = 131, "SESSION_RESTORED";
    DeletionMarked(DeletionMarked) = 132, "DELETION_MARKED";
    SessionDeleted(SessionDeleted) = 133, "SESSION_DELETED";
    RetentionHeld(RetentionHeld) = 134, "RETENTION_HELD";

    /// A picture of what was said or answered; its bytes are a file of their own.
    ImageRecorded(ImageRecorded) = 160, "IMAGE_RECORDED";
    /// Something was delivered to people in the agent's name, by somebody else.
    DeliveryMirrored(Box<DeliveryMirrored>) = 161, "DELIVERY_MIRRORED";
    /// Said to an agent that sleeps, and was not woken for it.
    MessageUnheard(Box<MessageUnheard>) = 150, "MESSAGE_UNHEARD";
    /// The agent let go of it before its model had read it: it waits again.
    MessageReturned(MessageUnknown) = 151, "MESSAGE_RETURNED";

    // Missions: the node's, with the sessions they are about in them.
    MissionCreated(Box<MissionCreated>) = 180, "MISSION_CREATED";
    MissionStarted(MissionStarted) = 181, "MISSION_STARTED";
    MissionPaused(MissionPaused) = 182, "MISSION_PAUSED";
    MissionResumed(MissionResumed) = 183, "MISSION_RESUMED";
    /// It, or one of its assignments, waits for a person.
    MissionHeld(MissionHeld) = 184, "MISSION_HELD";
    MissionReleased(MissionReleased) = 185, "MISSION_RELEASED";
    MissionBudgetWarned(MissionBudgetWarned) = 186, "MISSION_BUDGET_WARNED";
    MissionBudgetChanged(MissionBudgetChanged) = 187, "MISSION_BUDGET_CHANGED";
    MissionStopRequested(MissionStopRequested) = 188, "MISSION_STOP_REQUESTED";
    MissionEnded(MissionEnded) = 189, "MISSION_ENDED";
    /// What they need is over: they start when there is a place.
    AssignmentsReady(AssignmentsReady) = 190, "ASSIGNMENTS_READY";
    /// Committed before the session is created.
    AssignmentStarted(AssignmentStarted) = 191, "ASSIGNMENT_STARTED";
    /// Its session waited for a place until now.
    AssignmentBegan(AssignmentBegan) = 216, "ASSIGNMENT_BEGAN";
    AssignmentMoved(AssignmentMoved) = 192, "ASSIGNMENT_MOVED";
    AssignmentCheckStarted(Box<AssignmentCheckStarted>) = 193, "ASSIGNMENT_CHECK_STARTED";
    AssignmentRetried(AssignmentRetried) = 194, "ASSIGNMENT_RETRIED";
    AssignmentEnded(Box<AssignmentEnded>) = 195, "ASSIGNMENT_ENDED";
    AssignmentsReopened(AssignmentsReopened) = 196, "ASSIGNMENTS_REOPENED";
    AssignmentsAdded(Box<AssignmentsAdded>) = 197, "ASSIGNMENTS_ADDED";
    AssignmentsRemoved(AssignmentsRemoved) = 198, "ASSIGNMENTS_REMOVED";
    AssignmentNudged(AssignmentNudged) = 199, "ASSIGNMENT_NUDGED";
    AssignmentUnstuck(AssignmentUnstuck) = 200, "ASSIGNMENT_UNSTUCK";
    CollisionForecast(CollisionForecast) = 201, "COLLISION_FORECAST";
    MergeStarted(MergeStarted) = 202, "MERGE_STARTED";
    MergeEnded(MergeEnded) = 203, "MERGE_ENDED";
    /// The gate has passed, beside the branch.
    MergeChecked(MergeChecked) = 213, "MERGE_CHECKED";
    /// Committed before the branch is moved.
    MergeMoving(MergeMoving) = 214, "MERGE_MOVING";
    MissionArchived(MissionArchived) = 212, "MISSION_ARCHIVED";

    // What a session's helpers took of its budget.
    HelpersCharged(Lent) = 155, "HELPERS_CHARGED";
}

impl Event {
    /// The ticket that it is about, where it is about one and belongs to no session.
    pub fn ticket(&self) -> Option<TicketId> {
        match self {
            Event::TicketAdded(added) => Some(added.id),
            Event::TicketChanged(changed) => Some(changed.id),
            Event::TicketMoved(moved) => Some(moved.id),
            Event::TicketLinked(linked) => Some(linked.id),
            Event::TicketOutputAdded(output) => Some(output.id),
            Event::TicketCheckpointMade(made) => Some(made.id),
            Event::TicketStep(step) => Some(step.id),
            _ => None,
        }
    }
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

    /// The agent of a session, by what it says on its socket.
    pub fn session(id: SessionId) -> Self {
        By(format!("session {}", id.short()))
    }

    /// Whether it was an agent's wish, and nobody's who may give it more than it has.
    pub fn is_session(&self) -> bool {
        self.0.starts_with("session ")
    }

    /// A mission, where it does something by itself.
    pub fn of_mission(name: &crate::Name) -> Self {
        By(format!("mission {name}"))
    }

    /// The name of the mission that did it.
    pub fn mission(&self) -> Option<&str> {
        self.0.strip_prefix("mission ")
    }

    /// The login of a uid, as `/etc/passwd` has it.
    pub fn login(accounts: &str, uid: u32) -> String {
        let login = accounts.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
        });
        login.map_or_else(|| format!("uid {uid}"), str::to_owned)
    }

    /// A login that several people share, and who of them it says it is: `agents (ann)`. That is a claim: whoever has the login
    /// can make any.
    pub fn claimed(login: &str, person: Option<&str>) -> Self {
        match person.filter(|person| is_person(person) && *person != login) {
            Some(person) => By(format!("{login} ({person})")),
            None => By(login.to_owned()),
        }
    }
}

/// The variable in which a process says for whom it asks.
pub const PERSON_VARIABLE: &str = "OSTLER_USER";

/// Whether a text can be somebody's name in the record: nothing in it can be taken for another part of a line.
pub fn is_person(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_alphanumeric() || ".-_@+".contains(letter);
    (1..=64).contains(&text.len()) && text.chars().all(is_plain)
}
