//! What is answered about a session's tree.

use super::{FileChange, Snapshot};
use crate::{event::SeenCommit, worktree::Kept};

/// What a session has made of its tree, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    /// Oldest first.
    pub snapshots: Vec<Snapshot>,
    /// The branch that was last seen to be checked out.
    pub branch: Option<String>,
    /// What was last seen to be checked out.
    pub head: Option<String>,
    /// Newest first.
    pub commits: Vec<SeenCommit>,
    /// How its own work tree stands now, if it has one.
    pub worktree: Option<Kept>,
}

impl Tree {
    /// The last snapshot that there is.
    pub fn last(&self) -> Option<&Snapshot> {
        self.snapshots.iter().rev().find(|taken| taken.commit.is_some())
    }
}

/// Two snapshots and what is between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    pub from: Snapshot,
    pub to: Snapshot,
    pub files: Vec<FileChange>,
    /// As git writes it, whatever bytes files have; empty where it was not asked for.
    pub patch: Vec<u8>,
    /// There is more than is handed out.
    pub is_cut: bool,
}

/// What putting a snapshot back changes, or has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewinding {
    pub to: Snapshot,
    /// The name of the snapshot of what was there: the way back from the way back.
    pub before: String,
    pub files: Vec<FileChange>,
    pub is_done: bool,
}
