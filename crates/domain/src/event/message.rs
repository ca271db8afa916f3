//! Bodies: messages and their receipts.

use serde::{Deserialize, Serialize};

use crate::{
    ConversationId, Message, MessageId, SessionId,
    event::By,
    message::{Said, Summary},
    time::Deadline,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageAccepted {
    pub message: Message,
    pub conversation: ConversationId,
    pub by: By,
    /// The session that ended before it could be delivered there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<SessionId>,
    /// What let it through, where a policy was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The sender's own name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Nothing is delivered before this, should nothing more come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_until: Option<Deadline>,
    /// What was dropped in the session before, and its agent was not told.
    #[serde(default, skip_serializing_if = "Summary::is_empty")]
    pub untold: Summary,
}

impl MessageAccepted {
    pub fn new(message: Message, conversation: ConversationId, by: By) -> Self {
        Self::said(Said::from(message), conversation, by)
    }

    pub fn said(said: Said, conversation: ConversationId, by: By) -> Self {
        let Said { message, rule, key, moved_from, untold } = said;
        Self { message, conversation, by, moved_from, rule, key, quiet_until: None, untold }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageSent {
    pub id: MessageId,
    /// The message in whose prompt it is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<MessageId>,
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
pub struct MessageDropped {
    pub id: MessageId,
    pub why: String,
    /// The message that came when too many waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_room_for: Option<MessageId>,
    /// The agent is told how it began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_summarised: bool,
}

/// Something that was said to a conversation whose agent sleeps and is not woken for it. The node's: the session that it
/// names has ended, and changes no more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageUnheard {
    pub message: Message,
    pub conversation: ConversationId,
    pub session: SessionId,
    pub by: By,
    pub why: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageCancelled {
    pub id: MessageId,
    pub why: String,
    pub by: By,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageEdited {
    pub id: MessageId,
    pub text: String,
    pub by: By,
}

/// A message that waited waits elsewhere: before another one, or in another conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageMoved {
    pub id: MessageId,
    pub to: MovedTo,
    pub by: By,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MovedTo {
    Before {
        message: MessageId,
    },
    /// There it is another message.
    Conversation {
        conversation: ConversationId,
        message: MessageId,
    },
}
