//! Snapshots and what differs between them.

use ostler_domain::{
    event::SeenCommit,
    price::Dollars,
    snapshot::{Blamed, Cause, Changed, Difference, FileChange, FileStatus, Rewinding, Snapshot, Tree},
};

use super::{Result, id, required, required_time};
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
