//! Messages to a conversation and the receipts that say what became of them.

use serde::{Deserialize, Serialize};

use crate::{
    SessionId,
    conversation::{Entry, Form, Key, QueueDrop},
    id::MessageId,
    limits::QUEUE_DEBOUNCE_MS,
    text::one_line,
};

/// Something said to an agent, durable before it is acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub id: MessageId,
    pub text: String,
    #[serde(default)]
    pub mode: Mode,
}

/// When a message is delivered to a busy agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// After the turn that is open.
    #[default]
    #[serde(alias = "queue")]
    Followup,
    /// Into the turn that is open, where the agent can be told something there; else after it.
    #[serde(alias = "steer-backlog", alias = "steer+backlog")]
    Steer,
    /// After the turn that is open, in one prompt with the others that wait to be collected.
    Collect,
    /// At once: the turn that is open is ended for it.
    Interrupt,
}

impl Mode {
    pub const ALL: &'static [Mode] = &[Mode::Followup, Mode::Steer, Mode::Collect, Mode::Interrupt];

    pub const fn as_str(self) -> &'static str {
        match self {
            Mode::Followup => "followup",
            Mode::Steer => "steer",
            Mode::Collect => "collect",
            Mode::Interrupt => "interrupt",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|mode| mode.as_str() == text)
    }
}

/// What is known of a message, in the order in which it may be learnt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Receipt {
    /// Durable in the inbox.
    Accepted,
    /// Written to the tape and the agent's input.
    Delivered,
    /// The agent's own stream showed it.
    Seen,
    /// The turn that it belongs to ended.
    Answered,
    /// The agent ended after it was delivered and before it was seen: nobody can know. Not sent again.
    Unknown,
    /// A rule kept it from the agent. It stays readable.
    Dropped,
    /// Somebody took it back before it was delivered. It stays readable.
    Cancelled,
}

impl Receipt {
    pub const ALL: &'static [Receipt] = &[
        Receipt::Accepted,
        Receipt::Delivered,
        Receipt::Seen,
        Receipt::Answered,
        Receipt::Unknown,
        Receipt::Dropped,
        Receipt::Cancelled,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Receipt::Accepted => "accepted",
            Receipt::Delivered => "delivered",
            Receipt::Seen => "seen",
            Receipt::Answered => "answered",
            Receipt::Unknown => "unknown",
            Receipt::Dropped => "dropped",
            Receipt::Cancelled => "cancelled",
        }
    }

    /// Nothing more will be learnt.
    pub const fn is_final(self) -> bool {
        matches!(self, Receipt::Answered | Receipt::Unknown | Receipt::Dropped | Receipt::Cancelled)
    }
}

/// A message with what is recorded beside it when it is accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    pub message: Message,
    /// What let it through, in words.
    pub rule: Option<String>,
    /// The sender's own name for it: the same one again is the same message.
    pub key: Option<String>,
    /// The session that ended before it could be delivered there.
    pub moved_from: Option<SessionId>,
    /// What that session had dropped and not told its agent.
    pub untold: Summary,
}

impl From<Message> for Said {
    fn from(message: Message) -> Self {
        Said { message, rule: None, key: None, moved_from: None, untold: Summary::default() }
    }
}

impl From<(Message, Option<SessionId>)> for Said {
    fn from((message, moved_from): (Message, Option<SessionId>)) -> Self {
        Said { moved_from, ..Said::from(message) }
    }
}

/// How messages wait for an agent that works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queue {
    /// How they are said where the sender has not chosen.
    pub mode: Mode,
    /// How long nothing must have come before the next is delivered.
    pub debounce_ms: u64,
    /// How many may wait; none where there is no limit but that of all inboxes.
    pub cap: Option<u32>,
    /// What gives way when there are more.
    pub drop: QueueDrop,
}

impl Default for Queue {
    fn default() -> Self {
        Queue { mode: Mode::Followup, debounce_ms: 0, cap: None, drop: QueueDrop::Old }
    }
}

impl Queue {
    /// What chats elsewhere are used to: people there write in bursts.
    pub(crate) const CHAT: Queue =
        Queue { mode: Mode::Steer, debounce_ms: 500, cap: Some(20), drop: QueueDrop::Summarize };

    /// How a conversation's messages wait: as its entry says, else as its key lets expect.
    pub fn of(key: &Key, entry: &Entry) -> Queue {
        let usual = match key.form() {
            Form::Chat { .. } => Queue::CHAT,
            _ if entry.is_imported() => Queue::CHAT,
            _ => Queue::default(),
        };
        Queue {
            mode: entry.queue_mode.unwrap_or(usual.mode),
            debounce_ms: entry.queue_debounce_ms.unwrap_or(usual.debounce_ms).min(QUEUE_DEBOUNCE_MS),
            cap: entry.queue_cap.or(usual.cap).filter(|cap| *cap > 0),
            drop: entry.queue_drop.unwrap_or(usual.drop),
        }
    }
}

