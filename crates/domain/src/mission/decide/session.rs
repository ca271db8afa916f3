//! What becomes of an assignment when its session begins, ends, is checked or gets nowhere.

use std::time::Duration;

use super::Draft;
use crate::{
    AssignmentId, Deadline, SessionId,
    event::{
        AssignmentBegan, AssignmentCheckStarted, AssignmentEnded, AssignmentMoved, AssignmentNudged,
        AssignmentRetried, AssignmentUnstuck, AssignmentsReady, Event, MissionHeld,
    },
    limits::{
        MISSION_RETRY_FIRST, MISSION_RETRY_LONGEST, MISSION_START_TRIES, MISSION_TEXT_BYTES,
        MISSION_WAIT_TOLD,
    },
    mission::{
        AssignmentStatus, Effect, Hold, Product, SessionEnd, Spent, State, Stuck, StuckKind, assignment::cut,
        plan::CompleteWhen, state::Step, words::micros,
    },
    session::Outcome,
    text::one_line,
};

/// An attempt that came to nothing.
pub(super) struct Failure {
    pub(super) outcome: Option<Outcome>,
    pub(super) why: String,
    pub(super) spent: Spent,
    /// Trying again would come to the same.
    pub(super) is_final: bool,
    /// There was no session.
    pub(super) never_started: bool,
    /// There was none because this one has its conversation.
    pub(super) awaits: Option<SessionId>,
}

impl Draft<'_> {
    /// The place of an assignment that is in this attempt.
    fn in_attempt(&self, assignment: AssignmentId, attempt: u32) -> Option<usize> {
        let place = self.state.place_of(assignment)?;
        let slot = &self.state.slots[place];
        (slot.attempt == attempt && slot.is_active()).then_some(place)
    }

    /// The same, with its session at work.
    fn at_work(&self, assignment: AssignmentId, attempt: u32) -> Option<(usize, SessionId)> {
        let place = self.in_attempt(assignment, attempt)?;
        Some((place, self.state.slots[place].session()?))
    }

    pub(super) fn end(&mut self, place: usize, end: AssignmentEnded) {
        debug_assert!(end.status.is_final() && self.assignment(place).id == end.assignment);
        self.record(Event::AssignmentEnded(Box::new(end)));
    }

    /// How the assignment at this place ends, as far as it says nothing of the end itself.
    pub(super) fn ending(&self, place: usize, status: AssignmentStatus, why: &str) -> AssignmentEnded {
        let slot = &self.state.slots[place];
        AssignmentEnded {
            mission: self.state.id,
            assignment: slot.assignment.id,
            status,
            attempt: slot.attempt,
            session: slot.sessions.last().copied(),
            outcome: None,
            why: cut(why, MISSION_TEXT_BYTES),
            product: Product::default(),
            spent: Spent::default(),
            took_us: slot.took(self.context.now.wall).map(micros),
        }
    }

    fn complete(&mut self, place: usize, outcome: Option<Outcome>, product: Product, spent: Spent) {
        let ending = self.ending(place, AssignmentStatus::Completed, "");
        self.end(place, AssignmentEnded { outcome, product: product.bounded(), spent, ..ending });
    }

    /// Tries again where that may help, else it has failed.
    pub(super) fn fail(&mut self, place: usize, failure: Failure) {
        let Failure { outcome, why, spent, is_final, never_started, awaits } = failure;
        let (slot, work) = (&self.state.slots[place], self.state.work(place));
        // There was no such session: whoever does it again goes on with the one before it.
        let session = slot.sessions.iter().rev().nth(usize::from(never_started)).copied();
        if let Some(stop) = &self.state.stop {
            let why = format!("the mission was stopped ({})", stop.rule.as_str());
            let ending = self.ending(place, AssignmentStatus::Cancelled, &why);
            return self.end(place, AssignmentEnded { session, outcome, spent, ..ending });
        }
        let again = match never_started {
            true => awaits.is_some() || slot.refused + 1 < MISSION_START_TRIES,
            false => slot.failures < work.retries && !work.side_effects,
        };
        if is_final || !again {
            let why = match (work.side_effects && !is_final && !never_started, slot.attempt) {
                (true, _) => format!("{why}; it has side effects, so it is not tried again by itself"),
                (false, tries) if tries > 1 => format!("{why}; tried {tries} times"),
                (false, _) => why,
            };
            let ending = self.ending(place, AssignmentStatus::Failed, &why);
            return self.end(place, AssignmentEnded { session, outcome, spent, ..ending });
        }
        let before = if never_started { slot.refused } else { slot.failures };
        let after = Deadline::after(&self.context.now, back_off(before));
        self.record(Event::AssignmentRetried(AssignmentRetried {
            mission: self.state.id,
            assignment: self.assignment(place).id,
            attempt: self.state.slots[place].attempt,
            outcome,
            why: cut(&why, MISSION_TEXT_BYTES),
            spent,
            after,
            never_started,
            awaits,
        }));
    }
}

