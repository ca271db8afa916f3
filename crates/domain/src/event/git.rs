//! Bodies: what became of a campaign's files. They are facts about a tree, which outlives the session that changed it,
//! so they are the node's events and name their session.

use serde::{Deserialize, Serialize};

use crate::{
    CampaignId, SessionId,
    event::By,
    snapshot::{Cause, Changed},
    worktree::Worktree,
};

/// The tree was written down as it was, or could not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotTaken {
    pub session: SessionId,
    pub campaign: CampaignId,
    /// The turn that had ended; 0 is the session's beginning.
    pub turn: u32,
    pub cause: Cause,
    /// Its name in Ostler's own repository; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Since the session began.
    #[serde(default)]
    pub changed: Changed,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What the tree's own repository has that it did not have before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitsSeen {
    pub session: SessionId,
    pub turn: u32,
    /// The branch that is checked out; absent where none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// What is checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// Newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<SeenCommit>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenCommit {
    pub hash: String,
    pub subject: String,
}

/// Files were put back to how they were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewound {
    pub session: SessionId,
    pub campaign: CampaignId,
    /// The turn whose snapshot it was.
    pub turn: u32,
    /// The snapshot of what was there before.
    pub from: String,
    /// The snapshot that was put back.
    pub to: String,
    pub changed: Changed,
    pub by: By,
}

/// A session's work tree was made, or was made again because it was gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeMade {
    pub session: SessionId,
    pub campaign: CampaignId,
    pub worktree: Worktree,
    /// What was checked out in it.
    pub commit: String,
    /// It had been there before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

/// A work tree with nothing in it that would be lost was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeRemoved {
    /// The last session that worked in it.
    pub session: SessionId,
    pub campaign: CampaignId,
    pub path: String,
    pub branch: String,
    /// What was checked out in it; absent where it was gone already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The snapshot that was taken before; absent where it was gone already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// The branch was deleted too: others have all of its commits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub branch_deleted: bool,
    pub by: By,
}