/// Messages that were dropped for want of room, and that the agent is told of in a few words.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Summary {
    pub count: u32,
    /// The beginning of each, the oldest first; of very many only so many.
    pub lines: Vec<String>,
}

impl Summary {
    const LINES: usize = 20;
    const CHARS: usize = 160;

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn add(&mut self, text: &str) {
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        self.join(Summary { count: 1, lines: vec![one_line(first.trim(), Self::CHARS)] });
    }

    pub(crate) fn join(&mut self, other: Summary) {
        self.count = self.count.saturating_add(other.count);
        let room = Self::LINES.saturating_sub(self.lines.len());
        self.lines.extend(other.lines.into_iter().take(room));
    }

    /// What the agent is told.
    pub fn words(&self) -> String {
        let messages =
            if self.count == 1 { "1 message was" } else { &format!("{} messages were", self.count) };
        let mut words = format!("{messages} dropped because too many waited. They began:");
        for line in &self.lines {
            words.push_str("\n- ");
            words.push_str(line);
        }
        let more = self.count.saturating_sub(u32::try_from(self.lines.len()).unwrap_or(u32::MAX));
        if more > 0 {
            words.push_str(&format!("\n- and {more} more"));
        }
        words
    }
}

/// Several messages as one prompt.
pub fn collected<'a>(texts: impl ExactSizeIterator<Item = &'a str>) -> String {
    let mut prompt = format!("{} messages came while you worked:", texts.len());
    for (n, text) in texts.enumerate() {
        prompt.push_str(&format!("\n\n--- {} ---\n{text}", n + 1));
    }
    prompt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_by_their_old_names_too() {
        for (text, mode) in [
            ("\"queue\"", Mode::Followup),
            ("\"followup\"", Mode::Followup),
            ("\"steer-backlog\"", Mode::Steer),
            ("\"steer+backlog\"", Mode::Steer),
            ("\"collect\"", Mode::Collect),
            ("\"interrupt\"", Mode::Interrupt),
        ] {
            assert_eq!(serde_json::from_str::<Mode>(text).unwrap(), mode, "{text}");
        }
        for mode in Mode::ALL {
            assert_eq!(serde_json::to_string(mode).unwrap(), format!("\"{}\"", mode.as_str()));
            assert_eq!(Mode::parse(mode.as_str()), Some(*mode));
        }
        assert_eq!(Mode::parse("queue"), None, "typed words are the new ones");
    }

    #[test]
    fn chats_elsewhere_queue_as_they_are_used_to() {
        let queue =
            |key: &str, entry: &str| Queue::of(&key.parse().unwrap(), &serde_json::from_str(entry).unwrap());
        assert_eq!(queue("main", "{}"), Queue::default());
        assert_eq!(queue("agent:api:deploys", "{}"), Queue::default());
        assert_eq!(queue("agent:api:slack:dm:u1", "{}"), Queue::CHAT);
        let own = r#"{"queueMode":"collect","queueDebounceMs":0,"queueCap":3,"queueDrop":"new"}"#;
        let wanted = Queue { mode: Mode::Collect, debounce_ms: 0, cap: Some(3), drop: QueueDrop::New };
        assert_eq!(queue("agent:api:slack:dm:u1", own), wanted);
        assert_eq!(queue("main", own), wanted);
        assert_eq!(queue("agent:api:slack:dm:u1", r#"{"queueCap":0}"#).cap, None, "0 is no limit");
    }

    #[test]
    fn a_summary_names_the_first_lines_and_counts_the_rest() {
        let mut summary = Summary::default();
        summary.add("\n fix the login \nplease");
        assert_eq!(
            summary.words(),
            "1 message was dropped because too many waited. They began:\n- fix the login"
        );
        for n in 0..30 {
            summary.add(&format!("message {n}"));
        }
        let words = summary.words();
        assert!(words.starts_with("31 messages were dropped"), "{words}");
        assert!(words.ends_with("- message 18\n- and 11 more"), "{words}");
    }

    #[test]
    fn collected_messages_stay_apart() {
        let texts = ["one", "two\nlines"];
        assert_eq!(
            collected(texts.into_iter()),
            "2 messages came while you worked:\n\n--- 1 ---\none\n\n--- 2 ---\ntwo\nlines"
        );
    }
}
