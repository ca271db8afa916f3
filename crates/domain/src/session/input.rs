//! What comes into [`decide`](super::decide) and what goes out of it.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use super::{Intake, OutOfMemory, Outcome, Refused, Watchdog};
use crate::{
    AgentId, ApprovalId, ConversationId, Hint, Message, MessageId, Now, Policy, Time, Usage,
    ask::Ask,
    budget::{Budget, CampaignBudget, Lent, Used},
    call::{Call, CallFault, Reply},
    denied::Denied,
    event::{
        Action, AgentRetrying, Answer, AskKind, Asks, By, ContextCompacted, ContextMeasured, Event,
        ImageRecorded, Leftover, Process, Raw, StopReason, Text, ToolCall, ToolResult,
    },
    gateway::{Allowance, ModelCall, Network},
    handoff::Wish,
    message::{Queue, Said},
    price::PriceBook,
    reboot::OnReboot,
};

/// Time and entropy for one decision, read by the shell.
#[derive(Debug, Clone)]
pub struct Context {
    pub now: Now,
    pub entropy: u128,
    /// The campaign's policy as it is now, where an agent asks for leave: rules count from the moment they are made.
    /// Absent, no rule answers.
    pub policy: Option<Policy>,
    /// The prices that hold now.
    pub prices: Arc<PriceBook>,
    /// What becomes of sessions that are lost with the machine.
    pub on_reboot: OnReboot,
    /// The ticket that it works on is over: nothing goes on with that by itself.
    pub is_work_over: bool,
}

/// Anything that may change a session.
#[derive(Debug, Clone)]
pub enum Input {
    /// A wish of a person or of the engine.
    Request(Request, By),
    /// What the provider's dialogue read off the tape.
    Report(Report),
    /// What the keeper stated on the tape, or the engine learnt of the process.
    Spawned(Spawn),
    /// The agent was started with a login that ends then.
    Lent {
        until: Time,
    },
    /// The record of something written to the agent was read back from the tape.
    InputTaped {
        tag: String,
    },
    Intake(Intake),
    /// Files that make the host run code are not what they were when the agent started.
    Tampered {
        names: Vec<String>,
    },
    /// A connection through the gateway was denied, or was allowed and has ended.
    Network(Network),
    /// The model gateway read the tokens of a call off the wire.
    Wire(CallUsage),
    /// The gateway saw an answer that was cut before it said what it took.
    CutShort {
        model: Option<String>,
        call: Option<String>,
    },
    /// The model's server did not answer a call, as the gateway saw it.
    Refused(Refused),
    /// The agent called on its session socket. `at` is the call's place on the tape, by which it is answered.
    Call {
        at: u64,
        call: Result<Call, CallFault>,
    },
    /// What the agent asked for outside of its session is done, or refused.
    Served {
        at: u64,
        reply: Reply,
    },
    /// Something was not allowed before it came to a call.
    Denied(Denied),
    TapeDamaged {
        from: u64,
        to: u64,
    },
    /// The process is gone, or never was.
    Exited(ExitFacts),
    Watchdog(Watchdog),
    /// The session's own time limit passed.
    TimedOut,
    /// It may have been idle for as long as it may.
    IdledOut,
    /// Somebody waits for the place that it holds.
    GiveWay,
    /// A question may have waited too long.
    ApprovalsDue,
    /// How the campaign stands against its budget.
    Campaign(BudgetUse),
    /// How the agent whose session it is stands against its own, whatever process is behind it.
    Agent(BudgetUse),
    /// The moment has come at which a rate limit ends.
    LimitEnded,
    /// What its helpers took of its budget.
    Helpers(Lent),
    /// Nothing more may have come for as long as what waits was held back.
    Quiet,
}

/// What all sessions of a campaign, or of an agent, have used of its budget. Without one, nothing holds its sessions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BudgetUse {
    pub name: String,
    /// The agent whose budget it is; none for a campaign's.
    pub agent: Option<AgentId>,
    pub budget: Option<CampaignBudget>,
    pub used: Used,
}

