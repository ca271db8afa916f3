//! Handing work on: what the next session is told, so that nothing of the last one's is lost.
//!
//! The agent says what it thinks matters, and the record fills in the rest: what was asked, done, changed, tried and left
//! open. A pack is made once, recorded with the session that gets it, and never again read from the old one's provider.

mod gather;

use serde::{Deserialize, Serialize};

use crate::{
    Name, SessionId,
    event::By,
    limits::{CALL_TEXT_BYTES, NAME_BYTES},
    text::one_line,
};

pub use gather::{gather, written};

/// How much of each list is told; the record has the rest.
const MOST_ITEMS: usize = 40;
/// And of each entry of one.
const MOST_CHARS: usize = 600;
/// How many of the last turns are told, and how much of each text of theirs.
const LAST_TURNS: usize = 4;
const TURN_CHARS: usize = 1_500;

/// To whom work is handed: everything that is not said stays as it was.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct To {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// A registered agent of the campaign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Name>,
}

impl To {
    /// Reads `codex`, `codex/gpt-5.5`, `agent:reviewer`, or the name of an agent where `is_agent` says that it is one.
    pub fn parse(text: &str, is_agent: impl Fn(&str) -> bool) -> Result<To, String> {
        let text = text.trim();
        let agent = |name: &str| {
            let agent = name.parse().map_err(|_| format!("\"{}\" is no agent's name", one_line(name, 64)))?;
            Ok(To { agent: Some(agent), ..To::default() })
        };
        if let Some(name) = text.strip_prefix("agent:") {
            return agent(name);
        }
        if is_agent(text) {
            return agent(text);
        }
        let (provider, model) = match text.split_once('/') {
            Some((provider, model)) => (provider, Some(model)),
            None => (text, None),
        };
        if provider.is_empty() || model.is_some_and(str::is_empty) || text.contains(char::is_whitespace) {
            return Err("say PROVIDER, PROVIDER/MODEL or agent:NAME".to_owned());
        }
        Ok(To { provider: Some(provider.to_owned()), model: model.map(str::to_owned), agent: None })
    }

    pub fn is_same(&self) -> bool {
        *self == To::default()
    }

    /// As it is typed; empty for whoever has the work now.
    pub fn words(&self) -> String {
        match self {
            To { agent: Some(agent), .. } => format!("agent:{agent}"),
            To { provider: Some(provider), model: Some(model), .. } => format!("{provider}/{model}"),
            To { provider: Some(provider), .. } => provider.clone(),
            To { model: Some(model), .. } => model.clone(),
            _ => String::new(),
        }
    }
}

/// What whoever hands work on says about it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Wish {
    #[serde(skip_serializing_if = "To::is_same")]
    pub to: To,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decided: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<String>,
}

impl Wish {
    /// Why it is not taken; none when it is.
    pub fn fault(&self) -> Option<String> {
        let lists = [&self.done, &self.decided, &self.open];
        let texts = lists.into_iter().flatten().chain([&self.note]);
        if texts.map(String::len).sum::<usize>() > CALL_TEXT_BYTES {
            return Some(format!("what is said with a handoff has at most {CALL_TEXT_BYTES} bytes"));
        }
        let names = [&self.to.provider, &self.to.model];
        if names.into_iter().flatten().any(|name| name.trim().is_empty() || name.len() > 4 * NAME_BYTES) {
            return Some("that is no provider or model".to_owned());
        }
        None
    }
}

/// Somebody asked for the work to be handed on: the session ends, and another one goes on with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoffRequested {
    #[serde(flatten)]
    pub wish: Wish,
    pub by: By,
}

/// What a session was handed, recorded with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pack {
    pub from: SessionId,
    /// Why the last session no longer has the work, in words.
    pub why: String,
    #[serde(flatten)]
    pub wish: Wish,
    #[serde(flatten)]
    pub known: Known,
    /// What was wanted and could not be, so that somebody else got the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
}

