//! What an agent asks of the rest of Ostler on its session socket: helpers, words for others, the past. Its own session says
//! whether it may ask; who hears it, and what it may see, is decided where all sessions are known.

use serde::{Deserialize, Serialize};

use crate::{
    MessageId, Name, SessionId,
    budget::Amount,
    limits::{CALL_TEXT_BYTES, NAME_BYTES},
};

use crate::ticket::EXTERNAL_BYTES;

pub use crate::ticket::OutputKind;

/// How many asks of one session are under way at a time: an agent that asks faster waits for its answers.
pub const ASKS_OPEN: usize = 16;
/// Helpers of one session that have not ended, where its campaign does not say.
pub const HELPERS: u32 = 8;
/// How deep helpers may have helpers of their own.
pub const HELPER_DEPTH: u32 = 3;

/// Something that is done outside of the session that asks for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// A helper of its own, with a task.
    Spawn(Spawn),
    /// Words for somebody else: a helper, whoever it helps, or one that a policy lets it speak to.
    Send { to: String, text: String },
    /// Further agents for the mission that it works for.
    Assign { agents: String },
    /// What was said and done before, by itself and by those whose work it goes on with.
    Search { text: String },
    /// The ticket that it works on. `who` may name it, and no other.
    Ticket { who: Option<String> },
    /// What is recorded of another session of its campaign, where a policy lets it read that.
    Show { who: String },
}

/// A helper that is wanted. What is not said is as it is with whoever asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawn {
    pub worker: Name,
    pub task: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Amount>,
}

impl Ask {
    /// Why it makes no sense; none when it does.
    pub fn fault(&self) -> Option<String> {
        let (what, text) = match self {
            Ask::Spawn(spawn) => ("a task", &spawn.task),
            Ask::Send { text, .. } => ("a message", text),
            Ask::Assign { agents } => ("a list of agents", agents),
            Ask::Search { text } => ("what is looked for", text),
            Ask::Ticket { who } => return names_ticket(who.as_deref()),
            Ask::Show { who } => ("a session's name", who),
        };
        if text.trim().is_empty() {
            return Some(format!("{what} has a text"));
        }
        if text.len() > CALL_TEXT_BYTES {
            return Some(format!("a text has at most {CALL_TEXT_BYTES} bytes"));
        }
        match self {
            Ask::Send { to, .. } if to.trim().is_empty() || to.len() > 4 * NAME_BYTES => {
                Some("to whom is it said?".to_owned())
            }
            _ => None,
        }
    }

    /// Whether it changes something, so that it is recorded and done once.
    pub const fn is_change(&self) -> bool {
        !matches!(self, Ask::Search { .. } | Ask::Ticket { .. } | Ask::Show { .. })
    }

    /// What is said of it where it is denied.
    pub fn words(&self) -> String {
        match self {
            Ask::Spawn(spawn) => format!("spawn {}", spawn.worker),
            Ask::Send { to, .. } => format!("send {to}"),
            Ask::Assign { .. } => "mission add".to_owned(),
            Ask::Search { .. } => "search".to_owned(),
            Ask::Show { who } => format!("show {who}"),
            Ask::Ticket { who } => {
                format!("ticket {}", who.as_deref().unwrap_or_default()).trim_end().to_owned()
            }
        }
    }
}

fn names_ticket(who: Option<&str>) -> Option<String> {
    let is_name = |who: &str| !who.trim().is_empty() && who.len() <= EXTERNAL_BYTES;
    who.is_some_and(|who| !is_name(who)).then(|| "that is no ticket's name".to_owned())
}

/// Something was asked for; it is done once, also if the daemon dies meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The call's place on the tape.
    pub at: u64,
    #[serde(flatten)]
    pub ask: Ask,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskSettled {
    pub at: u64,
    /// The helper that was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The message that was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageId>,
    /// Why it was not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// Something that came out of a session's work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputAdded {
    pub name: String,
    pub kind: OutputKind,
    pub value: String,
}

/// One thing that was found in the past.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    pub session: String,
    pub kind: String,
    pub time: String,
    pub text: String,
}
