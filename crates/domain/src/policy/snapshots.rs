//! In which directories files are written down after each turn.

use serde::{Deserialize, Serialize};

/// Where snapshots are taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Snapshots {
    /// In a git repository, or in a directory of one.
    #[default]
    Git,
    /// In any directory, as long as it is not too large: an agent's start waits for the first of them.
    Always,
    Never,
}

impl Snapshots {
    pub const fn as_str(self) -> &'static str {
        match self {
            Snapshots::Git => "git",
            Snapshots::Always => "always",
            Snapshots::Never => "never",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Snapshots::Git, Snapshots::Always, Snapshots::Never].into_iter().find(|word| word.as_str() == text)
    }
}
