//! Keys: what a conversation is about, within its agent.
//!
//! ```text
//! main                                                      the agent's usual conversation
//! adhoc:<ulid>                                              one that nobody named
//! agent:<agent>:main                                        another way to write `main`
//! agent:<agent>:<channel>:<chat type>:<peer>[:topic:<id>]   a chat elsewhere
//! agent:<agent>:subagent:<worker>:<task>                    a helper's, spawned by the agent
//! anything:else                                             what people like to call it
//! ```
//!
//! A key is kept as it was written and found in any case: `Agent:Main:Slack:DM:U1` and `agent:main:slack:dm:u1` are one.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{Name, SessionId};

/// The key of the conversation that is meant when nobody names one.
pub const MAIN: &str = "main";
const ADHOC: &str = "adhoc:";
const AGENT: &str = "agent:";

/// Longest key; ids of chats are long in places.
pub const KEY_BYTES: usize = 512;

/// A conversation's key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Key(String);

/// Why a text is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("a key cannot be empty")]
    Empty,
    #[error("a key has at most {KEY_BYTES} bytes")]
    TooLong,
    #[error("a key is one line of visible text without space around its parts; found {0:?}")]
    BadCharacter(char),
    #[error("a key has no empty parts between its colons")]
    EmptyPart,
    #[error("a key of an agent is agent:NAME:REST, and NAME is a name")]
    BadAgent,
}

/// What kind of chat a key or an entry speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChatType {
    #[serde(alias = "direct")]
    Dm,
    Group,
    #[serde(alias = "room")]
    Channel,
}

impl ChatType {
    pub const fn as_str(self) -> &'static str {
        match self {
            ChatType::Dm => "dm",
            ChatType::Group => "group",
            ChatType::Channel => "channel",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "dm" | "direct" => Some(ChatType::Dm),
            "group" => Some(ChatType::Group),
            "channel" | "room" => Some(ChatType::Channel),
            _ => None,
        }
    }
}

/// A key taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form<'a> {
    Main,
    Adhoc,
    /// A chat elsewhere.
    Chat {
        agent: &'a str,
        channel: &'a str,
        chat_type: ChatType,
        peer: &'a str,
        topic: Option<&'a str>,
    },
    /// A helper's.
    Subagent {
        agent: &'a str,
        worker: &'a str,
        task: Option<&'a str>,
    },
    /// An agent's, of a form of its own.
    Agent {
        agent: &'a str,
        rest: &'a str,
    },
    Plain,
}

impl Key {
    pub fn main() -> Key {
        Key(MAIN.to_owned())
    }

    /// The key of a conversation that nobody named: no other one will ever have it.
    pub fn adhoc(first: SessionId) -> Key {
        Key(format!("{ADHOC}{first}"))
    }

    /// The key of an agent's conversation about work that began elsewhere: one for each chain.
    pub fn handed(chain: SessionId) -> Key {
        Key(format!("handoff:{chain}"))
    }

    /// The key of a helper's conversation.
    pub fn subagent(agent: &Name, worker: &Name, task: &str) -> Key {
        Key(format!("{AGENT}{agent}:subagent:{worker}:{task}"))
    }

    /// Whether it is of a helper that was asked for under this name.
    pub fn is_of_worker(&self, name: &str) -> bool {
        matches!(self.form(), Form::Subagent { worker, .. } if worker.eq_ignore_ascii_case(name))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What keys are compared by.
    pub fn folded(&self) -> String {
        self.0.to_lowercase()
    }

    /// The same key as it is kept for an agent: `agent:<agent>:main` is its `main`.
    #[must_use]
    pub fn of_agent(self, agent: &Name) -> Key {
        match self.form() {
            Form::Agent { agent: named, rest }
                if rest.eq_ignore_ascii_case(MAIN) && named.eq_ignore_ascii_case(agent.as_str()) =>
            {
                Key::main()
            }
            _ => self,
        }
    }

    /// The agent that a key names itself.
    pub fn agent(&self) -> Option<&str> {
        match self.form() {
            Form::Chat { agent, .. } | Form::Subagent { agent, .. } | Form::Agent { agent, .. } => {
                Some(agent)
            }
            Form::Main | Form::Adhoc | Form::Plain => None,
        }
    }

    /// The thread or topic within a chat.
    pub fn topic(&self) -> Option<&str> {
        match self.form() {
            Form::Chat { topic, .. } => topic,
            _ => None,
        }
    }

    /// How many helpers stand above the one whose key this is, itself counted.
    pub fn depth(&self) -> usize {
        self.0.split(':').filter(|part| part.eq_ignore_ascii_case("subagent")).count()
    }

    pub fn form(&self) -> Form<'_> {
        if self.0.eq_ignore_ascii_case(MAIN) {
            return Form::Main;
        }
        if starts_with(&self.0, ADHOC) {
            return Form::Adhoc;
        }
        if !starts_with(&self.0, AGENT) {
            return Form::Plain;
        }
        let Some((agent, rest)) = self.0[AGENT.len()..].split_once(':') else { return Form::Plain };
        let parts: Vec<&str> = rest.split(':').collect();
        match parts.as_slice() {
            [word, worker, task @ ..] if word.eq_ignore_ascii_case("subagent") => {
                let task = (!task.is_empty()).then(|| after(rest, 2));
                Form::Subagent { agent, worker, task }
            }
            [channel, chat, _, ..] => match ChatType::parse(chat) {
                Some(chat_type) => {
                    let (peer, topic) = split_topic(after(rest, 2));
                    Form::Chat { agent, channel, chat_type, peer, topic }
                }
                None => Form::Agent { agent, rest },
            },
            _ => Form::Agent { agent, rest },
        }
    }
}

