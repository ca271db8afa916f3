//! Bodies: what became of the record of sessions that have ended. A session never changes after its end, so these are the
//! node's events and name their session.

use serde::{Deserialize, Serialize};

use crate::{SessionId, Time, event::By};

/// Its files take less room, and are read as before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionArchived {
    pub session: SessionId,
    /// The rule that said so, as it is typed.
    pub rule: String,
    /// What its files took, and what they take.
    pub bytes: u64,
    pub archived_bytes: u64,
    pub by: By,
}

/// It is kept as it was: no longer compressed, and not to be deleted. Rules count from here on, where somebody said so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRestored {
    pub session: SessionId,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Nobody brought it back: no rule deletes it any more. It stays archived if it was, and rules count as before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_rule: bool,
    pub by: By,
}

/// What was said in it is going to be deleted, and not before this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletionMarked {
    pub session: SessionId,
    pub due: Time,
    pub rule: String,
    pub by: By,
}

/// What was said in it is gone; that it was, how it ended and what it cost stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionDeleted {
    pub session: SessionId,
    pub rule: String,
    pub by: By,
}

/// No rule touches it, or rules do again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionHeld {
    pub session: SessionId,
    pub is_held: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    pub by: By,
}
