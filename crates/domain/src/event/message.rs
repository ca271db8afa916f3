//! Bodies: messages and their receipts.

use serde::{Deserialize, Serialize};

use crate::{ConversationId, Message, MessageId, SessionId, event::By};

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