/// What the record knows of a session's work.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Known {
    /// What it was first asked for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub asked: String,
    /// Steps and plans that were finished.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finished: Vec<String>,
    /// Steps that were begun, and messages that nobody answered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<String>,
    /// Files that were written, by tools and by whatever they ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Commits that were made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<String>,
    /// Test commands, and how they came out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<TestRun>,
    /// The end of the dialogue, the newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub last_turns: Vec<Said>,
}

/// What a session made of its tree, as its repository and its snapshots have it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Made {
    /// Files that are not as it found them, from the tree's root.
    pub files: Vec<String>,
    /// Oldest first.
    pub commits: Vec<String>,
}

/// A test command that was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestRun {
    pub command: String,
    /// None where it did not come to an end.
    pub success: Option<bool>,
}

/// What was said in a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub told: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answered: String,
}

impl Pack {
    /// What the next agent is told first.
    pub fn prompt(&self) -> String {
        let Self { wish, known, .. } = self;
        let mut text = String::from(
            "You take over work that another session has begun. What follows is a record of it; look at the files \
             themselves before you rely on it.\n",
        );
        let mut part = |title: &str, body: &str| {
            if !body.trim().is_empty() {
                text.push_str(&format!("\n## {title}\n{}\n", body.trim()));
            }
        };
        part("Asked for", &known.asked);
        part("Note from whoever hands it to you", &wish.note);
        part("Done", &list(wish.done.iter().chain(&known.finished)));
        part("Decided", &list(&wish.decided));
        part("Open", &list(wish.open.iter().chain(&known.unfinished)));
        part("Files written", &list(&known.files));
        part("Commits", &list(&known.commits));
        let tests = known.tests.iter().map(|test| {
            let how = match test.success {
                Some(true) => "passed",
                Some(false) => "failed",
                None => "did not end",
            };
            format!("`{}` {how}", test.command)
        });
        part("Tests", &list(&tests.collect::<Vec<_>>()));
        let turns = known.last_turns.iter().map(|said| {
            let told = if said.told.is_empty() { String::new() } else { format!("Told: {}\n", said.told) };
            let answered = if said.answered.is_empty() {
                String::new()
            } else {
                format!("Answered: {}\n", said.answered)
            };
            format!("{told}{answered}")
        });
        part("The last turns, the newest last", &turns.collect::<Vec<_>>().join("\n"));
        part("Why you have it", &self.why);
        text.push_str("\nGo on with what is open.\n");
        text
    }
}

fn list<'a>(items: impl IntoIterator<Item = &'a String>) -> String {
    items
        .into_iter()
        .map(|item| format!("- {}", item.trim().replace('\n', "\n  ")))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_meant_is_read_as_it_is_typed() {
        let is_agent = |name: &str| name == "reviewer";
        for text in ["codex", "codex/gpt-5.5", "agent:reviewer", "acp:opencode/x/y"] {
            assert_eq!(To::parse(text, is_agent).unwrap().words(), text);
        }
        assert_eq!(To::parse("reviewer", is_agent).unwrap().words(), "agent:reviewer");
        for wrong in ["", "/x", "codex/", "two words", "agent:", "agent:a b"] {
            assert!(To::parse(wrong, |_| false).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_pack_tells_what_is_known_and_nothing_of_what_is_not() {
        let pack = Pack {
            from: SessionId::new(crate::Time::from_micros(1), 1),
            why: "It ran out of context.".to_owned(),
            wish: Wish {
                note: "mind the cache".to_owned(),
                open: vec!["the docs".to_owned()],
                ..Wish::default()
            },
            known: Known {
                asked: "fix the login".to_owned(),
                tests: vec![TestRun { command: "cargo test".to_owned(), success: Some(false) }],
                ..Known::default()
            },
            instead: None,
        };
        let text = pack.prompt();
        for part in ["## Asked for\nfix the login", "mind the cache", "- the docs", "- `cargo test` failed"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("## Commits") && !text.contains("## Decided"), "{text}");
        let again: Pack = serde_json::from_str(&serde_json::to_string(&pack).unwrap()).unwrap();
        assert_eq!(again, pack);
    }
}
