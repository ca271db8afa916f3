//! What was said between a person, the model and the tools: pure, and folded from the entries of a journal.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One change to a conversation, as it is kept on disk. Old files must stay readable: fields are only added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Entry {
    Said(Item),
    /// The outputs of all results before this item were dropped, to save room.
    Dropped {
        before: usize,
    },
    /// Everything but the last `kept` items was replaced by this summary.
    Summarised {
        text: String,
        kept: usize,
    },
    /// From here on another model answers.
    Model {
        model: String,
    },
}

/// One thing that was said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub(super) enum Item {
    User { text: String },
    Model(Reply),
    Tool(ToolAnswer),
}

/// A complete reply of the model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Reply {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) text: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) thinking: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) calls: Vec<Call>,
    #[serde(default)]
    pub(super) finish: Finish,
    /// The items of the Responses API as they came: they must go back unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) raw: Vec<Value>,
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Finish {
    #[default]
    Done,
    /// The reply was too long for the model's limit.
    Truncated,
    /// A filter of the server stepped in.
    Filtered,
}

/// A tool that the model wants run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Call {
    /// The server's name for it, unique within its reply.
    pub(super) id: String,
    pub(super) name: String,
    /// JSON, if the model wrote JSON.
    pub(super) arguments: String,
}

/// What the model is told about a call. Every call has exactly one, in order, before anything else is said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ToolAnswer {
    pub(super) id: String,
    pub(super) ok: bool,
    pub(super) output: String,
}

/// What stands in place of an output that was dropped.
const DROPPED: &str = "[output dropped to save room]";

/// A conversation as it stands.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Conversation {
    pub(super) items: Vec<Item>,
    /// Calls so far, also of items that are gone: their numbers are never used again.
    pub(super) calls: u64,
    pub(super) model: Option<String>,
}

impl Conversation {
    pub(super) fn fold(entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut conversation = Self::default();
        for entry in entries {
            conversation.apply(entry);
        }
        conversation
    }

    pub(super) fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::Said(item) => {
                if let Item::Model(reply) = &item {
                    self.calls += reply.calls.len() as u64;
                }
                self.items.push(item);
            }
            Entry::Dropped { before } => {
                for item in self.items.iter_mut().take(before) {
                    if let Item::Tool(answer) = item
                        && answer.output.len() > DROPPED.len()
                    {
                        DROPPED.clone_into(&mut answer.output);
                    }
                }
            }
            Entry::Summarised { text, kept } => {
                let kept = self.items.split_off(self.items.len().saturating_sub(kept));
                self.items = vec![Item::User { text }];
                self.items.extend(kept);
            }
            Entry::Model { model } => self.model = Some(model),
        }
    }

    /// The calls of the last reply that nobody has answered, in order.
    pub(super) fn unanswered(&self) -> Vec<Call> {
        let Some(at) = self.items.iter().rposition(|item| matches!(item, Item::Model(_))) else {
            return Vec::new();
        };
        let Item::Model(reply) = &self.items[at] else { return Vec::new() };
        let answered = self.items[at + 1..].iter().filter(|item| matches!(item, Item::Tool(_))).count();
        reply.calls.iter().skip(answered).cloned().collect()
    }

    /// Answers for all calls that have none: without them the next request is refused.
    pub(super) fn fill_in(&self, why: &str) -> Vec<Entry> {
        self.unanswered()
            .into_iter()
            .map(|call| {
                Entry::Said(Item::Tool(ToolAnswer { id: call.id, ok: false, output: why.to_owned() }))
            })
            .collect()
    }

    /// About how many bytes the conversation has; a token is about four.
    pub(super) fn bytes(&self) -> usize {
        self.items.iter().map(Item::bytes).sum()
    }

    /// The first of these steps that brings the conversation below a number of bytes: dropping outputs, oldest first.
    /// Nothing when all outputs but those of the last round are not enough.
    pub(super) fn dropping(&self, to: usize) -> Option<Entry> {
        let last_reply = self.items.iter().rposition(|item| matches!(item, Item::Model(_)))?;
        let mut left = self.bytes();
        for (at, item) in self.items.iter().enumerate().take(last_reply) {
            let Item::Tool(answer) = item else { continue };
            left -= answer.output.len().saturating_sub(DROPPED.len());
            if left <= to {
                return Some(Entry::Dropped { before: at + 1 });
            }
        }
        None
    }

    /// How many items at the end are a prompt that no model has seen: a summary leaves them as they are.
    pub(super) fn unseen(&self) -> usize {
        self.items.iter().rev().take_while(|item| matches!(item, Item::User { .. })).count()
    }
}

