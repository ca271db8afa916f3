//! What is said of missions beside their rows.

use std::{collections::BTreeMap, time::Duration};

use ostler_domain::{
    AssignmentId, Now, SessionId, Time,
    mission::{
        AssignmentStatus, Beside, Collision, Interval, Listed, Spent, State,
        estimate::Estimate,
        eta::{Eta, HitRate},
        plan::{Fault, Plan},
    },
    price::Dollars,
    session::Outcome,
};

/// A mission with its assignments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeMission {
    /// The mission.
    pub mission: Listed,
    /// In an order in which each comes after what it needs.
    pub assignments: Vec<AssignmentRow>,
    /// What the whole mission waits for, in words; empty where it does not.
    pub wait: String,
    /// How long it still takes.
    pub eta: MissionEta,
    /// Members whose work will not merge by itself, as it stands.
    pub collisions: Vec<CollisionRow>,
    /// Why it ended as it did; empty where it has not, or where all of it was done.
    pub why: String,
    /// What its maker wanted to remember.
    pub metadata: BTreeMap<String, String>,
}

/// A mission that was paused, and how its agents were made to stand still.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PausedMission {
    /// The mission.
    pub mission: Listed,
    /// Sessions that stand still by the kernel's freezer.
    pub by_freezer: u32,
    /// Sessions whose processes were stopped by signals, where there is no freezer.
    pub by_signals: u32,
    /// Sessions that had not said that they stand still when the answer was due.
    pub not_yet: Vec<SessionId>,
}

/// What two members have written will not merge by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollisionRow {
    /// The name of one of them.
    pub one: String,
    /// The name of the other.
    pub other: String,
    /// In which files.
    pub paths: Vec<String>,
    /// The turn after which it was seen, of whoever made it.
    pub turn: Option<u32>,
    /// When it was seen.
    pub since: Time,
}

impl CollisionRow {
    /// All that are foreseen of a mission.
    pub fn all(state: &State) -> Vec<Self> {
        let name = |place: usize| state.slots()[place].assignment.name.to_string();
        let of = |seen: &Collision| Self {
            one: name(seen.one),
            other: name(seen.other),
            paths: seen.paths.clone(),
            turn: seen.turn,
            since: seen.since,
        };
        state.collisions().iter().map(of).collect()
    }
}

/// One slot of a mission, and how far it has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssignmentRow {
    /// The assignment.
    pub id: AssignmentId,
    /// Unique in the mission.
    pub name: String,
    /// What it is in the team.
    pub role: String,
    /// From 1.
    pub instance: u32,
    /// How it stands.
    pub status: AssignmentStatus,
    /// The stage of a pipeline.
    pub stage: Option<u32>,
    /// Names of those that must be over before it.
    pub needs: Vec<String>,
    /// Attempts that were made.
    pub attempt: u32,
    /// The session of the last attempt.
    pub session: Option<SessionId>,
    /// When its first attempt began.
    pub started: Option<Time>,
    /// When it was over.
    pub ended: Option<Time>,
    /// What its attempts have used so far.
    pub spent: Spent,
    /// Why it ended as it did, or why its last attempt came to nothing; may be empty.
    pub why: String,
    /// What it waits for, in words; empty where it does not.
    pub wait: String,
    /// It is no longer wanted, and nobody needs it any more.
    pub is_removed: bool,
    /// Paths that it alone may write while it works, as the plan has them.
    pub paths: Vec<String>,
    /// How the last session of one that is over ended.
    pub outcome: Option<Outcome>,
}

impl AssignmentRow {
    /// All assignments of a mission as they stand.
    pub fn all(state: &State, now: &Now, beside: &Beside) -> Vec<Self> {
        let mut waits: Vec<String> = vec![String::new(); state.slots().len()];
        for (place, wait) in state.waits(now, beside) {
            waits[place] = wait.words(state, now);
        }
        let of = |(place, wait)| Self::of(state, place, wait, beside);
        waits.into_iter().enumerate().map(of).collect()
    }

    fn of(state: &State, place: usize, wait: String, beside: &Beside) -> Self {
        let slot = &state.slots()[place];
        let mut spent = slot.spent;
        if let Some(live) = slot.session().and_then(|session| beside.live.get(&session)) {
            spent += *live;
        }
        let assignment = &slot.assignment;
        let name = |need: &u32| state.slots()[*need as usize].assignment.name.to_string();
        let status = state.status_beside(place, |session| beside.waiting.contains(&session));
        let (end, trouble) = (slot.end(), slot.trouble.as_deref().unwrap_or_default());
        Self {
            id: assignment.id,
            name: assignment.name.to_string(),
            role: assignment.role.to_string(),
            instance: assignment.instance,
            status,
            stage: assignment.stage,
            needs: state.graph().needs(place).iter().map(name).collect(),
            attempt: slot.attempt,
            session: slot.sessions.last().copied(),
            started: slot.started_at.filter(|_| slot.has_begun(status)),
            ended: end.map(|end| end.at),
            spent,
            why: end.map_or(trouble, |end| end.why.as_str()).to_owned(),
            wait,
            is_removed: slot.removed,
            paths: state.work(place).paths.clone(),
            outcome: end.and_then(|end| end.outcome),
        }
    }
}

/// How long a mission takes, from what the same sort of work took before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MissionEta {
    /// In words, also where nothing is known.
    pub words: String,
    /// None where nothing is known.
    pub interval: Option<Interval>,
    /// How often such intervals held.
    pub rate: HitRate,
}

impl MissionEta {
    /// What is said of an expectation.
    pub fn of(eta: &Eta, rate: HitRate) -> Self {
        let interval = match eta {
            Eta::In(interval) => Some(*interval),
            Eta::Over | Eta::Merge | Eta::NoHistory { .. } | Eta::LittleHistory { .. } => None,
        };
        Self { words: eta.words(&rate), interval, rate }
    }

    /// The middle of the interval.
    pub fn likely(&self) -> Option<Duration> {
        self.interval.map(|interval| interval.likely())
    }
}

/// What something would cost, from what the same sort of work cost before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MissionPrice {
    /// In words, also where nothing is known.
    pub words: String,
    /// What half of such work cost at most.
    pub likely: Dollars,
    /// What four fifths of it cost at most.
    pub high: Dollars,
    /// Assignments whose price is in it.
    pub known: u32,
    /// Assignments of which nothing is known.
    pub unknown: u32,
}

impl From<&Estimate> for MissionPrice {
    fn from(estimate: &Estimate) -> Self {
        let Estimate { likely, high, known, unknown, .. } = *estimate;
        Self { words: estimate.words(), likely, high, known, unknown }
    }
}

/// What a plan would come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedMission {
    /// Everything that is wrong with it, in the order of its lines.
    Faulty(Vec<Fault>),
    /// Nothing is wrong with it.
    Sound {
        /// With its parameters filled in.
        plan: Box<Plan>,
        /// Names of what could begin together, wave after wave.
        waves: Vec<Vec<String>>,
        /// What it would cost.
        price: MissionPrice,
        /// How long it would take.
        eta: MissionEta,
    },
}

/// What a request would have run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissionPreview {
    /// The mission as it is.
    pub mission: Listed,
    /// Names of what would be begun, now or later.
    pub runs: Vec<String>,
    /// Names of what was begun and would go on.
    pub goes_on: Vec<String>,
    /// What the former would cost.
    pub price: MissionPrice,
    /// The branch that all of it would be merged into in the end.
    pub merges_into: Option<String>,
}
