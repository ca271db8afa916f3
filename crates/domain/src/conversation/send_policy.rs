//! Who may be sent to: the conversation's own word, else the campaign's rules in their order, else its default, else yes.

use std::fmt;

use super::{ChatType, Entry, Form, Key, SendAction};
use crate::text::one_line;

/// One rule of a campaign: `deny channel=discord chat_type=group`. Without a condition it fits everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendRule {
    pub action: SendAction,
    pub channel: Option<String>,
    pub chat_type: Option<ChatType>,
    pub key_prefix: Option<String>,
}

impl SendRule {
    /// Reads a rule; else says what is wrong with it.
    pub fn parse(text: &str) -> Result<SendRule, String> {
        let mut words = text.split_whitespace();
        let action = words.next().and_then(SendAction::parse);
        let action = action.ok_or("a rule begins with allow or deny")?;
        let mut rule = SendRule { action, channel: None, chat_type: None, key_prefix: None };
        for word in words {
            let unknown =
                || format!("\"{}\" is none of channel=…, chat_type=…, key_prefix=…", one_line(word, 40));
            let (condition, value) = word.split_once('=').ok_or_else(unknown)?;
            if value.is_empty() {
                return Err(format!("{condition} has no value"));
            }
            let is_twice = match condition {
                "channel" => rule.channel.replace(value.to_lowercase()).is_some(),
                "chat_type" => {
                    let chat_type = ChatType::parse(value).ok_or("chat_type is dm, group or channel")?;
                    rule.chat_type.replace(chat_type).is_some()
                }
                "key_prefix" => rule.key_prefix.replace(value.to_lowercase()).is_some(),
                _ => return Err(unknown()),
            };
            if is_twice {
                return Err(format!("{condition} is said twice"));
            }
        }
        Ok(rule)
    }

    fn fits(&self, chat: &Chat) -> bool {
        let channel = self.channel.as_deref().is_none_or(|wanted| chat.channel.as_deref() == Some(wanted));
        let chat_type = self.chat_type.is_none_or(|wanted| chat.chat_type == Some(wanted));
        let begins = |prefix: &str| chat.keys.iter().any(|key| key.starts_with(prefix));
        channel && chat_type && self.key_prefix.as_deref().is_none_or(begins)
    }
}

impl fmt::Display for SendRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.action.as_str())?;
        if let Some(channel) = &self.channel {
            write!(f, " channel={channel}")?;
        }
        if let Some(chat_type) = self.chat_type {
            write!(f, " chat_type={}", chat_type.as_str())?;
        }
        match &self.key_prefix {
            Some(prefix) => write!(f, " key_prefix={prefix}"),
            None => Ok(()),
        }
    }
}

/// What rules look at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chat {
    pub channel: Option<String>,
    pub chat_type: Option<ChatType>,
    /// The key as it is kept, and with its agent in it; in lower case.
    keys: Vec<String>,
}

impl Chat {
    /// A conversation's: as its entry says, else as its key does.
    pub fn of(key: &Key, agent: Option<&str>, entry: &Entry) -> Chat {
        let (of_key, chat_type) = match key.form() {
            Form::Chat { channel, chat_type, .. } => (Some(channel), Some(chat_type)),
            _ => (None, None),
        };
        let channel = entry.channel.as_deref().or(entry.last_channel.as_deref()).or(of_key);
        let whole = agent.filter(|_| key.agent().is_none()).map(|agent| format!("agent:{agent}:{key}"));
        Chat {
            channel: channel.map(str::to_lowercase),
            chat_type: entry.chat_type.or(chat_type),
            keys: std::iter::once(key.folded()).chain(whole.map(|whole| whole.to_lowercase())).collect(),
        }
    }
}

/// What was decided, and by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendVerdict {
    pub action: SendAction,
    /// The rule in words: `send.rule 2: deny channel=discord`.
    pub rule: String,
    /// A policy had something to say: it was not only that nothing stood against it.
    pub is_ruled: bool,
}

