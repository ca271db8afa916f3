//! Snapshots and what differs between them.

use ostler_domain::{
    event::SeenCommit,
    price::Dollars,
    snapshot::{Blamed, Cause, Changed, Difference, FileChange, FileStatus, Rewinding, Snapshot, Tree},
    worktree::{Condition, Kept, RemovedWorktree, Standing},
};

use super::{Result, id, optional_time, required, required_time, session::worktree};
use crate::{InvalidField, pb};

fn snapshot(snapshot: pb::Snapshot) -> Result<Snapshot> {
    let changed = snapshot.changed.unwrap_or_default();
    Ok(Snapshot {
        session: id(&snapshot.session_id, "session_id")?,
        campaign: id(&snapshot.campaign_id, "campaign_id")?,
        turn: snapshot.turn,
        cause: Cause::parse(&snapshot.cause).ok_or_else(|| InvalidField::new("cause", "is no cause"))?,
        time: required_time(snapshot.taken_time, "taken_time")?,
        commit: snapshot.commit,
        changed: Changed { files: changed.files, added: changed.added, removed: changed.removed },
        why: snapshot.why,
    })
}

fn file_change(file: pb::FileChange) -> Result<FileChange> {
    Ok(FileChange {
        path: file.path,
        status: FileStatus::parse(&file.status)
            .ok_or_else(|| InvalidField::new("status", "is no status of a file"))?,
        added: file.added,
        removed: file.removed,
    })
}

fn seen_commit(commit: pb::SeenCommit) -> SeenCommit {
    SeenCommit { hash: commit.hash, subject: commit.subject }
}

pub fn blamed(blamed: pb::BlameResponse) -> Result<Blamed> {
    Ok(Blamed {
        path: blamed.path,
        line: blamed.line,
        text: blamed.text,
        snapshot: named(blamed.snapshot, "snapshot")?,
        prompt: blamed.prompt,
        cost: blamed.micro_usd.map(Dollars),
    })
}

fn named(found: Option<pb::Snapshot>, field: &str) -> Result<Snapshot> {
    snapshot(required(found, field)?).map_err(|e| e.within(field))
}

pub fn tree(tree: pb::GetTreeResponse) -> Result<Tree> {
    Ok(Tree {
        snapshots: tree.snapshots.into_iter().map(snapshot).collect::<Result<_>>()?,
        branch: tree.branch,
        head: tree.head,
        commits: tree.commits.into_iter().map(seen_commit).collect(),
        worktree: tree.worktree.map(kept).transpose().map_err(|e| e.within("worktree"))?,
    })
}

pub fn difference(difference: pb::GetDifferenceResponse) -> Result<Difference> {
    Ok(Difference {
        from: named(difference.from, "from")?,
        to: named(difference.to, "to")?,
        files: difference.files.into_iter().map(file_change).collect::<Result<_>>()?,
        patch: difference.patch,
        is_cut: difference.is_cut,
    })
}

pub fn rewinding(rewinding: pb::RewindResponse) -> Result<Rewinding> {
    Ok(Rewinding {
        to: named(rewinding.to, "to")?,
        before: rewinding.before,
        files: rewinding.files.into_iter().map(file_change).collect::<Result<_>>()?,
        is_done: rewinding.is_done,
    })
}

pub fn kept(kept: pb::Worktree) -> Result<Kept> {
    let tree = required(kept.worktree, "worktree")?;
    Ok(Kept {
        worktree: worktree(tree).map_err(|e| e.within("worktree"))?,
        campaign: id(&kept.campaign_id, "campaign_id")?,
        campaign_name: kept.campaign_name,
        session: id(&kept.session_id, "session_id")?,
        session_name: kept.session_name,
        made: optional_time(kept.made_time, "made_time")?,
        removed: optional_time(kept.removed_time, "removed_time")?,
        standing: Standing::parse(&kept.standing)
            .ok_or_else(|| InvalidField::new("standing", "is no standing of a work tree"))?,
        condition: Condition {
            head: kept.head,
            branch: kept.branch,
            commits: kept.commits,
            unmerged: kept.unmerged,
            // Whoever reads this is told of it in words where it matters.
            left: None,
            uncommitted: kept.uncommitted,
            busy: kept.busy,
            ignored: kept.ignored,
            bytes: kept.bytes,
        },
        why: kept.why,
    })
}

pub fn removed_worktree(removed: pb::RemoveWorktreeResponse) -> Result<RemovedWorktree> {
    let before = required(removed.worktree, "worktree")?;
    Ok(RemovedWorktree {
        kept: kept(before).map_err(|e| e.within("worktree"))?,
        branch_deleted: removed.branch_deleted,
        snapshot: removed.snapshot,
    })
}
