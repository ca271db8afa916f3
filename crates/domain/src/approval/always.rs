//! `allow --always`: the rules that would have allowed a request, no wider than it.

use super::{
    Place, Rule, Verdict, looked_at,
    rule::{Item, quoted},
};
use crate::{event::Action, policy::Policy};

/// A rule to be stored, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRule {
    pub text: String,
    /// Before this one, from 1, which would otherwise go on asking; absent: behind all others.
    pub before: Option<u32>,
}

impl NewRule {
    /// The setting of a campaign that stores it.
    pub fn setting(&self) -> String {
        match self.before {
            Some(place) => format!("approve.rule+={place} {}", self.text),
            None => format!("approve.rule+={}", self.text),
        }
    }
}

/// The rules that allow what an agent wants from now on, in the order in which they are to be stored. None are needed
/// where it is allowed already. Refused, with the reason, where no rule could mean this and nothing else.
pub fn always(
    policy: &Policy,
    place: &Place<'_>,
    tool: &str,
    action: &Action,
) -> Result<Vec<NewRule>, String> {
    let mut made: Vec<NewRule> = Vec::new();
    for found in looked_at(policy, place, tool, action) {
        if found.verdict == Verdict::Allow {
            continue;
        }
        let text = format!("allow {}", subject(&found.item, tool, place)?);
        Rule::parse(&text).map_err(|fault| format!("{text} is no rule: {fault}"))?;
        let before = found.rule.and_then(|rule| rule.number);
        if !made.iter().any(|new| new.text == text) {
            made.push(NewRule { text, before });
        }
    }
    // From the end on, so that none moves the place of another.
    made.sort_by_key(|new| std::cmp::Reverse(new.before.unwrap_or(u32::MAX)));
    Ok(made)
}

fn subject(item: &Item, tool: &str, place: &Place<'_>) -> Result<String, String> {
    let unnamed = || "a name in it cannot be written in a rule".to_owned();
    Ok(match item {
        Item::Run(part) => {
            if part.words.iter().any(|word| word.is_open) {
                return Err("what the shell makes of it is known only when it runs".to_owned());
            }
            let words: Option<Vec<String>> = part.words.iter().map(|word| quoted(&word.text)).collect();
            format!("run {}", words.ok_or_else(unnamed)?.join(" "))
        }
        Item::Read(path) => format!("read {}", place.named(path).ok_or_else(unnamed)?),
        Item::Write(path) => format!("write {}", place.named(path).ok_or_else(unnamed)?),
        Item::Fetch(host) => format!("fetch {host}"),
        Item::Tool => format!("tool {tool}"),
        Item::Unclear(why) => return Err((*why).to_owned()),
    })
}
