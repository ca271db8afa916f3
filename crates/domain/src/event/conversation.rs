//! Bodies: what happened to agents and to conversations.

use serde::{Deserialize, Serialize};

use crate::{
    AgentId, CampaignId, ConversationId, Name, SessionId,
    agent::Profile,
    conversation::{CloseReason, Key, Notes, TurnRef},
    event::By,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentChanged {
    pub id: AgentId,
    /// As they were typed: `model=gpt-5.5`.
    pub settings: Vec<String>,
    /// All of it, after the change.
    pub profile: Profile,
    pub by: By,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentRemoved {
    pub id: AgentId,
    pub by: By,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationOpened {
    pub id: ConversationId,
    pub campaign: CampaignId,
    pub key: Key,
    pub name: Name,
    /// Whose it is; none for one that nobody registered an agent for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The conversation of which it began as a copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ConversationId>,
    /// The last turn of that copy; none for all there was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_at: Option<TurnRef>,
    /// The session whose agent asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<SessionId>,
    /// The conversation that had this key before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<ConversationId>,
    /// What it begins with.
    #[serde(default, skip_serializing_if = "Notes::is_empty")]
    pub notes: Notes,
}

impl ConversationOpened {
    /// A conversation of nobody's, begun for its own sake.
    pub fn new(id: ConversationId, campaign: CampaignId, key: Key, name: Name) -> Self {
        Self {
            id,
            campaign,
            key,
            name,
            agent: None,
            forked_from: None,
            forked_at: None,
            spawned_by: None,
            replaces: None,
            notes: Notes::default(),
        }
    }
}

/// What is noted about a conversation was changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationChanged {
    pub id: ConversationId,
    /// As they were typed: `model=gpt-5.5`.
    pub settings: Vec<String>,
    /// All of it, after the change.
    pub notes: Notes,
    pub by: By,
}

/// A conversation is not gone on with; all of it stays readable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationClosed {
    pub id: ConversationId,
    pub why: CloseReason,
    pub by: By,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationReopened {
    pub id: ConversationId,
    pub by: By,
}

/// What was said to people in an agent's name, outside of its sessions: a transcript without it would lack what they answer
/// to. The node's, with the last session before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryMirrored {
    pub conversation: ConversationId,
    pub session: SessionId,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media_urls: Vec<String>,
    /// To whom, as whoever delivered it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    pub by: By,
}
