//! What a person may set of a conversation's entry: its keys as they are typed, and what each of them takes.

use serde_json::{Map, Value};

use super::{Entry, OverrideSource};
use crate::{
    conversation::JSON_BYTES,
    limits::QUEUE_DEBOUNCE_MS,
    setting::{Assignment, Change, MOST_CHARS, SettingFault},
    text::one_line,
};

/// What a key of an entry takes.
#[derive(Clone, Copy)]
enum Takes {
    Text,
    Number,
    /// A number that is not larger than this one.
    UpTo(u64),
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
    ("queue_debounce_ms", Takes::UpTo(QUEUE_DEBOUNCE_MS)),
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
    /// The entry with one thing changed.
    pub(in crate::conversation) fn changed(&self, setting: &Assignment) -> Result<Entry, SettingFault> {
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
            Takes::UpTo(most) => match text.parse::<u64>() {
                Ok(number) if number <= most => Ok(Value::from(number)),
                _ => Err(expected(&format!("a number up to {most}"))),
            },
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
    use crate::{
        Mode,
        conversation::{DeliveryContext, SendAction, ThreadId},
        session::Approve,
    };

    fn set(entry: &Entry, text: &str) -> Result<Entry, String> {
        entry.changed(&Assignment::parse(text).unwrap()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn every_key_is_set_changed_and_unset() {
        for (key, takes) in SETTABLE {
            let (value, other) = match takes {
                Takes::Text => ("x", "y"),
                Takes::Number | Takes::UpTo(_) => ("7", "8"),
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
}
