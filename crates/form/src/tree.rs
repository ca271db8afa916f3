//! What programs read about files: snapshots, what differs, what was put back.

use ostler_client::Session;
use ostler_domain::snapshot::{Blamed, Changed, Difference, FileChange, Rewinding, Snapshot};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{rfc3339, shape};

/// A snapshot.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Snapshot")]
pub struct SnapshotForm {
    session: String,
    turn: u32,
    cause: &'static str,
    time: String,
    commit: Option<String>,
    #[schemars(with = "shape::Changed")]
    changed: Changed,
    why: Option<String>,
}

impl SnapshotForm {
    pub fn new(snapshot: &Snapshot) -> Self {
        Self {
            session: snapshot.session.to_string(),
            turn: snapshot.turn,
            cause: snapshot.cause.as_str(),
            time: rfc3339(snapshot.time),
            commit: snapshot.commit.clone(),
            changed: snapshot.changed,
            why: snapshot.why.clone(),
        }
    }
}

/// A file that differs.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "FileChange")]
struct FileChangeForm {
    path: String,
    status: &'static str,
    added: Option<u64>,
    removed: Option<u64>,
}

fn files(files: &[FileChange]) -> Vec<FileChangeForm> {
    let form = |file: &FileChange| FileChangeForm {
        path: file.path.clone(),
        status: file.status.as_str(),
        added: file.added,
        removed: file.removed,
    };
    files.iter().map(form).collect()
}

/// `ostler diff`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Difference")]
pub struct DifferenceForm {
    from: SnapshotForm,
    to: SnapshotForm,
    files: Vec<FileChangeForm>,
    /// Null where only the files were asked for.
    patch: Option<String>,
    is_cut: bool,
}

impl DifferenceForm {
    pub fn new(difference: &Difference, with_patch: bool) -> Self {
        Self {
            from: SnapshotForm::new(&difference.from),
            to: SnapshotForm::new(&difference.to),
            files: files(&difference.files),
            patch: with_patch.then(|| String::from_utf8_lossy(&difference.patch).into_owned()),
            is_cut: difference.is_cut,
        }
    }
}

/// `ostler rewind`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Rewind")]
pub struct RewindForm {
    to: SnapshotForm,
    before: String,
    files: Vec<FileChangeForm>,
    is_done: bool,
}

impl RewindForm {
    pub fn new(rewinding: &Rewinding) -> Self {
        Self {
            to: SnapshotForm::new(&rewinding.to),
            before: rewinding.before.clone(),
            files: files(&rewinding.files),
            is_done: rewinding.is_done,
        }
    }
}

/// `ostler blame`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Blame")]
pub struct BlameForm {
    path: String,
    line: u32,
    text: String,
    snapshot: SnapshotForm,
    /// Whether the line was there before the session began.
    was_there: bool,
    name: String,
    provider: String,
    model: Option<String>,
    prompt: Option<String>,
    /// In dollars; null where that is not known.
    cost: Option<String>,
}

impl BlameForm {
    pub fn new(blamed: &Blamed, session: &Session) -> Self {
        Self {
            path: blamed.path.clone(),
            line: blamed.line,
            text: blamed.text.clone(),
            snapshot: SnapshotForm::new(&blamed.snapshot),
            was_there: blamed.snapshot.cause == ostler_domain::snapshot::Cause::Start,
            name: session.name.to_string(),
            provider: session.provider.clone(),
            model: session.model.clone(),
            prompt: blamed.prompt.clone(),
            cost: blamed.cost.map(|cost| cost.decimal()),
        }
    }
}