/// A wish.
#[derive(Debug, Clone)]
pub enum Request {
    Start,
    /// The keeper of the last try never came to life: try again.
    StartAgain,
    Prompt {
        said: Box<Said>,
        queue: Queue,
        /// Why it is recorded and kept from the agent.
        dropped: Option<String>,
    },
    /// Takes back a message that waits.
    Cancel {
        id: MessageId,
    },
    /// Takes back all that wait.
    CancelAll,
    /// Says something else instead, while it waits.
    Edit {
        id: MessageId,
        text: String,
    },
    /// Has a message wait before another one; none for before all others.
    Reorder {
        id: MessageId,
        before: Option<MessageId>,
    },
    /// A message that waits was said to another conversation instead.
    MoveAway {
        id: MessageId,
        conversation: ConversationId,
        message: MessageId,
    },
    Interrupt,
    /// The agent is to go on with another model: now, if it can do that while it lives, else in the next session.
    Model {
        model: String,
        while_it_lives: bool,
    },
    Pause,
    /// The same until a person has decided something.
    PauseAndAsk(Asks),
    Resume {
        budget: Option<Budget>,
        tape_bytes: Option<u64>,
    },
    Stop(StopRule),
    /// The work goes on in another session.
    Handoff(Box<Wish>),
    Answer {
        id: ApprovalId,
        allow: bool,
        message: String,
        /// Whether the agent hears why with the answer. One that does not is told afterwards.
        hears_why: bool,
    },
    Halt {
        freeze: bool,
    },
    ReleaseHalt,
}

impl Request {
    /// Says something, with no rules of a queue.
    pub fn prompt(message: Message) -> Request {
        Request::Prompt { said: Box::new(message.into()), queue: Queue::default(), dropped: None }
    }
}

/// Why a session is to end. Decides its outcome and the way down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopRule {
    /// A person asked for an orderly end.
    Stop,
    /// A person asked for an end at once.
    Kill,
    Halt,
    /// The turn ended and the session was to end with it.
    TurnEnded,
    /// The agent said that its work is done.
    Done,
    /// Nobody has said anything to it for as long as its process is kept for that.
    Idle,
    /// It was idle, and another session waited for its slot or its memory.
    GaveWay,
    Timeout,
    Budget,
    /// The start watchdog: the agent never became ready.
    StartWatchdog,
    /// The agent said, before it was ready, that it cannot work.
    CannotStart,
    /// A watchdog's last resort but one: a new process.
    StallWatchdog,
    /// A person asked for a new process.
    Restart,
    /// The agent's work goes on in another session, to which it was handed.
    Handoff,
    /// Its conversation was closed, and a fresh one opened in its place.
    Reset,
    /// The model's server does not accept the agent: trying again would only be refused again.
    ProviderAuth,
}

impl StopRule {
    pub const fn outcome(self) -> Outcome {
        match self {
            StopRule::Stop | StopRule::Restart => Outcome::Stopped,
            StopRule::Kill | StopRule::Halt => Outcome::Killed,
            StopRule::TurnEnded | StopRule::Done | StopRule::Idle | StopRule::GaveWay => Outcome::Done,
            StopRule::Handoff => Outcome::Handoff,
            StopRule::Reset => Outcome::Reset,
            StopRule::Timeout => Outcome::Timeout,
            StopRule::Budget => Outcome::Budget,
            StopRule::StartWatchdog | StopRule::CannotStart | StopRule::ProviderAuth => Outcome::FailedStart,
            StopRule::StallWatchdog => Outcome::Crashed,
        }
    }

