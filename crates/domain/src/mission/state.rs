//! What a mission's events add up to.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use super::{
    Assignment, AssignmentStatus, Graph, Hold, Interval, Plan, Product, Slots, Spent, Status, StopRule, Work,
    plan::OnDepFailure, words::micros,
};
use crate::{
    AssignmentId, CampaignId, Deadline, MissionId, Name, SessionId, Time, admission::Priority,
    budget::Amount, event::By, session::Outcome,
};

/// A mission. What never changes is shared between copies of it: a decision makes one.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    pub(super) id: MissionId,
    pub(super) campaign: CampaignId,
    pub(super) name: Name,
    pub(super) by: By,
    pub(super) plan: Arc<Plan>,
    pub(super) works: Arc<Vec<Work>>,
    pub(super) graph: Arc<Graph>,
    pub(super) slots: Slots,
    pub(super) places: Arc<BTreeMap<AssignmentId, usize>>,
    pub(super) created_at: Time,
    pub(super) started_at: Option<Time>,
    pub(super) forecast: Option<Interval>,
    pub(super) budget: Option<Amount>,
    pub(super) budget_warned: bool,
    /// When its time is used up; none while it stands still.
    pub(super) deadline: Option<Deadline>,
    pub(super) time_left_us: Option<u64>,
    pub(super) pause: Option<Pause>,
    pub(super) hold: Option<Held>,
    pub(super) stop: Option<Stop>,
    pub(super) over: Option<Over>,
    /// How long it ran before it last began to run, and when that was; none while it stands still.
    pub(super) ran_us: u64,
    pub(super) runs_since: Option<Time>,
    pub(super) merge: Merging,
    /// Merges that were begun.
    pub(super) merges: u32,
    pub(super) collisions: Vec<Collision>,
    /// Assignments that agents have added.
    pub(super) added: u32,
    pub(super) updated_at: Time,
}

/// One assignment as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Slot {
    pub assignment: Arc<Assignment>,
    pub step: Step,
    /// Those that were made; 0 before the first.
    pub attempt: u32,
    /// Attempts that came to nothing since a person last asked for it.
    pub failures: u32,
    /// Sessions that could not be created, in a row.
    pub refused: u32,
    /// The sessions of its attempts, in their order.
    pub sessions: Vec<SessionId>,
    /// The session whose agent added it while the mission ran: it has no right that this one lacks.
    pub asked_by: Option<SessionId>,
    /// Why the last attempt came to nothing.
    pub trouble: Option<Arc<str>>,
    pub spent: Spent,
    /// When its first attempt began to work.
    pub started_at: Option<Time>,
    /// The session whose wait for a place was taken out of its time.
    pub(super) begun: Option<SessionId>,
    /// How long it stood still since then, and since when it does; none while it does not.
    pub(super) stood_us: u64,
    pub(super) stands_since: Option<Time>,
    /// It waits for a person.
    pub held: Option<Held>,
    /// It was told that it does not get on.
    pub nudged: bool,
    /// What it needs and is not over, and what is over and was not completed.
    pub unmet: u32,
    pub broken: u32,
    /// It is no longer wanted, and nobody needs it any more.
    pub removed: bool,
    pub(super) priority: Priority,
    /// How many come after it, on the longest way, itself included.
    pub(super) height: u64,
}

/// How far an assignment has come.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Pending,
    /// It may start, not before a moment after a failed attempt, and not before the end of a session that has its
    /// conversation.
    Ready {
        after: Option<Deadline>,
        awaits: Option<SessionId>,
        since: Time,
    },
    Running {
        session: SessionId,
        continues: Option<SessionId>,
        since: Time,
    },
    /// Its session ended well, and a command says whether the work is done.
    Checking {
        session: SessionId,
        since: Time,
        product: Arc<Product>,
    },
    Over(Arc<End>),
}

/// How an assignment ended.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    pub status: AssignmentStatus,
    pub outcome: Option<Outcome>,
    pub why: String,
    pub product: Product,
    pub at: Time,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Pause {
    pub by: By,
    pub why: String,
    pub at: Time,
    pub(super) spared: Vec<SessionId>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    pub hold: Hold,
    pub why: String,
    pub at: Time,
    pub(super) spared: Vec<SessionId>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Stop {
    pub rule: StopRule,
    pub by: By,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Over {
    pub status: Status,
    pub why: String,
    pub at: Time,
}

/// How far the merge has come.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Merging {
    #[default]
    NotBegun,
    /// Beside the branch.
    Running {
        attempt: u32,
        from: Vec<usize>,
    },
    /// The gate has passed, and the branch is as it was.
    Checked {
        attempt: u32,
        old: String,
        commit: String,
    },
    /// The branch is being moved: whether it was is known when that has ended.
    Moving {
        attempt: u32,
        old: String,
        commit: String,
    },
    Merged {
        attempt: u32,
        commit: Option<String>,
    },
    Failed {
        attempt: u32,
        output: String,
    },
}

/// What two members have written will not merge by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collision {
    /// Their places.
    pub one: usize,
    pub other: usize,
    pub paths: Vec<String>,
    pub turn: Option<u32>,
    pub since: Time,
}

