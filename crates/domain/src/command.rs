//! Which commands `ostler exec` runs for whoever asks. This is policy and record, never the boundary: `git` and `just`
//! run whatever a campaign says, and the sandbox is what holds them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{confinement::Confinement, policy::Policy, text::one_line};

/// A command that was allowed, fully resolved: what the caller's own process starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandDocument {
    pub program: PathBuf,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub cwd: PathBuf,
    /// Absent only where the machine's owner has switched the sandbox off.
    pub confinement: Option<Confinement>,
}

/// Commands that everybody may run.
pub const LISTED: &[&str] = &["fest", "camp", "just", "git"];

/// Options of git by which a caller would choose what git runs or where it works.
const GIT_OPTIONS: &[&str] = &[
    "-c",
    "--config-env",
    "--exec-path",
    "--git-dir",
    "--work-tree",
    "-C",
    "--upload-pack",
    "--receive-pack",
];
/// Addresses that name a program instead of a place.
const GIT_PROGRAMS: &str = "ext::";
/// Longest command line.
const MOST_WORDS: usize = 1_000;

/// Why a command is not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandRefused {
    #[error("there is no command")]
    Empty,
    #[error("a command line has at most {MOST_WORDS} words, and no NUL")]
    Malformed,
    #[error("{0} is named by a path; a command is named without its directory")]
    Path(String),
    #[error("{0} is not on the list of commands")]
    Unlisted(String),
    #[error("git is not run with {0}: it would say what git runs, or where")]
    GitOption(String),
}

impl CommandRefused {
    /// The rule that decided, for the record.
    pub const fn rule(&self) -> &'static str {
        match self {
            CommandRefused::Empty | CommandRefused::Malformed => "command line",
            CommandRefused::Path(_) => "command name",
            CommandRefused::Unlisted(_) => "command list",
            CommandRefused::GitOption(_) => "git options",
        }
    }
}

/// Decides whether a command may run. `unlisted`: a person said that the list does not matter; agents never can.
pub fn check(argv: &[String], policy: &Policy, unlisted: bool) -> Result<(), CommandRefused> {
    let name = argv.first().filter(|name| !name.is_empty()).ok_or(CommandRefused::Empty)?;
    if argv.len() > MOST_WORDS || argv.iter().any(|word| word.contains('\0')) {
        return Err(CommandRefused::Malformed);
    }
    if unlisted {
        return Ok(());
    }
    if name.contains('/') {
        return Err(CommandRefused::Path(one_line(name, 80)));
    }
    if !LISTED.contains(&name.as_str()) && !policy.commands.contains(name) {
        return Err(CommandRefused::Unlisted(one_line(name, 80)));
    }
    if name == "git" { check_git(&argv[1..]) } else { Ok(()) }
}

pub(crate) fn check_git(words: &[String]) -> Result<(), CommandRefused> {
    let is_wrong = |word: &&String| {
        let short_with_value =
            ["-c", "-C"].iter().any(|option| word.starts_with(option) && !word.starts_with("--"));
        let name = word.split('=').next().unwrap_or_default();
        // Also what git would take for the whole: it knows options by their beginnings.
        let is_beginning = name.starts_with("--")
            && name.len() > "--e".len()
            && GIT_OPTIONS.iter().any(|option| option.starts_with(name));
        short_with_value || is_beginning || word.contains(GIT_PROGRAMS)
    };
    // Before the verb these are git's own; `commit -C HEAD` and `grep -c` behind it are the verb's.
    let verb_at = words.iter().position(|word| !word.starts_with('-')).unwrap_or(words.len());
    let own = words[..verb_at].iter().find(is_wrong);
    let long = |word: &&String| (word.starts_with("--") || word.contains(GIT_PROGRAMS)) && is_wrong(word);
    match own.or_else(|| words[verb_at..].iter().find(long)) {
        Some(word) => Err(CommandRefused::GitOption(one_line(word, 80))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> Result<(), CommandRefused> {
        let argv: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let policy = Policy { commands: vec!["make".to_owned()], ..Policy::default() };
        super::check(&argv, &policy, false)
    }

    #[test]
    fn the_list_and_the_policy_decide() {
        for line in [
            "git status",
            "just test",
            "make -j2",
            "git log --oneline -n 3",
            "git commit -C HEAD",
            "git grep -c x",
        ] {
            assert_eq!(check(line), Ok(()), "{line}");
        }
        for line in ["", "sh -c ls", "/usr/bin/git status", "./git status", "gitt status"] {
            assert!(check(line).is_err(), "{line}");
        }
    }

    #[test]
    fn nobody_tells_git_what_to_run() {
        for line in [
            "git -c alias.x=!sh x",
            "git -calias.x=!sh x",
            "git --config-env=a=B status",
            "git --exec-path=/tmp status",
            "git --git-dir=/etc status",
            "git --work-tree /etc status",
            "git -C /etc status",
            "git -C/etc status",
            "git fetch --upload-pack=/tmp/x",
            "git fetch --upload-pa /tmp/x",
            "git push --receive-pack=x",
            "git clone ext::sh",
            "git --exec-pa=/tmp status",
        ] {
            assert!(matches!(check(line), Err(CommandRefused::GitOption(_))), "{line}");
        }
    }

    #[test]
    fn a_person_may_run_anything_inside() {
        let argv = ["/bin/sh", "-c", "ls"].map(str::to_owned);
        assert_eq!(super::check(&argv, &Policy::default(), true), Ok(()));
        assert!(super::check(&["a\0b".to_owned()], &Policy::default(), true).is_err());
    }
}
