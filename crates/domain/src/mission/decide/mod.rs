//! [`decide`]: turns a request, or news of a session, into what happened and what to do about it.
//!
//! Asking for what already holds is never an error: clients retry. News that come late describe something that was left
//! already, and change nothing. After each input the limits are looked at, and whatever can go on does.

mod growth;
mod limits;
mod merge;
mod narrow;
mod request;
mod schedule;
mod session;

use std::{borrow::Cow, collections::BTreeMap};

use super::{
    Assignment, Context, Decision, Effect, Errand, Input, Key, Merging, Plan, StartSession, State, graph,
    plan::{Faults, Lines, check},
    state::Step,
};
use crate::{
    AssignmentId, CampaignId, Deadline, MissionId, Name, Refusal, SessionId,
    event::{By, CollisionForecast, Event, MissionCreated},
    limits::{COLLISION_PATHS, COLLISIONS},
};

pub(super) use merge::can_merge;
pub use request::{Preview, preview};
pub(super) use schedule::{hindrance, taken};

/// The first event of a mission: that it exists, and what its assignments are. The plan's defaults have what the campaign
/// says, so that the limits count what is run.
pub fn create(
    plan: Plan,
    id: MissionId,
    campaign: CampaignId,
    name: Name,
    by: By,
    context: &Context,
) -> Result<Event, Refusal> {
    let faults = check(&plan, &Lines::default());
    if !faults.is_empty() {
        return Err(Faults(faults).into());
    }
    let mut n = 0;
    let assignments = graph::compile(&plan, 0, &[], || {
        n += 1;
        AssignmentId::new(context.now.wall, mixed(context.entropy, n))
    });
    Ok(Event::MissionCreated(Box::new(MissionCreated { id, campaign, name, plan, assignments, by })))
}

/// Decides what follows from an input in a state. Total: no input in any state panics.
pub fn decide(state: &State, input: Input, context: &Context) -> Result<Decision, Refusal> {
    let mut draft = Draft { state: Cow::Borrowed(state), context, decision: Decision::default(), minted: 0 };
    match input {
        Input::Request(request, by) => request::decide(&mut draft, request, by)?,
        _ if state.is_over() => return Ok(draft.decision),
        Input::SessionStarted { assignment, attempt, session } => {
            session::started(&mut draft, assignment, attempt, session);
        }
        Input::SessionBegan { assignment, attempt, session, waited } => {
            session::began(&mut draft, assignment, attempt, session, waited);
        }
        Input::StartRefused { assignment, attempt, why, is_final } => {
            session::refused(&mut draft, assignment, attempt, &why, is_final);
        }
        Input::StartAwaits { assignment, attempt, session } => {
            session::awaits(&mut draft, assignment, attempt, session);
        }
        Input::Freed { session } => session::freed(&mut draft, session),
        Input::SessionEnded { assignment, attempt, session, end } => {
            session::ended(&mut draft, assignment, attempt, session, *end);
        }
        Input::Checked { assignment, attempt, passed, output } => {
            session::checked(&mut draft, assignment, attempt, passed, &output);
        }
        Input::Stuck { assignment, attempt, stuck } => session::stuck(&mut draft, assignment, attempt, stuck),
        Input::ProgressSeen { assignment, attempt } => session::gets_on(&mut draft, assignment, attempt),
        Input::Collision { one, other, paths, turn } => draft.collision(one, other, paths, turn),
        Input::MergeTried { attempt, tried } => merge::tried(&mut draft, attempt, tried),
        Input::Merged { attempt, ok, output, commit } => {
            merge::merged(&mut draft, attempt, ok, &output, commit);
        }
        Input::Tick => {}
    }
    limits::look(&mut draft);
    schedule::advance(&mut draft);
    Ok(draft.decision)
}

/// What may not have been done when the daemon died after a commit.
pub fn effects_to_repeat(state: &State) -> Vec<Effect> {
    if state.is_over() {
        return vec![Effect::WriteReport];
    }
    let mut effects = Vec::new();
    for (place, slot) in state.slots.iter().enumerate() {
        let (assignment, attempt) = (slot.assignment.id, slot.attempt);
        match &slot.step {
            Step::Running { session, .. } if state.stop.is_some() => {
                effects.push(Effect::Stop { session: *session });
            }
            Step::Running { session, continues, .. } => {
                effects.push(Effect::Start(StartSession {
                    assignment,
                    attempt,
                    session: *session,
                    continues: *continues,
                    why: slot.trouble.as_deref().map(str::to_owned),
                }));
                if state.is_frozen(place) {
                    effects.push(Effect::Freeze { session: *session, frozen: true });
                }
            }
            Step::Checking { .. } => {}
            Step::Pending | Step::Ready { .. } | Step::Over(_) => {}
        }
    }
    // None of them has outlived the daemon that began it.
    if state.stop.is_some() {
        effects.extend(errands(state).into_iter().map(Effect::EndErrand));
    } else if !state.is_still() {
        effects.extend(errands(state).into_iter().filter_map(|errand| errand_effect(state, errand)));
    }
    effects.extend(merge::move_effect(state));
    effects
}

