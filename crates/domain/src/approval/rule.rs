//! One rule: `allow|deny|ask` and what it is about. `*` stands for anything within a word; a last word `*` stands for all
//! words that follow, and for none; `**` in a path for any directories.

use std::fmt;

use super::{
    command_line::{Part, Word},
    place::Place,
    programs,
};
use crate::text::one_line;

/// A star, in a pattern whose quotes are gone. No word has this character.
const STAR: char = '\0';

/// What follows from a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    Deny,
    /// A person is asked.
    Ask,
}

impl Verdict {
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Allow => "allow",
            Verdict::Deny => "deny",
            Verdict::Ask => "ask",
        }
    }
}

/// A rule, as it was written and as it is understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub verdict: Verdict,
    text: String,
    subject: Subject,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    Run { words: Vec<String>, rest: bool },
    Read(String),
    Write(String),
    Fetch(String),
    Tool(String),
}

/// One thing that a request comes to, which a rule may be about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    Run(Part),
    Read(String),
    Write(String),
    Fetch(String),
    Tool,
    /// What it comes to cannot be said, and why.
    Unclear(&'static str),
}

impl Item {
    pub(super) const fn is_unclear(&self) -> bool {
        matches!(self, Item::Unclear(_))
    }
}

/// What a rule looks like, for whoever wrote something else.
pub const GRAMMAR: &str = "allow|deny|ask run COMMAND, read PATH, write PATH, fetch HOST or tool NAME";

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Rule {
    pub fn parse(text: &str) -> Result<Rule, String> {
        let text = text.trim();
        if text.chars().any(char::is_control) {
            return Err("a rule is one line".to_owned());
        }
        let mut words = text.splitn(3, ' ');
        let verdict = [Verdict::Allow, Verdict::Deny, Verdict::Ask]
            .into_iter()
            .find(|verdict| words.clone().next() == Some(verdict.as_str()))
            .ok_or_else(|| format!("a rule is {GRAMMAR}"))?;
        words.next();
        let (about, what) = (words.next().unwrap_or_default(), words.next().unwrap_or_default().trim());
        if what.is_empty() {
            return Err(format!("a rule is {GRAMMAR}"));
        }
        let subject = match about {
            "run" => command(what, verdict)?,
            "read" => Subject::Read(path(what)?),
            "write" => Subject::Write(path(what)?),
            "fetch" => match crate::policy::host_fault(what) {
                None => Subject::Fetch(what.to_ascii_lowercase()),
                Some(fault) => return Err(fault),
            },
            "tool" if !what.contains(char::is_whitespace) => Subject::Tool(what.to_owned()),
            "tool" => return Err("a tool's name is one word".to_owned()),
            other => {
                return Err(format!("\"{}\" is none of run, read, write, fetch, tool", one_line(other, 20)));
            }
        };
        Ok(Rule { verdict, text: text.to_owned(), subject })
    }

    /// Whether the rule is about this. To allow, it must be so whatever the shell makes of the words; to deny or to ask, it
    /// is enough that it may be.
    pub(super) fn is_about(&self, item: &Item, tool: &str, place: &Place<'_>) -> bool {
        let certain = self.verdict == Verdict::Allow;
        match (&self.subject, item) {
            // What a tool is about to do is known better than by its name, where it is known.
            (Subject::Tool(name), item) => name == tool && (!certain || *item == Item::Tool),
            (Subject::Run { words, rest }, Item::Run(part)) => fits(words, *rest, &part.words, certain),
            (Subject::Read(pattern), Item::Read(path)) | (Subject::Write(pattern), Item::Write(path)) => {
                place.is_path_in(path, pattern)
            }
            (Subject::Fetch(pattern), Item::Fetch(host)) => is_host(pattern, host),
            _ => false,
        }
    }
}

/// Whether a host is one that a pattern of `net.allow` or of a rule means.
pub(super) fn is_host(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix("*.") {
        Some(parent) => host.strip_suffix(parent).is_some_and(|left| left.len() > 1 && left.ends_with('.')),
        None => pattern == host,
    }
}

fn path(text: &str) -> Result<String, String> {
    let is_plain = !text.starts_with('~') && !text.split('/').any(|part| part == "..");
    if is_plain {
        Ok(text.to_owned())
    } else {
        Err("a path is absolute or below the campaign, and has no \"..\"".to_owned())
    }
}

/// Reads the words of a command that a rule is about; quotes make a star a star.
fn command(text: &str, verdict: Verdict) -> Result<Subject, String> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some(end) if end == c => break,
                        Some('\\') if c == '"' => word.push(chars.next().ok_or("a quote is not closed")?),
                        Some(inner) => word.push(inner),
                        None => return Err("a quote is not closed".to_owned()),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next().ok_or("a \\ has nothing behind it")?),
            '*' => word.get_or_insert_default().push(STAR),
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' => {
                return Err(format!("a rule is about one program; {c} has to be quoted"));
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    let rest = words.len() > 1 && words.last().is_some_and(|last| *last == STAR.to_string());
    if rest {
        words.pop();
    }
    match words.first() {
        Some(program) if program.contains(STAR) && verdict == Verdict::Allow => {
            Err("a rule that allows names its program; ostler run --approve all asks nobody".to_owned())
        }
        Some(program) if program.is_empty() || program.contains('=') => Err("that is no program".to_owned()),
        Some(_) => Ok(Subject::Run { words, rest }),
        None => Err(format!("a rule is {GRAMMAR}")),
    }
}

fn fits(pattern: &[String], rest: bool, words: &[Word], certain: bool) -> bool {
    for (n, wanted) in pattern.iter().enumerate() {
        let Some(word) = words.get(n) else { return false };
        if word.is_open {
            // It may become anything, and any number of words.
            return !certain;
        }
        // Who forbids a program forbids it wherever it lies; who allows one means that one.
        let is_program = n == 0 && !certain;
        let base = || word.text.rsplit('/').next().unwrap_or_default();
        let is_meant = matches(wanted, &word.text) || (is_program && matches(wanted, base()));
        if !is_meant {
            return false;
        }
    }
    let further = &words[pattern.len()..];
    if !certain {
        return rest || further.iter().all(|word| word.is_open);
    }
    let written = pattern.iter().take_while(|word| !word.contains(STAR)).count();
    let is_exact = further.is_empty() && written == pattern.len();
    (rest || further.is_empty()) && (is_exact && !rest || programs::may_be_covered(words, written))
}

/// Whether a word fits a pattern with stars.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split(STAR);
    let first = pieces.next().unwrap_or_default();
    let Some(mut left) = text.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return left.is_empty() };
    for piece in pieces {
        match left.find(piece) {
            Some(at) => left = &left[at + piece.len()..],
            None => return false,
        }
    }
    left.ends_with(last)
}

/// A pattern of a path's part, in which stars are typed.
pub(super) fn matches_typed(pattern: &str, text: &str) -> bool {
    matches(&pattern.replace('*', &STAR.to_string()), text)
}

/// A word as a rule has to name it, so that it means this word and no other.
pub(super) fn quoted(word: &str) -> Option<String> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%^#!?[]{}~".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return Some(word.to_owned());
    }
    if word.chars().any(char::is_control) {
        return None;
    }
    match word.contains('\'') {
        false => Some(format!("'{word}'")),
        true => Some(format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))),
    }
}
