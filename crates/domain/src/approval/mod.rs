//! Rules that answer agents who ask for leave: a campaign's own, in their order, then those that are built in.
//!
//! This is policy and record, never the boundary, which is the sandbox. What an agent wants is taken apart first: every
//! program of a command line, every file that is opened for it. Each must be allowed, or a person is asked; one that is
//! denied denies all.

mod always;
mod built_in;
mod command_line;
mod place;
mod programs;
mod rule;

use serde::{Deserialize, Serialize};

use crate::{event::Action, policy::Policy, text::one_line};

pub use always::{NewRule, always};
pub use place::Place;
pub use rule::{GRAMMAR, Rule, Verdict};

use rule::Item;

/// How much of a request a reason shows.
const SHOWN: usize = 100;

/// A rule that decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// Its place in the campaign's list, from 1; absent for what is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    pub text: String,
}

impl std::fmt::Display for Applied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.number {
            Some(number) => write!(f, "rule {number}: {}", self.text),
            None => write!(f, "built in: {}", self.text),
        }
    }
}

/// What the rules say of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: Verdict,
    /// Those that decided: all of them where all were needed to allow it.
    pub rules: Vec<Applied>,
    /// In words.
    pub why: String,
}

/// What the rules say of one part of a request.
struct Found {
    item: Item,
    verdict: Verdict,
    rule: Option<Applied>,
}

/// Why a session asks that goes by no rule.
pub const NO_RULES: &str = "a person answers everything (--approve ask)";

/// Whether whoever asks so goes by rules, so that one could answer the like from now on.
pub fn goes_by_rules(why: &str) -> bool {
    why != NO_RULES
}

/// Decides what an agent wants to do with a tool.
pub fn judge(policy: &Policy, place: &Place<'_>, tool: &str, action: &Action) -> Judgement {
    let found = looked_at(policy, place, tool, action);
    let first = |verdict: Verdict| found.iter().find(|found| found.verdict == verdict);
    if let Some(decisive) = first(Verdict::Deny).or_else(|| first(Verdict::Ask)) {
        let why = match &decisive.rule {
            Some(rule) => rule.to_string(),
            None => unruled(&decisive.item, tool, place),
        };
        return Judgement { verdict: decisive.verdict, rules: decisive.rule.iter().cloned().collect(), why };
    }
    let mut rules: Vec<Applied> = Vec::new();
    for rule in found.into_iter().filter_map(|found| found.rule) {
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    let why = rules.iter().map(Applied::to_string).collect::<Vec<_>>().join("; ");
    Judgement { verdict: Verdict::Allow, rules, why }
}

/// Whether an agent must ask for leave that would go on without by its own lights: a rule denies a part of it or wants a
/// person for it, or could, where it cannot be said what it comes to.
pub fn must_ask(policy: &Policy, place: &Place<'_>, tool: &str, action: &Action) -> bool {
    let allows = |text: &String| Rule::parse(text).is_ok_and(|rule| rule.verdict == Verdict::Allow);
    let some_rule_forbids = !policy.approve_rule.iter().all(allows);
    looked_at(policy, place, tool, action).iter().any(|found| match found.verdict {
        Verdict::Allow => false,
        Verdict::Deny => true,
        Verdict::Ask => found.rule.is_some() || (some_rule_forbids && found.item.is_unclear()),
    })
}

fn looked_at(policy: &Policy, place: &Place<'_>, tool: &str, action: &Action) -> Vec<Found> {
    let rules: Vec<_> = policy.approve_rule.iter().map(|text| Rule::parse(text)).collect();
    let find = |item: Item| {
        for (n, rule) in rules.iter().enumerate() {
            let applied = |text: &str| {
                Some(Applied {
                    number: Some(u32::try_from(n + 1).unwrap_or(u32::MAX)),
                    text: text.to_owned(),
                })
            };
            match rule {
                Ok(rule) if rule.is_about(&item, tool, place) => {
                    return Found { item, verdict: rule.verdict, rule: applied(&rule.to_string()) };
                }
                Ok(_) => {}
                // Written by a newer version: it may deny what a later one allows.
                Err(_) => {
                    let rule = applied(&policy.approve_rule[n]);
                    return Found { item, verdict: Verdict::Ask, rule };
                }
            }
        }
        match built_in::decide(&item, policy, place) {
            Some((verdict, text)) => Found { item, verdict, rule: Some(Applied { number: None, text }) },
            None => Found { item, verdict: Verdict::Ask, rule: None },
        }
    };
    items(action).into_iter().map(find).collect()
}

/// What a request comes to; never nothing.
fn items(action: &Action) -> Vec<Item> {
    const NO_PATH: Item = Item::Unclear("it does not say which files");
    let items: Vec<Item> = match action {
        Action::Run { command } if command.is_empty() => {
            vec![Item::Unclear("it does not say what it would run")]
        }
        Action::Run { command } => match command_line::parts(command) {
            Err(command_line::Unclear(why)) => vec![Item::Unclear(why)],
            Ok(parts) => parts.into_iter().flat_map(opened).collect(),
        },
        Action::Read { paths } => paths.iter().cloned().map(Item::Read).collect(),
        Action::Write { paths } => paths.iter().cloned().map(Item::Write).collect(),
        Action::Fetch { url } => match host(url) {
            Some(host) => vec![Item::Fetch(host)],
            None => vec![Item::Unclear("it does not say plainly which host")],
        },
        Action::Other => vec![Item::Tool],
    };
    if items.is_empty() { vec![NO_PATH] } else { items }
}

/// A program, and the files that the shell opens for it.
fn opened(part: command_line::Part) -> Vec<Item> {
    const OPEN: Item = Item::Unclear("which file it opens is known only when it runs");
    let file = |word: &command_line::Word, item: fn(String) -> Item| match word.is_open {
        true => Some(OPEN),
        false if built_in::is_at_hand(&word.text) => None,
        false => Some(item(word.text.clone())),
    };
    let reads = part.reads.iter().filter_map(|word| file(word, Item::Read));
    let writes = part.writes.iter().filter_map(|word| file(word, Item::Write));
    let files: Vec<Item> = reads.chain(writes).collect();
    std::iter::once(Item::Run(part)).chain(files).collect()
}

/// The host of an address, where there is no doubt which one is meant.
fn host(url: &str) -> Option<String> {
    let lower = url.to_ascii_lowercase();
    let rest = lower.strip_prefix("https://").or_else(|| lower.strip_prefix("http://"))?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (host, port) = authority.split_once(':').map_or((authority, ""), |(host, port)| (host, port));
    let is_plain = port.chars().all(|c| c.is_ascii_digit()) && crate::policy::host_fault(host).is_none();
    (is_plain && !host.starts_with('*')).then(|| host.to_owned())
}

/// Why a person is asked although no rule says so.
fn unruled(item: &Item, tool: &str, place: &Place<'_>) -> String {
    let outside = |path: &str| match place.below(path, place.root) {
        Some(_) => "no rule allows",
        None => "outside the campaign:",
    };
    let line = match item {
        Item::Run(part) => {
            let words: Vec<&str> = part.words.iter().map(|word| word.text.as_str()).collect();
            format!("no rule allows {}", words.join(" "))
        }
        Item::Read(path) => format!("{} read {path}", outside(path)),
        Item::Write(path) => format!("{} write {path}", outside(path)),
        Item::Fetch(host) => format!("no rule allows {host}"),
        Item::Tool => format!("no rule allows the tool {tool}"),
        Item::Unclear(why) => (*why).to_owned(),
    };
    one_line(&line, SHOWN)
}
