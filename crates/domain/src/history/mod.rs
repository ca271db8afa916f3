//! Work that agent programs did outside of Ostler, as their own stores tell it: read, never changed.
//!
//! A store's file is one dialogue, and grows. What is read of it becomes sessions that nobody can talk to: one for each
//! stretch that was taken in at once, joined by `continues`, so that a session is immutable once it has ended here too.

mod chronicle;
mod news;
mod told;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use chronicle::{Chronicle, Writing};
pub use news::{FileNews, Found, Import, News, Outside, Store, Totals, Verdict};
pub use told::{Call, Told, What};

use crate::{Reason, Refusal, Time, session::View, text::one_line};

/// Whose store it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Claude,
    Codex,
    #[serde(rename = "openclaw")]
    OpenClaw,
}

impl Source {
    pub const ALL: &'static [Source] = &[Source::Claude, Source::Codex, Source::OpenClaw];

    /// The word that people type.
    pub const fn as_str(self) -> &'static str {
        match self {
            Source::Claude => "claude",
            Source::Codex => "codex",
            Source::OpenClaw => "openclaw",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|source| source.as_str() == text)
    }

    /// Where its program keeps it: as a variable of its own says, else in the home directory.
    pub fn usual_dir(
        self,
        variable: impl FnOnce(&str) -> Option<PathBuf>,
        home: Option<&Path>,
    ) -> Option<PathBuf> {
        let (name, usual) = match self {
            Source::Claude => ("CLAUDE_CONFIG_DIR", ".claude"),
            Source::Codex => ("CODEX_HOME", ".codex"),
            Source::OpenClaw => ("OPENCLAW_STATE_DIR", ".openclaw"),
        };
        variable(name).filter(|dir| dir.is_absolute()).or_else(|| Some(home?.join(usual)))
    }

    /// The provider whose program it is.
    pub const fn provider(self) -> &'static str {
        match self {
            Source::Claude => "claude-code",
            Source::Codex => "codex",
            Source::OpenClaw => "openclaw",
        }
    }
}

/// Where an imported session comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub source: Source,
    /// The program's own name for the dialogue.
    pub dialogue: String,
    pub file: String,
    /// The place in the file where this session begins.
    #[serde(default)]
    pub from: u64,
}

/// A stretch of a store's file has become a session's events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryRead {
    pub source: Source,
    pub dialogue: String,
    pub file: String,
    pub from: u64,
    /// Everything before this place has been read.
    pub to: u64,
    pub lines: u64,
    /// Lines that could not be understood.
    #[serde(default)]
    pub unreadable: u64,
    pub prints: Prints,
    /// What must be remembered to go on from there.
    pub memory: String,
}

/// What tells that a file still begins with what was read of it, without reading all of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Prints {
    /// Of its first bytes, as many as were there, and [`PRINT_BYTES`] at most.
    pub head: String,
    /// Of the last bytes that were read.
    pub tail: String,
}

/// How much of a file's beginning, and of the end of what was read, is looked at.
pub const PRINT_BYTES: u64 = 1024;

/// How far a file was read, as the record knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub to: u64,
    pub prints: Prints,
}

/// What is to be done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing of it was read before.
    New,
    /// There is more behind this place.
    Grown {
        from: u64,
    },
    Same,
    /// It is shorter than what was read of it.
    Cut,
    /// It no longer begins with what was read of it.
    Rewritten,
}

/// Compares a file with what was read of it. `prints` gives those of the file as it is, up to a place.
pub fn standing<E>(
    known: Option<&Mark>,
    size: u64,
    prints: impl FnOnce(u64) -> Result<Prints, E>,
) -> Result<Standing, E> {
    let Some(mark) = known else { return Ok(Standing::New) };
    if size < mark.to {
        return Ok(Standing::Cut);
    }
    if prints(mark.to)? != mark.prints {
        return Ok(Standing::Rewritten);
    }
    Ok(if size == mark.to { Standing::Same } else { Standing::Grown { from: mark.to } })
}

/// 128 bits that are the same for the same parts, whoever asks and whenever: ids of what was imported are made of them, so
/// that the same thing cannot come in twice.
pub fn bits(parts: &[&[u8]]) -> u128 {
    // FNV-1a. Nobody gains anything by two things that collide: the second is refused.
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for part in parts {
        for byte in part.iter().chain(&(part.len() as u64).to_le_bytes()) {
            hash = (hash ^ u128::from(*byte)).wrapping_mul(PRIME);
        }
    }
    hash
}

/// The name of the directory, below the state, of the campaign that lists what was done in no campaign.
pub const IMPORTED_DIR: &str = "imported";

/// Why nobody can tell an imported session anything.
pub fn read_only(view: &View, origin: &Origin, wish: &str) -> Refusal {
    let short = view.id.short();
    let source = origin.source.as_str();
    let refusal = Refusal::new(
        Reason::Imported,
        format!("session {short} was imported from {source} and is only read, so it cannot be {wish}"),
    );
    let file = one_line(&origin.file, 200);
    let resume = format!("ostler resume {short}");
    let refusal = match view.outcome {
        None => refusal
            .because(format!("its agent works outside of Ostler, and writes to {file}"))
            .hint(resume, "goes on with it here, once it has been quit there"),
        Some(_) => refusal
            .because(format!("its agent ran outside of Ostler, and wrote to {file}"))
            .hint(resume, "goes on with it in a new session, here and in the sandbox"),
    };
    refusal.hint(format!("ostler transcript show {short}"), "reads it")
}

/// How long after its last line an agent outside is taken to be at work.
pub const QUIET: std::time::Duration = std::time::Duration::from_secs(10 * 60);

/// Whether whoever writes a file is taken to be there still.
pub fn is_at_work(written: Time, now: Time) -> bool {
    now.since(written) < QUIET
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn prints(text: &str) -> Prints {
        Prints { head: text.to_owned(), tail: text.to_owned() }
    }

    #[test]
    fn a_file_is_gone_on_with_only_where_it_still_begins_with_what_was_read() {
        let mark = Mark { to: 100, prints: prints("a") };
        let of = |known: Option<&Mark>, size, now: &str| {
            standing(known, size, |to| {
                assert_eq!(to, 100, "prints are asked for of what was read");
                Ok::<_, ()>(prints(now))
            })
        };
        assert_eq!(of(None, 100, "a"), Ok(Standing::New));
        assert_eq!(of(Some(&mark), 100, "a"), Ok(Standing::Same));
        assert_eq!(of(Some(&mark), 101, "a"), Ok(Standing::Grown { from: 100 }));
        assert_eq!(of(Some(&mark), 99, "a"), Ok(Standing::Cut));
        assert_eq!(of(Some(&mark), 100, "b"), Ok(Standing::Rewritten));
        assert_eq!(of(Some(&mark), 500, "b"), Ok(Standing::Rewritten));
    }

    #[test]
    fn sources_are_found_by_their_words() {
        for source in Source::ALL {
            assert_eq!(Source::parse(source.as_str()), Some(*source));
            assert_eq!(serde_json::to_string(source).ok(), Some(format!("\"{}\"", source.as_str())));
        }
        assert_eq!(Source::parse("gemini"), None);
    }

    proptest! {
        #[test]
        fn parts_cannot_be_shifted_into_each_other(a in ".{0,20}", b in ".{0,20}") {
            prop_assert_eq!(bits(&[a.as_bytes(), b.as_bytes()]), bits(&[a.as_bytes(), b.as_bytes()]));
            let joined = format!("{a}{b}");
            prop_assert_ne!(bits(&[a.as_bytes(), b.as_bytes()]), bits(&[joined.as_bytes()]));
        }
    }
}