/// Whether something may be said to a conversation.
pub fn send_verdict(
    own: Option<SendAction>,
    rules: &[String],
    default: Option<SendAction>,
    chat: &Chat,
) -> SendVerdict {
    let ruled = |action, rule| SendVerdict { action, rule, is_ruled: true };
    if let Some(action) = own {
        return ruled(action, format!("the conversation's send_policy={}", action.as_str()));
    }
    let fitting = rules.iter().enumerate().find_map(|(n, text)| {
        let rule = SendRule::parse(text).ok().filter(|rule| rule.fits(chat))?;
        Some((n + 1, rule))
    });
    match (fitting, default) {
        (Some((n, rule)), _) => ruled(rule.action, format!("send.rule {n}: {rule}")),
        (None, Some(action)) => ruled(action, format!("send.default={}", action.as_str())),
        (None, None) => SendVerdict {
            action: SendAction::Allow,
            rule: "nothing stands against it".to_owned(),
            is_ruled: false,
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn verdict(
        own: Option<SendAction>,
        rules: &[&str],
        default: Option<SendAction>,
        key: &str,
    ) -> SendVerdict {
        let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
        let chat = Chat::of(&key.parse().unwrap(), Some("main"), &Entry::default());
        send_verdict(own, &rules, default, &chat)
    }

    #[test]
    fn the_order_is_the_conversation_the_rules_the_default_and_yes() {
        use SendAction::{Allow, Deny};
        let rules = ["deny channel=discord chat_type=group", "allow key_prefix=agent:main:slack"];
        let group = "agent:main:discord:group:123";
        let said = |verdict: SendVerdict| (verdict.action, verdict.rule);
        assert_eq!(
            said(verdict(None, &rules, None, group)),
            (Deny, "send.rule 1: deny channel=discord chat_type=group".to_owned())
        );
        assert_eq!(
            said(verdict(Some(Allow), &rules, Some(Deny), group)),
            (Allow, "the conversation's send_policy=allow".to_owned())
        );
        assert_eq!(verdict(None, &rules, Some(Deny), "agent:main:Slack:dm:u1").action, Allow);
        assert_eq!(
            said(verdict(None, &rules, Some(Deny), "agent:main:discord:dm:u1")),
            (Deny, "send.default=deny".to_owned())
        );
        let open = verdict(None, &rules, None, "main");
        assert_eq!((open.action, open.is_ruled), (Allow, false));
        assert_eq!(
            verdict(None, &["deny key_prefix=agent:main:"], None, "main").action,
            Deny,
            "its whole key"
        );
    }

    #[test]
    fn what_the_entry_says_comes_before_the_key() {
        let entry: Entry = serde_json::from_str(r#"{"channel":"Telegram","chatType":"group"}"#).unwrap();
        let chat = Chat::of(&"agent:main:slack:dm:u1".parse().unwrap(), None, &entry);
        assert_eq!((chat.channel.as_deref(), chat.chat_type), (Some("telegram"), Some(ChatType::Group)));
        let entry: Entry = serde_json::from_str(r#"{"lastChannel":"signal"}"#).unwrap();
        assert_eq!(Chat::of(&Key::main(), None, &entry).channel.as_deref(), Some("signal"));
    }

    #[test]
    fn rules_are_read_and_written() {
        for text in
            ["deny", "allow channel=slack", "deny channel=discord chat_type=group key_prefix=agent:a:"]
        {
            assert_eq!(SendRule::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "maybe",
            "deny channel",
            "deny channel=",
            "deny colour=red",
            "deny chat_type=x",
            "deny channel=a channel=b",
        ] {
            assert!(SendRule::parse(text).is_err(), "{text}");
        }
    }

    fn any_action() -> impl Strategy<Value = SendAction> {
        prop_oneof![Just(SendAction::Allow), Just(SendAction::Deny)]
    }

    fn any_rule() -> impl Strategy<Value = String> {
        let channel = proptest::option::of("slack|discord");
        let chat_type = proptest::option::of("dm|group");
        let prefix = proptest::option::of("agent:(a|b):(slack)?");
        (any_action(), channel, chat_type, prefix).prop_map(|(action, channel, chat_type, prefix)| {
            let chat_type = chat_type.and_then(|text| ChatType::parse(&text));
            SendRule { action, channel, chat_type, key_prefix: prefix }.to_string()
        })
    }

    proptest! {
        #[test]
        fn the_first_rule_that_fits_decides_and_the_conversation_before_all(
            own in proptest::option::of(any_action()),
            rules in proptest::collection::vec(any_rule(), 0..6),
            default in proptest::option::of(any_action()),
            key in "agent:(a|b):(slack|discord):(dm|group):u1|main",
        ) {
            let chat = Chat::of(&key.parse().unwrap(), Some("a"), &Entry::default());
            let verdict = send_verdict(own, &rules, default, &chat);
            let fits = |text: &String| SendRule::parse(text).unwrap().fits(&chat);
            let first = rules.iter().find(|text| fits(text)).map(|text| SendRule::parse(text).unwrap().action);
            prop_assert_eq!(verdict.action, own.or(first).or(default).unwrap_or(SendAction::Allow));
            prop_assert_eq!(verdict.is_ruled, own.or(first).or(default).is_some());
            // What stands behind the rule that decides changes nothing.
            if let Some(place) = rules.iter().position(fits) {
                prop_assert_eq!(send_verdict(own, &rules[..=place], None, &chat), verdict);
            }
        }
    }
}
