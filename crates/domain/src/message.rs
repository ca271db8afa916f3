//! Messages to a conversation and the receipts that say what became of them.

use serde::{Deserialize, Serialize};

use crate::id::MessageId;

/// Something said to an agent, durable before it is acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub id: MessageId,
    pub text: String,
    #[serde(default)]
    pub mode: Mode,
}

/// When a message is delivered to a busy agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// After the turn that is open.
    #[default]
    Followup,
    /// Into the turn that is open, where the agent can be told something there; else after it.
    Steer,
}

/// What is known of a message, in the order in which it may be learnt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Receipt {
    /// Durable in the inbox.
    Accepted,
    /// Written to the tape and the agent's input.
    Delivered,
    /// The agent's own stream showed it.
    Seen,
    /// The turn that it belongs to ended.
    Answered,
    /// The agent ended after it was delivered and before it was seen: nobody can know. Not sent again.
    Unknown,
}

impl Receipt {
    pub const fn as_str(self) -> &'static str {
        match self {
            Receipt::Accepted => "accepted",
            Receipt::Delivered => "delivered",
            Receipt::Seen => "seen",
            Receipt::Answered => "answered",
            Receipt::Unknown => "unknown",
        }
    }
}