    pub const fn ladder(self) -> Ladder {
        match self {
            StopRule::Kill
            | StopRule::Halt
            | StopRule::StartWatchdog
            | StopRule::StallWatchdog
            | StopRule::CannotStart
            | StopRule::ProviderAuth => Ladder::AtOnce,
            StopRule::Stop
            | StopRule::TurnEnded
            | StopRule::Done
            | StopRule::Idle
            | StopRule::GaveWay
            | StopRule::Timeout
            | StopRule::Budget
            | StopRule::Handoff
            | StopRule::Reset
            | StopRule::Restart => Ladder::Orderly,
        }
    }
}

/// The way an agent is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ladder {
    /// The provider's polite ways first, then SIGTERM, then the whole tree.
    Orderly,
    /// The whole tree, now.
    AtOnce,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRequested {
    pub rule: StopRule,
    pub by: By,
}

/// The tokens of one model call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallUsage {
    pub usage: Usage,
    pub model: Option<String>,
    /// The model server's name for the call, by which the agent's report and the wire mean the same one. Absent in a
    /// report: tokens of calls that the agent does not name, such as those of its sub-agents, added up.
    pub call: Option<String>,
}

impl CallUsage {
    /// What the wire says of a call; none where the answer did not say what it took.
    pub fn of(call: ModelCall) -> Option<CallUsage> {
        let ModelCall { id, request_id, model, usage, .. } = call;
        Some(CallUsage { usage: usage?, model, call: id.or(request_id) })
    }
}

/// What a dialogue understood.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// Ready for messages. The provider's own id is a claim until [`Report::Bound`].
    Ready {
        provider_id: Option<String>,
        model: Option<String>,
    },
    /// A turn began, because of these messages or by itself.
    TurnStarted {
        messages: Vec<MessageId>,
    },
    TurnEnded {
        stop_reason: StopReason,
    },
    /// What was said into the open turn went no further than the agent: its model has not read it, and will not.
    Unread {
        messages: Vec<MessageId>,
    },
    /// The same where nobody can know whether its model has read it.
    Unclear {
        messages: Vec<MessageId>,
    },
    /// A turn runs under this id: the provider really has it. Comes again when the id changes.
    Bound {
        provider_id: String,
        model: Option<String>,
    },
    /// What the agent left running beside its turns, one readable line each: all of it, every time.
    Background {
        tasks: Vec<String>,
    },
    Thinking(Text),
    ToolCall(ToolCall),
    ToolResult(ToolResult),
    /// Before the result that it is in.
    Image(ImageRecorded),
    Completion(Text),
    Status(String),
    Error(String),
    /// A model call failed and is made again.
    Retrying(AgentRetrying),
    /// The model's server wants fewer calls, or none until a time; absent when it did not say.
    RateLimited {
        what: String,
        until: Option<Time>,
    },
    /// The model's server does not accept the agent's key or login.
    AuthFailed(String),
    /// What opens the dialogue was refused: it will never be ready, and says why.
    CannotStart(String),
    Compacted(ContextCompacted),
    /// How full the context of the main dialogue is, as often as the agent says it.
    Context(ContextMeasured),
    /// The agent no longer knows what was said before, or cannot find it again.
    ContextReset {
        why: String,
    },
    Stderr(Raw),
    Opaque(Raw),
    Oversize(Raw),
    Partial(Raw),
    /// Once for each model call.
    Usage(CallUsage),
    ApprovalAsked {
        ask: String,
        tool: String,
        input: String,
        kind: AskKind,
        action: Action,
        subagent: Option<String>,
    },
    /// The agent is about to use a tool, perhaps without asking for leave, and waits to hear whether it must ask.
    ToolAnnounced {
        ask: String,
        tool: String,
        action: Action,
    },
    /// The agent no longer waits for an answer.
    ApprovalWithdrawn {
        ask: String,
    },
    /// The agent answered a nudge: it lives, and says no more.
    Alive,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Spawn {
    pub agent: Process,
    /// Its calls go through a gateway, which holds them at the end of an allowance.
    pub holds_calls: bool,
}

