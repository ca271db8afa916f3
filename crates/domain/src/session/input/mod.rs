//! What comes into [`decide`](super::decide) and what goes out of it.

mod effect;
mod process;
mod report;
mod stop;

use std::sync::Arc;

use super::{Intake, Refused, Watchdog};
use crate::{
    AgentId, ApprovalId, ConversationId, Message, MessageId, Now, Policy, Time,
    budget::{Budget, CampaignBudget, Lent, Used},
    call::{Call, CallFault, Reply},
    denied::Denied,
    event::{Answer, Asks, By},
    gateway::Network,
    handoff::Wish,
    message::{Queue, Said},
    price::PriceBook,
    reboot::OnReboot,
};

pub use effect::{AgentRequest, Decision, Effect};
pub use process::{ExitFacts, How, Spawn};
pub use report::{CallUsage, Report};
pub use stop::{Ladder, StopRequested, StopRule};

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

/// The answer recorded for a person's word.
pub(super) const fn answer(allow: bool) -> Answer {
    if allow { Answer::Allowed } else { Answer::Denied }
}