/// How long the next attempt waits after so many that came to nothing before the last one.
fn back_off(before: u32) -> Duration {
    MISSION_RETRY_FIRST.saturating_mul(1 << before.min(16)).min(MISSION_RETRY_LONGEST)
}

pub(super) fn started(draft: &mut Draft<'_>, assignment: AssignmentId, attempt: u32, session: SessionId) {
    let Some((place, known)) = draft.at_work(assignment, attempt) else { return };
    let is_known = draft.state.slots[place].sessions.contains(&session);
    if known != session && !is_known {
        let mission = draft.state.id;
        draft.record(Event::AssignmentMoved(AssignmentMoved { mission, assignment, attempt, session }));
    }
    // What was said to all of them was not heard by one that was not there yet.
    if draft.state.slots[place].session() == Some(session) {
        if draft.state.stop.is_some() {
            draft.effect(Effect::Stop { session });
        } else if draft.state.is_frozen(place) {
            draft.effect(Effect::Freeze { session, frozen: true });
        }
    }
}

pub(super) fn began(
    draft: &mut Draft<'_>,
    assignment: AssignmentId,
    attempt: u32,
    session: SessionId,
    waited: Duration,
) {
    let Some((place, known)) = draft.at_work(assignment, attempt) else { return };
    let is_told = draft.state.slots[place].begun == Some(session);
    if known == session && !is_told && waited >= MISSION_WAIT_TOLD {
        let (mission, waited_us) = (draft.state.id, micros(waited));
        let began = AssignmentBegan { mission, assignment, attempt, session, waited_us };
        draft.record(Event::AssignmentBegan(began));
    }
}

pub(super) fn refused(
    draft: &mut Draft<'_>,
    assignment: AssignmentId,
    attempt: u32,
    why: &str,
    is_final: bool,
) {
    let Some((place, _)) = draft.at_work(assignment, attempt) else { return };
    let why = format!("its session could not be started: {why}");
    let spent = Spent::default();
    draft.fail(place, Failure { outcome: None, why, spent, is_final, never_started: true, awaits: None });
}

/// Two at once in one conversation would not know of each other: the attempt waits, however long that one is talked to.
pub(super) fn awaits(draft: &mut Draft<'_>, assignment: AssignmentId, attempt: u32, session: SessionId) {
    let Some((place, _)) = draft.at_work(assignment, attempt) else { return };
    let why = format!("session {} has its conversation", session.short());
    let (spent, awaits) = (Spent::default(), Some(session));
    draft.fail(place, Failure { outcome: None, why, spent, is_final: false, never_started: true, awaits });
}

pub(super) fn freed(draft: &mut Draft<'_>, session: SessionId) {
    let slots = &draft.state.slots;
    let places = slots.ready().filter(|place| slots[*place].awaits() == Some(session));
    let assignments: Vec<AssignmentId> = places.map(|place| slots[place].assignment.id).collect();
    if !assignments.is_empty() {
        let mission = draft.state.id;
        draft.record(Event::AssignmentsReady(AssignmentsReady { mission, assignments }));
    }
}

pub(super) fn ended(
    draft: &mut Draft<'_>,
    assignment: AssignmentId,
    attempt: u32,
    session: SessionId,
    end: SessionEnd,
) {
    let at_work = draft.at_work(assignment, attempt);
    let Some((place, _)) = at_work.filter(|(_, known)| *known == session) else { return };
    let SessionEnd { outcome, why, said_done, is_final, product, spent } = end;
    let failure = |why: String, is_final: bool| Failure {
        outcome: Some(outcome),
        why,
        spent,
        is_final,
        never_started: false,
        awaits: None,
    };
    match (&draft.state.work(place).complete_when, outcome) {
        (_, Outcome::Handoff) => {}
        (CompleteWhen::Turn, Outcome::Done) => draft.complete(place, Some(outcome), product, spent),
        // However its process went after that, the work is done.
        (CompleteWhen::Done, _) if said_done => draft.complete(place, Some(outcome), product, spent),
        (CompleteWhen::Done, Outcome::Done) => {
            let why = "its agent ended without saying that it is done".to_owned();
            draft.fail(place, failure(why, is_final));
        }
        (CompleteWhen::Check(_), Outcome::Done) if draft.state.stop.is_some() => {
            draft.fail(place, failure(why, true));
        }
        (CompleteWhen::Check(command), Outcome::Done) => {
            let (mission, command) = (draft.state.id, command.clone());
            draft.record(Event::AssignmentCheckStarted(Box::new(AssignmentCheckStarted {
                mission,
                assignment,
                attempt,
                command,
                spent,
                product: product.bounded(),
            })));
            // While the mission stands still it waits to go on with the rest.
            if let Some(effect) = check_effect(&draft.state, place).filter(|_| !draft.state.is_still()) {
                draft.effect(effect);
            }
        }
        (_, ended) => draft.fail(place, failure(why, is_final || !may_go_better(ended))),
    }
}

