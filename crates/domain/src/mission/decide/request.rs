//! What people and the engine ask for.

use std::time::Duration;

use super::{
    Draft, growth,
    merge::{self, has_only_to_merge},
};
use crate::{
    AssignmentId, Reason, Refusal,
    budget::{Amount, Standing},
    event::{
        AssignmentsReopened, By, Event, MissionBudgetChanged, MissionPaused, MissionReleased, MissionResumed,
        MissionStarted,
    },
    limits::MISSION_TEXT_BYTES,
    mission::{
        AssignmentStatus, Hold, Request, State, Status, StopRule, assignment::cut, plan::OnDepFailure,
        state::Step, words::micros,
    },
};

pub(super) fn decide(draft: &mut Draft<'_>, request: Request, by: By) -> Result<(), Refusal> {
    match request {
        Request::Start { forecast } => {
            if draft.state.started_at.is_some() {
                return Ok(());
            }
            refuse_over(draft)?;
            let deadline = draft.deadline_after(draft.state.plan.time_us);
            let mission = draft.state.id;
            draft.record(Event::MissionStarted(MissionStarted { mission, by, deadline, forecast }));
            Ok(())
        }
        Request::Pause { why } => pause(draft, &why, by),
        Request::Resume { budget, time, which } => resume(draft, budget, time, &which, &by),
        Request::Cancel { why } => cancel(draft, &why, by),
        Request::Retry { which, budget, time } => retry(draft, &which, budget, time, by),
        Request::Add { members, from } => growth::add(draft, members, from, by),
        Request::Remove { which } => growth::remove(draft, &which, by),
    }
}

/// Refuses what an ended mission, or one that is ending, cannot do.
pub(super) fn refuse_over(draft: &Draft<'_>) -> Result<(), Refusal> {
    let name = &draft.state.name;
    if let Some(over) = &draft.state.over {
        let message = format!("the mission {name} is {}", over.status.as_str());
        let refusal = Refusal::new(Reason::WrongState, message);
        return Err(match over.status {
            Status::Completed => refusal,
            _ => refusal.hint(format!("ostler mission retry {name}"), "does again what was not completed"),
        });
    }
    match &draft.state.stop {
        Some(_) => Err(Refusal::new(Reason::WrongState, format!("the mission {name} is ending"))),
        None => Ok(()),
    }
}

fn refuse_unstarted(draft: &Draft<'_>, verb: &str) -> Result<(), Refusal> {
    let name = &draft.state.name;
    if draft.state.started_at.is_some() {
        return Ok(());
    }
    let message = format!("the mission {name} has not been started, so there is nothing to {verb}");
    Err(Refusal::new(Reason::WrongState, message).hint(format!("ostler mission start {name}"), "starts it"))
}

fn pause(draft: &mut Draft<'_>, why: &str, by: By) -> Result<(), Refusal> {
    refuse_over(draft)?;
    refuse_unstarted(draft, "pause")?;
    if draft.state.pause.is_some() {
        return Ok(());
    }
    let was = draft.frozen();
    let (mission, spared, time_left_us) = (draft.state.id, draft.spared(), draft.time_left_us());
    let why = cut(why, MISSION_TEXT_BYTES);
    draft.record(Event::MissionPaused(MissionPaused { mission, by, why, spared, time_left_us }));
    draft.refreeze(&was);
    Ok(())
}