/// How the process ended, as the exit record says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitFacts {
    pub how: How,
    /// It had more memory than it may: the kernel or its keeper ended it for that.
    #[serde(default)]
    pub oom: bool,
    /// What was seen of its memory, where it was ended for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Box<OutOfMemory>>,
    /// What of the tree was still running when the agent ended.
    #[serde(default)]
    pub leftovers: Vec<Leftover>,
    /// Who asked the keeper to end it, when it was not the daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The keeper itself was told to end by a signal, as everybody is by a machine that shuts down.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shut_down: bool,
    /// The daemon's wish as the keeper heard it: the only trace of one that could not be recorded in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wish: Option<StopRequested>,
    /// The rung of the ladder that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung: Option<String>,
    /// What would let the next one work, where the model's server refused this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cures: Vec<Hint>,
}

impl ExitFacts {
    /// Something of it was killed for its memory; an agent that ends well has got over that.
    pub fn is_out_of_memory(&self) -> bool {
        self.oom && self.how != (How::Exited { code: 0 })
    }
}

/// The way out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    Exited {
        code: i32,
    },
    Signaled {
        signal: i32,
    },
    /// The program was never executed.
    NeverStarted {
        stage: String,
        message: String,
        /// What would let the next one start.
        cures: Vec<Hint>,
    },
    /// The keeper is gone and left no record.
    Lost {
        reason: String,
    },
}

/// What follows from an input: facts to record at once, then work to do.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    pub events: Vec<Event>,
    pub effects: Vec<Effect>,
}

/// Work for the shell, done only after the events are durable. Each may be repeated without harm.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Start the keeper of this attempt.
    Spawn {
        attempt: u32,
    },
    /// Say this to the agent, through the outbox.
    Tell(AgentRequest),
    Freeze(bool),
    /// Let the tape grow to this.
    RaiseTapeLimit(u64),
    /// Let calls to the model go as far as this.
    Allow(Allowance),
    Stop(StopRule, By),
    /// Answer the call at this place of the tape. Repeating is harmless, and so is that nobody waits any more.
    Answer {
        at: u64,
        reply: Reply,
    },
    /// Do what the agent asked for outside of its session, and say what came of it. Repeating is harmless.
    Ask {
        at: u64,
        ask: Ask,
    },
    /// Create the session that goes on with this one.
    Continue {
        after: Duration,
    },
}

/// What a dialogue is asked to say to its agent.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentRequest {
    Prompt(Message),
    /// Said into the turn that is open.
    Steer(Message),
    Interrupt,
    Model(String),
    Answer {
        ask: String,
        allow: bool,
        message: String,
    },
    /// What it announced goes on as it would have without us, or by asking for leave.
    Proceed {
        ask: String,
        must_ask: bool,
    },
    /// Asks for a sign of life.
    Nudge,
    /// The session ends in an orderly way: whoever has words for that hears them before its input is closed.
    End,
}

impl AgentRequest {
    /// What must be remembered about the request; written beside it on the tape.
    pub fn tag(&self) -> String {
        match self {
            AgentRequest::Prompt(message) | AgentRequest::Steer(message) => format!("prompt:{}", message.id),
            AgentRequest::Interrupt => "interrupt".to_owned(),
            AgentRequest::Model(model) => format!("model:{model}"),
            AgentRequest::Answer { ask, .. } => format!("answer:{ask}"),
            AgentRequest::Proceed { ask, .. } => format!("proceed:{ask}"),
            AgentRequest::Nudge => "nudge".to_owned(),
            AgentRequest::End => "end".to_owned(),
        }
    }

    /// The message that a tag speaks of.
    pub fn prompted(tag: &str) -> Option<MessageId> {
        tag.strip_prefix("prompt:")?.parse().ok()
    }
}

/// The answer recorded for a person's word.
pub(super) const fn answer(allow: bool) -> Answer {
    if allow { Answer::Allowed } else { Answer::Denied }
}
