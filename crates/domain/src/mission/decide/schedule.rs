//! What goes on when something has changed: who is skipped, who may start and who does, the merge, the end.

use std::collections::BTreeMap;

use super::{
    Draft,
    merge::{self, can_merge, is_to_merge},
};
use crate::{
    Deadline,
    event::{AssignmentStarted, AssignmentsReady, By, Event, MissionEnded, MissionHeld, MissionReleased},
    mission::{
        AssignmentStatus, Effect, Hold, Merging, StartSession, State, Status, StopRule, Wait,
        plan::{OnDepFailure, Worktree},
        state::Step,
        words::micros,
    },
};

/// Brings the mission as far as it goes now.
pub(super) fn advance(draft: &mut Draft<'_>) {
    if draft.state.is_over() || (draft.state.started_at.is_none() && draft.state.stop.is_none()) {
        return;
    }
    if draft.state.stop.is_some() {
        give_up(draft);
    } else {
        settle(draft);
        start(draft);
        merge::advance(draft);
    }
    end(draft);
    wake(draft);
}

/// What has not begun is not begun; what runs is being stopped.
fn give_up(draft: &mut Draft<'_>) {
    let Some(rule) = draft.state.stop.as_ref().map(|stop| stop.rule) else { return };
    let why = format!("the mission was stopped ({})", rule.as_str());
    for place in 0..draft.state.slots.len() {
        match draft.state.slots[place].step {
            Step::Pending | Step::Ready { .. } => {
                let ending = draft.ending(place, AssignmentStatus::Cancelled, &why);
                draft.end(place, ending);
            }
            Step::Running { .. } | Step::Checking { .. } | Step::Over(_) => {}
        }
    }
    merge::give_up(draft, rule);
}

/// Those whose needs are over become ready, are skipped, or wait for a person. One pass: each comes after what it needs.
fn settle(draft: &mut Draft<'_>) {
    let mut ready = Vec::new();
    let mut next = 0;
    while let Some(place) = draft.state.slots.due_from(next) {
        next = place + 1;
        let slot = &draft.state.slots[place];
        let is_blocked = slot.held.as_ref().is_some_and(|held| held.hold == Hold::Dependency);
        match (draft.state.failed_need(place), draft.state.work(place).on_dep_failure) {
            (Some(need), OnDepFailure::Skip) => {
                let why = format!("{} {}", draft.assignment(need).name, ended_word(draft, need));
                let ending = draft.ending(place, AssignmentStatus::Skipped, &why);
                draft.end(place, ending);
            }
            (Some(need), _) if !is_blocked => block(draft, place, need),
            (Some(_), _) => {}
            (None, _) => {
                if is_blocked {
                    release(draft, place);
                }
                if draft.state.slots[place].unmet == 0 {
                    ready.push(draft.assignment(place).id);
                }
            }
        }
    }
    if !ready.is_empty() {
        let mission = draft.state.id;
        draft.record(Event::AssignmentsReady(AssignmentsReady { mission, assignments: ready }));
    }
}

fn ended_word(draft: &Draft<'_>, place: usize) -> &'static str {
    match draft.state.status_of(place) {
        AssignmentStatus::Skipped => "was skipped",
        AssignmentStatus::Cancelled => "was cancelled",
        _ => "failed",
    }
}

fn block(draft: &mut Draft<'_>, place: usize, need: usize) {
    let (name, needed) = (draft.assignment(place).name.clone(), draft.assignment(need).name.clone());
    let event = MissionHeld {
        mission: draft.state.id,
        hold: Hold::Dependency,
        assignment: Some(draft.assignment(place).id),
        why: format!("{name} needs {needed}, which {}", ended_word(draft, need)),
        spared: Vec::new(),
        time_left_us: None,
    };
    draft.record(Event::MissionHeld(event));
}

fn release(draft: &mut Draft<'_>, place: usize) {
    let event = MissionReleased {
        mission: draft.state.id,
        hold: Hold::Dependency,
        assignment: Some(draft.assignment(place).id),
        by: By::ostler(),
        deadline: None,
    };
    draft.record(Event::MissionReleased(event));
}

/// What takes places: what runs, by what is limited.
#[derive(Default)]
pub(in crate::mission) struct Taken<'a> {
    all: u32,
    roles: BTreeMap<&'a str, u32>,
    providers: BTreeMap<&'a str, u32>,
    accounts: BTreeMap<&'a str, u32>,
    /// The places of those that have leased something.
    leases: Vec<usize>,
    /// Those of the others in the campaign's directory: they may write all of it.
    free: Vec<usize>,
}

