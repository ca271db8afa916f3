//! Calls on the session socket: what an agent may say of itself, and what it is answered.
//!
//! A connection's first line is the session's token, every further line is one call. The socket is the identity: no call
//! says which session it is for. What is not listed here is denied, whatever it was.

use serde::{Deserialize, Serialize};

use crate::{
    MessageId, Name, Reason, Refusal, SessionId,
    ask::{Ask, Found, OutputKind, Spawn},
    budget::Amount,
    handoff::Wish,
    limits::{CALL_TEXT_BYTES, NAME_BYTES},
    session::View,
    text::one_line,
    ticket::Whole,
};

/// Something that an agent says or asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case", deny_unknown_fields)]
pub enum Call {
    /// A named part of the work begins or ends.
    Step {
        name: String,
        mark: StepMark,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        note: String,
    },
    /// A word on how things stand.
    Note { text: String },
    /// The work is done: the session ends with the turn.
    Done {
        #[serde(default, skip_serializing_if = "String::is_empty")]
        note: String,
    },
    /// The work goes on in another session: this one ends with the turn.
    Handoff(Box<Wish>),
    /// Something came out of the work.
    Output {
        name: String,
        #[serde(default)]
        kind: OutputKind,
        value: String,
    },
    /// A helper of its own, with a task.
    Spawn(Box<Spawn>),
    /// Words for somebody else.
    Send { to: String, text: String },
    /// Further agents for the mission that this session works for: TOML with nothing but `[[agents]]`.
    Assign { agents: String },
    /// What was said and done before.
    Search { text: String },
    /// The ticket that this session works on. `who` may name it, and no other.
    Ticket {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        who: Option<String>,
    },
    /// What is recorded of this session. `who` may name it, and others of its campaign where a policy lets it read them.
    Show {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        who: Option<String>,
    },
}

/// The names of all calls, for those who ask for another.
const CALLS: &[&str] =
    &["assign", "done", "handoff", "note", "output", "search", "send", "show", "spawn", "step", "ticket"];

/// What happened to a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepMark {
    Start,
    End,
    Fail,
}

impl StepMark {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "start" => Some(StepMark::Start),
            "end" => Some(StepMark::End),
            "fail" => Some(StepMark::Fail),
            _ => None,
        }
    }
}

/// A call that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallFault {
    /// Not one of [`Call`]: its name.
    Unknown(String),
    /// One of them, and not understood or too long.
    Malformed(String),
}

impl CallFault {
    pub fn refusal(&self) -> Refusal {
        match self {
            CallFault::Unknown(_) => denied(),
            CallFault::Malformed(why) => Refusal::invalid("the call is not understood").because(why.clone()),
        }
    }
}

/// The one answer to everything that is not a session's to ask: also to what does not exist.
pub fn denied() -> Refusal {
    Refusal::new(Reason::PermissionDenied, "an agent may speak for its own session only")
        .because(format!("the calls are: {}", CALLS.join(", ")))
}

impl Call {
    /// Whether a word is a call's name.
    pub fn is_name(word: &str) -> bool {
        CALLS.contains(&word)
    }

    /// Reads one line of the session socket.
    pub fn parse(line: &[u8]) -> Result<Call, CallFault> {
        #[derive(Deserialize)]
        struct Named {
            call: String,
        }
        let malformed = |error: serde_json::Error| CallFault::Malformed(error.to_string());
        let Named { call: name } = serde_json::from_slice(line).map_err(malformed)?;
        if !Self::is_name(&name) {
            return Err(CallFault::Unknown(one_line(&name, NAME_BYTES)));
        }
        Self::checked(serde_json::from_slice(line).map_err(malformed)?)
    }

    /// The call, if what it says is what one may say.
    pub(crate) fn checked(call: Call) -> Result<Call, CallFault> {
        match call.fault() {
            Some(fault) => Err(CallFault::Malformed(fault)),
            None => Ok(call),
        }
    }

