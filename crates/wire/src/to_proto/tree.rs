//! Snapshots and what differs between them.

use ostler_domain::{
    event::SeenCommit,
    snapshot::{Blamed, Changed, Difference, FileChange, Rewinding, Snapshot, Tree},
    worktree::{Kept, RemovedWorktree},
};

use super::{session::worktree, time};
use crate::pb;

fn snapshot(snapshot: &Snapshot) -> pb::Snapshot {
    pb::Snapshot {
        session_id: snapshot.session.to_string(),
        campaign_id: snapshot.campaign.to_string(),
        turn: snapshot.turn,
        cause: snapshot.cause.as_str().to_owned(),
        taken_time: Some(time(snapshot.time)),
        commit: snapshot.commit.clone(),
        changed: Some(changed(snapshot.changed)),
        why: snapshot.why.clone(),
    }
}

fn changed(changed: Changed) -> pb::ChangeCount {
    pb::ChangeCount { files: changed.files, added: changed.added, removed: changed.removed }
}

fn file_change(file: &FileChange) -> pb::FileChange {
    pb::FileChange {
        path: file.path.clone(),
        status: file.status.as_str().to_owned(),
        added: file.added,
        removed: file.removed,
    }
}

fn seen_commit(commit: &SeenCommit) -> pb::SeenCommit {
    pb::SeenCommit { hash: commit.hash.clone(), subject: commit.subject.clone() }
}

pub fn blamed(blamed: &Blamed) -> pb::BlameResponse {
    pb::BlameResponse {
        path: blamed.path.clone(),
        line: blamed.line,
        text: blamed.text.clone(),
        snapshot: Some(snapshot(&blamed.snapshot)),
        prompt: blamed.prompt.clone(),
        micro_usd: blamed.cost.map(|cost| cost.0),
    }
}

pub fn tree(tree: &Tree) -> pb::GetTreeResponse {
    pb::GetTreeResponse {
        snapshots: tree.snapshots.iter().map(snapshot).collect(),
        branch: tree.branch.clone(),
        head: tree.head.clone(),
        commits: tree.commits.iter().map(seen_commit).collect(),
        worktree: tree.worktree.as_ref().map(kept),
    }
}

pub fn difference(difference: Difference) -> pb::GetDifferenceResponse {
    pb::GetDifferenceResponse {
        from: Some(snapshot(&difference.from)),
        to: Some(snapshot(&difference.to)),
        files: difference.files.iter().map(file_change).collect(),
        patch: difference.patch,
        is_cut: difference.is_cut,
    }
}

pub fn rewinding(rewinding: &Rewinding) -> pb::RewindResponse {
    pb::RewindResponse {
        to: Some(snapshot(&rewinding.to)),
        before: rewinding.before.clone(),
        files: rewinding.files.iter().map(file_change).collect(),
        is_done: rewinding.is_done,
    }
}

pub fn kept(kept: &Kept) -> pb::Worktree {
    let found = &kept.condition;
    pb::Worktree {
        worktree: Some(worktree(&kept.worktree)),
        campaign_id: kept.campaign.to_string(),
        campaign_name: kept.campaign_name.clone(),
        session_id: kept.session.to_string(),
        session_name: kept.session_name.clone(),
        made_time: kept.made.map(time),
        removed_time: kept.removed.map(time),
        standing: kept.standing.as_str().to_owned(),
        head: found.head.clone(),
        branch: found.branch.clone(),
        commits: found.commits,
        unmerged: found.unmerged,
        uncommitted: found.uncommitted,
        busy: found.busy.clone(),
        ignored: found.ignored.clone(),
        bytes: found.bytes,
        why: kept.why.clone(),
    }
}

pub fn removed_worktree(removed: RemovedWorktree) -> pb::RemoveWorktreeResponse {
    let RemovedWorktree { kept: before, branch_deleted, snapshot } = removed;
    pb::RemoveWorktreeResponse { worktree: Some(kept(&before)), branch_deleted, snapshot }
}
