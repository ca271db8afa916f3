//! What holds where no rule of the campaign decides: what its policy grants anyway, in its own files, goes without a
//! question. All of it only in a sandbox, which is what really holds an agent.

use std::path::Path;

use super::{
    command_line::{Part, Word},
    place::Place,
    programs,
    rule::{Item, Verdict, is_host},
};
use crate::{command::LISTED, hidden::Patterns, policy::Policy};

/// What git does in a repository without asking anybody else, running anything or changing what it will run.
const GIT: &[&str] = &[
    "add",
    "am",
    "apply",
    "blame",
    "branch",
    "cat-file",
    "checkout",
    "cherry",
    "cherry-pick",
    "commit",
    "describe",
    "diff",
    "diff-tree",
    "for-each-ref",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "merge",
    "merge-base",
    "mv",
    "name-rev",
    "rebase",
    "reflog",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "shortlog",
    "show",
    "show-ref",
    "stash",
    "status",
    "switch",
    "tag",
    "whatchanged",
    "worktree",
];
/// Options by which even those run or write something else.
const GIT_OPTIONS: &[&str] = &[
    "--exec",
    "-x",
    "-O",
    "--open-files-in-pager",
    "--output",
    "--ext-diff",
    "--template",
    "--gpg-sign",
    "-S",
];
/// What a shell has at hand whatever it runs.
const FILES: &[&str] = &["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"];

/// What a built-in rule says, in the words of the grammar.
pub(super) fn decide(item: &Item, policy: &Policy, place: &Place<'_>) -> Option<(Verdict, String)> {
    if let Item::Run(part) = item
        && pushes(&part.words)
    {
        return Some((Verdict::Ask, "ask run git push *".to_owned()));
    }
    if !place.is_confined {
        return None;
    }
    let rule = match item {
        Item::Run(part) => runs(part, policy, place)?,
        Item::Read(path) => format!("allow read {}", readable(path, policy, place)?),
        Item::Write(path) => format!("allow write {}", writable(path, policy, place)?),
        Item::Fetch(host) => {
            let known =
                policy.net_allow.iter().find(|pattern| is_host(&pattern.to_ascii_lowercase(), host))?;
            format!("allow fetch {known}")
        }
        Item::Tool | Item::Unclear(_) => return None,
    };
    Some((Verdict::Allow, rule))
}

/// Where a shell's own files are opened, nothing is read or written.
pub(super) fn is_at_hand(path: &str) -> bool {
    FILES.contains(&path)
}

/// Work leaves the machine.
fn pushes(words: &[Word]) -> bool {
    let says = |word: &Word| {
        ["push", "send-pack", "http-push", "dcommit", "send-email"].contains(&word.text.as_str())
    };
    words.first().is_some_and(|program| programs::name(program) == "git") && words.iter().skip(1).any(says)
}

fn runs(part: &Part, policy: &Policy, place: &Place<'_>) -> Option<String> {
    let program = part.words.first()?.text.as_str();
    let words = &part.words[1..];
    match program {
        "cd" => match words {
            [to] if !to.is_open && is_own(&to.text, place) => {
                Some("allow run cd (within the campaign)".to_owned())
            }
            _ => None,
        },
        "git" => {
            let verb = words.first().filter(|word| !word.is_open).map(|word| word.text.as_str())?;
            let names_program = |word: &Word| programs::is_option(&word.text, GIT_OPTIONS);
            let is_plain = GIT.contains(&verb) && !words.iter().any(names_program);
            (is_plain && programs::may_be_covered(&part.words, 2)).then(|| format!("allow run git {verb} *"))
        }
        // Its options say what to run instead of the campaign's recipes.
        "just" if words.first().is_some_and(|word| word.is_open || word.text.starts_with('-')) => None,
        _ => {
            let is_listed = LISTED.contains(&program) || policy.commands.iter().any(|own| own == program);
            (is_listed && programs::may_be_covered(&part.words, 1)).then(|| format!("allow run {program} *"))
        }
    }
}

fn is_own(path: &str, place: &Place<'_>) -> bool {
    place.below(path, place.root).is_some()
}

/// In the campaign, and neither hidden nor what makes the host run code.
fn is_plain_file(path: &str, policy: &Policy, place: &Place<'_>) -> bool {
    let Some(below) = place.below(path, place.root) else { return false };
    !Patterns::new(&policy.hide).hide(Path::new(&below))
}

fn readable(path: &str, policy: &Policy, place: &Place<'_>) -> Option<String> {
    if is_plain_file(path, policy, place) {
        return Some("** (in the campaign)".to_owned());
    }
    let granted = policy.read.iter().chain(&policy.write).find(|granted| is_granted(path, granted, place))?;
    Some(format!("{granted}/**"))
}

fn writable(path: &str, policy: &Policy, place: &Place<'_>) -> Option<String> {
    if is_plain_file(path, policy, place) {
        let below = place.below(path, place.root)?;
        let in_git = below.split('/').any(|part| part.eq_ignore_ascii_case(".git"));
        return (!in_git).then(|| "** (in the campaign)".to_owned());
    }
    let granted = policy.write.iter().find(|granted| is_granted(path, granted, place))?;
    Some(format!("{granted}/**"))
}

fn is_granted(path: &str, granted: &str, place: &Place<'_>) -> bool {
    granted.starts_with('/') && place.below(path, granted).is_some()
}
