//! Bringing the members' branches together: beside the branch first, with the gate, and then the branch is moved, unless
//! something stands in the way at that moment.

use super::Draft;
use crate::{
    event::{Event, MergeChecked, MergeEnded, MergeMoving, MergeStarted},
    limits::MISSION_TEXT_BYTES,
    mission::{Effect, Merging, State, StopRule, Tried, assignment::cut, plan::Worktree},
};

/// The places of those whose branches are merged, in this order.
fn branches(state: &State) -> Vec<usize> {
    (0..state.slots.len()).filter(|place| state.is_to_be_merged(*place)).collect()
}

/// The places of those that must be completed before anything is merged: whoever was named, else everybody.
fn sources(state: &State) -> impl Iterator<Item = usize> {
    (0..state.slots.len()).filter(|place| state.is_merge_source(*place))
}

/// Nothing is left to run, and whatever the merge is made of is completed, though other work may have come to nothing.
pub(in crate::mission) fn can_merge(state: &State) -> bool {
    state.slots.are_over() && is_to_merge(state) && sources(state).all(|place| state.slots[place].is_met())
}

/// A merge was asked for, there is something to merge, and it is not merged.
pub(super) fn is_to_merge(state: &State) -> bool {
    let is_merged = matches!(state.merge, Merging::Merged { .. });
    state.plan.merge.is_some() && !is_merged && !branches(state).is_empty()
}

/// Only the merge is left to do again.
pub(super) fn has_only_to_merge(state: &State) -> bool {
    state.is_over() && can_merge(state)
}

/// The branch that is merged into once these are completed, if nothing else is left then.
pub(super) fn into_after(state: &State, completes: impl Fn(usize) -> bool) -> Option<String> {
    let merge = state.plan.merge.as_ref().filter(|_| !matches!(state.merge, Merging::Merged { .. }))?;
    let is_met = |place: usize| state.slots[place].is_met() || completes(place);
    let has_tree = |place: usize| state.work(place).worktree != Worktree::None;
    (sources(state).all(is_met) && sources(state).any(has_tree)).then(|| merge.into.clone())
}

/// Merges once what is to be merged is completed and nothing is left to run, and moves the branch once the gate has passed; neither while anybody wants
/// nothing to happen.
pub(super) fn advance(draft: &mut Draft<'_>) {
    if draft.state.is_still() || draft.context.halted {
        return;
    }
    match draft.state.merge {
        Merging::NotBegun => begin(draft),
        Merging::Checked { attempt, .. } => {
            let mission = draft.state.id;
            draft.record(Event::MergeMoving(MergeMoving { mission, attempt }));
            if let Some(effect) = move_effect(&draft.state) {
                draft.effect(effect);
            }
        }
        _ => {}
    }
}

fn begin(draft: &mut Draft<'_>) {
    let state = &draft.state;
    let Some(merge) = state.plan.merge.as_ref().filter(|_| can_merge(state)) else { return };
    let from = branches(state);
    let assignments = from.iter().map(|place| draft.assignment(*place).id).collect();
    let (mission, into, attempt) = (state.id, merge.into.clone(), state.merges.saturating_add(1));
    draft.record(Event::MergeStarted(MergeStarted { mission, attempt, into, assignments }));
    if let Some(effect) = try_effect(&draft.state) {
        draft.effect(effect);
    }
}

pub(super) fn try_effect(state: &State) -> Option<Effect> {
    let (merge, Merging::Running { attempt, from }) = (state.plan.merge.as_ref()?, &state.merge) else {
        return None;
    };
    let with_session = |place: &usize| {
        let slot = &state.slots[*place];
        Some((slot.assignment.id, slot.sessions.last().copied()?))
    };
    Some(Effect::Merge {
        attempt: *attempt,
        into: merge.into.clone(),
        gate: merge.gate.clone(),
        from: from.iter().filter_map(with_session).collect(),
    })
}

pub(super) fn move_effect(state: &State) -> Option<Effect> {
    match (&state.plan.merge, &state.merge) {
        (Some(merge), Merging::Moving { attempt, old, commit }) => Some(Effect::Move {
            attempt: *attempt,
            into: merge.into.clone(),
            old: old.clone(),
            commit: commit.clone(),
        }),
        _ => None,
    }
}

/// The mission ends: what has passed the gate goes nowhere.
pub(super) fn give_up(draft: &mut Draft<'_>, rule: StopRule) {
    if let Merging::Checked { attempt, .. } = draft.state.merge {
        ended(draft, attempt, false, &stopped(rule), None);
    }
}

fn stopped(rule: StopRule) -> String {
    format!("the mission was stopped ({}) before the branch was moved", rule.as_str())
}

pub(super) fn tried(draft: &mut Draft<'_>, attempt: u32, tried: Result<Tried, String>) {
    if !matches!(draft.state.merge, Merging::Running { attempt: running, .. } if running == attempt) {
        return;
    }
    match (tried, draft.state.stop.as_ref().map(|stop| stop.rule)) {
        (_, Some(rule)) => ended(draft, attempt, false, &stopped(rule), None),
        (Err(why), None) => ended(draft, attempt, false, &why, None),
        (Ok(Tried { old, commit }), None) => {
            let mission = draft.state.id;
            draft.record(Event::MergeChecked(MergeChecked { mission, attempt, old, commit }));
        }
    }
}

pub(super) fn merged(draft: &mut Draft<'_>, attempt: u32, ok: bool, output: &str, commit: Option<String>) {
    if matches!(draft.state.merge, Merging::Moving { attempt: moving, .. } if moving == attempt) {
        ended(draft, attempt, ok, output, commit);
    }
}

fn ended(draft: &mut Draft<'_>, attempt: u32, ok: bool, output: &str, commit: Option<String>) {
    let (mission, output) = (draft.state.id, cut(output, MISSION_TEXT_BYTES));
    draft.record(Event::MergeEnded(MergeEnded { mission, attempt, ok, output, commit }));
}
