//! [`State::apply`]: total, and the only thing that changes a state.

use std::sync::Arc;

use super::{
    Assignment, AssignmentStatus, Graph, Member, Slot, Slots, State,
    state::{Collision, End, Held, Merging, Over, Pause, Step, Stop},
};
use crate::{
    AssignmentId, SessionId, Time,
    event::{
        AssignmentBegan, AssignmentEnded, AssignmentRetried, AssignmentStarted, AssignmentsAdded,
        AssignmentsReopened, Event, MissionCreated, MissionHeld,
    },
    limits::COLLISIONS,
};

impl State {
    /// The state right after a mission's first event.
    pub fn new(created: &MissionCreated, at: Time) -> Self {
        let plan = created.plan.clone();
        let works = Arc::new(plan.agents.iter().map(|member| plan.work(member)).collect());
        let mut state = Self {
            id: created.id,
            campaign: created.campaign,
            name: created.name.clone(),
            by: created.by.clone(),
            budget: plan.budget,
            plan: Arc::new(plan),
            works,
            graph: Arc::default(),
            slots: Slots::default(),
            places: Arc::default(),
            created_at: at,
            started_at: None,
            forecast: None,
            budget_warned: false,
            deadline: None,
            time_left_us: None,
            pause: None,
            hold: None,
            stop: None,
            over: None,
            ran_us: 0,
            runs_since: None,
            merge: Merging::NotBegun,
            merges: 0,
            collisions: Vec::new(),
            added: 0,
            updated_at: at,
        };
        state.take_in(&[], &created.assignments, None);
        state
    }

