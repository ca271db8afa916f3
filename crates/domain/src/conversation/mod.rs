//! Conversations: dialogues of one agent, each addressed by a key. They survive any number of processes.

mod entry;
mod group;
mod inbound;
mod key;
mod reset;
mod send_policy;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use entry::{Entry, GroupActivation, OverrideSource, QueueDrop, ResponseUsage, SendAction, keys};
pub use group::{group_intro, unmentioned, wants_mention, without_intro};
pub use inbound::{DeliveryContext, Inbound, Origin, ThreadId};
pub use key::{ChatType, Form, KEY_BYTES, Key, KeyError, MAIN};
pub use reset::{DailyReset, IdleReset, ResetRules, reset_due};
pub use send_policy::{Chat, SendRule, SendVerdict, send_verdict};

use crate::{
    AgentId, CampaignId, ConversationId, Name, SessionId, Time,
    exchange::openclaw::OWNED,
    message::Queue,
    setting::{Assignment, Change, SettingFault},
};

/// Longest label, and the most that the state and the metadata of one conversation take.
pub const LABEL_CHARS: usize = 200;
pub const JSON_BYTES: usize = 64 * 1024;

/// What a row of OpenClaw's says of one dialogue, beside what Ostler says there itself.
const OF_ONE_DIALOGUE: &[&str] = &[
    "archivedAt",
    "cliSessionBindings",
    "contextBudgetStatus",
    "createdAt",
    "forkedFromParent",
    "goal",
    "lastActivityAt",
    "lastInteractionAt",
    "lastReadAt",
    "runtimeMs",
    "totalTokensFresh",
    "usageFamilySessionIds",
];

/// A conversation as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    pub id: ConversationId,
    pub campaign: CampaignId,
    /// Whose it is; none for one that nobody registered an agent for.
    pub agent: Option<AgentId>,
    pub key: Key,
    pub name: Name,
    pub opened: Time,
    /// When something was last said to it, or a session of it began.
    pub active: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ConversationId>,
    /// The last turn that it has in common with that one; none for all there was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_at: Option<TurnRef>,
    /// The session whose agent asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<SessionId>,
    /// The conversation that had this key before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<ConversationId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<Closed>,
    #[serde(flatten)]
    pub notes: Notes,
}

/// What is noted about a conversation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Notes {
    #[serde(skip_serializing_if = "Entry::is_empty")]
    pub entry: Entry,
    /// The agent's own, for whoever runs it.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub state: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// A turn of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRef {
    pub session: SessionId,
    pub turn: u32,
}

/// How a conversation was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    pub at: Time,
    pub why: CloseReason,
}

/// Why a conversation is no longer gone on with. All of it stays readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CloseReason {
    /// A fresh one has its key.
    Reset,
    Archived,
    /// A person wants it gone: it is deleted when the time for taking that back is over.
    Removed,
}

impl CloseReason {
    pub const fn as_str(self) -> &'static str {
        match self {
            CloseReason::Reset => "reset",
            CloseReason::Archived => "archived",
            CloseReason::Removed => "removed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Reset, Self::Archived, Self::Removed].into_iter().find(|why| why.as_str() == text)
    }
}

impl Notes {
    /// As they are stored and shown to programs.
    pub fn to_json(&self) -> String {
        // Plain structs with string keys: serializing them cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub fn from_json(text: &str) -> Result<Notes, serde_json::Error> {
        serde_json::from_str(text)
    }

    pub fn is_empty(&self) -> bool {
        *self == Notes::default()
    }

