//! Where a message comes from, and what a conversation notes of that: where answers go, and what it began with.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ChatType, Entry};

/// A thread's or topic's id: chats have numbers and texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ThreadId {
    Number(i64),
    Text(String),
}

impl std::fmt::Display for ThreadId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ThreadId::Number(number) => number.fmt(f),
            ThreadId::Text(text) => f.write_str(text),
        }
    }
}

/// Where something is delivered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeliveryContext {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<ThreadId>,
}

/// The first message's surroundings.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Origin {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_type: Option<ChatType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<ThreadId>,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Where a message comes from, in a chat elsewhere. What nobody said stays as the conversation has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inbound {
    pub channel: Option<String>,
    /// Whom answers go to.
    pub to: Option<String>,
    pub account_id: Option<String>,
    pub thread_id: Option<ThreadId>,
    /// Who wrote it.
    pub from: Option<String>,
    /// Where they wrote it: web, mobile, …
    pub surface: Option<String>,
    pub chat_type: Option<ChatType>,
}

impl Entry {
    /// The entry after a message from there: answers go where it came from, and the first one is its origin.
    #[must_use]
    pub fn reached_from(&self, inbound: &Inbound) -> Entry {
        let before = self.clone().normalised();
        let was = before.delivery_context.clone().unwrap_or_default();
        let says_where = inbound.channel.is_some() || inbound.to.is_some();
        // Another channel or another recipient is another place: its account and thread are not those of the old one.
        let differs = |new: &Option<String>, old: &Option<String>| new.is_some() && new != old;
        let is_elsewhere =
            says_where && (differs(&lower(&inbound.channel), &was.channel) || differs(&inbound.to, &was.to));
        let kept = if is_elsewhere { DeliveryContext::default() } else { was.clone() };
        let context = DeliveryContext {
            channel: inbound.channel.clone().or(was.channel),
            to: inbound.to.clone().or(was.to),
            account_id: inbound.account_id.clone().or(kept.account_id),
            thread_id: inbound.thread_id.clone().or(kept.thread_id),
        };
        let mut entry = before;
        entry.last_channel = None;
        entry.last_to = None;
        entry.last_account_id = None;
        entry.last_thread_id = None;
        entry.delivery_context = Some(context);
        entry.channel = entry.channel.or_else(|| inbound.channel.clone());
        entry.chat_type = entry.chat_type.or(inbound.chat_type);
        if entry.origin.is_none() && *inbound != Inbound::default() {
            entry.origin = Some(Origin {
                provider: lower(&inbound.channel),
                surface: inbound.surface.clone(),
                chat_type: inbound.chat_type,
                from: inbound.from.clone(),
                to: inbound.to.clone(),
                account_id: inbound.account_id.clone(),
                thread_id: inbound.thread_id.clone(),
                ..Origin::default()
            });
        }
        entry.normalised()
    }
}

fn lower(text: &Option<String>) -> Option<String> {
    text.as_ref().map(|text| text.trim().to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(channel: &str, to: &str) -> Inbound {
        let some = |text: &str| Some(text.to_owned());
        Inbound { channel: some(channel), to: some(to), ..Inbound::default() }
    }

    #[test]
    fn answers_go_where_the_last_message_came_from_and_the_first_is_the_origin() {
        let first = Inbound {
            account_id: Some("work".to_owned()),
            thread_id: Some(ThreadId::Text("7".to_owned())),
            from: Some("ann".to_owned()),
            surface: Some("mobile".to_owned()),
            chat_type: Some(ChatType::Dm),
            ..from(" Slack ", "u1")
        };
        let entry = Entry::default().reached_from(&first);
        let context = entry.delivery_context.clone().unwrap();
        assert_eq!((context.channel.as_deref(), context.to.as_deref()), (Some("slack"), Some("u1")));
        assert_eq!((entry.last_channel.as_deref(), entry.last_to.as_deref()), (Some("slack"), Some("u1")));
        let origin = entry.origin.clone().unwrap();
        assert_eq!((origin.provider.as_deref(), origin.from.as_deref()), (Some("slack"), Some("ann")));
        assert_eq!(entry.chat_type, Some(ChatType::Dm));
        let again = entry.reached_from(&from("slack", "u1"));
        assert_eq!(again, entry, "what nobody said stays");
        let elsewhere = entry.reached_from(&from("discord", "g2"));
        let context = elsewhere.delivery_context.clone().unwrap();
        assert_eq!((context.channel.as_deref(), context.to.as_deref()), (Some("discord"), Some("g2")));
        assert_eq!((context.account_id, context.thread_id), (None, None), "those were of the other place");
        assert_eq!(elsewhere.origin, entry.origin);
        assert_eq!(elsewhere.channel.as_deref(), Some("slack"), "whose conversation it is does not change");
    }

    #[test]
    fn a_message_from_nowhere_changes_nothing() {
        assert_eq!(Entry::default().reached_from(&Inbound::default()), Entry::default());
    }
}