/// What follows the first `n` colons; the parts before are known to be there.
fn after(text: &str, n: usize) -> &str {
    let mut rest = text;
    for _ in 0..n {
        rest = rest.split_once(':').map_or("", |(_, rest)| rest);
    }
    rest
}

fn split_topic(peer: &str) -> (&str, Option<&str>) {
    let lower = peer.to_ascii_lowercase();
    let found = [":topic:", ":thread:"].into_iter().find_map(|mark| Some((lower.rfind(mark)?, mark.len())));
    match found {
        Some((at, length)) if at > 0 => (&peer[..at], Some(&peer[at + length..])),
        _ => (peer, None),
    }
}

fn starts_with(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

impl FromStr for Key {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        if text.is_empty() {
            return Err(KeyError::Empty);
        }
        if text.len() > KEY_BYTES {
            return Err(KeyError::TooLong);
        }
        if let Some(bad) = text.chars().find(|c| c.is_control() || (c.is_whitespace() && *c != ' ')) {
            return Err(KeyError::BadCharacter(bad));
        }
        if let Some(part) = text.split(':').find(|part| part.trim() != *part) {
            return Err(KeyError::BadCharacter(part.chars().find(|c| c.is_whitespace()).unwrap_or_default()));
        }
        if text.split(':').any(str::is_empty) {
            return Err(KeyError::EmptyPart);
        }
        if starts_with(text, AGENT) {
            let rest = &text[AGENT.len()..];
            let agent = rest.split_once(':').map(|(agent, _)| agent).ok_or(KeyError::BadAgent)?;
            agent.parse::<Name>().map_err(|_| KeyError::BadAgent)?;
        }
        Ok(Key(text.to_owned()))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Key> for String {
    fn from(key: Key) -> String {
        key.0
    }
}

impl TryFrom<String> for Key {
    type Error = KeyError;
    fn try_from(text: String) -> Result<Self, KeyError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(text: &str) -> Key {
        text.parse().unwrap()
    }

    #[test]
    fn keys_are_taken_apart() {
        let chat =
            |agent, channel, chat_type, peer, topic| Form::Chat { agent, channel, chat_type, peer, topic };
        for (text, form) in [
            ("main", Form::Main),
            ("MAIN", Form::Main),
            ("adhoc:ses_01ARZ3NDEKTSV4RRFFQ69G5FAV", Form::Adhoc),
            ("agent:main:discord:dm:user123", chat("main", "discord", ChatType::Dm, "user123", None)),
            ("agent:main:discord:direct:USER", chat("main", "discord", ChatType::Dm, "USER", None)),
            (
                "agent:a:telegram:group:-100:topic:7",
                chat("a", "telegram", ChatType::Group, "-100", Some("7")),
            ),
            ("agent:a:slack:channel:c1:thread:1.2", chat("a", "slack", ChatType::Channel, "c1", Some("1.2"))),
            ("agent:a:matrix:room:!x:server", chat("a", "matrix", ChatType::Channel, "!x:server", None)),
            ("agent:main:main", Form::Agent { agent: "main", rest: "main" }),
            ("agent:main:cron:job:run:1", Form::Agent { agent: "main", rest: "cron:job:run:1" }),
            (
                "agent:main:subagent:worker1:task123",
                Form::Subagent { agent: "main", worker: "worker1", task: Some("task123") },
            ),
            ("agent:main:subagent:0f", Form::Subagent { agent: "main", worker: "0f", task: None }),
            ("nightly:docs", Form::Plain),
        ] {
            assert_eq!(key(text).form(), form, "{text}");
        }
        let agent: Name = "Main".parse().unwrap();
        assert_eq!(key("agent:main:main").of_agent(&agent), Key::main());
        assert_eq!(key("agent:other:main").of_agent(&agent), key("agent:other:main"));
        assert_eq!(key("agent:a:subagent:b:agent:a:subagent:c").depth(), 2);
        assert_eq!(key("Agent:A:Slack:DM:U1").folded(), "agent:a:slack:dm:u1");
    }

    #[test]
    fn a_helper_is_known_by_the_name_it_was_given() {
        let key: Key = "agent:lead:subagent:tester:look-around".parse().unwrap();
        assert!(
            key.is_of_worker("Tester")
                && !key.is_of_worker("look-around")
                && !Key::main().is_of_worker("main")
        );
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let long = "x".repeat(KEY_BYTES + 1);
        for text in [
            "",
            " main",
            "a: b",
            "a\nb",
            "a::b",
            ":a",
            "a:",
            "agent:x",
            "agent:a b:main",
            "agent:..:main",
            &long,
        ] {
            assert!(text.parse::<Key>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_and_keys_survive_their_text(text in ".{0,60}", key in "(agent:)?[a-zA-Z0-9: ._-]{1,40}") {
            for text in [text, key] {
                if let Ok(key) = text.parse::<Key>() {
                    let _ = (key.form(), key.depth(), key.agent(), key.topic());
                    prop_assert_eq!(key.as_str(), text.as_str());
                    prop_assert_eq!(key.to_string().parse::<Key>().unwrap(), key);
                }
            }
        }
    }
}
