//! What the screen is told, and what it wants done.

use ostler_client::{AnswerApproval, CreateSession, Received, SendMessage, Session, reply::WholeMission};
use ostler_domain::{MissionId, SessionId, Time, mission};
use ostler_screen::{
    Line,
    cost::{By, Sums},
};

use crate::state::{Addressee, Overview, Unsaid};

/// A key, as far as anybody here means something by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    /// Enter with a modifier: a line, not the end.
    NewLine,
    Esc,
    Tab,
    Back,
    Delete,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    ClearWord,
    Clear,
    /// Ctrl-C.
    Interrupt,
}

/// A mission with what is shown of it.
#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) state: mission::State,
    pub(crate) sessions: Vec<Session>,
    pub(crate) whole: WholeMission,
}

#[derive(Debug)]
pub(crate) enum Message {
    Key(Key),
    Pasted(String),
    /// The terminal came to the front, or went from there; none where it cannot be believed. Not all of them say it.
    Faced(Option<bool>),
    /// Somebody who does not look should hear this.
    Notice(String),
    /// Time has passed.
    Tick,
    /// How things stand.
    Overview(Box<Overview>),
    /// What the followed session did before, and does now.
    Told(SessionId, Vec<Received>),
    /// The daemon does not answer, since then.
    Lost(Time),
    /// The daemon was away and is back; nothing was missed.
    Back,
    Cost(By, Box<Sums>),
    Missions(Vec<ostler_client::Mission>),
    Mission(Box<Drawn>),
    /// Something was done, in words.
    Done(Vec<Line>),
    /// A session was made, or goes on in another: the cursor goes there.
    Went(SessionId, Vec<Line>),
    /// Something was refused, and with it what was written.
    Refused(Box<ostler_domain::Refusal>, Option<Unsaid>),
}

/// What the shell is to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Look how things stand.
    Refresh,
    /// Tell what this session does, from its recent past on.
    Follow(SessionId),
    Answer {
        answer: AnswerApproval,
        campaign: String,
    },
    Send(SendMessage),
    Create(Box<CreateSession>),
    Stop(SessionId),
    Pause(SessionId),
    Resume(SessionId),
    HandOff {
        who: SessionId,
        note: String,
    },
    /// Leave the screen to `ostler attach` for a while.
    Attach(SessionId),
    AskCost(By),
    AskMissions,
    AskMission(MissionId),
    /// Have the terminal tell whoever does not look at it.
    Ring(String),
    Quit,
}

impl Effect {
    /// What somebody wrote for it, which is lost if it is refused and nobody keeps it.
    pub(crate) fn written(&self) -> Option<Unsaid> {
        let (to, text) = match self {
            Effect::Create(wanted) => (None, wanted.initial_message.as_ref()?),
            Effect::Send(message) => (Some(Addressee::Session(message.who.parse().ok()?)), &message.text),
            Effect::Answer { answer, .. } => {
                let id = answer.approval.parse().ok()?;
                let to = if answer.allow { Addressee::Answer(id) } else { Addressee::Denial(id) };
                (Some(to), &answer.message)
            }
            Effect::HandOff { who, note } => (Some(Addressee::Successor(*who)), note),
            _ => return None,
        };
        (!text.is_empty()).then(|| Unsaid { to, text: text.clone() })
    }
}
