//! Which commands `ostler exec` runs for whoever asks. This is policy and record, never the boundary: `git` and `just`
//! run whatever a campaign says, and the sandbox is what holds them.

mod git;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{confinement::Confinement, policy::Policy, text::one_line};

pub(crate) use git::check as check_git;

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
    #[error("git is not run with {0}, which runs other programs")]
    GitVerb(String),
}

impl CommandRefused {
    /// The rule that decided, for the record.
    pub const fn rule(&self) -> &'static str {
        match self {
            CommandRefused::Empty | CommandRefused::Malformed => "command line",
            CommandRefused::Path(_) => "command name",
            CommandRefused::Unlisted(_) => "command list",
            CommandRefused::GitOption(_) | CommandRefused::GitVerb(_) => "git options",
        }
    }
}

/// A shell that runs a line, or several, with all that any of it says on standard output.
pub fn shell_line(line: &str) -> Vec<String> {
    vec!["/bin/sh".to_owned(), "-c".to_owned(), format!("exec 2>&1\n{line}")]
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
    fn all_that_a_line_says_is_heard_and_its_own_exit_code_is_known() {
        for (line, code, said) in [
            ("echo ERR >&2; exit 1", 1, "ERR\n"),
            ("false;", 1, ""),
            ("false # and nothing else", 1, ""),
            ("echo a >&2\necho b", 0, "a\nb\n"),
        ] {
            let argv = shell_line(line);
            let ended = std::process::Command::new(&argv[0]).args(&argv[1..]).output().unwrap();
            let heard = String::from_utf8(ended.stdout).unwrap();
            assert_eq!((ended.status.code(), heard.as_str()), (Some(code), said), "{line}");
        }
    }

    #[test]
    fn a_person_may_run_anything_inside() {
        let argv = ["/bin/sh", "-c", "ls"].map(str::to_owned);
        assert_eq!(super::check(&argv, &Policy::default(), true), Ok(()));
        assert!(super::check(&["a\0b".to_owned()], &Policy::default(), true).is_err());
    }
}