fn resume(
    draft: &mut Draft<'_>,
    budget: Option<Amount>,
    time: Option<Duration>,
    which: &[AssignmentId],
    by: &By,
) -> Result<(), Refusal> {
    refuse_over(draft)?;
    refuse_unstarted(draft, "resume")?;
    if which.is_empty() && budget.is_none() && time.is_none() {
        refuse_blocked(draft)?;
    }
    let (mission, was) = (draft.state.id, draft.frozen());
    change_budget(draft, budget, by);
    let left = time_left_with(draft, time);
    let hold = draft.state.hold.as_ref().map(|held| held.hold);
    refuse_over_time(draft, time, "resume")?;
    refuse_over_budget(draft, "resume")?;
    let deadline = draft.deadline_after(left);
    if which.is_empty() {
        if let Some(hold) = hold {
            let (assignment, by, deadline) = (None, by.clone(), deadline.clone());
            draft.record(Event::MissionReleased(MissionReleased { mission, hold, assignment, by, deadline }));
        }
        if draft.state.pause.is_some() || time.is_some() {
            draft.record(Event::MissionResumed(MissionResumed { mission, by: by.clone(), deadline }));
        }
    }
    for place in 0..draft.state.slots.len() {
        let id = draft.assignment(place).id;
        let held = draft.state.slots[place].held.as_ref().map(|held| held.hold);
        // What was declared to wait for what it needs goes on when that is done, or removed.
        let stuck = held.filter(|hold| *hold != Hold::Dependency);
        if let Some(hold) = stuck.filter(|_| which.is_empty() || which.contains(&id)) {
            let (assignment, by) = (Some(id), by.clone());
            let released = MissionReleased { mission, hold, assignment, by, deadline: None };
            draft.record(Event::MissionReleased(released));
        }
    }
    draft.refreeze(&was);
    Ok(())
}

/// Refuses to let go on what nothing keeps but work that came to nothing: it would not.
fn refuse_blocked(draft: &Draft<'_>) -> Result<(), Refusal> {
    let state = &draft.state;
    let holds = || state.slots.iter().filter_map(|slot| slot.held.as_ref());
    let goes_on = state.is_still() || holds().any(|held| held.hold != Hold::Dependency);
    let Some(held) = holds().next().filter(|_| !goes_on) else { return Ok(()) };
    let (name, why) = (&state.name, held.why.clone());
    Err(Refusal::new(Reason::WrongState, format!("nothing of the mission {name} waits to go on"))
        .because(why)
        .hint(
            format!("ostler mission retry {name}"),
            "does again what came to nothing, and what waits for it",
        )
        .hint(format!("ostler mission rm {name} ASSIGNMENT"), "takes away what waits"))
}

fn change_budget(draft: &mut Draft<'_>, budget: Option<Amount>, by: &By) {
    if let Some(budget) = budget {
        let budget = Some(draft.state.budget.map_or(budget, |old| budget.or(old)));
        let mission = draft.state.id;
        let changed = MissionBudgetChanged { mission, budget, by: by.clone() };
        draft.record(Event::MissionBudgetChanged(changed));
    }
}

/// What is left of the mission's time with so much more of it.
fn time_left_with(draft: &Draft<'_>, more: Option<Duration>) -> Option<u64> {
    let left = draft.time_left_us().or(draft.state.time_left_us);
    let more = more.map(micros);
    left.map(|left| left.saturating_add(more.unwrap_or_default())).or(more)
}

fn refuse_over_time(draft: &Draft<'_>, more: Option<Duration>, verb: &str) -> Result<(), Refusal> {
    let (name, hold) = (&draft.state.name, draft.state.hold.as_ref().map(|held| held.hold));
    if hold != Some(Hold::Time) || more.is_some_and(|more| !more.is_zero()) {
        return Ok(());
    }
    Err(Refusal::new(Reason::OverBudget, format!("the time of the mission {name} is used up"))
        .hint(format!("ostler mission {verb} {name} --time 30m"), "gives it more"))
}

fn refuse_over_budget(draft: &Draft<'_>, verb: &str) -> Result<(), Refusal> {
    let Some(budget) = draft.state.budget else { return Ok(()) };
    let (name, used) = (&draft.state.name, &draft.context.used);
    match budget.standing(used) {
        Standing::Within | Standing::Warned => Ok(()),
        Standing::UsedUp => {
            let message = format!("the budget of the mission {name} is used up");
            Err(Refusal::new(Reason::OverBudget, message)
                .because(budget.told(used))
                .hint(format!("ostler mission {verb} {name} --budget AMOUNT"), "raises it, and goes on"))
        }
        Standing::Unpriced(model) => {
            let (why, cure) = crate::budget::unpriced(&model);
            let message = format!("the dollars of the mission {name} cannot be counted");
            Err(Refusal::new(Reason::PriceUnknown, message).because(why).hint(cure, "says the price"))
        }
    }
}

