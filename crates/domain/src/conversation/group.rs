//! Agents in groups: what of all that is said there is for them, and what one is told of the place when it first hears
//! something.

use super::{Chat, ChatType, Entry, GroupActivation};
use crate::text::one_line;

const BEGINS: &str = "[You are in ";
const ENDS: &str = "]\n\n";
/// Names of groups are somebody else's words.
const NAME_CHARS: usize = 120;

/// Whether an agent hears only what mentions it.
pub fn wants_mention(entry: &Entry, chat: &Chat) -> bool {
    let is_group = matches!(chat.chat_type, Some(ChatType::Group | ChatType::Channel));
    is_group && entry.group_activation == Some(GroupActivation::Mention)
}

/// Why what was said in a group is not for its agent; none where it is.
pub fn unmentioned(entry: &Entry, chat: &Chat, agent: &str, text: &str) -> Option<String> {
    let is_for_others = wants_mention(entry, chat) && !mentions(text, agent);
    is_for_others.then(|| format!("it does not mention @{agent} (group_activation=mention)"))
}

/// Whether a text speaks to somebody: `@api`, in any case, and not as the beginning of a longer name.
fn mentions(text: &str, name: &str) -> bool {
    let (text, sought) = (text.to_lowercase(), format!("@{}", name.to_lowercase()));
    text.match_indices(&sought).any(|(at, _)| {
        let after = text[at + sought.len()..].chars().next();
        after.is_none_or(|next| !(next.is_alphanumeric() || next == '-' || next == '_'))
    })
}

/// What stands before the first message that an agent hears in a group; none where it has been told, or is in none.
pub fn group_intro(entry: &Entry, chat: &Chat, agent: &str) -> Option<String> {
    let kind = match chat.chat_type? {
        ChatType::Group => "group",
        ChatType::Channel => "channel",
        ChatType::Dm => return None,
    };
    if entry.group_activation_needs_system_intro != Some(true) {
        return None;
    }
    let plain = |text: &str| one_line(text, NAME_CHARS).replace(['[', ']'], " ");
    let named = [&entry.subject, &entry.group_channel, &entry.display_name].into_iter().flatten().next();
    let named = named.map(|name| format!(" \"{}\"", plain(name))).unwrap_or_default();
    let channel =
        chat.channel.as_deref().map(|channel| format!(" on {}", plain(channel))).unwrap_or_default();
    let hears = match entry.group_activation {
        Some(GroupActivation::Mention) => format!("You hear only what mentions @{agent}."),
        Some(GroupActivation::Always) | None => "You hear all that is said there.".to_owned(),
    };
    Some(format!(
        "{BEGINS}the {kind}{named}{channel}. {hears} Several people read what you answer: be brief, and say to whom \
         you speak where that is not plain.{ENDS}"
    ))
}

/// A message as it was sent, without what stood before it.
pub fn without_intro(text: &str) -> &str {
    match text.strip_prefix(BEGINS).and_then(|rest| rest.split_once(ENDS)) {
        Some((_, sent)) => sent,
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mention_is_the_whole_name() {
        for text in ["@api", "please, @API: look", "(@api)", "x @apis and @api."] {
            assert!(mentions(text, "api"), "{text}");
        }
        for text in ["api", "@apis", "@api-auth", "@ api", ""] {
            assert!(!mentions(text, "api"), "{text}");
        }
    }

    #[test]
    fn a_group_is_introduced_once_and_only_a_group() {
        let text =
            r#"{"subject":"Team [x]","groupActivation":"mention","groupActivationNeedsSystemIntro":true}"#;
        let entry: Entry = serde_json::from_str(text).unwrap();
        let in_chat = |key: &str, entry: &Entry| {
            group_intro(entry, &Chat::of(&key.parse().unwrap(), None, entry), "api")
        };
        let intro = in_chat("agent:api:slack:group:g1", &entry).unwrap();
        assert!(intro.contains("the group \"Team  x \" on slack") && intro.contains("@api"), "{intro}");
        assert_eq!(without_intro(&format!("{intro}hello")), "hello");
        assert_eq!(without_intro("hello [x]\n\nthere"), "hello [x]\n\nthere");
        assert_eq!(in_chat("agent:api:slack:dm:u1", &entry), None);
        let told = Entry { group_activation_needs_system_intro: Some(false), ..entry };
        assert_eq!(in_chat("agent:api:slack:group:g1", &told), None);
    }
}
