//! Tickets: units of work. A ticket outlives the sessions that try to do it, and remembers what came of each.

mod depend;
mod external;
mod import;
mod status;

use serde::{Deserialize, Serialize};

pub use depend::{Blocker, cycle, waits_for};
pub use external::{EXTERNAL_BYTES, ExternalError, ExternalRef};
pub use import::{Format, IMPORTED, ImportChange, Imported, Work, read as read_work};
pub use status::{AfterSession, MoveFault, Status, Verb};

use crate::{
    CampaignId, ConversationId, SessionId, TicketId, Time, Usage, call::StepMark, conversation::TurnRef,
    event::By, limits::NAME_BYTES, price::Dollars, session::Outcome, text::one_line,
};

/// Longest intent: it is what an agent is told.
pub const INTENT_BYTES: usize = 256 * 1024;
/// Longest value of an output: more belongs into a file, and its path into the ticket.
pub const OUTPUT_BYTES: usize = 1024 * 1024;
/// Most tickets that one ticket waits for.
pub const DEPENDENCIES: usize = 200;
/// The type of a ticket of which nobody said one.
pub const USUAL_TYPE: &str = "task";

/// A ticket as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    pub id: TicketId,
    pub campaign: CampaignId,
    pub about: About,
    pub links: Links,
    pub status: Status,
    pub added: Time,
    /// Who wrote it down.
    pub by: By,
    /// When its status last changed.
    pub moved: Time,
    /// Why it is in that status, in words.
    pub why: Option<String>,
}

/// What a ticket is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// What is to be done, in full.
    pub intent: String,
    /// What sort of work it is: `task`, `bug`, `review`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// What a ticket belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Links {
    /// What it is elsewhere; unique in its campaign.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalRef>,
    /// The dialogue in which it is worked on; none for work that needs no memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
    /// What must be done before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<TicketId>,
}

/// Something that came of a ticket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    pub name: String,
    pub kind: OutputKind,
    pub value: String,
}

/// What an output's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputKind {
    #[default]
    Text,
    Path,
    Commit,
    Url,
}

/// A point that one can return to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<TurnRef>,
    /// The files as they were then: the id of a snapshot, or a commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
}

/// Something of a ticket, with when it came and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dated<T> {
    pub what: T,
    pub time: Time,
    pub by: By,
    /// The session that it came from.
    pub session: Option<SessionId>,
}

/// One run of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub name: String,
    /// The session that said so; none where a person did.
    pub session: Option<SessionId>,
    /// None where nobody said that it began.
    pub started: Option<Time>,
    pub ended: Option<Time>,
    pub success: Option<bool>,
    pub note: String,
}

/// One attempt at a ticket: a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Iteration {
    pub session: SessionId,
    pub name: String,
    pub provider: String,
    pub started: Time,
    pub ended: Option<Time>,
    /// None while it goes on.
    pub result: Option<Outcome>,
    pub usage: Usage,
    /// What was paid for its calls, each counted once; none where not all of them have a price.
    pub cost: Option<Dollars>,
    pub calls: u64,
}

/// A ticket and all that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whole {
    pub ticket: Ticket,
    /// What it waits for, and how that stands.
    pub depends_on: Vec<Blocker>,
    pub outputs: Vec<Dated<Output>>,
    pub checkpoints: Vec<Dated<Checkpoint>>,
    pub steps: Vec<Step>,
    pub iterations: Vec<Iteration>,
}

/// How much of a ticket its agent is told: the rest is a person's to read.
const TOLD_INTENT: usize = 64 * 1024;
const TOLD_VALUE: usize = 4 * 1024;
const TOLD_NOTE: usize = 200;
const TOLD_ROWS: usize = 20;