    /// Folds a mission's events, the first of which creates it.
    pub fn replay<'a>(events: impl IntoIterator<Item = (Time, &'a Event)>) -> Option<Self> {
        let mut events = events.into_iter();
        let mut state = match events.next()? {
            (at, Event::MissionCreated(created)) => State::new(created, at),
            _ => return None,
        };
        for (at, event) in events {
            state.apply(at, event);
        }
        Some(state)
    }

    /// Takes one event in. Never fails; an event of something else, or of an assignment that there is not, changes nothing.
    pub fn apply(&mut self, at: Time, event: &Event) {
        if event.mission() != Some(self.id) {
            return;
        }
        self.updated_at = at;
        match event {
            Event::MissionStarted(started) => {
                self.started_at = Some(at);
                self.runs_since = Some(at);
                self.deadline.clone_from(&started.deadline);
                self.forecast = started.forecast;
            }
            Event::MissionPaused(paused) => {
                self.stand_still(at, paused.time_left_us);
                self.pause = Some(Pause {
                    by: paused.by.clone(),
                    why: paused.why.clone(),
                    at,
                    spared: paused.spared.clone(),
                });
                self.settle_times(at);
            }
            Event::MissionResumed(resumed) => {
                self.pause = None;
                self.go_on(at, resumed.deadline.as_ref());
                self.settle_times(at);
            }
            Event::MissionHeld(held) => {
                self.held(at, held);
                self.settle_times(at);
            }
            Event::MissionReleased(released) => {
                match released.assignment {
                    // Who is let go on by a person is told again before it is held again.
                    Some(id) => self.change(id, |slot| (slot.held, slot.nudged) = (None, false)),
                    None => {
                        self.hold = None;
                        self.go_on(at, released.deadline.as_ref());
                    }
                }
                self.settle_times(at);
            }
            Event::MissionBudgetWarned(_) => self.budget_warned = true,
            Event::MissionBudgetChanged(changed) => {
                self.budget = changed.budget;
                self.budget_warned = false;
            }
            Event::MissionStopRequested(stop) => {
                self.stop = Some(Stop { rule: stop.rule, by: stop.by.clone(), why: stop.why.clone() });
                // Nothing that is stopping waits for anybody.
                (self.pause, self.hold, self.deadline) = (None, None, None);
                for place in 0..self.slots.len() {
                    if self.slots[place].held.is_some() {
                        self.slots.change(place, |slot| slot.held = None);
                    }
                }
                self.settle_times(at);
            }
            Event::MissionEnded(ended) => {
                self.stand_still(at, None);
                self.over = Some(Over { status: ended.status, why: ended.why.clone(), at });
                (self.pause, self.hold, self.deadline, self.time_left_us) = (None, None, None, None);
            }
            Event::AssignmentsReady(ready) => {
                for id in &ready.assignments {
                    self.change(*id, |slot| slot.step = Step::Ready { after: None, awaits: None, since: at });
                }
            }
            Event::AssignmentStarted(started) => self.started(at, started),
            Event::AssignmentBegan(began) => self.began(began),
            Event::AssignmentMoved(moved) => self.change(moved.assignment, |slot| {
                if let Step::Running { session, .. } = &mut slot.step {
                    *session = moved.session;
                    slot.sessions.push(moved.session);
                }
            }),
            Event::AssignmentCheckStarted(check) => self.change(check.assignment, |slot| {
                if let Step::Running { session, since, .. } = slot.step {
                    let product = Arc::new(check.product.clone());
                    slot.step = Step::Checking { session, since, product };
                }
                slot.spent += check.spent;
            }),
            Event::AssignmentRetried(retried) => self.retried(at, retried),
            Event::AssignmentEnded(ended) => self.end(at, ended),
            Event::AssignmentsReopened(reopened) => self.reopen(at, reopened),
            Event::AssignmentsAdded(added) => self.add(added),
            Event::AssignmentsRemoved(removed) => {
                let end = Arc::new(End {
                    status: AssignmentStatus::Cancelled,
                    outcome: None,
                    why: format!("removed by {}", removed.by.0),
                    product: Default::default(),
                    at,
                });
                removed.assignments.iter().for_each(|id| self.remove(*id, &end));
                self.measure();
            }
            Event::AssignmentNudged(nudged) => self.change(nudged.assignment, |slot| slot.nudged = true),
            Event::AssignmentUnstuck(unstuck) => self.change(unstuck.assignment, |slot| slot.nudged = false),
            Event::CollisionForecast(forecast) => {
                let places = (self.place_of(forecast.one), self.place_of(forecast.other));
                let (Some(one), Some(other)) = places else { return };
                let is_known = |seen: &Collision| (seen.one, seen.other) == (one, other);
                let known = self.collisions.iter().position(is_known);
                let paths = forecast.paths.clone();
                match known {
                    Some(at) if paths.is_empty() => drop(self.collisions.remove(at)),
                    // They collide since they first did, wherever it is now.
                    Some(at) => self.collisions[at].paths = paths,
                    None if paths.is_empty() || self.collisions.len() >= COLLISIONS => {}
                    None => {
                        let turn = forecast.turn;
                        self.collisions.push(Collision { one, other, paths, turn, since: at });
                    }
                }
            }
            Event::MergeStarted(started) => {
                let from = started.assignments.iter().filter_map(|id| self.place_of(*id)).collect();
                self.merges = started.attempt;
                self.merge = Merging::Running { attempt: started.attempt, from };
            }
            Event::MergeChecked(checked) => {
                let (attempt, old, commit) = (checked.attempt, checked.old.clone(), checked.commit.clone());
                self.merge = Merging::Checked { attempt, old, commit };
            }
            Event::MergeMoving(_) => {
                self.merge = match std::mem::take(&mut self.merge) {
                    Merging::Checked { attempt, old, commit } => Merging::Moving { attempt, old, commit },
                    other => other,
                };
            }
            Event::MergeEnded(ended) => {
                let attempt = ended.attempt;
                self.merge = match ended.ok {
                    true => Merging::Merged { attempt, commit: ended.commit.clone() },
                    false => Merging::Failed { attempt, output: ended.output.clone() },
                };
            }
            _ => {}
        }
    }

    /// Has the time of each assignment stop or go on, as the mission and it do.
    fn settle_times(&mut self, at: Time) {
        let is_still = self.is_still();
        for place in 0..self.slots.len() {
            let slot = &self.slots[place];
            let stands = is_still || slot.held.is_some() || slot.awaits().is_some();
            if slot.started_at.is_none() || slot.is_over() || stands == slot.stands_since.is_some() {
                continue;
            }
            self.slots.change(place, |slot| if stands { slot.stand_still(at) } else { slot.go_on(at) });
        }
    }

    fn change(&mut self, id: AssignmentId, change: impl FnOnce(&mut Slot)) {
        if let Some(place) = self.place_of(id) {
            self.slots.change(place, change);
        }
    }

    /// Changes an assignment so that it is over: what needs it learns of it, once.
    fn settle(&mut self, id: AssignmentId, change: impl FnOnce(&mut Slot)) {
        let Some(place) = self.place_of(id) else { return };
        let was_over = self.slots[place].is_over();
        self.slots.change(place, change);
        if !was_over && self.slots[place].is_over() {
            let (graph, is_met) = (self.graph.clone(), self.slots[place].is_met());
            for next in graph.feeds(place) {
                self.slots.change(*next as usize, |next| {
                    next.unmet = next.unmet.saturating_sub(1);
                    next.broken += u32::from(!is_met);
                });
            }
        }
    }

    fn started(&mut self, at: Time, started: &AssignmentStarted) {
        self.change(started.assignment, |slot| {
            let (session, continues) = (started.session, started.continues);
            slot.step = Step::Running { session, continues, since: at };
            slot.attempt = started.attempt;
            slot.sessions.push(started.session);
            slot.started_at.get_or_insert(at);
            slot.go_on(at);
            slot.nudged = false;
        });
    }

    fn began(&mut self, began: &AssignmentBegan) {
        let waited = std::time::Duration::from_micros(began.waited_us);
        self.change(began.assignment, |slot| {
            slot.begun = Some(began.session);
            if slot.sessions.len() > 1 {
                slot.stood_us = slot.stood_us.saturating_add(began.waited_us);
                return;
            }
            // All that was before is no time of it, pauses included.
            slot.started_at = slot.started_at.map(|at| at.plus(waited));
            slot.stood_us = 0;
            slot.stands_since =
                slot.stands_since.max(slot.started_at.filter(|_| slot.stands_since.is_some()));
        });
    }

    fn retried(&mut self, at: Time, retried: &AssignmentRetried) {
        self.change(retried.assignment, |slot| {
            slot.step = match slot.unmet {
                0 => Step::Ready {
                    after: Some(retried.after.clone()).filter(|_| retried.awaits.is_none()),
                    awaits: retried.awaits,
                    since: at,
                },
                // What it ran without is done again meanwhile.
                _ => Step::Pending,
            };
            // Its agent is told why it is done again, and not for whom it waited.
            if retried.awaits.is_none() {
                slot.trouble = Some(retried.why.as_str().into());
            }
            slot.spent += retried.spent;
            (slot.held, slot.nudged) = (None, false);
            if slot.awaits().is_some() {
                // What somebody else does in its conversation is not its time.
                slot.stand_still(at);
            }
            if retried.never_started {
                slot.refused = slot.refused.saturating_add(u32::from(retried.awaits.is_none()));
                // There was no such session: the next one goes on with the one before it.
                slot.sessions.pop();
            } else {
                slot.refused = 0;
                slot.failures = slot.failures.saturating_add(1);
            }
        });
    }

    fn end(&mut self, at: Time, ended: &AssignmentEnded) {
        let end = End {
            status: ended.status,
            outcome: ended.outcome,
            why: ended.why.clone(),
            product: ended.product.clone(),
            at,
        };
        self.settle(ended.assignment, |slot| {
            slot.go_on(at);
            if slot.session().is_some_and(|session| ended.session != Some(session)) {
                slot.sessions.pop();
            }
            slot.step = Step::Over(Arc::new(end));
            slot.spent += ended.spent;
            (slot.held, slot.nudged) = (None, false);
        });
    }

    fn reopen(&mut self, at: Time, reopened: &AssignmentsReopened) {
        for id in &reopened.assignments {
            let Some(place) = self.place_of(*id) else { continue };
            if !self.slots[place].is_over() || self.slots[place].is_met() {
                continue;
            }
            self.slots.change(place, |slot| {
                // Nothing was done on it since it was over.
                slot.stands_since = slot.end().map(|end| end.at).filter(|_| slot.started_at.is_some());
                if let Some(why) = slot.end().map(|end| end.why.as_str()).filter(|why| !why.is_empty()) {
                    slot.trouble = Some(why.into());
                }
                slot.step = Step::Pending;
                (slot.failures, slot.refused, slot.held) = (0, 0, None);
            });
            let graph = self.graph.clone();
            for next in graph.feeds(place) {
                self.slots.change(*next as usize, |next| {
                    next.unmet += 1;
                    next.broken = next.broken.saturating_sub(1);
                    // It was about to run without what is now done after all.
                    if matches!(next.step, Step::Ready { .. }) {
                        next.step = Step::Pending;
                    }
                });
            }
        }
        if matches!(self.merge, Merging::Failed { .. }) || self.over.is_some() {
            self.merge = match self.merge {
                Merging::Merged { .. } => std::mem::take(&mut self.merge),
                _ => Merging::NotBegun,
            };
        }
        if self.over.take().is_some() {
            self.stop = None;
            self.runs_since = Some(at);
            self.deadline.clone_from(&reopened.deadline);
        } else if self.is_still() {
            self.time_left_us = reopened.time_left_us.or(self.time_left_us);
        } else if reopened.deadline.is_some() {
            self.deadline.clone_from(&reopened.deadline);
        }
    }

    fn add(&mut self, added: &AssignmentsAdded) {
        let plan = Arc::make_mut(&mut self.plan);
        plan.agents.extend(added.members.iter().cloned());
        let adder = added.from.and_then(|from| self.place_of(from));
        let asked_by = adder.and_then(|place| self.slots[place].sessions.last().copied());
        self.take_in(&added.members, &added.assignments, asked_by);
        if added.from.is_some() {
            self.added = self.added.saturating_add(added.assignments.len() as u32);
        }
    }

    fn remove(&mut self, id: AssignmentId, end: &Arc<End>) {
        let Some(place) = self.place_of(id) else { return };
        self.slots.change(place, |slot| {
            slot.removed = true;
            slot.held = None;
            slot.step = Step::Over(end.clone());
        });
        let dependants = self.graph.feeds(place).to_vec();
        Arc::make_mut(&mut self.graph).remove(place);
        for next in dependants {
            let (unmet, broken) = unmet_and_broken(&self.graph, &self.slots, next as usize);
            self.slots.change(next as usize, |next| (next.unmet, next.broken) = (unmet, broken));
        }
    }

    fn take_in(&mut self, members: &[Member], assignments: &[Assignment], asked_by: Option<SessionId>) {
        let works = Arc::make_mut(&mut self.works);
        works.extend(members.iter().map(|member| self.plan.work(member)));
        let graph = Arc::make_mut(&mut self.graph);
        let places = Arc::make_mut(&mut self.places);
        for assignment in assignments {
            // What names no member could not be told what to do.
            let Some(work) = works.get(assignment.member as usize) else { continue };
            graph.add(assignment);
            let place = self.slots.len();
            places.insert(assignment.id, place);
            let (unmet, broken) = unmet_and_broken(graph, &self.slots, place);
            self.slots.push(Slot {
                assignment: Arc::new(assignment.clone()),
                step: Step::Pending,
                attempt: 0,
                failures: 0,
                refused: 0,
                sessions: Vec::new(),
                asked_by,
                trouble: None,
                spent: Default::default(),
                started_at: None,
                stood_us: 0,
                stands_since: None,
                begun: None,
                held: None,
                nudged: false,
                unmet,
                broken,
                removed: false,
                priority: work.priority,
                height: 0,
            });
        }
        self.measure();
    }

    fn measure(&mut self) {
        Arc::make_mut(&mut self.graph).measure();
        for place in 0..self.slots.len() {
            let height = self.graph.height(place);
            if self.slots[place].height != height {
                self.slots.change(place, |slot| slot.height = height);
            }
        }
    }

    fn held(&mut self, at: Time, held: &MissionHeld) {
        let hold = Held { hold: held.hold, why: held.why.clone(), at, spared: held.spared.clone() };
        match held.assignment {
            Some(id) => self.change(id, |slot| slot.held = Some(hold)),
            None => {
                self.stand_still(at, held.time_left_us);
                self.hold = Some(hold);
            }
        }
    }

    /// Its time stops.
    fn stand_still(&mut self, at: Time, time_left_us: Option<u64>) {
        if let Some(since) = self.runs_since.take() {
            let ran = u64::try_from(at.since(since).as_micros()).unwrap_or(u64::MAX);
            self.ran_us = self.ran_us.saturating_add(ran);
        }
        self.deadline = None;
        self.time_left_us = time_left_us.or(self.time_left_us);
    }

    /// Its time goes on, unless something else still keeps it.
    fn go_on(&mut self, at: Time, deadline: Option<&crate::Deadline>) {
        if self.is_still() {
            return;
        }
        self.runs_since = self.runs_since.or(Some(at));
        self.time_left_us = None;
        self.deadline = deadline.cloned();
    }
}

/// How much of what the assignment at this place needs is not over, and how much is over and was not completed.
fn unmet_and_broken(graph: &Graph, slots: &Slots, place: usize) -> (u32, u32) {
    let needed = || graph.needs(place).iter().map(|need| &slots[*need as usize]);
    let unmet = needed().filter(|slot| !slot.is_over()).count() as u32;
    let broken = needed().filter(|slot| slot.is_over() && !slot.is_met()).count() as u32;
    (unmet, broken)
}