fn cancel(draft: &mut Draft<'_>, why: &str, by: By) -> Result<(), Refusal> {
    match &draft.state.over {
        Some(over) if over.status == Status::Cancelled => return Ok(()),
        Some(_) => return refuse_over(draft),
        None => {}
    }
    if draft.state.stop.as_ref().is_some_and(|stop| stop.rule == StopRule::Cancel) {
        return Ok(());
    }
    let why = match why.trim() {
        "" => format!("cancelled by {}", by.0),
        why => cut(why, MISSION_TEXT_BYTES),
    };
    draft.stop(StopRule::Cancel, by, why);
    Ok(())
}

fn retry(
    draft: &mut Draft<'_>,
    which: &[AssignmentId],
    budget: Option<Amount>,
    time: Option<Duration>,
    by: By,
) -> Result<(), Refusal> {
    if draft.state.over.is_none() {
        refuse_over(draft)?;
    }
    let places = reopened(&draft.state, which)?;
    let was = draft.frozen();
    change_budget(draft, budget, &by);
    refuse_over_time(draft, time, "retry")?;
    refuse_over_budget(draft, "retry")?;
    let assignments = places.iter().map(|place| draft.assignment(*place).id).collect();
    let left = match draft.state.is_over() {
        // What it had is gone: what is done again has as much, or what is said.
        true => time.map(micros).or(draft.state.plan.time_us),
        false => time_left_with(draft, time),
    };
    let (mission, deadline) = (draft.state.id, draft.deadline_after(left));
    let is_said = draft.state.is_over() || time.is_some();
    draft.record(Event::AssignmentsReopened(AssignmentsReopened {
        mission,
        assignments,
        by: by.clone(),
        deadline: deadline.clone().filter(|_| is_said),
        time_left_us: left.filter(|_| time.is_some() && draft.state.is_still()),
    }));
    // It was held for what it has now.
    if let Some(hold) = draft.state.hold.as_ref().map(|held| held.hold) {
        let released = MissionReleased { mission, hold, assignment: None, by, deadline };
        draft.record(Event::MissionReleased(released));
        draft.refreeze(&was);
    }
    Ok(())
}

/// What is done again when these are: they themselves, what was not completed of what they need, and what follows.
fn reopened(state: &State, which: &[AssignmentId]) -> Result<Vec<usize>, Refusal> {
    let can = |place: usize| {
        let slot = &state.slots[place];
        !slot.removed && slot.end().is_some_and(|end| end.status != AssignmentStatus::Completed)
    };
    let mut chosen = Vec::new();
    for id in which {
        let place = state.place_of(*id).ok_or_else(|| unknown(state, *id))?;
        if !can(place) {
            let name = &state.slots[place].assignment.name;
            let message = match state.status_of(place) {
                AssignmentStatus::Completed => format!("{name} is completed, and is not done again"),
                AssignmentStatus::Cancelled => format!("{name} was removed"),
                status => format!("{name} is {}, so there is nothing to do again", status.as_str()),
            };
            return Err(Refusal::new(Reason::WrongState, message));
        }
        chosen.push(place);
    }
    if which.is_empty() {
        chosen.extend((0..state.slots.len()).filter(|place| can(*place)));
    }
    if chosen.is_empty() && !has_only_to_merge(state) {
        let message = format!("nothing of the mission {} failed, was skipped or was cancelled", state.name);
        return Err(Refusal::new(Reason::WrongState, message));
    }
    let mut wanted = vec![false; state.slots.len()];
    chosen.iter().for_each(|place| wanted[*place] = true);
    // Whoever was skipped would only be skipped again.
    let mut left = chosen;
    while let Some(place) = left.pop() {
        if state.work(place).on_dep_failure == OnDepFailure::Run {
            continue;
        }
        for need in state.graph.needs(place).iter().map(|need| *need as usize) {
            if can(need) && !std::mem::replace(&mut wanted[need], true) {
                left.push(need);
            }
        }
    }
    let roots = wanted.iter().enumerate().filter(|(_, wanted)| **wanted).map(|(place, _)| place);
    let follows = state.graph.reached(roots, |graph, place| graph.feeds(place));
    Ok((0..state.slots.len()).filter(|place| wanted[*place] || (follows[*place] && can(*place))).collect())
}

pub(super) fn unknown(state: &State, id: AssignmentId) -> Refusal {
    Refusal::invalid(format!("the mission {} has no assignment {}", state.name, id.short()))
        .hint(format!("ostler mission show {}", state.name), "lists them")
}

