//! Assignments that are added to a mission while it runs, and such as are no longer wanted.

use super::{
    Draft,
    narrow::narrowed,
    request::{refuse_over, unknown},
};
use crate::{
    AssignmentId, Reason, Refusal,
    event::{AssignmentsAdded, AssignmentsRemoved, By, Event},
    mission::{
        Member, Strategy, graph,
        plan::{Faults, Lines, check_added},
        state::Step,
    },
};

pub(super) fn add(
    draft: &mut Draft<'_>,
    members: Vec<Member>,
    from: Option<AssignmentId>,
    by: By,
) -> Result<(), Refusal> {
    let members = match from {
        Some(id) => for_agent(draft, id, members)?,
        None => members,
    };
    let state = &draft.state;
    // Who asks twice, because nobody heard the answer, gets the same.
    let is_there = |member: &Member| state.plan.agents.contains(member) && !state.has_removed(&member.name);
    if !members.is_empty() && members.iter().all(is_there) {
        return Ok(());
    }
    refuse_over(draft)?;
    if state.plan.strategy != Strategy::Adaptive {
        let strategy = state.plan.strategy.as_str();
        let message = format!("the mission {} is {strategy}, and only adaptive ones grow", state.name);
        let hint = "with strategy = \"adaptive\" starts one that grows";
        return Err(Refusal::new(Reason::WrongState, message).hint("ostler mission start FILE", hint));
    }
    let depth = match from {
        Some(id) => depth_for_agent(draft, id, &members)?,
        None => 0,
    };
    let mut plan = (*state.plan).clone();
    let first = plan.agents.len();
    plan.agents.extend(members.iter().cloned());
    let faults = check_added(state, &members, &Lines::default());
    if !faults.is_empty() {
        return Err(Faults(faults).into());
    }
    let existing: Vec<_> = state.slots.iter().map(|slot| slot.assignment.clone()).collect();
    let existing: Vec<_> = existing.iter().map(|assignment| &**assignment).collect();
    let mut assignments = graph::compile(&plan, first, &existing, || {
        let entropy = draft.entropy();
        AssignmentId::new(draft.context.now.wall, entropy)
    });
    for assignment in &mut assignments {
        (assignment.added_by, assignment.depth) = (from, depth);
    }
    let mission = draft.state.id;
    draft.record(Event::AssignmentsAdded(Box::new(AssignmentsAdded {
        mission,
        members,
        assignments,
        by,
        from,
    })));
    Ok(())
}

/// How deep what an agent adds lies, if it may add it.
fn depth_for_agent(draft: &Draft<'_>, id: AssignmentId, members: &[Member]) -> Result<u32, Refusal> {
    let state = &draft.state;
    let denied = |message: String| Refusal::new(Reason::PermissionDenied, message);
    let slot = state.place_of(id).map(|place| &state.slots[place]);
    let Some(slot) = slot.filter(|slot| slot.is_active()) else {
        return Err(denied("only an agent that works for the mission may add to it".to_owned()));
    };
    let limits = &state.plan.limits;
    let depth = slot.assignment.depth.saturating_add(1);
    if depth > limits.depth {
        return Err(denied(format!("assignments that agents add lie at most {} deep", limits.depth)));
    }
    let count = members.iter().fold(0u32, |sum, member| sum.saturating_add(member.instances));
    if state.added.saturating_add(count) > limits.added {
        let left = limits.added.saturating_sub(state.added);
        let message = format!("agents may add {} assignments to this mission; {left} are left", limits.added);
        return Err(denied(message));
    }
    Ok(depth)
}

/// What an agent adds, no wider than the agent itself.
fn for_agent(draft: &Draft<'_>, id: AssignmentId, members: Vec<Member>) -> Result<Vec<Member>, Refusal> {
    let state = &draft.state;
    match state.place_of(id) {
        Some(place) => {
            let narrow = |member| narrowed(&state.plan, member, state.work(place));
            members.into_iter().map(narrow).collect()
        }
        None => Ok(members),
    }
}

pub(super) fn remove(draft: &mut Draft<'_>, which: &[AssignmentId], by: By) -> Result<(), Refusal> {
    refuse_over(draft)?;
    let mut assignments = Vec::new();
    for id in which {
        let place = draft.state.place_of(*id).ok_or_else(|| unknown(&draft.state, *id))?;
        let slot = &draft.state.slots[place];
        match &slot.step {
            _ if slot.removed || assignments.contains(id) => {}
            Step::Pending | Step::Ready { .. } => assignments.push(*id),
            Step::Running { .. } | Step::Checking { .. } | Step::Over(_) => {
                let (name, status) = (&slot.assignment.name, draft.state.status_of(place));
                let message = format!("{name} is {}; only what has not begun is removed", status.as_str());
                return Err(Refusal::new(Reason::WrongState, message));
            }
        }
    }
    if !assignments.is_empty() {
        let mission = draft.state.id;
        draft.record(Event::AssignmentsRemoved(AssignmentsRemoved { mission, assignments, by }));
    }
    Ok(())
}
