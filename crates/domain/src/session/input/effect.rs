//! What goes out of a decision.

use std::time::Duration;

use super::StopRule;
use crate::{
    Message, MessageId,
    ask::Ask,
    call::Reply,
    event::{By, Event},
    gateway::Allowance,
};

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
