//! What is kept of a conversation beside what was said in it: where its messages come from and go to, and how it is to
//! be run. The names are those of OpenClaw's `sessions.json`, so that an entry comes in and goes out as it is.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{ChatType, DeliveryContext, JSON_BYTES, Origin, ThreadId};
use crate::{
    Mode,
    session::Approve,
    setting::{Assignment, Change, MOST_CHARS, SettingFault},
    text::one_line,
};

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

/// What a key of an entry takes.
#[derive(Clone, Copy)]
enum Takes {
    Text,
    Number,
    Switch,
    Json,
    Word(&'static [&'static str]),
}

/// The keys that a person may set, as they are typed; in the file they are in camel case.
const SETTABLE: &[(&str, Takes)] = &[
    ("account_id", Takes::Text),
    ("auth_profile", Takes::Text),
    ("auth_profile_override_compaction_count", Takes::Number),
    ("auth_profile_override_source", Takes::Word(&["auto", "user"])),
    ("channel", Takes::Text),
    ("chat_type", Takes::Word(&["dm", "group", "channel"])),
    ("claude_cli_session_id", Takes::Text),
    ("cli_session_ids", Takes::Json),
    ("delivery_context", Takes::Json),
    ("display_name", Takes::Text),
    ("elevated_level", Takes::Text),
    ("exec_ask", Takes::Word(&["always", "on-miss", "off"])),
    ("exec_host", Takes::Text),
    ("exec_node", Takes::Text),
    ("exec_security", Takes::Text),
    ("group_activation", Takes::Word(&["mention", "always"])),
    ("group_activation_needs_system_intro", Takes::Switch),
    ("group_channel", Takes::Text),
    ("group_id", Takes::Text),
    ("last_heartbeat_sent_at", Takes::Number),
    ("last_heartbeat_text", Takes::Text),
    ("memory_flush_at", Takes::Number),
    ("memory_flush_compaction_count", Takes::Number),
    ("model", Takes::Text),
    ("origin", Takes::Json),
    ("provider", Takes::Text),
    ("queue_cap", Takes::Number),
    ("queue_debounce_ms", Takes::Number),
    ("queue_drop", Takes::Word(&["old", "new", "summarize"])),
    ("queue_mode", Takes::Word(&["steer", "followup", "collect", "interrupt"])),
    ("reasoning_level", Takes::Text),
    ("response_usage", Takes::Word(&["on", "off", "tokens", "full"])),
    ("send_policy", Takes::Word(&["allow", "deny"])),
    ("skills_snapshot", Takes::Json),
    ("space", Takes::Text),
    ("subject", Takes::Text),
    ("system_prompt_report", Takes::Json),
    ("system_sent", Takes::Switch),
    ("thinking_level", Takes::Word(&["off", "minimal", "low", "medium", "high", "xhigh", "max"])),
    ("thread_id", Takes::Text),
    ("to", Takes::Text),
    ("tts_auto", Takes::Text),
    ("verbose_level", Takes::Text),
];

/// All keys of `conversation set`, beside `state.…` and `metadata.…`.
pub fn keys() -> Vec<&'static str> {
    SETTABLE.iter().map(|(key, _)| *key).collect()
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

    /// The entry with one thing changed.
    pub(super) fn changed(&self, setting: &Assignment) -> Result<Entry, SettingFault> {
        let typed = snake(&setting.key);
        let Some((key, takes)) = SETTABLE.iter().find(|(key, _)| *key == typed || stored(key) == setting.key)
        else {
            let mut known = keys();
            known.extend(["label", "state.…", "metadata.…"]);
            return Err(crate::setting::unknown_key(&setting.key, &known));
        };
        let most = if matches!(takes, Takes::Json) { JSON_BYTES } else { MOST_CHARS };
        if setting.value.chars().count() > most {
            return Err(SettingFault(format!("the value of {key} is too long")));
        }
        let value = match setting.change {
            Change::Unset => None,
            Change::Set => Some(takes.read(key, &setting.value)?),
            Change::Add | Change::Remove => {
                return Err(SettingFault(format!("{key} is one value: {key}=…")));
            }
        };
        let mut whole = match serde_json::to_value(self) {
            Ok(Value::Object(whole)) => whole,
            _ => unreachable!("an entry is an object"),
        };
        match value {
            Some(value) => {
                Entry::fitting(Map::from_iter([(stored(key), value.clone())]))
                    .map_err(|error| SettingFault(format!("{key} does not fit: {error}")))?;
                whole.insert(stored(key), value)
            }
            None => whole.remove(&stored(key)),
        };
        let mut entry = Entry::of_row(&whole);
        entry.delivered_as_set(key);
        // Whoever is to answer otherwise is told where it is.
        if *key == "group_activation" {
            entry.group_activation_needs_system_intro = entry.group_activation.map(|_| true);
        }
        if *key == "auth_profile" {
            entry.auth_profile_override_source =
                entry.auth_profile_override.as_ref().map(|_| OverrideSource::User);
        }
        Ok(entry.normalised())
    }

    /// Where deliveries go is kept twice. What was just set is what both forms say.
    fn delivered_as_set(&mut self, key: &str) {
        if key == "delivery_context" {
            (self.last_channel, self.last_to, self.last_account_id, self.last_thread_id) =
                (None, None, None, None);
        }
        let Some(context) = &mut self.delivery_context else { return };
        match key {
            "to" => context.to.clone_from(&self.last_to),
            "account_id" => context.account_id.clone_from(&self.last_account_id),
            "thread_id" => context.thread_id.clone_from(&self.last_thread_id),
            _ => {}
        }
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

    /// What was set, by key, for people.
    pub fn values(&self) -> Vec<(String, String)> {
        let Ok(Value::Object(whole)) = serde_json::to_value(self) else { return Vec::new() };
        let shown = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        whole.into_iter().map(|(key, value)| (shown_key(&key), one_line(&shown(value), 200))).collect()
    }
}

