//! What follows when a mission's budget or time is used up.

use super::Draft;
use crate::{
    budget::{Standing, WhenUsedUp, unpriced},
    event::{By, Event, MissionBudgetWarned, MissionHeld, MissionReleased, MissionStopRequested},
    mission::{Effect, Hold, StopRule},
    time::span_text,
};

/// Holds or stops the mission where something is used up.
pub(super) fn look(draft: &mut Draft<'_>) {
    let state = &draft.state;
    if !state.is_running() || state.stop.is_some() {
        return;
    }
    if state.hold.is_none() && state.deadline.as_ref().is_some_and(|end| end.has_passed(&draft.context.now)) {
        let time = state.plan.time().map(span_text).unwrap_or_default();
        return used_up(draft, Hold::Time, format!("its time is used up ({time})"));
    }
    let Some(budget) = state.budget else { return };
    let holds = state.hold.as_ref().is_some_and(|held| held.hold == Hold::Budget);
    match budget.standing(&draft.context.used) {
        // What was used is never less: its model has a price by now.
        Standing::Within | Standing::Warned if holds => go_on(draft),
        Standing::Within => {}
        Standing::Warned if state.budget_warned => {}
        Standing::Warned => {
            let (mission, why) = (state.id, budget.told(&draft.context.used));
            draft.record(Event::MissionBudgetWarned(MissionBudgetWarned { mission, why }));
        }
        Standing::UsedUp | Standing::Unpriced(_) if state.hold.is_some() => {}
        Standing::UsedUp => used_up(draft, Hold::Budget, budget.told(&draft.context.used)),
        Standing::Unpriced(model) => {
            let (why, cure) = unpriced(&model);
            used_up(draft, Hold::Budget, format!("{why}, so its dollars cannot be counted ({cure})"));
        }
    }
}

fn go_on(draft: &mut Draft<'_>) {
    let was = draft.frozen();
    let deadline = draft.deadline_after(draft.state.time_left_us);
    draft.record(Event::MissionReleased(MissionReleased {
        mission: draft.state.id,
        hold: Hold::Budget,
        assignment: None,
        by: By::ostler(),
        deadline,
    }));
    draft.refreeze(&was);
}

fn used_up(draft: &mut Draft<'_>, hold: Hold, why: String) {
    let mission = draft.state.id;
    match draft.state.plan.when_used_up {
        WhenUsedUp::Hold => {
            let was = draft.frozen();
            let (spared, time_left_us) = (draft.spared(), draft.time_left_us());
            draft.record(Event::MissionHeld(MissionHeld {
                mission,
                hold,
                assignment: None,
                why,
                spared,
                time_left_us,
            }));
            draft.refreeze(&was);
        }
        WhenUsedUp::Stop => {
            let rule = if hold == Hold::Time { StopRule::Time } else { StopRule::Budget };
            draft.stop(rule, By::ostler(), why);
        }
    }
}

impl Draft<'_> {
    /// Ends the mission before its work is done.
    pub(super) fn stop(&mut self, rule: StopRule, by: By, why: String) {
        let mission = self.state.id;
        self.record(Event::MissionStopRequested(MissionStopRequested { mission, rule, by, why }));
        let slots = &self.state.slots;
        let sessions: Vec<_> = slots.active().filter_map(|place| slots[place].session()).collect();
        sessions.into_iter().for_each(|session| self.effect(Effect::Stop { session }));
        for errand in super::errands(&self.state) {
            self.effect(Effect::EndErrand(errand));
        }
    }
}