/// What runs beside sessions, or would if the mission did not stand still.
fn errands(state: &State) -> Vec<Errand> {
    let check = |place: usize| {
        let slot = &state.slots[place];
        let (assignment, attempt) = (slot.assignment.id, slot.attempt);
        matches!(slot.step, Step::Checking { .. }).then_some(Errand::Check { assignment, attempt })
    };
    let merge = match state.merge {
        Merging::Running { attempt, .. } => Some(Errand::Merge { attempt }),
        _ => None,
    };
    state.slots.active().filter_map(check).chain(merge).collect()
}

/// Has an errand run.
fn errand_effect(state: &State, errand: Errand) -> Option<Effect> {
    match errand {
        Errand::Check { assignment, .. } => session::check_effect(state, state.place_of(assignment)?),
        Errand::Merge { .. } => merge::try_effect(state),
    }
}

/// Bits of its own for each thing that one decision makes.
fn mixed(entropy: u128, n: u128) -> u128 {
    entropy.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

/// A decision in the making: each recorded event is applied at once, so that what follows sees it.
struct Draft<'a> {
    state: Cow<'a, State>,
    context: &'a Context,
    decision: Decision,
    minted: u128,
}

/// The sessions that run, and whether the mission keeps them frozen; and whether it keeps its errands so.
struct Frozen {
    sessions: BTreeMap<SessionId, bool>,
    errands: bool,
}

impl Draft<'_> {
    fn record(&mut self, event: Event) {
        self.state.to_mut().apply(self.context.now.wall, &event);
        self.decision.events.push(event);
    }

    fn effect(&mut self, effect: Effect) {
        self.decision.effects.push(effect);
    }

    fn entropy(&mut self) -> u128 {
        self.minted += 1;
        mixed(self.context.entropy, self.minted)
    }

    fn session_id(&mut self) -> SessionId {
        let entropy = self.entropy();
        SessionId::new(self.context.now.wall, entropy)
    }

    fn assignment(&self, place: usize) -> &Assignment {
        &self.state.slots[place].assignment
    }

    fn key(&self, place: usize) -> Key {
        Key::of(self.state.id, self.assignment(place), self.state.work(place))
    }

    /// What is frozen now.
    fn frozen(&self) -> Frozen {
        let of = |place: usize| Some((self.state.slots[place].session()?, self.state.is_frozen(place)));
        let sessions = self.state.slots.active().filter_map(of).collect();
        Frozen { sessions, errands: self.state.is_still() }
    }

    /// Freezes and thaws what that changed with.
    fn refreeze(&mut self, was: &Frozen) {
        let is = self.frozen();
        for (session, frozen) in is.sessions {
            if was.sessions.get(&session).is_some_and(|was| *was != frozen) {
                self.effect(Effect::Freeze { session, frozen });
            }
        }
        if was.errands != is.errands {
            for errand in errands(&self.state) {
                let effect = match is.errands {
                    true => Some(Effect::FreezeErrand(errand)),
                    false => errand_effect(&self.state, errand),
                };
                effect.into_iter().for_each(|effect| self.effect(effect));
            }
        }
    }

    /// What is left of the mission's time.
    fn time_left_us(&self) -> Option<u64> {
        let deadline = self.state.deadline.as_ref()?;
        Some(super::words::micros(deadline.remaining(&self.context.now)))
    }

    /// When the mission's time is used up, if it goes on now.
    fn deadline_after(&self, left_us: Option<u64>) -> Option<Deadline> {
        left_us.map(|left| Deadline::after(&self.context.now, std::time::Duration::from_micros(left)))
    }

    /// Members' sessions that somebody else keeps paused.
    fn spared(&self) -> Vec<SessionId> {
        let slots = &self.state.slots;
        let sessions = slots.active().filter_map(|place| slots[place].session());
        sessions.filter(|session| self.context.paused_by_hand.contains(session)).collect()
    }

    fn collision(
        &mut self,
        one: AssignmentId,
        other: AssignmentId,
        mut paths: Vec<String>,
        turn: Option<u32>,
    ) {
        paths.sort();
        paths.dedup();
        paths.truncate(COLLISION_PATHS);
        let places = (self.state.place_of(one), self.state.place_of(other));
        let (Some(first), Some(second)) = places else { return };
        // Whichever of the two was looked at: they are told of in one order.
        let ((first, one), (second, other)) =
            if first <= second { ((first, one), (second, other)) } else { ((second, other), (first, one)) };
        let collisions = &self.state.collisions;
        let known = collisions.iter().find(|seen| (seen.one, seen.other) == (first, second));
        if known.is_none() && (paths.is_empty() || collisions.len() >= COLLISIONS) {
            return;
        }
        if known.is_none_or(|known| known.paths != paths) {
            let mission = self.state.id;
            self.record(Event::CollisionForecast(CollisionForecast { mission, one, other, paths, turn }));
        }
    }
}