impl<'a> Taken<'a> {
    fn of(state: &'a State) -> Self {
        let mut taken = Self::default();
        state.slots.active().for_each(|place| taken.add(state, place));
        taken
    }

    fn add(&mut self, state: &'a State, place: usize) {
        let work = state.work(place);
        self.all += 1;
        *self.roles.entry(work.role.as_str()).or_default() += 1;
        if let Some(provider) = &work.provider {
            *self.providers.entry(provider).or_default() += 1;
        }
        if let Some(account) = &work.account {
            *self.accounts.entry(account.as_str()).or_default() += 1;
        }
        if !work.paths.is_empty() {
            self.leases.push(place);
        } else if work.worktree == Worktree::None {
            self.free.push(place);
        }
    }

    fn is_full(&self, state: &State) -> bool {
        state.plan.limits.concurrency.is_some_and(|most| self.all >= most)
    }

    /// Whoever runs and has leased what it could write, or could write what it has leased.
    fn leased(&self, state: &State, place: usize) -> Option<Wait> {
        let of = |by: &usize| {
            let path = state.lease_between(place, *by)?;
            Some(Wait::Lease { path, by: *by })
        };
        let free = self.free.iter().filter(|_| !state.work(place).paths.is_empty());
        self.leases.iter().find_map(of).or_else(|| free.into_iter().find_map(of))
    }

    /// The limit that keeps the assignment at this place from starting.
    fn hindrance(&self, state: &State, place: usize) -> Option<Wait> {
        let (limits, work) = (&state.plan.limits, state.work(place));
        let full = |limits: &BTreeMap<String, u32>, taken: &BTreeMap<&str, u32>, name: &str| {
            let most = *limits.get(name)?;
            (taken.get(name).copied().unwrap_or_default() >= most).then_some(most)
        };
        if let Some(most) = limits.concurrency.filter(|most| self.all >= *most) {
            return Some(Wait::Place { most });
        }
        let role = full(&limits.roles, &self.roles, work.role.as_str());
        let role = role.map(|most| Wait::PlaceOfRole { role: work.role.to_string(), most });
        let provider = work.provider.as_deref().unwrap_or_default();
        let of_provider = full(&limits.providers, &self.providers, provider)
            .map(|most| Wait::PlaceOfProvider { provider: provider.to_owned(), most });
        let account = work.account.as_ref().map_or("", |account| account.as_str());
        let of_account = full(&limits.accounts, &self.accounts, account)
            .map(|most| Wait::PlaceOfAccount { account: account.to_owned(), most });
        role.or(of_provider).or(of_account).or_else(|| self.leased(state, place))
    }
}

/// What takes places now.
pub(in crate::mission) fn taken(state: &State) -> Taken<'_> {
    Taken::of(state)
}

/// Why the assignment at this place, which is ready, does not start now.
pub(in crate::mission) fn hindrance(state: &State, taken: &Taken<'_>, place: usize) -> Option<Wait> {
    taken.hindrance(state, place)
}

