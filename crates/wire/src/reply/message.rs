//! What became of messages.

use ostler_domain::{
    ConversationId, Message, MessageId, Mode, Receipt, SessionId, Time, event::By, session::View,
};

/// What became of a message that was just sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    /// The message.
    pub message: MessageId,
    /// What is known of it now.
    pub receipt: Receipt,
    /// The session that got it.
    pub session: View,
    /// That session was made for it: the conversation had no live one.
    pub woke: bool,
    /// How it is said: an agent that cannot be told anything within a turn hears at its end what was to steer it.
    pub mode: Mode,
    /// The conversation that was opened for it: it began with `/new` or `/reset`, or a rule of its campaign was due.
    pub opened: Option<ConversationId>,
    /// Why it was dropped, where it was.
    pub why: Option<String>,
    /// The messages that were dropped because it came.
    pub dropped: Vec<MessageId>,
    /// The rule of the send policy that let it through.
    pub rule: Option<String>,
}

/// What came of something said.
#[derive(Debug, Clone, PartialEq)]
pub enum Taken {
    /// It is in somebody's inbox.
    Sent(Box<Sent>),
    /// It was `/new` or `/reset` and nothing else: a fresh conversation has the old one's key.
    Reset(ConversationId),
}

impl Taken {
    /// The message, where there was one.
    pub fn sent(self) -> Option<Sent> {
        match self {
            Taken::Sent(sent) => Some(*sent),
            Taken::Reset(_) => None,
        }
    }
}

/// A message and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// What was said.
    pub message: Message,
    /// The conversation it was said to.
    pub conversation: ConversationId,
    /// The session that has it now.
    pub session: SessionId,
    /// What is known of it.
    pub receipt: Receipt,
    /// Who said it.
    pub by: By,
    /// When it became durable.
    pub accepted: Time,
    /// When the receipt was last learnt.
    pub receipt_at: Time,
    /// The turn that it belongs to, once known.
    pub turn: Option<u32>,
    /// Why nothing better than `unknown` can be said, or why it was dropped or taken back.
    pub why: Option<String>,
    /// The rule of the send policy that let it through.
    pub rule: Option<String>,
    /// The sender's own name for it.
    pub key: Option<String>,
}
