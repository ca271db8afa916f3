//! Whether and when a new session replaces an ended one.

use std::time::Duration;

use super::{Context, ExitFacts, How, Outcome, Restart, RestartPolicy, State, StopRule};
use crate::{
    Reason, Time,
    limits::{LOGIN_RENEWED_BEFORE, RESTART_FIRST, RESTART_GOOD_LIFE, RESTART_LONGEST, RESTARTS_IN_A_ROW},
    reboot,
    time::Deadline,
};

/// What the policy says about a session that ends now.
pub(super) fn plan(
    state: &State,
    exit: &ExitFacts,
    outcome: Outcome,
    machine_restarted: Option<Time>,
    context: &Context,
) -> Option<Restart> {
    let now = &context.now;
    // The next one would have no key either, until somebody brings one.
    if has_no_key(exit) {
        return None;
    }
    // It could not find its memory. The next one is told what was said instead, so this happens once.
    if outcome == Outcome::FailedStart && state.stop.is_none() && state.lost_context.is_some() {
        return Some(Restart::At(Deadline::after(now, Duration::ZERO)));
    }
    // Work that was to be handed on is, however its session ended, unless it is over meanwhile.
    if state.handoff.is_some() {
        let goes_on = !hands_on_nothing(state, context);
        return goes_on.then(|| Restart::At(Deadline::after(now, Duration::ZERO)));
    }
    let rule = state.stop.as_ref().map(|stop| stop.rule);
    let outlived_login = outlived_login(state, now.wall);
    let wanted = match rule {
        // The next one is lent a renewed login, or is told at its start that there is none.
        Some(StopRule::ProviderAuth) => outlived_login,
        // A person who asks for a new process gets one at once, whatever the policy.
        Some(StopRule::Restart) => return Some(Restart::At(Deadline::after(now, Duration::ZERO))),
        Some(StopRule::StallWatchdog | StopRule::StartWatchdog | StopRule::CannotStart) | None => {
            match state.created.config.restart {
                RestartPolicy::Never => false,
                RestartPolicy::OnFailure => outcome.is_failure(),
                RestartPolicy::Always => true,
            }
        }
        // Ended on purpose, by a person or by a limit that would only strike again.
        Some(_) => false,
    };
    if context.is_work_over {
        return None;
    }
    // What held it would only hold the next one.
    if state.holds.budget.is_some() || state.ends_of_budget {
        return None;
    }
    if machine_restarted.is_some() && !wanted {
        return reboot::goes_on(state, context.on_reboot, now);
    }
    // Whoever waits for the answer would wait for ever: nobody would say anything to the next one.
    let leaves_work = outlived_login || state.leaves_work();
    if !wanted || (state.created.config.ends_with_turn && !leaves_work) {
        return None;
    }
    let short_lives = short_lives(state, now.wall, machine_restarted.is_some());
    if short_lives >= RESTARTS_IN_A_ROW {
        return Some(Restart::Quarantined { short_lives });
    }
    // A good life that ends with its login says nothing against the next one.
    let pause = if outlived_login && short_lives == 0 { Duration::ZERO } else { back_off(short_lives) };
    Some(Restart::At(Deadline::after(now, pause)))
}

/// Whether its agent wanted its work to go on in another session, and there is nothing left to go on with.
pub(super) fn hands_on_nothing(state: &State, context: &Context) -> bool {
    context.is_work_over && state.handoff.as_ref().is_some_and(|requested| requested.by.is_session())
}

/// Whether the model's server refused the agent because the login that it was lent has ended.
pub(super) fn outlived_login(state: &State, now: Time) -> bool {
    let is_refused = state.stop.as_ref().is_some_and(|stop| stop.rule == StopRule::ProviderAuth);
    is_refused && state.lent_until.is_some_and(|until| until <= now.plus(LOGIN_RENEWED_BEFORE))
}

fn has_no_key(exit: &ExitFacts) -> bool {
    matches!(&exit.how, How::NeverStarted { stage, .. } if stage == Reason::ProviderAuth.as_str())
}

/// Short lives in a row, this one included, unless the machine ended it: that says nothing of the agent.
pub(super) fn short_lives(state: &State, end: Time, with_the_machine: bool) -> u32 {
    if with_the_machine {
        return state.created.short_lives;
    }
    let worked = state.started_at.is_some_and(|started| end.since(started) >= RESTART_GOOD_LIFE);
    if worked { 0 } else { state.created.short_lives.saturating_add(1) }
}

/// How long the next try waits after so many that came to nothing.
pub fn back_off(tries: u32) -> Duration {
    let doublings = tries.saturating_sub(1).min(16);
    RESTART_FIRST.saturating_mul(1 << doublings).min(RESTART_LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_off_doubles_to_a_bound() {
        let seconds: Vec<u64> = (1..12).map(|n| back_off(n).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    }
}