pub(super) fn check_effect(state: &State, place: usize) -> Option<Effect> {
    let slot = &state.slots[place];
    match (&state.work(place).complete_when, &slot.step) {
        (CompleteWhen::Check(command), Step::Checking { session, .. }) => Some(Effect::Check {
            assignment: slot.assignment.id,
            attempt: slot.attempt,
            session: *session,
            command: command.clone(),
        }),
        _ => None,
    }
}

/// Whether another attempt may end otherwise: not where a person or a limit ended this one.
const fn may_go_better(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Crashed
        | Outcome::FailedStart
        | Outcome::Lost
        | Outcome::Oom
        | Outcome::Timeout
        | Outcome::TurnFailed
        | Outcome::Done
        | Outcome::Handoff => true,
        Outcome::Stopped | Outcome::Killed | Outcome::Budget | Outcome::Reset => false,
    }
}

pub(super) fn checked(
    draft: &mut Draft<'_>,
    assignment: AssignmentId,
    attempt: u32,
    passed: bool,
    output: &str,
) {
    let Some(place) = draft.in_attempt(assignment, attempt) else { return };
    let Step::Checking { product, .. } = &draft.state.slots[place].step else { return };
    // What was used is counted with the beginning of the check.
    let (product, spent) = ((**product).clone(), Spent::default());
    if passed {
        return draft.complete(place, Some(Outcome::Done), product, spent);
    }
    let why = format!("its check failed:\n{}", cut(output.trim(), MISSION_TEXT_BYTES / 2));
    let outcome = Some(Outcome::Done);
    draft.fail(place, Failure { outcome, why, spent, is_final: false, never_started: false, awaits: None });
}

pub(super) fn stuck(draft: &mut Draft<'_>, assignment: AssignmentId, attempt: u32, stuck: Stuck) {
    let Some((place, session)) = draft.at_work(assignment, attempt) else { return };
    // What is frozen, or ends, is left in peace.
    if draft.state.is_frozen(place) || draft.state.stop.is_some() {
        return;
    }
    let Stuck { kind, evidence, is_unread } = stuck;
    let (mission, evidence) = (draft.state.id, one_line(&evidence, 300));
    if !draft.state.slots[place].nudged {
        let text = nudge(kind, &evidence);
        draft.record(Event::AssignmentNudged(AssignmentNudged {
            mission,
            assignment,
            attempt,
            stuck: kind,
            evidence,
        }));
        return draft.effect(Effect::Tell { session, text });
    }
    let hold = match kind {
        StuckKind::Loop => Hold::Loop,
        StuckKind::NoProgress => Hold::NoProgress,
    };
    let was = draft.frozen();
    let told = if is_unread { "and has not read that it was told so" } else { "and was told so" };
    draft.record(Event::MissionHeld(MissionHeld {
        mission,
        hold,
        assignment: Some(assignment),
        why: format!("{} does not get on, {told}: {evidence}", draft.assignment(place).name),
        spared: Vec::new(),
        time_left_us: None,
    }));
    draft.refreeze(&was);
}

fn nudge(kind: StuckKind, evidence: &str) -> String {
    let what = match kind {
        StuckKind::Loop => "You are doing the same again and again",
        StuckKind::NoProgress => "Nothing has come of what you did for a while",
    };
    format!(
        "{what} ({evidence}). Stop and think about what you expected and what happened instead. Then try something else, \
         or say what keeps you."
    )
}

pub(super) fn gets_on(draft: &mut Draft<'_>, assignment: AssignmentId, attempt: u32) {
    let Some((place, _)) = draft.at_work(assignment, attempt) else { return };
    if draft.state.slots[place].nudged {
        let mission = draft.state.id;
        draft.record(Event::AssignmentUnstuck(AssignmentUnstuck { mission, assignment, attempt }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_come_less_often_up_to_a_bound() {
        let seconds: Vec<u64> = (0..9).map(|n| back_off(n).as_secs()).collect();
        assert_eq!(seconds, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
    }
}
