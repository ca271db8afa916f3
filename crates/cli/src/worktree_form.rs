//! What programs read about work trees. Fields are only ever added.

use ostler_domain::worktree::{Kept, RemovedWorktree};
use serde::Serialize;

use crate::{form::WorktreeForm, words::rfc3339};

/// A work tree, whose it is, and how it stands.
#[derive(Debug, Serialize)]
pub(crate) struct KeptForm {
    #[serde(flatten)]
    worktree: WorktreeForm,
    /// Whether its branch was made for it, and goes with it.
    owns_branch: bool,
    campaign: String,
    campaign_id: String,
    session: String,
    session_name: String,
    standing: &'static str,
    /// What keeps it; null where nothing does.
    kept_by: Option<String>,
    /// Null where it is not there.
    head: Option<String>,
    /// The branch that is checked out; null where none is.
    checked_out: Option<String>,
    commits: u64,
    unmerged: u64,
    uncommitted: u64,
    busy: Option<String>,
    ignored: Vec<String>,
    bytes: u64,
    made: Option<String>,
    removed: Option<String>,
    why: Option<String>,
}

impl KeptForm {
    pub(crate) fn new(kept: &Kept) -> Self {
        let found = &kept.condition;
        Self {
            worktree: WorktreeForm::new(&kept.worktree),
            owns_branch: kept.worktree.owns_branch(),
            campaign: kept.campaign_name.clone(),
            campaign_id: kept.campaign.to_string(),
            session: kept.session.to_string(),
            session_name: kept.session_name.clone(),
            standing: kept.standing.as_str(),
            kept_by: kept.kept_by(),
            head: found.head.clone(),
            checked_out: found.branch.clone(),
            commits: found.commits,
            unmerged: found.unmerged,
            uncommitted: found.uncommitted,
            busy: found.busy.clone(),
            ignored: found.ignored.clone(),
            bytes: found.bytes,
            made: kept.made.map(rfc3339),
            removed: kept.removed.map(rfc3339),
            why: kept.why.clone(),
        }
    }
}

/// What became of one that was to be removed.
#[derive(Debug, Serialize)]
pub(crate) struct CollectedForm {
    #[serde(flatten)]
    kept: KeptForm,
    is_removed: bool,
    branch_deleted: bool,
    /// The snapshot that was taken before.
    snapshot: Option<String>,
    /// Why it could not be removed after all.
    error: Option<String>,
}

impl CollectedForm {
    /// One that is still there.
    pub(crate) fn kept(kept: &Kept, error: Option<String>) -> Self {
        Self { kept: KeptForm::new(kept), is_removed: false, branch_deleted: false, snapshot: None, error }
    }

    pub(crate) fn removed(removed: &RemovedWorktree) -> Self {
        Self {
            kept: KeptForm::new(&removed.kept),
            is_removed: true,
            branch_deleted: removed.branch_deleted,
            snapshot: removed.snapshot.clone(),
            error: None,
        }
    }
}
