//! Bodies: what happened to missions and their assignments. They are the node's, and name the session they are about.

use serde::{Deserialize, Serialize};

use crate::{
    AssignmentId, CampaignId, Deadline, MissionId, Name, SessionId,
    budget::Amount,
    event::{By, Event},
    mission::{
        Assignment, AssignmentStatus, Hold, Interval, Key, Member, Plan, Product, Spent, Status, StopRule,
        StuckKind,
    },
    session::Outcome,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MissionCreated {
    pub id: MissionId,
    pub campaign: CampaignId,
    pub name: Name,
    pub plan: Plan,
    /// All there are, in an order in which each comes after what it needs.
    pub assignments: Vec<Assignment>,
    pub by: By,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MissionStarted {
    pub mission: MissionId,
    pub by: By,
    /// When its time is used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// How long it was expected to take, where there was a history to say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Interval>,
}

/// What these needed is over, as far as it matters to them: they start when there is a place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssignmentsReady {
    pub mission: MissionId,
    pub assignments: Vec<AssignmentId>,
}

/// Recorded before its session is created, which then has this id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssignmentStarted {
    pub mission: MissionId,
    pub assignment: AssignmentId,
    /// From 1.
    pub attempt: u32,
    pub session: SessionId,
    /// The session of the attempt before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<SessionId>,
    /// What is done: the same is never done again once it is completed.
    pub key: Key,
}

/// The attempt goes on in another session, to which its work was handed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssignmentMoved {
    pub mission: MissionId,
    pub assignment: AssignmentId,
    pub attempt: u32,
    pub session: SessionId,
}

/// Its session ended well, and a command says whether the work is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssignmentCheckStarted {
    pub mission: MissionId,
    pub assignment: AssignmentId,
    pub attempt: u32,
    pub command: String,
    #[serde(default)]
    pub spent: Spent,
    #[serde(default, skip_serializing_if = "Product::is_empty")]
    pub product: Product,
}

/// An attempt came to nothing, and there will be another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssignmentRetried {
    pub mission: MissionId,
    pub assignment: AssignmentId,
    /// The one that failed.
    pub attempt: u32,
    /// How its session ended; none where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    pub why: String,
    #[serde(default)]
    pub spent: Spent,
    /// When the next one may start.
    pub after: Deadline,
    /// Its session could not be created: that is no attempt of the agent's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never_started: bool,
    /// The session that has its conversation: the next attempt waits for the end of that one, and not for a moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits: Option<SessionId>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssignmentEnded {
    pub mission: MissionId,
    pub assignment: AssignmentId,
    /// One of the final ones.
    pub status: AssignmentStatus,
    /// The last one; 0 where none was made.
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Empty where it was completed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    #[serde(default, skip_serializing_if = "Product::is_empty")]
    pub product: Product,
    /// Of the last attempt.
    #[serde(default)]
    pub spent: Spent,
    /// All attempts and the time between them, without pauses; none where none was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_us: Option<u64>,
}

/// Its session was in the line for a place until now. That is no time of its work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssignmentBegan {
    pub mission: MissionId,
    pub assignment: AssignmentId,
    pub attempt: u32,
    pub session: SessionId,
    pub waited_us: u64,
}

/// They are to be done after all: a person asked for it. A mission that was over goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssignmentsReopened {
    pub mission: MissionId,
    pub assignments: Vec<AssignmentId>,
    pub by: By,
    /// When the mission's time is used up, where it was over or is given more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
    /// What is left of its time, where it is given more and stands still.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_left_us: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssignmentsAdded {
    pub mission: MissionId,
    pub members: Vec<Member>,
    /// Instances of the members, which come after those there are.
    pub assignments: Vec<Assignment>,
    pub by: By,
    /// Whose agent asked for them; none where a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<AssignmentId>,
}

/// They are no longer wanted, and had not begun. What needed them no longer does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssignmentsRemoved {
    pub mission: MissionId,
    pub assignments: Vec<AssignmentId>,
    pub by: By,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MissionPaused {
    pub mission: MissionId,
    pub by: By,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Sessions that somebody had paused before: neither this nor the end of it touches them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spared: Vec<SessionId>,
    /// What is left of its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_left_us: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MissionResumed {
    pub mission: MissionId,
    pub by: By,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
}