impl Whole {
    /// The ticket in a length that an agent can be told: long texts are cut, and say so; of long lists it is the newest.
    #[must_use]
    pub fn told(mut self) -> Whole {
        fn newest<T>(rows: &mut Vec<T>) {
            rows.drain(..rows.len().saturating_sub(TOLD_ROWS));
        }
        newest(&mut self.depends_on);
        newest(&mut self.outputs);
        newest(&mut self.checkpoints);
        newest(&mut self.steps);
        newest(&mut self.iterations);
        cut(&mut self.ticket.about.intent, TOLD_INTENT);
        self.ticket.why = self.ticket.why.map(|why| one_line(&why, TOLD_NOTE));
        self.depends_on.iter_mut().for_each(|blocker| blocker.title = one_line(&blocker.title, TOLD_NOTE));
        self.outputs.iter_mut().for_each(|output| cut(&mut output.what.value, TOLD_VALUE));
        self.steps.iter_mut().for_each(|step| step.note = one_line(&step.note, TOLD_NOTE));
        self
    }
}

fn cut(text: &mut String, most: usize) {
    let whole = text.len();
    if whole > most {
        text.truncate(text.floor_char_boundary(most));
        text.push_str(&format!("\n… cut: {whole} bytes in all"));
    }
}

/// Why something said about a ticket is refused, in words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TicketFault(pub String);

impl About {
    pub fn new(intent: &str, kind: Option<&str>) -> Result<About, TicketFault> {
        let intent = intent.trim();
        if intent.is_empty() {
            return Err(TicketFault("a ticket says what is to be done".to_owned()));
        }
        if intent.len() > INTENT_BYTES {
            return Err(TicketFault("an intent has at most 256 KiB".to_owned()));
        }
        let kind = kind.unwrap_or(USUAL_TYPE).trim();
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        if kind.is_empty() || kind.len() > NAME_BYTES || !kind.chars().all(is_word) {
            return Err(TicketFault("a type is one word in small letters: task, bug, review".to_owned()));
        }
        Ok(About { intent: intent.to_owned(), kind: kind.to_owned() })
    }

    /// The first line: what lists show.
    pub fn title(&self) -> &str {
        self.intent.lines().next().unwrap_or_default().trim()
    }
}

impl Ticket {
    /// How sessions and people name it: what it is elsewhere, or its id.
    pub fn shown(&self) -> String {
        self.links.external.as_ref().map_or_else(|| self.id.to_string(), ToString::to_string)
    }
}

impl OutputKind {
    pub const ALL: [OutputKind; 4] = [Self::Text, Self::Path, Self::Commit, Self::Url];

