//! Wishes of people and of the engine.

use std::time::Duration;

use super::{Draft, approval, inbox, money, report};
use crate::{
    Message, MessageId, Mode, Reason, Refusal,
    budget::Budget,
    event::{
        Asks, BudgetChanged, By, Event, InterruptRequested, MessageAccepted, ModelChanged, MovedTo, Paused,
        Resumed, TapeLimitRaised,
    },
    handoff::{HandoffRequested, Wish},
    limits::MODEL_BYTES,
    session::{AgentRequest, Attention, Desired, Effect, Hold, Link, Phase, Request, StopRule},
    time::Deadline,
};

pub(super) fn decide(draft: &mut Draft<'_>, request: Request, by: By) -> Result<(), Refusal> {
    match request {
        Request::Start => {
            if draft.state.phase() == Phase::Created {
                draft.start();
            }
        }
        Request::StartAgain => {
            if draft.state.phase() == Phase::Starting {
                draft.start();
            }
        }
        Request::Prompt { said, queue, dropped } => inbox::prompt(draft, *said, queue, dropped, by)?,
        Request::Cancel { id } => inbox::cancel(draft, id, by)?,
        Request::CancelAll => inbox::cancel_all(draft, by),
        Request::Edit { id, text } => inbox::edit(draft, id, text, by)?,
        Request::Reorder { id, before } => inbox::reorder(draft, id, before, by)?,
        Request::MoveAway { id, conversation, message } => {
            inbox::move_away(draft, id, MovedTo::Conversation { conversation, message }, by)?;
        }
        Request::Interrupt => interrupt(draft, by)?,
        Request::Model { model, while_it_lives } => change_model(draft, model, while_it_lives, by)?,
        Request::Pause => pause(draft, None, by)?,
        Request::PauseAndAsk(asks) => pause(draft, Some(asks), by)?,
        Request::Resume { budget, tape_bytes } => resume(draft, budget, tape_bytes, by)?,
        Request::Stop(rule) => draft.stop(rule, by),
        Request::Handoff(wish) => hand_off(draft, *wish, by)?,
        Request::Answer { id, allow, message, hears_why } => {
            approval::answer(draft, id, allow, message, hears_why, by)?;
        }
        Request::Halt { freeze } => halt(draft, freeze, by),
        Request::ReleaseHalt => {
            if draft.state.holds().halt.is_some() && !draft.state.is_ended() {
                draft.release(Hold::Halt);
                go_on(draft);
            }
        }
    }
    Ok(())
}

/// After something that held the session is gone: say what waits, or end what ended its turn meanwhile. One that has not
/// started is in the line again, and starts when its turn comes.
pub(super) fn go_on(draft: &mut Draft<'_>) {
    draft.deliver();
    report::end_with_turn(draft);
}

/// A person hands the work on: nobody waits for the turn to end.
fn hand_off(draft: &mut Draft<'_>, wish: Wish, by: By) -> Result<(), Refusal> {
    if let Some(fault) = wish.fault() {
        return Err(Refusal::invalid(fault));
    }
    if draft.state.is_ended() {
        return Err(ended(draft, "hand on"));
    }
    draft.record(Event::HandoffRequested(Box::new(HandoffRequested { wish, by: by.clone() })));
    draft.stop(StopRule::Handoff, by);
    Ok(())
}

pub(super) fn interrupt(draft: &mut Draft<'_>, by: By) -> Result<(), Refusal> {
    match draft.state.phase() {
        // One that stands still hears it as the first thing when it goes on.
        Phase::Live if draft.state.turn().is_some() => {
            draft.record(Event::InterruptRequested(InterruptRequested { by }));
            draft.effect(Effect::Tell(AgentRequest::Interrupt));
            Ok(())
        }
        Phase::Created | Phase::Starting | Phase::Live | Phase::Stopping => Ok(()),
        Phase::Ended => Err(ended(draft, "interrupt")),
    }
}

fn change_model(draft: &mut Draft<'_>, model: String, while_it_lives: bool, by: By) -> Result<(), Refusal> {
    let short = draft.state.created().id.short();
    if model.trim().is_empty() {
        return Err(Refusal::invalid("the name of the model is empty"));
    }
    match draft.state.phase() {
        Phase::Ended => {
            return Err(ended(draft, "change")
                .hint(format!("ostler restart {short} --model {model}"), "goes on with that model"));
        }
        Phase::Stopping => {
            return Err(Refusal::new(Reason::WrongState, format!("session {short} is stopping")));
        }
        Phase::Created | Phase::Starting if while_it_lives => {
            return Err(Refusal::new(Reason::WrongState, format!("session {short} is not ready yet"))
                .because("its agent cannot be told anything before it is"));
        }
        Phase::Created | Phase::Starting | Phase::Live => {}
    }
    if model.trim().is_empty() || model.len() > MODEL_BYTES {
        return Err(Refusal::invalid("that is no name of a model"));
    }
    if draft.state.next_model() != Some(model.as_str()) {
        let at_next_session = !while_it_lives;
        draft.record(Event::ModelChanged(ModelChanged { model: model.clone(), by, at_next_session }));
        if while_it_lives {
            draft.effect(Effect::Tell(AgentRequest::Model(model)));
        }
    }
    Ok(())
}