/// The mission, or one assignment of it, waits for a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MissionHeld {
    pub mission: MissionId,
    pub hold: Hold,
    /// None for the whole mission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<AssignmentId>,
    pub why: String,
    /// As with a pause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spared: Vec<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_left_us: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MissionReleased {
    pub mission: MissionId,
    pub hold: Hold,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assignment: Option<AssignmentId>,
    pub by: By,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Deadline>,
}

/// Four fifths of its budget are used, or all of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MissionBudgetWarned {
    pub mission: MissionId,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MissionBudgetChanged {
    pub mission: MissionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Amount>,
    pub by: By,
}

/// It ends before its work is done: what runs is stopped, what has not begun is not begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MissionStopRequested {
    pub mission: MissionId,
    pub rule: StopRule,
    pub by: By,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MissionEnded {
    pub mission: MissionId,
    /// One of those in which it is over.
    pub status: Status,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// How long it ran; pauses do not count.
    pub ran_us: u64,
}

/// An agent does the same again and again, or gets nowhere, and was told so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssignmentNudged {
    pub mission: MissionId,
    pub assignment: AssignmentId,
    pub attempt: u32,
    pub stuck: StuckKind,
    pub evidence: String,
}

/// One that had been told so gets on again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssignmentUnstuck {
    pub mission: MissionId,
    pub assignment: AssignmentId,
    pub attempt: u32,
}

/// What two members have written will not merge by itself; with no paths, it will again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CollisionForecast {
    pub mission: MissionId,
    pub one: AssignmentId,
    pub other: AssignmentId,
    pub paths: Vec<String>,
    /// The turn after which it was seen, of whoever made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
}

/// The members' branches are being merged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MergeStarted {
    pub mission: MissionId,
    /// From 1.
    pub attempt: u32,
    pub into: String,
    /// Those whose branches are merged, in this order.
    pub assignments: Vec<AssignmentId>,
}

/// The branches merge and the gate has passed. That was done beside the branch, which is as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MergeChecked {
    pub mission: MissionId,
    pub attempt: u32,
    /// Where the branch was.
    pub old: String,
    /// Where it is to be.
    pub commit: String,
}

/// The branch is moved to what was merged: nothing stood in the way at this moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MergeMoving {
    pub mission: MissionId,
    pub attempt: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MergeEnded {
    pub mission: MissionId,
    pub attempt: u32,
    /// Merged, and the gate passed. Otherwise the branch is as it was.
    pub ok: bool,
    /// What git or the gate said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// What a mission left behind was cleared away: the directory that its members shared is in the archive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MissionArchived {
    pub mission: MissionId,
    /// The rule that said so; empty where a person did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rule: String,
    /// Work trees of its members that went before it.
    pub worktrees: u32,
    /// What its files took, and what they take now.
    pub bytes: u64,
    pub archived_bytes: u64,
    pub by: By,
}

impl Event {
    /// The mission that an event is about.
    pub fn mission(&self) -> Option<MissionId> {
        Some(match self {
            Event::MissionCreated(created) => created.id,
            Event::MissionStarted(body) => body.mission,
            Event::MissionPaused(body) => body.mission,
            Event::MissionResumed(body) => body.mission,
            Event::MissionHeld(body) => body.mission,
            Event::MissionReleased(body) => body.mission,
            Event::MissionBudgetWarned(body) => body.mission,
            Event::MissionBudgetChanged(body) => body.mission,
            Event::MissionStopRequested(body) => body.mission,
            Event::MissionEnded(body) => body.mission,
            Event::AssignmentsReady(body) => body.mission,
            Event::AssignmentStarted(body) => body.mission,
            Event::AssignmentBegan(body) => body.mission,
            Event::AssignmentMoved(body) => body.mission,
            Event::AssignmentCheckStarted(body) => body.mission,
            Event::AssignmentRetried(body) => body.mission,
            Event::AssignmentEnded(body) => body.mission,
            Event::AssignmentsReopened(body) => body.mission,
            Event::AssignmentsAdded(body) => body.mission,
            Event::AssignmentsRemoved(body) => body.mission,
            Event::AssignmentNudged(body) => body.mission,
            Event::AssignmentUnstuck(body) => body.mission,
            Event::CollisionForecast(body) => body.mission,
            Event::MergeStarted(body) => body.mission,
            Event::MergeChecked(body) => body.mission,
            Event::MergeMoving(body) => body.mission,
            Event::MergeEnded(body) => body.mission,
            Event::MissionArchived(body) => body.mission,
            _ => return None,
        })
    }
}