/// The places of these assignments, each of which waits for a person who may let it go on.
fn released(state: &State, which: &[AssignmentId]) -> Result<Vec<usize>, Refusal> {
    let one = |id: &AssignmentId| {
        let place = state.place_of(*id).ok_or_else(|| unknown(state, *id))?;
        let (slot, status) = (&state.slots[place], state.status_of(place).as_str());
        match slot.held.as_ref().map(|held| held.hold) {
            Some(Hold::Dependency) => {
                let message =
                    format!("{} waits for what it needs, which was not completed", slot.assignment.name);
                let retry = format!("ostler mission retry {}", state.name);
                Err(Refusal::new(Reason::WrongState, message).hint(retry, "does that again"))
            }
            Some(_) => Ok(place),
            None if state.is_still() => {
                let message = format!("{} is {status} with its whole mission", slot.assignment.name);
                let resume = format!("ostler mission resume {}", state.name);
                Err(Refusal::new(Reason::WrongState, message).hint(resume, "lets all of it go on"))
            }
            None => {
                let message = format!("{} is {status}, and does not wait for you", slot.assignment.name);
                Err(Refusal::new(Reason::WrongState, message))
            }
        }
    };
    which.iter().map(one).collect()
}

/// The same, with those that wait for a person because of them, and what waits for these: all of it goes on then.
fn with_blocked(state: &State, places: &[usize]) -> Vec<usize> {
    let follow = |from: Vec<usize>| state.graph.reached(from, |graph, place| graph.feeds(place));
    let is_blocked =
        |place: &usize| state.slots[*place].held.as_ref().is_some_and(|held| held.hold == Hold::Dependency);
    let mut runs = follow(places.to_vec());
    let blocked: Vec<usize> = (0..runs.len()).filter(|place| runs[*place] && is_blocked(place)).collect();
    runs = follow(blocked.clone());
    for (place, runs) in runs.iter_mut().enumerate() {
        *runs &= matches!(state.slots[place].step, Step::Pending);
    }
    places.iter().chain(&blocked).for_each(|place| runs[*place] = true);
    (0..runs.len()).filter(|place| runs[*place]).collect()
}

/// What a request would have run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Preview {
    /// Places of what would be begun, now or later, in their order.
    pub runs: Vec<usize>,
    /// Places of what was begun and would go on.
    pub goes_on: Vec<usize>,
    /// The branch that all of it would be merged into in the end.
    pub merges_into: Option<String>,
}

/// Says what a request would have run, and changes nothing. With [`estimate`](crate::mission::estimate) it has a price.
pub fn preview(state: &State, request: &Request) -> Result<Preview, Refusal> {
    let places = |is: &dyn Fn(&Step) -> bool| {
        (0..state.slots.len()).filter(|place| is(&state.slots[*place].step)).collect::<Vec<usize>>()
    };
    let waiting = places(&|step| matches!(step, Step::Pending | Step::Ready { .. }));
    let announced = |runs: Vec<usize>, goes_on: Vec<usize>| {
        let merges_into = merge::into_after(state, |place| runs.contains(&place) || goes_on.contains(&place));
        Preview { runs, goes_on, merges_into }
    };
    Ok(match request {
        Request::Start { .. } => announced(waiting, Vec::new()),
        Request::Resume { which, .. } if which.is_empty() => announced(
            // What nothing keeps goes on without it.
            if state.is_still() { waiting } else { Vec::new() },
            state.slots.active().filter(|place| state.is_frozen(*place)).collect(),
        ),
        Request::Resume { which, .. } => announced(Vec::new(), released(state, which)?),
        Request::Retry { which, .. } => {
            let mut runs = with_blocked(state, &reopened(state, which)?);
            // With what it is held for the rest of it goes on, too.
            let is_held = state.hold.is_some() && state.pause.is_none();
            let goes_on =
                |place: &usize| is_held && state.is_frozen(*place) && state.slots[*place].held.is_none();
            runs.extend(waiting.iter().filter(|_| is_held));
            runs.sort_unstable();
            runs.dedup();
            announced(runs, state.slots.active().filter(goes_on).collect())
        }
        Request::Pause { .. } | Request::Cancel { .. } | Request::Add { .. } | Request::Remove { .. } => {
            Preview::default()
        }
    })
}
