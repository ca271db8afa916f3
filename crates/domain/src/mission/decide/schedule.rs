//! What goes on when something has changed: who is skipped, who may start and who does, the merge, the end.

use std::{cmp::Reverse, collections::BTreeMap};

use super::Draft;
use crate::{
    Deadline, SessionId,
    event::{
        AssignmentStarted, AssignmentsReady, By, Event, MergeStarted, MissionEnded, MissionHeld,
        MissionReleased,
    },
    mission::{
        AssignmentStatus, Effect, Hold, Merging, StartSession, State, Status, StopRule, Wait,
        plan::{CompleteWhen, OnDepFailure, Worktree},
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
        merge(draft);
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
            Step::Pending | Step::Ready { .. } | Step::Checking { .. } => {
                let ending = draft.ending(place, AssignmentStatus::Cancelled, &why);
                draft.end(place, ending);
            }
            Step::Running { .. } | Step::Over(_) => {}
        }
    }
}

/// Those whose needs are over become ready, are skipped, or wait for a person. One pass: each comes after what it needs.
fn settle(draft: &mut Draft<'_>) {
    let mut ready = Vec::new();
    for place in 0..draft.state.slots.len() {
        let slot = &draft.state.slots[place];
        if slot.step != Step::Pending {
            continue;
        }
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
}

impl<'a> Taken<'a> {
    fn of(state: &'a State) -> Self {
        let mut taken = Self::default();
        let active = state.slots.iter().enumerate().filter(|(_, slot)| slot.is_active());
        active.for_each(|(place, _)| taken.add(state, place));
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
    }

    fn is_full(&self, state: &State) -> bool {
        state.plan.limits.concurrency.is_some_and(|most| self.all >= most)
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
        role.or(of_provider).or(of_account)
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
    if draft.state.is_still() {
        return;
    }
    let chosen = {
        let state: &State = &draft.state;
        let mut taken = Taken::of(state);
        if taken.is_full(state) {
            return;
        }
        let may_start = |place: &usize| match &state.slots[*place].step {
            Step::Ready { after, .. } => {
                after.as_ref().is_none_or(|after| after.has_passed(&draft.context.now))
            }
            _ => false,
        };
        let mut line: Vec<usize> = (0..state.slots.len()).filter(may_start).collect();
        // Work that was begun goes first, then what most depends on.
        line.sort_by_cached_key(|place| {
            let slot = &state.slots[*place];
            let priority = state.work(*place).priority;
            (Reverse(priority), slot.attempt == 0, Reverse(state.graph.height(*place)), *place)
        });
        let mut chosen = Vec::new();
        for place in line {
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

pub(super) fn check_effect(state: &State, place: usize, session: SessionId) -> Option<Effect> {
    let slot = &state.slots[place];
    match &state.work(place).complete_when {
        CompleteWhen::Check(command) => Some(Effect::Check {
            assignment: slot.assignment.id,
            attempt: slot.attempt,
            session,
            command: command.clone(),
        }),
        CompleteWhen::Turn | CompleteWhen::Done => None,
    }
}

fn is_all_completed(state: &State) -> bool {
    let mut wanted = state.slots.iter().filter(|slot| !slot.removed).peekable();
    wanted.peek().is_some() && wanted.all(|slot| slot.is_met())
}

/// The places of those whose branches are merged, in this order.
fn branches(state: &State) -> Vec<usize> {
    let has_branch = |place: &usize| {
        state.work(*place).worktree != Worktree::None && !state.slots[*place].sessions.is_empty()
    };
    (0..state.slots.len()).filter(has_branch).collect()
}

/// A merge was asked for, there is something to merge, and it is not merged.
fn is_to_merge(state: &State) -> bool {
    let is_merged = matches!(state.merge, Merging::Merged { .. });
    state.plan.merge.is_some() && !is_merged && !branches(state).is_empty()
}

/// Everything is completed, and only the merge is left to do again.
pub(super) fn has_only_to_merge(state: &State) -> bool {
    state.is_over() && is_all_completed(state) && is_to_merge(state)
}

/// Merges the members' branches once all of them are completed.
fn merge(draft: &mut Draft<'_>) {
    let state = &draft.state;
    let Some(merge) = &state.plan.merge else { return };
    if state.merge != Merging::NotBegun || state.is_still() || !is_all_completed(state) {
        return;
    }
    let from = branches(state);
    if from.is_empty() {
        return;
    }
    let assignments = from.iter().map(|place| draft.assignment(*place).id).collect();
    let (mission, into, attempt) = (state.id, merge.into.clone(), state.merges.saturating_add(1));
    draft.record(Event::MergeStarted(MergeStarted { mission, attempt, into, assignments }));
    if let Some(effect) = merge_effect(&draft.state, attempt, &from) {
        draft.effect(effect);
    }
}

pub(super) fn merge_effect(state: &State, attempt: u32, from: &[usize]) -> Option<Effect> {
    let merge = state.plan.merge.as_ref()?;
    let with_session = |place: &usize| {
        let slot = &state.slots[*place];
        Some((slot.assignment.id, slot.sessions.last().copied()?))
    };
    Some(Effect::Merge {
        attempt,
        into: merge.into.clone(),
        gate: merge.gate.clone(),
        from: from.iter().filter_map(with_session).collect(),
    })
}

/// Ends the mission when nothing of it is left to do.
fn end(draft: &mut Draft<'_>) {
    let state = &draft.state;
    if !state.slots.iter().all(|slot| slot.is_over()) {
        return;
    }
    let has_completed = state.slots.iter().any(|slot| slot.is_met() && !slot.removed);
    let (status, why) = match (&state.stop, &state.merge) {
        // It was done before it could be stopped.
        _ if is_all_completed(state) && !is_to_merge(state) => (Status::Completed, String::new()),
        // Whether it is merged is known only when it has ended.
        (_, Merging::Running { .. }) => return,
        (Some(stop), _) if stop.rule == StopRule::Cancel => (Status::Cancelled, stop.why.clone()),
        (Some(stop), _) => {
            let status = if has_completed { Status::Partial } else { Status::Failed };
            (status, stop.why.clone())
        }
        (None, Merging::Failed { .. }) => (Status::Partial, "the merge failed".to_owned()),
        // The merge is held until somebody lets it go on.
        (None, _) if is_all_completed(state) => return,
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
    let again = state.slots.iter().filter_map(|slot| match &slot.step {
        // What has passed waits for a place, not for a moment.
        Step::Ready { after: Some(after), .. } if !after.has_passed(&context.now) => Some(after),
        _ => None,
    });
    again.chain(&state.deadline).min_by_key(|deadline| deadline.remaining(&context.now)).cloned()
}