fn pause(draft: &mut Draft<'_>, asks: Option<Asks>, by: By) -> Result<(), Refusal> {
    match draft.state.phase() {
        Phase::Ended => return Err(ended(draft, "pause")),
        Phase::Stopping => {
            let short = draft.state.created().id.short();
            return Err(Refusal::new(Reason::WrongState, format!("session {short} is stopping")));
        }
        Phase::Created | Phase::Starting | Phase::Live => {}
    }
    if draft.state.desired() == Desired::Pause {
        return Ok(());
    }
    let was_frozen = draft.state.is_frozen();
    let left = draft.state.deadline().map(|deadline| deadline.remaining(&draft.context.now));
    let timeout_left_us = left.map(|left| u64::try_from(left.as_micros()).unwrap_or(u64::MAX));
    let approvals_left_us = approval::time_left(draft);
    draft.record(Event::SessionPaused(Paused { by, timeout_left_us, approvals_left_us, asks }));
    draft.refreeze(was_frozen);
    Ok(())
}

fn resume(
    draft: &mut Draft<'_>,
    budget: Option<Budget>,
    tape_bytes: Option<u64>,
    by: By,
) -> Result<(), Refusal> {
    match draft.state.phase() {
        Phase::Ended => return Err(ended(draft, "resume")),
        Phase::Stopping => {
            let short = draft.state.created().id.short();
            return Err(Refusal::new(Reason::WrongState, format!("session {short} is stopping")));
        }
        Phase::Created | Phase::Starting | Phase::Live => {}
    }
    if draft.state.holds().halt.is_some() {
        return Err(Refusal::new(Reason::Halted, "all agents are halted, so none goes on alone")
            .hint("ostler halt --release", "lets everything go on"));
    }
    if let Some(budget) = budget {
        draft.record(Event::BudgetChanged(BudgetChanged { budget: Some(budget), by: by.clone() }));
    }
    let allows_more = budget.is_some() || draft.state.holds().budget.is_some();
    if let Some(bytes) = tape_bytes {
        draft.record(Event::TapeLimitRaised(TapeLimitRaised { bytes, by: by.clone() }));
        draft.effect(Effect::RaiseTapeLimit(bytes));
    }
    if let Some(why) = &draft.state.holds().campaign_budget {
        let campaign = draft.state.created().campaign.short();
        return Err(Refusal::new(Reason::OverBudget, "the campaign's budget holds this session")
            .because(why.clone())
            .hint(
                format!("ostler campaign set {campaign} budget=AMOUNT/PERIOD"),
                "raises it, and lets its sessions go on",
            ));
    }
    if let Some(why) = &draft.state.holds().agent_budget {
        let agent = draft.state.created().agent.as_ref().map(|agent| agent.name.to_string());
        return Err(Refusal::new(Reason::OverBudget, "the budget of its agent holds this session")
            .because(why.clone())
            .hint(
                format!("ostler agent set {} budget=AMOUNT/PERIOD", agent.as_deref().unwrap_or("NAME")),
                "raises it, and lets its sessions go on",
            ));
    }
    if draft.state.holds().budget.is_some() {
        if let Some(refusal) = money::over_budget(&draft.state, &draft.context.prices) {
            return Err(refusal);
        }
        draft.release(Hold::Budget);
    }
    if allows_more {
        draft.effect(Effect::Allow(draft.state.allowance(&draft.context.prices)));
    }
    if draft.state.desired() == Desired::Pause {
        let was_frozen = draft.state.is_frozen();
        let deadline = draft
            .state
            .timeout_left_us
            .map(|left| Deadline::after(&draft.context.now, Duration::from_micros(left)));
        let approval_deadlines = approval::deadlines(draft);
        draft.record(Event::SessionResumed(Resumed { by: by.clone(), deadline, approval_deadlines }));
        draft.refreeze(was_frozen);
    }
    go_on(draft);
    try_again(draft, by);
    Ok(())
}

/// Has the agent go on with a turn that failed, unless it has something else to do.
fn try_again(draft: &mut Draft<'_>, by: By) {
    let state = &draft.state;
    if state.attention(Link::Attached) != Some(Attention::TurnFailed) || !state.messages.is_empty() {
        return;
    }
    let Some(text) = state.failed_turn_words() else { return };
    let id = MessageId::new(draft.context.now.wall, draft.context.entropy);
    let message = Message { id, text, mode: Mode::Followup };
    let conversation = state.created().conversation;
    draft.record(Event::MessageAccepted(MessageAccepted::new(message, conversation, by)));
    draft.deliver();
}

fn halt(draft: &mut Draft<'_>, freeze: bool, by: By) {
    match draft.state.phase() {
        Phase::Ended => {}
        Phase::Starting | Phase::Live | Phase::Stopping if !freeze => draft.stop(StopRule::Halt, by),
        Phase::Created | Phase::Starting | Phase::Live if draft.state.holds().halt.is_none() => {
            draft.hold(Hold::Halt, format!("halted by {}; ostler halt --release lets it go on", by.0));
        }
        Phase::Created | Phase::Starting | Phase::Live | Phase::Stopping => {}
    }
}

fn ended(draft: &Draft<'_>, verb: &str) -> Refusal {
    let short = draft.state.created().id.short();
    Refusal::new(Reason::WrongState, format!("session {short} has ended, so there is nothing to {verb}"))
        .because(draft.state.ended().map_or_else(String::new, |ended| ended.obituary.sentence.clone()))
        .hint(format!("ostler restart {short}"), "starts a new session that goes on with it")
}