impl Slot {
    pub(super) fn is_over(&self) -> bool {
        matches!(self.step, Step::Over(_))
    }

    /// The session whose end it waits for.
    pub fn awaits(&self) -> Option<SessionId> {
        match &self.step {
            Step::Ready { awaits, .. } => *awaits,
            _ => None,
        }
    }

    pub fn end(&self) -> Option<&End> {
        match &self.step {
            Step::Over(end) => Some(end),
            _ => None,
        }
    }

    /// It begun, and has not ended: it takes a place.
    pub fn is_active(&self) -> bool {
        matches!(self.step, Step::Running { .. } | Step::Checking { .. })
    }

    /// The session that works on it, or is about to.
    pub fn session(&self) -> Option<SessionId> {
        match &self.step {
            Step::Running { session, .. } => Some(*session),
            _ => None,
        }
    }

    /// Completed, or no longer wanted: nobody waits for it in vain.
    pub(super) fn is_met(&self) -> bool {
        self.removed || self.end().is_some_and(|end| end.status == AssignmentStatus::Completed)
    }

    /// How long it has taken, all attempts together and the time between them; pauses and waits for a place do not count.
    pub fn took(&self, now: Time) -> Option<Duration> {
        let end = self.end().map_or(now, |end| end.at);
        let stands = self.stands_since.map_or(Duration::ZERO, |since| end.since(since));
        let stood = Duration::from_micros(self.stood_us).saturating_add(stands);
        self.started_at.map(|start| end.since(start).saturating_sub(stood))
    }

    /// It has worked, or does, if this is how it stands.
    pub fn has_begun(&self, status: AssignmentStatus) -> bool {
        status != AssignmentStatus::Ready || self.sessions.len() > 1
    }

    /// Its time stops.
    pub(super) fn stand_still(&mut self, at: Time) {
        if self.started_at.is_some() && !self.is_over() {
            self.stands_since.get_or_insert(at);
        }
    }

    /// Its time goes on.
    pub(super) fn go_on(&mut self, at: Time) {
        if let Some(since) = self.stands_since.take() {
            self.stood_us = self.stood_us.saturating_add(micros(at.since(since)));
        }
    }
}

impl State {
    pub fn id(&self) -> MissionId {
        self.id
    }

    pub fn campaign(&self) -> CampaignId {
        self.campaign
    }

    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Who created it.
    pub fn by(&self) -> &By {
        &self.by
    }

    /// With the members that were added.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// What the assignment at this place is to do.
    pub fn work(&self, place: usize) -> &Work {
        &self.works[self.slots[place].assignment.member as usize]
    }

    pub fn created_at(&self) -> Time {
        self.created_at
    }

    pub fn started_at(&self) -> Option<Time> {
        self.started_at
    }

    pub fn updated_at(&self) -> Time {
        self.updated_at
    }

    pub fn ended(&self) -> Option<&Over> {
        self.over.as_ref()
    }

    pub fn pause(&self) -> Option<&Pause> {
        self.pause.as_ref()
    }

    /// Why the whole mission waits for a person.
    pub fn hold(&self) -> Option<&Held> {
        self.hold.as_ref()
    }

    pub fn stop(&self) -> Option<&Stop> {
        self.stop.as_ref()
    }

    pub fn budget(&self) -> Option<Amount> {
        self.budget
    }

    pub fn forecast(&self) -> Option<Interval> {
        self.forecast
    }

    pub fn deadline(&self) -> Option<&Deadline> {
        self.deadline.as_ref()
    }

    pub fn merging(&self) -> &Merging {
        &self.merge
    }

    /// Who will collide with whom, as far as it is foreseen; nobody once all of it is merged.
    pub fn collisions(&self) -> &[Collision] {
        match self.merge {
            Merging::Merged { .. } => &[],
            _ => &self.collisions,
        }
    }

    pub fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// Whether the mission itself says what becomes of an assignment whose session was lost.
    pub fn answers_for(&self, assignment: AssignmentId) -> bool {
        let is_open = |place: usize| !self.slots[place].is_over();
        !self.is_over() && self.place_of(assignment).is_some_and(is_open)
    }

