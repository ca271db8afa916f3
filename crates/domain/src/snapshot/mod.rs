//! Snapshots of a campaign's tree: one when a session begins and one after each turn, in a repository of Ostler's own.
//! Here is what is asked of them and how git's answers are read; git itself is run by the engine, inside a sandbox.

mod blame;
mod files;
mod patch;
mod report;
mod tree;
mod turns;

use serde::{Deserialize, Serialize};

pub use blame::{Blamed, Origin};
pub use files::{FileChange, FileStatus, files};
pub use patch::readable;
pub use report::{Report, report};
pub use tree::{Difference, Rewinding, Tree};
pub use turns::{Point, Span, turn_number};

use crate::{CampaignId, SessionId, Time};

/// Why a snapshot was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The session began.
    Start,
    /// A turn ended.
    Turn,
    /// Files were about to be put back, or just had been.
    Rewind,
    /// The work tree was about to be removed.
    Removal,
}

impl Cause {
    pub const ALL: &'static [Cause] = &[Cause::Start, Cause::Turn, Cause::Rewind, Cause::Removal];

    pub const fn as_str(self) -> &'static str {
        match self {
            Cause::Start => "start",
            Cause::Turn => "turn",
            Cause::Rewind => "rewind",
            Cause::Removal => "removal",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|cause| cause.as_str() == text)
    }
}

/// How much is different.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Changed {
    pub files: u64,
    /// Lines.
    pub added: u64,
    pub removed: u64,
}

/// A snapshot as recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub session: SessionId,
    pub campaign: CampaignId,
    pub turn: u32,
    pub cause: Cause,
    pub time: Time,
    /// Absent where it could not be taken.
    pub commit: Option<String>,
    /// Since the session began.
    pub changed: Changed,
    pub why: Option<String>,
}

/// Whether a text can be the name of something in a repository, and nothing else that git would understand.
pub fn is_object_name(text: &str) -> bool {
    (4..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The branch that a repository's `HEAD` names. None where none is checked out, or the file says something else.
pub fn branch_of_head(head: &str) -> Option<String> {
    let branch = head.lines().next()?.strip_prefix("ref: refs/heads/")?.trim_end();
    let is_plain = !branch.is_empty() && !branch.chars().any(char::is_control);
    is_plain.then(|| branch.chars().take(BRANCH_CHARS).collect())
}

/// Longest branch that is recorded.
const BRANCH_CHARS: usize = 250;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_names_a_branch_or_nothing() {
        assert_eq!(branch_of_head("ref: refs/heads/agent/x\n").as_deref(), Some("agent/x"));
        for other in
            ["", "6f1e5c2d\n", "ref: refs/tags/v1\n", "ref: refs/heads/\n", "ref: refs/heads/a\u{1b}[2J"]
        {
            assert_eq!(branch_of_head(other), None, "{other:?}");
        }
    }

    #[test]
    fn names_of_objects_are_nothing_that_git_could_read_otherwise() {
        assert!(is_object_name("0a1b2c3"));
        for other in ["", "abc", "--all", "HEAD", "abcdef/..", "refs", "abcd\n"] {
            assert!(!is_object_name(other), "{other:?}");
        }
    }
}