    fn fault(&self) -> Option<String> {
        let too_long = |text: &String| text.len() > CALL_TEXT_BYTES;
        match self {
            Call::Step { name, .. } if name.trim().is_empty() => Some("a step has a name".to_owned()),
            Call::Step { name, .. } if name.len() > NAME_BYTES => {
                Some(format!("the name of a step has at most {NAME_BYTES} bytes"))
            }
            Call::Step { note: text, .. } | Call::Note { text } | Call::Done { note: text }
                if too_long(text) =>
            {
                Some(format!("a text has at most {CALL_TEXT_BYTES} bytes"))
            }
            Call::Handoff(wish) => wish.fault(),
            Call::Output { name, .. } if name.trim().is_empty() || name.len() > NAME_BYTES => {
                Some(format!("an output has a name of at most {NAME_BYTES} bytes"))
            }
            Call::Output { value, .. } if value.trim().is_empty() || too_long(value) => {
                Some(format!("an output has a value of at most {CALL_TEXT_BYTES} bytes"))
            }
            Call::Spawn(spawn) => Ask::Spawn((**spawn).clone()).fault(),
            Call::Send { to, text } => Ask::Send { to: to.clone(), text: text.clone() }.fault(),
            Call::Assign { agents } => Ask::Assign { agents: agents.clone() }.fault(),
            Call::Search { text } => Ask::Search { text: text.clone() }.fault(),
            Call::Ticket { who } => Ask::Ticket { who: who.clone() }.fault(),
            Call::Note { text } if text.trim().is_empty() => Some("a note has a text".to_owned()),
            _ => None,
        }
    }
}

/// One line that goes back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallLine {
    /// The call's place on the tape; 0 for what was said before there was one.
    pub call: u64,
    #[serde(flatten)]
    pub reply: Reply,
}

/// What an agent is told about its call: first that it is on the tape, then what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The keeper's word: recorded, and heard as soon as there is a daemon.
    Taped {
        /// Whether there is one now, so that an answer is to be waited for.
        daemon: bool,
    },
    /// It is so.
    Ok {},
    Session(Box<View>),
    /// The helper that was started.
    Spawned {
        session: SessionId,
        name: Name,
        /// What it may use of the asker's budget; none where that has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<Amount>,
    },
    /// The message that was accepted.
    Sent {
        message: MessageId,
    },
    /// The assignments that the mission has got.
    Assigned {
        names: Vec<Name>,
    },
    Found(Vec<Found>),
    Ticket(Box<Whole>),
    Refused(Refusal),
}

/// A step that began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepStarted {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A step that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepEnded {
    pub name: String,
    pub success: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// The agent's own word that its work is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoneReported {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn calls_are_read_strictly() {
        let call = Call::parse(br#"{"call":"step","name":"build","mark":"start"}"#).unwrap();
        assert_eq!(call, Call::Step { name: "build".into(), mark: StepMark::Start, note: String::new() });
        assert_eq!(Call::parse(br#"{"call":"show"}"#), Ok(Call::Show { who: None }));
        for malformed in [
            &br#"{"call":"step","name":"build","mark":"maybe"}"#[..],
            br#"{"call":"step","name":" ","mark":"end"}"#,
            br#"{"call":"note","text":""}"#,
            br#"{"call":"note","text":"x","session":"ses_other"}"#,
            br#"{"call":7}"#,
            b"[]",
            b"\xff",
            b"",
        ] {
            assert!(matches!(Call::parse(malformed), Err(CallFault::Malformed(_))), "{malformed:?}");
        }
        let long = format!(r#"{{"call":"note","text":"{}"}}"#, "x".repeat(CALL_TEXT_BYTES + 1));
        assert!(matches!(Call::parse(long.as_bytes()), Err(CallFault::Malformed(_))));
    }

    #[test]
    fn whatever_else_is_asked_for_gets_one_and_the_same_answer() {
        let answers = ["ls", "stop", "resume", "", "no such thing"].map(|name| {
            let line = serde_json::json!({"call": name, "who": "ses_other"}).to_string();
            Call::parse(line.as_bytes()).unwrap_err().refusal()
        });
        assert!(answers.iter().all(|answer| *answer == denied()));
        assert_eq!(denied().reason, Reason::PermissionDenied);
    }

    #[test]
    fn lines_that_go_back_are_flat() {
        let taped = CallLine { call: 7, reply: Reply::Taped { daemon: true } };
        assert_eq!(serde_json::to_string(&taped).unwrap(), r#"{"call":7,"taped":{"daemon":true}}"#);
        let refused = CallLine { call: 0, reply: Reply::Refused(denied()) };
        let text = serde_json::to_string(&refused).unwrap();
        assert_eq!(serde_json::from_str::<CallLine>(&text).unwrap(), refused);
    }

    proptest! {
        #[test]
        fn no_line_panics(line in any::<Vec<u8>>(), text in ".{0,60}") {
            let _ = Call::parse(&line);
            let _ = Call::parse(format!(r#"{{"call":"{text}"}}"#).as_bytes());
        }
    }
}