    /// The notes with settings changed: all of them, or the first that is refused.
    pub fn changed_by<'a>(
        &self,
        settings: impl IntoIterator<Item = &'a String>,
    ) -> Result<Notes, SettingFault> {
        let mut notes = self.clone();
        for text in settings {
            let setting = Assignment::parse(text)?;
            match setting.key.split_once('.') {
                Some(("state", path)) => assign(&mut notes.state, path, &setting)?,
                Some(("metadata", path)) => assign(&mut notes.metadata, path, &setting)?,
                _ if setting.key == "label" => {
                    let fits = |text: &str| {
                        let is_label =
                            text.chars().count() <= LABEL_CHARS && !text.contains(char::is_control);
                        is_label.then(|| text.to_owned())
                    };
                    notes.entry.label = setting.word(fits, "one line of at most 200 characters")?;
                }
                _ => notes.entry = notes.entry.changed(&setting)?,
            }
        }
        Ok(notes)
    }

    /// What a fresh conversation under the same key has of the old one's: how it is run, who may speak and where it
    /// delivers, always; what describes it where that is wished. What the old dialogue was about stays with it.
    #[must_use]
    pub fn kept_by_reset(&self, with_metadata: bool) -> Notes {
        let mut notes = self.clone();
        notes.state.clear();
        if !with_metadata {
            notes.metadata.clear();
            notes.entry.label = None;
        }
        let entry = &mut notes.entry;
        if entry.is_imported() {
            // What came from elsewhere waits in another way than what begins here; that does not change.
            entry.queue_mode = entry.queue_mode.or(Some(Queue::CHAT.mode));
            entry.queue_debounce_ms = entry.queue_debounce_ms.or(Some(Queue::CHAT.debounce_ms));
            entry.queue_cap = entry.queue_cap.or(Queue::CHAT.cap);
            entry.queue_drop = entry.queue_drop.or(Some(Queue::CHAT.drop));
        }
        let is_of_the_old = |field: &str| {
            let is_said_here = OWNED.contains(&field) && field != "spawnedBy";
            is_said_here || OF_ONE_DIALOGUE.contains(&field)
        };
        entry.other.retain(|field, _| !is_of_the_old(field));
        entry.memory_flush_at = None;
        entry.memory_flush_compaction_count = None;
        entry.auth_profile_override_compaction_count = None;
        entry.system_sent = None;
        entry.last_heartbeat_text = None;
        entry.last_heartbeat_sent_at = None;
        entry.cli_session_ids.clear();
        entry.claude_cli_session_id = None;
        entry.skills_snapshot = None;
        entry.system_prompt_report = None;
        notes
    }
}

impl Notes {
    /// What of it somebody noted here, and a fresh conversation under the same key does not have.
    pub fn not_kept_by_reset(&self, with_metadata: bool) -> Vec<String> {
        let of = |object: &Map<String, Value>, name: &str| {
            object.keys().map(|key| format!("{name}.{key}")).collect::<Vec<_>>()
        };
        let label = self.entry.label.as_ref().filter(|_| !with_metadata).map(|_| "label".to_owned());
        let metadata = if with_metadata { Vec::new() } else { of(&self.metadata, "metadata") };
        label.into_iter().chain(metadata).chain(of(&self.state, "state")).collect()
    }
}

/// The words that begin a conversation anew, when they stand at the beginning of a message; what is said after them.
pub fn reset_word(text: &str) -> Option<&str> {
    let text = text.trim();
    ["/new", "/reset"].into_iter().find_map(|word| {
        let rest = text.strip_prefix(word)?;
        (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim_start())
    })
}

