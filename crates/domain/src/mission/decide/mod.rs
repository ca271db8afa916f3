//! [`decide`]: turns a request, or news of a session, into what happened and what to do about it.
//!
//! Asking for what already holds is never an error: clients retry. News that come late describe something that was left
//! already, and change nothing. After each input the limits are looked at, and whatever can go on does.

mod growth;
mod limits;
mod request;
mod schedule;
mod session;

use std::{borrow::Cow, collections::BTreeMap};

use super::{
    Assignment, Context, Decision, Effect, Input, Key, Merging, Plan, StartSession, State,
    assignment::cut,
    graph,
    plan::{Faults, Lines, check},
    state::Step,
};
use crate::{
    AssignmentId, CampaignId, Deadline, MissionId, Name, Refusal, SessionId,
    event::{By, CollisionForecast, Event, MergeEnded, MissionCreated},
    limits::{COLLISION_PATHS, MISSION_TEXT_BYTES},
};

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
        Input::StartRefused { assignment, attempt, why, is_final } => {
            session::refused(&mut draft, assignment, attempt, &why, is_final);
        }
        Input::SessionEnded { assignment, attempt, session, end } => {
            session::ended(&mut draft, assignment, attempt, session, *end);
        }
        Input::Checked { assignment, attempt, passed, output } => {
            session::checked(&mut draft, assignment, attempt, passed, &output);
        }
        Input::Stuck { assignment, attempt, stuck } => session::stuck(&mut draft, assignment, attempt, stuck),
        Input::ProgressSeen { assignment, attempt } => session::gets_on(&mut draft, assignment, attempt),
        Input::Collision { one, other, paths, turn } => draft.collision(one, other, paths, turn),
        Input::Merged { attempt, ok, output, commit } => draft.merged(attempt, ok, &output, commit),
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
            Step::Checking { session, .. } => {
                effects.extend(schedule::check_effect(state, place, *session));
            }
            Step::Pending | Step::Ready { .. } | Step::Over(_) => {}
        }
    }
    if let Merging::Running { attempt, from } = &state.merge {
        effects.extend(schedule::merge_effect(state, *attempt, from));
    }
    effects
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

    /// The sessions that run, and whether the mission keeps them frozen.
    fn frozen(&self) -> BTreeMap<SessionId, bool> {
        let of = |place: usize| Some((self.state.slots[place].session()?, self.state.is_frozen(place)));
        (0..self.state.slots.len()).filter_map(of).collect()
    }

    /// Freezes and thaws those with which that changed.
    fn refreeze(&mut self, was: &BTreeMap<SessionId, bool>) {
        for (session, frozen) in self.frozen() {
            if was.get(&session).is_some_and(|was| *was != frozen) {
                self.effect(Effect::Freeze { session, frozen });
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
        let sessions = self.state.slots.iter().filter_map(|slot| slot.session());
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
        let mut known = self.state.collisions.iter();
        let known = known.find(|seen| (seen.one, seen.other) == (first, second));
        if known.map_or(&[][..], |seen| seen.paths.as_slice()) != paths.as_slice() {
            let mission = self.state.id;
            self.record(Event::CollisionForecast(CollisionForecast { mission, one, other, paths, turn }));
        }
    }

    fn merged(&mut self, attempt: u32, ok: bool, output: &str, commit: Option<String>) {
        if !matches!(self.state.merge, Merging::Running { attempt: running, .. } if running == attempt) {
            return;
        }
        let output = cut(output, MISSION_TEXT_BYTES);
        self.record(Event::MergeEnded(MergeEnded { mission: self.state.id, attempt, ok, output, commit }));
    }
}