    /// Something of it goes on, or would if there were a place.
    pub(super) fn is_running(&self) -> bool {
        self.started_at.is_some() && !self.is_over()
    }

    /// Nothing new is begun.
    pub(super) fn is_still(&self) -> bool {
        self.pause.is_some() || self.hold.is_some()
    }

    pub fn status(&self) -> Status {
        match &self.over {
            Some(over) => over.status,
            None if self.started_at.is_none() => Status::Created,
            None if self.is_still() => Status::Paused,
            None => Status::Running,
        }
    }

    /// How the assignment at this place stands.
    pub fn status_of(&self, place: usize) -> AssignmentStatus {
        let slot = &self.slots[place];
        match &slot.step {
            Step::Pending => AssignmentStatus::Pending,
            Step::Ready { .. } => AssignmentStatus::Ready,
            Step::Running { .. } if self.is_frozen(place) => AssignmentStatus::Paused,
            Step::Checking { .. } if self.is_still() => AssignmentStatus::Paused,
            Step::Running { .. } | Step::Checking { .. } => AssignmentStatus::Running,
            Step::Over(end) => end.status,
        }
    }

    /// The same where it is known whose sessions wait for a place: they are ready, as those are that have no session yet.
    pub fn status_beside(&self, place: usize, is_waiting: impl Fn(SessionId) -> bool) -> AssignmentStatus {
        match self.status_of(place) {
            AssignmentStatus::Running if self.slots[place].session().is_some_and(is_waiting) => {
                AssignmentStatus::Ready
            }
            known => known,
        }
    }

    /// The same in a word for those who would speak to it.
    pub fn standing_of(&self, place: usize) -> &'static str {
        match self.slots[place].step {
            Step::Checking { .. } => "being checked",
            _ => self.status_of(place).as_str(),
        }
    }

    /// The mission keeps its session frozen.
    pub fn is_frozen(&self, place: usize) -> bool {
        let slot = &self.slots[place];
        let Some(session) = slot.session() else { return false };
        let by_pause = self.pause.as_ref().is_some_and(|pause| !pause.spared.contains(&session));
        let by_hold = self.hold.as_ref().is_some_and(|held| !held.spared.contains(&session));
        by_pause || by_hold || slot.held.is_some()
    }

    pub fn place_of(&self, id: AssignmentId) -> Option<usize> {
        self.places.get(&id).copied()
    }

    /// The assignment that a person means: by name, by id or by the long form.
    pub fn find(&self, text: &str) -> Option<usize> {
        self.slots.iter().position(|slot| slot.assignment.is_called(text))
    }

    /// Says whether an agent of this plan had this name, and is no longer wanted, or not in all its instances.
    pub fn has_removed(&self, name: &Name) -> bool {
        let is_named = |slot: &Slot| {
            self.plan.agents.get(slot.assignment.member as usize).is_some_and(|own| own.name == *name)
        };
        self.slots.iter().any(|slot| slot.removed && is_named(slot))
    }

    /// The assignment whose attempt this session is, or was.
    pub fn of_session(&self, session: SessionId) -> Option<usize> {
        self.slots.of_session(session)
    }

    /// How long it has run; pauses do not count.
    pub fn ran(&self, now: Time) -> Duration {
        let since = self.runs_since.map_or(Duration::ZERO, |since| now.since(since));
        Duration::from_micros(self.ran_us).saturating_add(since)
    }

    /// What its ended attempts have used.
    pub fn spent(&self) -> Spent {
        let mut spent = Spent::default();
        self.slots.iter().for_each(|slot| spent += slot.spent);
        spent
    }

    /// Has what ended assignments cost be what it comes to at the prices of now.
    pub fn price(&mut self, costs: impl IntoIterator<Item = (AssignmentId, Spent)>) {
        for (id, Spent { cost, unpriced, .. }) in costs {
            if let Some(place) = self.place_of(id).filter(|place| self.slots[*place].is_over()) {
                self.slots.change(place, |slot| (slot.spent.cost, slot.spent.unpriced) = (cost, unpriced));
            }
        }
    }

    /// A need of the assignment at this place that was not completed, where that matters to it.
    pub(super) fn failed_need(&self, place: usize) -> Option<usize> {
        if self.slots[place].broken == 0 || self.work(place).on_dep_failure == OnDepFailure::Run {
            return None;
        }
        let failed = |need: &usize| self.slots[*need].is_over() && !self.slots[*need].is_met();
        self.graph.needs(place).iter().map(|need| *need as usize).find(failed)
    }
}
