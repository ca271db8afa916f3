//! Bodies: what happened to tickets.

use serde::{Deserialize, Serialize};

use crate::{
    CampaignId, SessionId, TicketId,
    call::StepMark,
    event::By,
    ticket::{About, Checkpoint, Links, Output, Status},
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketAdded {
    pub id: TicketId,
    pub campaign: CampaignId,
    #[serde(flatten)]
    pub about: About,
    #[serde(flatten)]
    pub links: Links,
    pub status: Status,
    pub by: By,
}

/// It is about something else now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketChanged {
    pub id: TicketId,
    /// All of it, after the change.
    #[serde(flatten)]
    pub about: About,
    pub by: By,
}

/// It stands otherwise. Of two changes at once the second is refused: the ticket no longer stands where it begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketMoved {
    pub id: TicketId,
    pub from: Status,
    pub to: Status,
    pub by: By,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The session that works, or worked, on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

/// It belongs to something else now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketLinked {
    pub id: TicketId,
    /// All of them, after the change.
    #[serde(flatten)]
    pub links: Links,
    pub by: By,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketOutputAdded {
    pub id: TicketId,
    #[serde(flatten)]
    pub output: Output,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    pub by: By,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketCheckpointMade {
    pub id: TicketId,
    #[serde(flatten)]
    pub checkpoint: Checkpoint,
    pub by: By,
}

/// What a person says of a part of the work. What a session says of it is in the session's own events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketStep {
    pub id: TicketId,
    pub name: String,
    pub mark: StepMark,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    pub by: By,
}