impl Takes {
    fn read(self, key: &str, text: &str) -> Result<Value, SettingFault> {
        let expected =
            |what: &str| SettingFault(format!("{key} is \"{}\"; expected: {what}", one_line(text, 40)));
        match self {
            Takes::Text => Ok(Value::from(text)),
            Takes::Number => text.parse::<u64>().map(Value::from).map_err(|_| expected("a number")),
            Takes::Switch => match text {
                "on" | "true" => Ok(Value::Bool(true)),
                "off" | "false" => Ok(Value::Bool(false)),
                _ => Err(expected("on, off")),
            },
            Takes::Json => serde_json::from_str(text).map_err(|error| expected(&format!("JSON ({error})"))),
            Takes::Word(words) => match words.iter().find(|word| **word == text) {
                Some(word) => Ok(Value::from(*word)),
                None => Err(expected(&words.join(", "))),
            },
        }
    }
}

/// The key in the file of one that is typed.
fn stored(key: &str) -> String {
    let key = match key {
        "provider" => "provider_override",
        "model" => "model_override",
        "auth_profile" => "auth_profile_override",
        "to" => "last_to",
        "account_id" => "last_account_id",
        "thread_id" => "last_thread_id",
        other => other,
    };
    let mut camel = String::with_capacity(key.len());
    let mut words = key.split('_');
    camel.push_str(words.next().unwrap_or_default());
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

/// The typed form of a key in the file.
fn shown_key(key: &str) -> String {
    let typed = SETTABLE.iter().find(|(typed, _)| stored(typed) == key);
    typed.map_or_else(|| snake(key), |(typed, _)| (*typed).to_owned())
}

fn snake(key: &str) -> String {
    let mut snake = String::with_capacity(key.len() + 4);
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(entry: &Entry, text: &str) -> Result<Entry, String> {
        entry.changed(&Assignment::parse(text).unwrap()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn every_key_is_set_changed_and_unset() {
        for (key, takes) in SETTABLE {
            let (value, other) = match takes {
                Takes::Text => ("x", "y"),
                Takes::Number => ("7", "8"),
                Takes::Switch => ("on", "off"),
                Takes::Json => ("{\"channel\":\"slack\"}", "{\"to\":\"c2\"}"),
                Takes::Word(words) => (words[0], words[1]),
            };
            let Ok(set_to) = set(&Entry::default(), &format!("{key}={value}")) else {
                panic!("{key}={value}: {:?}", set(&Entry::default(), &format!("{key}={value}")))
            };
            assert_ne!(set_to, Entry::default(), "{key}");
            let camel = set(&Entry::default(), &format!("{}={value}", stored(key))).unwrap();
            assert_eq!(camel, set_to, "{key}");
            let changed = set(&set_to, &format!("{key}={other}")).unwrap();
            assert_ne!(changed, set_to, "{key}");
            assert_eq!(changed, set(&Entry::default(), &format!("{key}={other}")).unwrap(), "{key}");
            assert_eq!(set(&changed, &format!("{key}=")).unwrap(), Entry::default(), "{key}");
        }
        let entry = set(&Entry::default(), "model=gpt-5.5").unwrap();
        assert_eq!(entry.model_override.as_deref(), Some("gpt-5.5"));
        assert_eq!(set(&entry, "model=").unwrap(), Entry::default());
        for wrong in
            ["colour=red", "queue_cap=many", "send_policy=maybe", "model+=x", "origin={", "sessionId=x"]
        {
            assert!(set(&Entry::default(), wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_to_be_honoured_is_read() {
        for (word, approve) in [
            ("always", Some(Approve::Ask)),
            ("on-miss", Some(Approve::Policy)),
            ("off", Some(Approve::Nobody)),
            ("all", None),
        ] {
            // A row that came in may say what nobody could set.
            let entry = Entry { exec_ask: Some(word.to_owned()), ..Entry::default() };
            assert_eq!(entry.approve(), approve, "{word}");
        }
        let entry = set(&Entry::default(), "reasoning_level=on").unwrap();
        let entry = set(&entry, "thinking_level=high").unwrap();
        assert_eq!(entry.thinking_levels().collect::<Vec<_>>(), ["high", "on"]);
        // Whoever is to answer otherwise in a group is told so.
        let entry = set(&Entry::default(), "group_activation=always").unwrap();
        assert_eq!(entry.group_activation_needs_system_intro, Some(true));
        assert_eq!(set(&entry, "group_activation=").unwrap(), Entry::default());
    }

    #[test]
    fn an_entry_comes_out_as_it_went_in() {
        let text = r##"{"channel":"discord","chatType":"group","queueMode":"followup","lastThreadId":42,"origin":{"provider":"discord","nativeId":"x"},"groupChannel":"#general","fastMode":true,"acp":{"a":[1,2]}}"##;
        let entry: Entry = serde_json::from_str(text).unwrap();
        let again: Value = serde_json::to_value(&entry).unwrap();
        assert_eq!(again, serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(entry.other.len(), 2);
    }

    #[test]
    fn what_does_not_fit_is_kept_and_hinders_nothing_else() {
        let text = r#"{"sendPolicy":"deny","queueMode":"by-mood","queueCap":2.5,"origin":{"chatType":"forum"},"label":"L"}"#;
        let entry: Entry = serde_json::from_str(text).unwrap();
        assert_eq!((entry.send_policy, entry.label.as_deref()), (Some(SendAction::Deny), Some("L")));
        assert_eq!((entry.queue_mode, entry.queue_cap, &entry.origin), (None, None, &None));
        let written = serde_json::to_string(&entry).unwrap();
        assert_eq!(serde_json::from_str::<Entry>(&written).unwrap(), entry, "and is read again as it was");
        assert_eq!(
            serde_json::from_str::<Value>(&written).unwrap(),
            serde_json::from_str::<Value>(text).unwrap()
        );
        let changed = set(&entry, "model=x").unwrap();
        assert_eq!(changed.other, entry.other);
        let changed = set(&changed, "queue_mode=collect").unwrap();
        assert_eq!(
            (changed.queue_mode, changed.other.contains_key("queueMode")),
            (Some(Mode::Collect), false)
        );
        assert!(!set(&changed, "queue_cap=").unwrap().other.contains_key("queueCap"));
        assert!(set(&changed, r#"origin={"chatType":"forum"}"#).is_err(), "nobody sets what does not fit");
    }

    #[test]
    fn where_deliveries_go_is_changed_one_by_one_and_as_a_whole() {
        let all =
            ["delivery_context={\"channel\":\"slack\",\"to\":\"c1\",\"accountId\":\"a1\"}", "thread_id=7"];
        let entry = all.iter().fold(Entry::default(), |entry, text| set(&entry, text).unwrap());
        let of = |entry: &Entry| entry.delivery_context.clone().unwrap_or_default();
        assert_eq!(of(&entry).thread_id, Some(ThreadId::Text("7".to_owned())));
        let moved = set(&entry, "to=c2").unwrap();
        assert_eq!((of(&moved).to.as_deref(), moved.last_to.as_deref()), (Some("c2"), Some("c2")));
        assert_eq!(of(&moved).account_id.as_deref(), Some("a1"), "the rest stays");
        let less = set(&moved, "account_id=").unwrap();
        assert_eq!((of(&less).account_id, &less.last_account_id), (None, &None));
        assert_eq!(of(&less).channel.as_deref(), Some("slack"));
        let whole = set(&less, "delivery_context={\"to\":\"c3\"}").unwrap();
        assert_eq!(of(&whole), DeliveryContext { to: Some("c3".to_owned()), ..DeliveryContext::default() });
        assert_eq!((&whole.last_channel, &whole.last_thread_id), (&None, &None));
        assert_eq!(set(&whole, "delivery_context=").unwrap(), Entry::default());
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
