//! What is kept of a conversation beside what was said in it: where its messages come from and go to, and how it is to
//! be run. The names are those of OpenClaw's `sessions.json`, so that an entry comes in and goes out as it is.

mod set;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{ChatType, DeliveryContext, Origin, ThreadId};
use crate::{Mode, session::Approve};

pub use set::keys;

/// A conversation's entry. What this version does not know is kept in `other`, untouched: fields, and values of fields that
/// it does know.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, remote = "Self")]
pub struct Entry {
    // Where its messages are delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_channel: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_account_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_thread_id: Option<ThreadId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_context: Option<DeliveryContext>,

    // The group that talks in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_type: Option<ChatType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_channel: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,

    // Who is answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_policy: Option<SendAction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_activation: Option<GroupActivation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_activation_needs_system_intro: Option<bool>,

    // What its next session is started with, instead of the agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_override: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_override: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_profile_override: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_profile_override_source: Option<OverrideSource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_profile_override_compaction_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec_host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec_security: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec_ask: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exec_node: Option<String>,

    // How much of it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbose_level: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_level: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elevated_level: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_usage: Option<ResponseUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tts_auto: Option<String>,

    // What happens to messages while its agent works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_mode: Option<Mode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_debounce_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_cap: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_drop: Option<QueueDrop>,

    // What the agent's program remembers, as it said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_flush_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_flush_compaction_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_sent: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_heartbeat_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_heartbeat_sent_at: Option<i64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cli_session_ids: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claude_cli_session_id: Option<String>,

    // Where it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skills_snapshot: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt_report: Option<Value>,

    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Entry::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <Map<String, Value>>::deserialize(deserializer).map(|row| Entry::of_row(&row))
    }
}

/// Whether messages may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendAction {
    Allow,
    Deny,
}

impl SendAction {
    pub const fn as_str(self) -> &'static str {
        match self {
            SendAction::Allow => "allow",
            SendAction::Deny => "deny",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "allow" => Some(SendAction::Allow),
            "deny" => Some(SendAction::Deny),
            _ => None,
        }
    }
}

/// When an agent answers in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupActivation {
    Mention,
    Always,
}

/// Who chose an override.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverrideSource {
    Auto,
    User,
}

/// What is said of tokens with each answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseUsage {
    On,
    Off,
    Tokens,
    Full,
}

/// What gives way when too many messages wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueDrop {
    Old,
    New,
    Summarize,
}

impl QueueDrop {
    pub const fn as_str(self) -> &'static str {
        match self {
            QueueDrop::Old => "old",
            QueueDrop::New => "new",
            QueueDrop::Summarize => "summarize",
        }
    }
}

impl Entry {
    pub(super) fn is_empty(&self) -> bool {
        *self == Entry::default()
    }

    /// What a row of OpenClaw's says. A value that does not fit what this version knows is kept all the same.
    pub fn of_row(row: &Map<String, Value>) -> Entry {
        if let Ok(entry) = Entry::fitting(row.clone()) {
            return entry;
        }
        let fits = |field: &str, value: &Value| {
            Entry::fitting(Map::from_iter([(field.to_owned(), value.clone())])).is_ok()
        };
        let (fitting, other): (Map<_, _>, Map<_, _>) =
            row.clone().into_iter().partition(|(field, value)| fits(field, value));
        let mut entry = Entry::fitting(fitting).unwrap_or_default();
        entry.other.extend(other);
        entry
    }

    /// The entry of fields all of which are as this version knows them.
    fn fitting(fields: Map<String, Value>) -> Result<Entry, serde_json::Error> {
        Entry::deserialize(Value::Object(fields))
    }

    /// It came from another program's store, which gave it its own id for the dialogue.
    pub fn is_imported(&self) -> bool {
        self.other.contains_key("sessionId")
    }

    /// Who answers its agent's questions, where the conversation says so: `exec_ask` is `always`, `on-miss` or `off`, and
    /// off is that nobody is asked. It never lets pass what a rule does not.
    pub fn approve(&self) -> Option<Approve> {
        match self.exec_ask.as_deref()? {
            "always" => Some(Approve::Ask),
            "on-miss" => Some(Approve::Policy),
            "off" => Some(Approve::Nobody),
            _ => None,
        }
    }

    /// How much its model is to think, in the words that are tried in their order.
    pub fn thinking_levels(&self) -> impl Iterator<Item = &str> {
        self.thinking_level.as_deref().into_iter().chain(self.reasoning_level.as_deref())
    }

    /// Where deliveries go, said once: the structured form and the single fields agree, texts have no space around them,
    /// and what is empty is absent. The structured form wins.
    #[must_use]
    pub fn normalised(mut self) -> Entry {
        fn tidy(text: &mut Option<String>) {
            *text = text.take().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        }
        let mut context = self.delivery_context.take().unwrap_or_default();
        for text in [&mut self.channel, &mut self.last_channel, &mut self.last_to, &mut self.last_account_id]
        {
            tidy(text);
        }
        for text in [&mut context.channel, &mut context.to, &mut context.account_id] {
            tidy(text);
        }
        if matches!(&context.thread_id, Some(ThreadId::Text(text)) if text.trim().is_empty()) {
            context.thread_id = None;
        }
        let lower = |text: Option<String>| text.map(|text| text.to_lowercase());
        self.channel = lower(self.channel.take());
        context.channel = lower(context.channel).or_else(|| lower(self.last_channel.take()));
        context.to = context.to.or_else(|| self.last_to.take());
        context.account_id = context.account_id.or_else(|| self.last_account_id.take());
        context.thread_id = context.thread_id.or_else(|| self.last_thread_id.take());
        self.last_channel = context.channel.clone();
        self.last_to = context.to.clone();
        self.last_account_id = context.account_id.clone();
        self.last_thread_id = context.thread_id.clone();
        self.delivery_context = (context != DeliveryContext::default()).then_some(context);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_comes_out_as_it_went_in() {
        let text = r##"{"channel":"discord","chatType":"group","queueMode":"followup","lastThreadId":42,"origin":{"provider":"discord","nativeId":"x"},"groupChannel":"#general","fastMode":true,"acp":{"a":[1,2]}}"##;
        let entry: Entry = serde_json::from_str(text).unwrap();
        let again: Value = serde_json::to_value(&entry).unwrap();
        assert_eq!(again, serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(entry.other.len(), 2);
    }

    #[test]
    fn deliveries_are_said_once() {
        let text = r#"{"channel":" Slack ","lastTo":"c1","lastThreadId":"","deliveryContext":{"channel":"SLACK","threadId":"9"}}"#;
        let entry = serde_json::from_str::<Entry>(text).unwrap().normalised();
        let context = entry.delivery_context.clone().unwrap();
        assert_eq!(entry.channel.as_deref(), Some("slack"));
        assert_eq!((context.channel.as_deref(), context.to.as_deref()), (Some("slack"), Some("c1")));
        assert_eq!(entry.last_thread_id, Some(ThreadId::Text("9".to_owned())));
        assert_eq!(entry.clone().normalised(), entry, "once is enough");
        assert_eq!(Entry::default().normalised(), Entry::default());
    }
}