/// Lets start whoever fits, the most pressing first. Who waits for its role or provider is passed by.
fn start(draft: &mut Draft<'_>) {
    // While everything is halted each would only be refused.
    if draft.state.is_still() || draft.context.halted {
        return;
    }
    let chosen = {
        let state: &State = &draft.state;
        let mut taken = Taken::of(state);
        if taken.is_full(state) {
            return;
        }
        let may_start = |place: &usize| match &state.slots[*place].step {
            Step::Ready { after, awaits: None, .. } => {
                after.as_ref().is_none_or(|after| after.has_passed(&draft.context.now))
            }
            _ => false,
        };
        let mut chosen = Vec::new();
        for place in state.slots.ready().filter(may_start) {
            if taken.is_full(state) {
                break;
            }
            if taken.hindrance(state, place).is_none() {
                taken.add(state, place);
                chosen.push(place);
            }
        }
        chosen
    };
    for place in chosen {
        let session = draft.session_id();
        let slot = &draft.state.slots[place];
        let (assignment, attempt) = (slot.assignment.id, slot.attempt.saturating_add(1));
        let continues = slot.sessions.last().copied();
        let why = slot.trouble.as_deref().map(str::to_owned);
        let event = AssignmentStarted {
            mission: draft.state.id,
            assignment,
            attempt,
            session,
            continues,
            key: draft.key(place),
        };
        draft.record(Event::AssignmentStarted(event));
        draft.effect(Effect::Start(StartSession { assignment, attempt, session, continues, why }));
    }
}

pub(super) fn is_all_completed(state: &State) -> bool {
    state.slots.are_met()
}

/// Ends the mission when nothing of it is left to do.
fn end(draft: &mut Draft<'_>) {
    let state = &draft.state;
    if !state.slots.are_over() {
        return;
    }
    let has_completed = state.slots.iter().any(|slot| slot.is_met() && !slot.removed);
    let (status, why) = match (&state.stop, &state.merge) {
        // It was done before it could be stopped.
        _ if is_all_completed(state) && !is_to_merge(state) => (Status::Completed, String::new()),
        // Whether it is merged is known only when it has ended.
        (_, Merging::Running { .. } | Merging::Checked { .. } | Merging::Moving { .. }) => return,
        (Some(stop), _) if stop.rule == StopRule::Cancel => (Status::Cancelled, stop.why.clone()),
        (Some(stop), _) => {
            let status = if has_completed { Status::Partial } else { Status::Failed };
            (status, stop.why.clone())
        }
        (None, Merging::Failed { .. }) => {
            let others = Some(not_completed(state)).filter(|others| !others.is_empty());
            let why =
                ["the merge failed".to_owned()].into_iter().chain(others).collect::<Vec<_>>().join(", ");
            (Status::Partial, why)
        }
        // The merge is held until somebody lets it go on.
        (None, _) if can_merge(state) => return,
        (None, _) if state.slots.iter().all(|slot| slot.removed) => {
            (Status::Cancelled, "every assignment was removed".to_owned())
        }
        (None, _) if has_completed => (Status::Partial, not_completed(state)),
        (None, _) => (Status::Failed, not_completed(state)),
    };
    let (mission, ran_us) = (state.id, micros(state.ran(draft.context.now.wall)));
    draft.record(Event::MissionEnded(MissionEnded { mission, status, why, ran_us }));
    draft.effect(Effect::WriteReport);
}

/// `build-api failed, 2 skipped`.
fn not_completed(state: &State) -> String {
    let count = |status: AssignmentStatus| {
        let is = |slot: &&crate::mission::Slot| {
            !slot.removed && slot.end().is_some_and(|end| end.status == status)
        };
        state.slots.iter().filter(is).count()
    };
    let parts: Vec<String> =
        [AssignmentStatus::Failed, AssignmentStatus::Skipped, AssignmentStatus::Cancelled]
            .into_iter()
            .map(|status| (count(status), status.as_str()))
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
    parts.join(", ")
}

/// Asks to be woken when the next attempt may start, or its time is used up.
fn wake(draft: &mut Draft<'_>) {
    if let Some(deadline) = next_deadline(&draft.state, draft.context) {
        draft.effect(Effect::WakeAt(deadline));
    }
}

fn next_deadline(state: &State, context: &crate::mission::Context) -> Option<Deadline> {
    if state.is_over() || state.is_still() || state.stop.is_some() {
        return None;
    }
    let again = state.slots.later().filter_map(|slot| match &slot.step {
        // What has passed waits for a place, not for a moment.
        Step::Ready { after: Some(after), .. } if !after.has_passed(&context.now) => Some(after),
        _ => None,
    });
    again.chain(&state.deadline).min_by_key(|deadline| deadline.remaining(&context.now)).cloned()
}