/// Sets a value in an object of objects: `a.b.c`.
fn assign(object: &mut Map<String, Value>, path: &str, setting: &Assignment) -> Result<(), SettingFault> {
    if path.split('.').any(str::is_empty) {
        return Err(SettingFault(format!("\"{}\" names no place", setting.key)));
    }
    let value = match setting.change {
        // What is JSON is kept as that, and anything else as the text that it is.
        Change::Set => {
            Some(serde_json::from_str(&setting.value).unwrap_or_else(|_| Value::from(setting.value.as_str())))
        }
        Change::Unset => None,
        Change::Add | Change::Remove => {
            return Err(SettingFault(format!("{} is one value: {}=…", setting.key, setting.key)));
        }
    };
    let (parents, last) = path.rsplit_once('.').map_or((None, path), |(parents, last)| (Some(parents), last));
    let mut place = &mut *object;
    for part in parents.into_iter().flat_map(|parents| parents.split('.')) {
        let child = place.entry(part).or_insert_with(|| Value::Object(Map::new()));
        place = child
            .as_object_mut()
            .ok_or_else(|| SettingFault(format!("{} cannot be set: {part} is no object", setting.key)))?;
    }
    match value {
        Some(value) => place.insert(last.to_owned(), value),
        None => place.remove(last),
    };
    let bytes = serde_json::to_string(object).map_or(0, |text| text.len());
    if bytes > JSON_BYTES {
        return Err(SettingFault(format!("{} would be too large: at most 64 KiB in all", setting.key)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(notes: &Notes, settings: &[&str]) -> Result<Notes, SettingFault> {
        let settings: Vec<String> = settings.iter().map(|text| (*text).to_owned()).collect();
        notes.changed_by(&settings)
    }

    #[test]
    fn state_and_metadata_are_set_by_their_places() {
        let notes = changed(
            &Notes::default(),
            &["state.phase=3", "state.plan.steps=[1,2]", "metadata.owner=ann", "label=Checkout", "model=x"],
        )
        .unwrap();
        assert_eq!(serde_json::to_string(&notes.state).unwrap(), r#"{"phase":3,"plan":{"steps":[1,2]}}"#);
        assert_eq!(notes.metadata["owner"], "ann");
        assert_eq!(notes.entry.label.as_deref(), Some("Checkout"));
        let unset = changed(&notes, &["state.plan.steps=", "state.plan=", "state.phase=", "metadata.owner="]);
        assert!(unset.unwrap().state.is_empty());
        let large = format!("metadata.x={}", "y".repeat(JSON_BYTES));
        for wrong in ["state.=1", "state..a=1", "state.phase.x=1", "metadata.a+=1", "label=a\tb", &large] {
            assert!(changed(&notes, &[wrong]).is_err(), "{wrong:.30}");
        }
    }

    #[test]
    fn only_whole_words_at_the_beginning_reset() {
        for (text, rest) in
            [("/new", ""), (" /reset \n", ""), ("/new fix it", "fix it"), ("/reset\nfix", "fix")]
        {
            assert_eq!(reset_word(text), Some(rest), "{text:?}");
        }
        for text in ["/newer", "say /new", "new", "/", "/resets x"] {
            assert_eq!(reset_word(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_reset_keeps_how_it_is_run_and_not_what_it_was_about() {
        let notes = changed(
            &Notes::default(),
            &[
                "state.phase=3",
                "metadata.owner=ann",
                "model=x",
                "channel=slack",
                "label=Checkout",
                "send_policy=deny",
            ],
        )
        .unwrap();
        let kept = notes.kept_by_reset(true);
        assert!(kept.state.is_empty());
        assert_eq!(kept.entry, notes.entry);
        assert_eq!(kept.metadata, notes.metadata);
        // What restrains it is no metadata.
        let bare = notes.kept_by_reset(false);
        assert_eq!(bare.entry, Entry { label: None, ..notes.entry.clone() });
        assert_eq!(bare.entry.send_policy, Some(SendAction::Deny));
        assert!(bare.metadata.is_empty());
        assert_eq!(notes.not_kept_by_reset(false), ["label", "metadata.owner", "state.phase"]);
        assert_eq!(notes.not_kept_by_reset(true), ["state.phase"]);
    }

    #[test]
    fn a_fresh_one_in_the_place_of_one_that_was_imported_is_a_dialogue_of_its_own() {
        let row = r#"{"sessionId":"a","sessionFile":"a.jsonl","updatedAt":1,"sdkSessionId":"x","compactionCount":3,"inputTokens":9,
            "lastInteractionAt":1,"spawnedBy":"agent:main:main","fastMode":true,"channel":"slack","queueCap":5}"#;
        let entry: Entry = serde_json::from_str(row).unwrap();
        let waited = Queue::of(&Key::main(), &entry);
        let kept = Notes { entry, ..Notes::default() }.kept_by_reset(true).entry;
        let other: Vec<&str> = kept.other.keys().map(String::as_str).collect();
        assert_eq!(other, ["fastMode", "spawnedBy"], "how it is run, and by whom");
        assert!(!kept.is_imported());
        assert_eq!(kept.channel.as_deref(), Some("slack"));
        assert_eq!(Queue::of(&Key::main(), &kept), waited, "its messages wait as they did");
    }
}