    pub const fn as_str(self) -> &'static str {
        match self {
            OutputKind::Text => "text",
            OutputKind::Path => "path",
            OutputKind::Commit => "commit",
            OutputKind::Url => "url",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

impl Output {
    pub fn new(name: &str, kind: OutputKind, value: &str) -> Result<Output, TicketFault> {
        check_name(name, "an output")?;
        if value.trim().is_empty() {
            return Err(TicketFault(format!("the output {} has no value", name.trim())));
        }
        if value.len() > OUTPUT_BYTES {
            return Err(TicketFault("an output has at most 1 MiB; a larger one is a path".to_owned()));
        }
        let is_line = !value.trim().contains(char::is_control);
        let is_hash = |text: &str| text.len() >= 4 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let fits = match kind {
            OutputKind::Text => true,
            OutputKind::Path => is_line,
            OutputKind::Commit => is_hash(value.trim()),
            OutputKind::Url => is_line && value.contains("://"),
        };
        if !fits {
            return Err(TicketFault(format!("that is no {}", kind.as_str())));
        }
        let value = if kind == OutputKind::Text { value } else { value.trim() };
        Ok(Output { name: name.trim().to_owned(), kind, value: value.to_owned() })
    }
}

/// Names of outputs, checkpoints and steps: one line that fits into a list.
pub fn check_name(name: &str, whose: &str) -> Result<(), TicketFault> {
    let name = name.trim();
    if name.is_empty() || name.len() > NAME_BYTES || name.contains(char::is_control) {
        return Err(TicketFault(format!("{whose} has a name: one line of at most {NAME_BYTES} bytes")));
    }
    Ok(())
}

/// What is said about a step, and about the last run of it, fits together.
pub fn check_step(mark: StepMark, last: Option<&Step>) -> Result<(), TicketFault> {
    let is_open = last.is_some_and(|step| step.ended.is_none());
    match (mark, is_open) {
        (StepMark::Start, true) => Err(TicketFault("the step has begun and has not ended".to_owned())),
        (StepMark::End | StepMark::Fail, false) => {
            Err(TicketFault("no such step has begun and not ended".to_owned()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_checked() {
        let about = About::new(" Fix the login\n\nIt fails at noon. ", Some("bug")).unwrap();
        assert_eq!((about.title(), about.kind.as_str()), ("Fix the login", "bug"));
        assert_eq!(About::new("x", None).unwrap().kind, USUAL_TYPE);
        for wrong in [("", None), (" \n", None), ("x", Some("Two words")), ("x", Some(""))] {
            assert!(About::new(wrong.0, wrong.1).is_err(), "{wrong:?}");
        }
        assert!(About::new(&"x".repeat(INTENT_BYTES + 1), None).is_err());
    }

    #[test]
    fn an_agent_is_told_of_a_ticket_in_few_words() {
        let output = |n: usize| Dated {
            what: Output {
                name: n.to_string(), kind: OutputKind::Text, value: "é".repeat(OUTPUT_BYTES / 2)
            },
            time: Time::from_micros(1),
            by: By("ann".to_owned()),
            session: None,
        };
        let whole = Whole {
            ticket: Ticket {
                id: TicketId::new(Time::from_micros(1), 1),
                campaign: CampaignId::new(Time::from_micros(1), 2),
                about: About { intent: "\u{1}".repeat(INTENT_BYTES), kind: "task".to_owned() },
                links: Links::default(),
                status: Status::Running,
                added: Time::from_micros(1),
                by: By("ann".to_owned()),
                moved: Time::from_micros(1),
                why: Some("w".repeat(100_000)),
            },
            depends_on: Vec::new(),
            outputs: (0..100).map(output).collect(),
            checkpoints: Vec::new(),
            steps: Vec::new(),
            iterations: Vec::new(),
        };
        let told = whole.told();
        assert_eq!((told.outputs.len(), told.outputs[0].what.name.as_str()), (TOLD_ROWS, "80"));
        assert!(told.outputs[0].what.value.ends_with("… cut: 1048576 bytes in all"));
        let answer = serde_json::to_vec(&told).unwrap();
        assert!(answer.len() < crate::limits::CALL_WAITING_BYTES, "{}", answer.len());
        assert_eq!(serde_json::from_slice::<Whole>(&answer).unwrap(), told);
    }

    #[test]
    fn outputs_are_what_they_say() {
        let fine = [
            (OutputKind::Text, "two\nlines"),
            (OutputKind::Path, "report.md"),
            (OutputKind::Commit, "deadbeef"),
            (OutputKind::Url, "https://example.org/pull/7"),
        ];
        for (kind, value) in fine {
            assert_eq!(Output::new("o", kind, value).unwrap().value, value);
            assert_eq!(OutputKind::parse(kind.as_str()), Some(kind));
        }
        let wrong = [
            ("", OutputKind::Text, "x"),
            ("a\nb", OutputKind::Text, "x"),
            ("o", OutputKind::Text, " "),
            ("o", OutputKind::Path, "a\nb"),
            ("o", OutputKind::Commit, "main"),
            ("o", OutputKind::Url, "example.org"),
        ];
        for (name, kind, value) in wrong {
            assert!(Output::new(name, kind, value).is_err(), "{name:?} {kind:?} {value:?}");
        }
    }

    #[test]
    fn a_step_begins_before_it_ends() {
        let step = |ended| Step {
            name: "build".to_owned(),
            session: None,
            started: Some(Time::from_micros(1)),
            ended,
            success: None,
            note: String::new(),
        };
        let (open, over) = (step(None), step(Some(Time::from_micros(2))));
        for (mark, last, is_fine) in [
            (StepMark::Start, None, true),
            (StepMark::Start, Some(&open), false),
            (StepMark::Start, Some(&over), true),
            (StepMark::End, Some(&open), true),
            (StepMark::Fail, Some(&over), false),
            (StepMark::End, None, false),
        ] {
            assert_eq!(check_step(mark, last).is_ok(), is_fine, "{mark:?} {last:?}");
        }
    }
}
