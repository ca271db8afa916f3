//! What is asked of an import, and what it tells while it works.

use serde::{Deserialize, Serialize};

use super::{Source, Standing};
use crate::{SessionId, Time, Usage};

/// What is to be imported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Import {
    pub stores: Vec<Store>,
    /// Only files that were written to at this time or later.
    pub since: Option<Time>,
    /// Only says what would come.
    pub dry_run: bool,
    /// Goes on looking.
    pub watch: bool,
    /// Also reads stores in which a program holds a lock.
    pub live: bool,
}

/// A program's store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    pub source: Source,
    pub dir: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum News {
    Found(Found),
    File(Box<FileNews>),
    /// All there was has been looked at. Comes again, after each look, where somebody watches.
    Done(Totals),
}

/// What lies in a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    pub source: Source,
    pub dir: String,
    pub files: u64,
    pub bytes: u64,
    /// Why nothing was looked for there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
    /// Programs of this kind that run now, and not under Ostler.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub running: Vec<Outside>,
}

/// An agent program that somebody runs outside of Ostler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outside {
    pub pid: u32,
    /// The pane of tmux that it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pane: Option<String>,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileNews {
    pub source: Source,
    pub file: String,
    /// The program's own name for the dialogue; empty where the file does not say.
    pub dialogue: String,
    /// What it was called, or the first thing that was said.
    pub title: String,
    pub verdict: Verdict,
    /// Why nothing was taken from it, or not as it is there, where that needs a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The session that was made of it, or would go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// When the last thing in it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Time>,
    pub read: Totals,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing of it was known.
    New,
    /// There was more.
    Grown,
    Same,
    /// It is shorter than what was read of it.
    Cut,
    /// It no longer begins with what was read of it.
    Rewritten,
    /// There is nothing in it that anybody said.
    Empty,
    /// It could not be taken in.
    Failed,
}

impl Verdict {
    pub const ALL: &'static [Verdict] = &[
        Verdict::New,
        Verdict::Grown,
        Verdict::Same,
        Verdict::Cut,
        Verdict::Rewritten,
        Verdict::Empty,
        Verdict::Failed,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::New => "new",
            Verdict::Grown => "grown",
            Verdict::Same => "same",
            Verdict::Cut => "cut",
            Verdict::Rewritten => "rewritten",
            Verdict::Empty => "empty",
            Verdict::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|verdict| verdict.as_str() == text)
    }
}

impl From<Standing> for Verdict {
    fn from(standing: Standing) -> Self {
        match standing {
            Standing::New => Verdict::New,
            Standing::Grown { .. } => Verdict::Grown,
            Standing::Same => Verdict::Same,
            Standing::Cut => Verdict::Cut,
            Standing::Rewritten => Verdict::Rewritten,
        }
    }
}

/// How much was, or would be, taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    pub files: u64,
    pub new: u64,
    pub grown: u64,
    pub same: u64,
    /// Cut or rewritten since they were read: nothing more is taken from them.
    pub changed: u64,
    pub empty: u64,
    pub failed: u64,
    pub bytes: u64,
    pub lines: u64,
    /// Lines that could not be understood.
    pub unreadable: u64,
    pub events: u64,
    /// Model calls, and what they took.
    pub calls: u64,
    pub usage: Usage,
    /// Calls that other files had told of: they count once.
    pub repeated: u64,
}

impl Totals {
    /// Counts a file.
    pub fn add(&mut self, news: &FileNews) {
        self.files += 1;
        let count = match news.verdict {
            Verdict::New => &mut self.new,
            Verdict::Grown => &mut self.grown,
            Verdict::Same => &mut self.same,
            Verdict::Cut | Verdict::Rewritten => &mut self.changed,
            Verdict::Empty => &mut self.empty,
            Verdict::Failed => &mut self.failed,
        };
        *count += 1;
        let read = &news.read;
        self.bytes += read.bytes;
        self.lines += read.lines;
        self.unreadable += read.unreadable;
        self.events += read.events;
        self.calls += read.calls;
        self.usage += read.usage;
        self.repeated += read.repeated;
    }
}