impl Item {
    fn bytes(&self) -> usize {
        match self {
            Item::User { text } => text.len(),
            Item::Tool(answer) => answer.output.len() + answer.id.len(),
            Item::Model(reply) if !reply.raw.is_empty() => {
                reply.raw.iter().map(|item| item.to_string().len()).sum()
            }
            Item::Model(reply) => {
                reply.text.len()
                    + reply.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum::<usize>()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> Call {
        Call { id: id.into(), name: "read_file".into(), arguments: "{}".into() }
    }

    fn user(text: &str) -> Entry {
        Entry::Said(Item::User { text: text.into() })
    }

    fn asks(ids: &[&str]) -> Entry {
        Entry::Said(Item::Model(Reply { calls: ids.iter().map(|id| call(id)).collect(), ..Reply::default() }))
    }

    fn answer(id: &str, output: &str) -> Entry {
        Entry::Said(Item::Tool(ToolAnswer { id: id.into(), ok: true, output: output.into() }))
    }

    #[test]
    fn every_call_gets_an_answer() {
        let mut talk = Conversation::fold([user("x"), asks(&["a", "b", "c"]), answer("a", "1")]);
        assert_eq!(talk.unanswered(), [call("b"), call("c")]);
        for entry in talk.fill_in("interrupted") {
            talk.apply(entry);
        }
        assert!(talk.unanswered().is_empty());
        assert!(talk.fill_in("interrupted").is_empty());
        assert_eq!((talk.calls, talk.items.len()), (3, 5));
    }

    #[test]
    fn old_outputs_are_dropped_first_and_the_last_round_never() {
        let long = "x".repeat(1000);
        let mut talk = Conversation::fold([
            user("x"),
            asks(&["a"]),
            answer("a", &long),
            asks(&["b"]),
            answer("b", &long),
            asks(&["c"]),
            answer("c", &long),
        ]);
        let drop = talk.dropping(2500).unwrap();
        assert_eq!(drop, Entry::Dropped { before: 3 });
        talk.apply(drop);
        assert!(talk.bytes() < 2500);
        assert_eq!(talk.dropping(1500), Some(Entry::Dropped { before: 5 }));
        assert_eq!(talk.dropping(500), None);
    }

    #[test]
    fn a_summary_replaces_all_but_the_new_prompt() {
        let mut talk = Conversation::fold([user("old"), asks(&["a"]), answer("a", "1"), user("new")]);
        assert_eq!(talk.unseen(), 1);
        talk.apply(Entry::Summarised { text: "so far".into(), kept: 1 });
        assert_eq!(talk.items, [Item::User { text: "so far".into() }, Item::User { text: "new".into() }]);
        assert_eq!(talk.calls, 1, "numbers of calls go on");
    }

    #[test]
    fn entries_are_read_back_as_they_were_written() {
        for entry in [
            user("a"),
            asks(&["a"]),
            answer("a", "b"),
            Entry::Dropped { before: 3 },
            Entry::Summarised { text: "s".into(), kept: 1 },
            Entry::Model { model: "m".into() },
        ] {
            let text = serde_json::to_string(&entry).unwrap();
            assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry, "{text}");
        }
    }
}
