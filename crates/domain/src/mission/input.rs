//! What comes into [`decide`](super::decide) and what goes out of it.

use std::{collections::BTreeSet, time::Duration};

use serde::{Deserialize, Serialize};

use super::{Interval, Member, Product, Spent, words::words};
use crate::{
    AssignmentId, Deadline, Now, SessionId,
    budget::{Amount, Used},
    event::{By, Event},
    session::Outcome,
};

/// Time, entropy and what is known of sessions for one decision, read by the shell.
#[derive(Debug, Clone)]
pub struct Context {
    pub now: Now,
    pub entropy: u128,
    /// What all sessions of the mission have used so far.
    pub used: Used,
    /// Members' sessions that somebody paused, and not their mission.
    pub paused_by_hand: BTreeSet<SessionId>,
    /// Everything on this machine is halted.
    pub halted: bool,
}

/// Anything that may change a mission.
#[derive(Debug, Clone)]
pub enum Input {
    /// A wish of a person, of the engine, or of a member's agent.
    Request(Request, By),
    /// The attempt's session exists. Another one than was asked for is one that goes on with it.
    SessionStarted { assignment: AssignmentId, attempt: u32, session: SessionId },
    /// The agent of the attempt's session starts, which was in the line for a place for so long.
    SessionBegan { assignment: AssignmentId, attempt: u32, session: SessionId, waited: Duration },
    /// The attempt's session could not be created.
    StartRefused {
        assignment: AssignmentId,
        attempt: u32,
        why: String,
        /// Trying again would be refused again.
        is_final: bool,
    },
    /// The attempt's session could not be created because this one, which somebody else asked for, has its conversation.
    StartAwaits { assignment: AssignmentId, attempt: u32, session: SessionId },
    /// A session that attempts wait for has ended.
    Freed { session: SessionId },
    /// The attempt's session ended. One that ended with a handoff goes on in another, which
    /// [`Input::SessionStarted`] names.
    SessionEnded { assignment: AssignmentId, attempt: u32, session: SessionId, end: Box<SessionEnd> },
    /// The command that says whether the work is done has ended.
    Checked { assignment: AssignmentId, attempt: u32, passed: bool, output: String },
    /// An agent does the same again and again, or gets nowhere.
    Stuck { assignment: AssignmentId, attempt: u32, stuck: Stuck },
    /// An agent that was told so gets on.
    ProgressSeen { assignment: AssignmentId, attempt: u32 },
    /// What two members have written will not merge by itself; with no paths, it will again.
    Collision { one: AssignmentId, other: AssignmentId, paths: Vec<String>, turn: Option<u32> },
    /// The members' branches were merged beside the branch that they are to come into, and the gate has passed; or why not.
    MergeTried { attempt: u32, tried: Result<Tried, String> },
    /// The branch was moved, or could not be.
    Merged { attempt: u32, ok: bool, output: String, commit: Option<String> },
    /// A moment that [`Effect::WakeAt`] named has come, or its sessions have used something, or neither.
    Tick,
}

/// A merge that nobody sees yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// Where the branch was.
    pub old: String,
    /// Where it is to be.
    pub commit: String,
}

/// A command that a mission runs for itself. It never outlives the daemon that began it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Errand {
    /// The one that says whether an attempt's work is done.
    Check { assignment: AssignmentId, attempt: u32 },
    /// The merge beside the branch, and its gate.
    Merge { attempt: u32 },
}

/// How a member's session ended.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionEnd {
    pub outcome: Outcome,
    /// Its obituary's sentence.
    pub why: String,
    /// Its agent said that its work is done.
    pub said_done: bool,
    /// Whoever tries again meets the same end.
    pub is_final: bool,
    pub product: Product,
    /// By all sessions of the attempt.
    pub spent: Spent,
}

/// A wish.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    Start {
        /// How long it is expected to take, to be compared with what it takes.
        forecast: Option<Interval>,
    },
    Pause {
        why: String,
    },
    /// Goes on, with more of what was used up where that is said.
    Resume {
        budget: Option<Amount>,
        time: Option<Duration>,
        /// Those of the assignments that wait for a person which go on; all of them where none is named.
        which: Vec<AssignmentId>,
    },
    Cancel {
        why: String,
    },
    /// Does again what failed, was skipped or was cancelled, and what follows from it; all of it where nothing is named.
    Retry {
        which: Vec<AssignmentId>,
        /// More of what was used up; the time of one that is over begins anew with this, or with its plan's.
        budget: Option<Amount>,
        time: Option<Duration>,
    },
    Add {
        members: Vec<Member>,
        /// Whose agent asks; none for a person.
        from: Option<AssignmentId>,
    },
    Remove {
        which: Vec<AssignmentId>,
    },
}

impl Request {
    /// Sessions are started for it.
    pub const fn begins_something(&self) -> bool {
        match self {
            Request::Start { .. } | Request::Resume { .. } | Request::Retry { .. } | Request::Add { .. } => {
                true
            }
            Request::Pause { .. } | Request::Cancel { .. } | Request::Remove { .. } => false,
        }
    }
}

/// An agent does not get on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck {
    pub kind: StuckKind,
    /// `the same call 5 times: cargo test`.
    pub evidence: String,
    /// It was told so before, and has not got the message by now.
    pub is_unread: bool,
}

/// In which way an agent does not get on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StuckKind {
    Loop,
    NoProgress,
}

words!(StuckKind { Loop = "loop", NoProgress = "no_progress" });

/// What follows from an input: facts to record at once, then work to do.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    pub events: Vec<Event>,
    pub effects: Vec<Effect>,
}

/// Work for the shell, done only after the events are durable, in this order. Each may be repeated without harm.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Create this session, unless there is one with this id.
    Start(StartSession),
    /// End the session, if it has not ended.
    Stop { session: SessionId },
    /// Pause the session, or let it go on.
    Freeze { session: SessionId, frozen: bool },
    /// Run the command where the attempt worked, unless it runs; one that is frozen goes on.
    Check { assignment: AssignmentId, attempt: u32, session: SessionId, command: String },
    /// Say this to the session's agent, once for each attempt and text.
    Tell { session: SessionId, text: String },
    /// Merge the branches of these members' sessions, in this order, beside the branch that they are to come into, and
    /// run the gate there, unless that runs; one that is frozen goes on.
    Merge { attempt: u32, into: String, gate: Option<String>, from: Vec<(AssignmentId, SessionId)> },
    /// Freeze the errand, if it runs.
    FreezeErrand(Errand),
    /// End the errand, and say so when nothing of it is left, also where nothing was.
    EndErrand(Errand),
    /// Move the branch from where it was to the merge, unless it has it. Nobody is heard before that has ended.
    Move { attempt: u32, into: String, old: String, commit: String },
    /// Come back with [`Input::Tick`] then; replaces an earlier one.
    WakeAt(Deadline),
    /// The mission is over: write its report.
    WriteReport,
}

/// The session of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartSession {
    pub assignment: AssignmentId,
    pub attempt: u32,
    /// The id that the session is to have.
    pub session: SessionId,
    /// The session of the attempt before, with which it goes on.
    pub continues: Option<SessionId>,
    /// Why the attempt before came to nothing: its agent is told.
    pub why: Option<String>,
}
