//! What the agent was understood to say.

use super::{Draft, approval, inbox, money, refusal};
use crate::{
    ApprovalId, MessageId,
    event::{
        ApprovalRequested, BackgroundChanged, By, ContextReset, Event, MessageMark, MessageUnknown,
        ProviderBound, Recovered, Started, StopReason, TurnEnded, TurnStarted, UsageSource,
    },
    limits::TURN_FAILURE,
    session::{Phase, Report, StopRule, open::Place},
    text::one_line,
    time::Deadline,
};

pub(super) fn decide(draft: &mut Draft<'_>, report: Report) {
    if refusal::recovers(draft, &report) {
        draft.record(Event::SessionRecovered(Recovered {}));
    }
    // What looks like a secret may hide a part of a command, so rules see it before it is blotted out.
    let judgement = approval::judged(draft, &report);
    match report.redacted() {
        Report::Ready { provider_id, model } => ready(draft, provider_id, model),
        Report::TurnStarted { messages } => turn_started(draft, &messages),
        Report::TurnEnded { stop_reason } => turn_ended(draft, stop_reason),
        Report::Unread { messages } => unread(draft, &messages),
        Report::Unclear { messages } => unclear(draft, &messages),
        Report::Bound { provider_id, model } => {
            let is_known = draft.state.bound_id() == Some(provider_id.as_str());
            if !is_known || (model.is_some() && model != draft.state.model) {
                draft.record_last(Event::ProviderBound(ProviderBound { provider_id, model }));
            }
        }
        Report::Background { tasks } => background(draft, tasks),
        Report::Thinking(text) => draft.record_last(Event::AgentThinking(text)),
        Report::ToolCall(call) => draft.record_last(Event::AgentToolCall(call)),
        Report::ToolResult(result) => draft.record_last(Event::AgentToolResult(result)),
        Report::Image(image) => draft.record_last(Event::ImageRecorded(image)),
        Report::Completion(text) => draft.record_last(Event::AgentCompletion(text)),
        Report::Status(text) => draft.record_last(Event::AgentStatus(text.into())),
        Report::Error(text) => draft.record_last(Event::AgentError(text.into())),
        Report::Retrying(retrying) => draft.record_last(Event::AgentRetrying(retrying)),
        Report::RateLimited { what, until } => refusal::limited(draft, what, until),
        // Some agents try again and again, and say so each time.
        Report::AuthFailed(_) if draft.state.auth_failure.is_some() => {}
        Report::AuthFailed(text) => {
            draft.record(Event::ProviderAuthFailed(text.into()));
            draft.stop(StopRule::ProviderAuth, By::ostler());
        }
        Report::CannotStart(text) => {
            draft.record(Event::AgentError(text.into()));
            if draft.state.phase() == Phase::Starting {
                draft.stop(StopRule::CannotStart, By::ostler());
            }
        }
        Report::Compacted(compacted) => draft.record_last(Event::ContextCompacted(compacted)),
        Report::Context(measured) => {
            if measured.is_news_after(draft.state.context.as_ref()) {
                draft.record(Event::ContextMeasured(measured));
            }
        }
        Report::ContextReset { why } => draft.record_last(Event::ContextReset(ContextReset { why })),
        Report::Stderr(raw) => draft.record_last(Event::AgentStderr(raw)),
        Report::Opaque(raw) => draft.record_last(Event::Opaque(raw)),
        Report::Oversize(raw) => draft.record_last(Event::Oversize(raw)),
        Report::Partial(raw) => draft.record_last(Event::Partial(raw)),
        Report::Usage(call) => money::used(draft, UsageSource::Report, call),
        Report::ApprovalAsked { ask, tool, input, kind, action, subagent } => {
            let id = ApprovalId::new(draft.context.now.wall, draft.context.entropy);
            let (why, deadline) = (String::new(), None);
            let asked = ApprovalRequested { id, ask, tool, input, kind, action, subagent, why, deadline };
            approval::asked(draft, asked, judgement);
        }
        Report::ToolAnnounced { ask, tool, action } => approval::announced(draft, ask, &tool, &action),
        Report::ApprovalWithdrawn { ask } => {
            let open: Vec<ApprovalId> =
                draft.state.approvals().iter().filter(|open| open.ask == ask).map(|open| open.id).collect();
            approval::expire(draft, open);
        }
        Report::Alive => {}
    }
}

fn ready(draft: &mut Draft<'_>, provider_id: Option<String>, model: Option<String>) {
    if draft.state.phase() != Phase::Starting {
        return;
    }
    let config = &draft.state.created().config;
    let from_now = || config.timeout().map(|span| Deadline::after(&draft.context.now, span));
    let deadline = config.deadline.clone().or_else(from_now);
    draft.record(Event::SessionStarted(Started { provider_id, model, deadline }));
    draft.deliver();
    draft.end_if_done();
}

fn turn_started(draft: &mut Draft<'_>, messages: &[MessageId]) {
    // A provider may fold a further prompt into the turn that is open.
    let is_new = draft.state.turn().is_none();
    if is_new {
        let turn = draft.state.turns.saturating_add(1);
        draft.record(Event::TurnStarted(TurnStarted { turn }));
    }
    let turn = draft.state.turn().map(|turn| turn.number);
    let seen: Vec<MessageId> = messages.iter().flat_map(|id| draft.state.said_with(*id)).collect();
    for id in seen {
        if draft.state.messages.iter().any(|waiting| waiting.message.id == id && waiting.place < Place::Seen)
        {
            draft.record(Event::MessageSeen(MessageMark { id, turn }));
        }
    }
    draft.deliver();
    if is_new {
        inbox::interrupt_for_who_waits(draft, By::ostler());
    }
}

fn turn_ended(draft: &mut Draft<'_>, stop_reason: StopReason) {
    let Some(turn) = draft.state.turn().map(|turn| turn.number) else { return };
    let was_frozen = draft.state.is_frozen();
    let open: Vec<ApprovalId> = draft.state.approvals().iter().map(|open| open.id).collect();
    approval::expire(draft, open);
    let failure = failure(draft, stop_reason);
    let goes_on = failure.as_ref().and_then(|_| draft.state.goes_on_after(stop_reason));
    let is_to_stop = draft.state.stop().is_some() || draft.state.ends_of_budget;
    let ends_session = is_to_stop || (goes_on.is_none() && ends_with_this_turn(draft));
    draft.record(Event::TurnEnded(TurnEnded { turn, stop_reason, failure, goes_on, ends_session }));
    let answered: Vec<MessageId> = draft
        .state
        .messages
        .iter()
        .filter(|waiting| waiting.place == Place::Seen)
        .map(|waiting| waiting.message.id)
        .collect();
    for id in answered {
        draft.record(Event::MessageAnswered(MessageMark { id, turn: Some(turn) }));
    }
    if draft.state.ends_of_budget {
        draft.stop(StopRule::Budget, By::ostler());
    }
    draft.deliver();
    end_with_turn(draft);
    draft.refreeze(was_frozen);
}

/// What the agent let go of is not read by its model: it waits again, for the next turn.
fn unread(draft: &mut Draft<'_>, messages: &[MessageId]) {
    for id in on_their_way(draft, messages) {
        let why = "the turn went on or ended without it: its model has not read it".to_owned();
        draft.record(Event::MessageReturned(MessageUnknown { id, why }));
    }
}

fn unclear(draft: &mut Draft<'_>, messages: &[MessageId]) {
    for id in on_their_way(draft, messages) {
        let why = "the turn ended, and nothing shows that its model had read this".to_owned();
        draft.record(Event::MessageUnknown(MessageUnknown { id, why }));
    }
}

/// Those of them that nobody has said were read.
fn on_their_way(draft: &Draft<'_>, messages: &[MessageId]) -> Vec<MessageId> {
    let said: Vec<MessageId> = messages.iter().flat_map(|id| draft.state.said_with(*id)).collect();
    let is_on_its_way = |place: Place| matches!(place, Place::Outbox | Place::Delivered);
    let waiting = draft.state.messages.iter().filter(|waiting| is_on_its_way(waiting.place));
    waiting.map(|waiting| waiting.message.id).filter(|id| said.contains(id)).collect()
}

/// Of a turn that came to nothing for want of words of those who refused.
const UNSAID: &str = "the turn failed, and nothing was said of why";

/// Why a turn that ends so came to nothing, if it did.
fn failure(draft: &Draft<'_>, stop_reason: StopReason) -> Option<String> {
    let said = draft.state.trouble.as_deref().or(draft.state.auth_failure.as_deref());
    let said = said.map(|said| one_line(said, TURN_FAILURE));
    let said = said.map(|said| if said.is_empty() { UNSAID.to_owned() } else { said });
    match (stop_reason, draft.state.turn().and_then(|turn| turn.interrupted_by)) {
        (StopReason::Error, _) => said,
        // Nobody asked for this but a watchdog.
        (StopReason::Interrupted, Some(watchdog)) => {
            let took = format!("interrupted by the {} watchdog", watchdog.as_str());
            Some(said.map(|said| format!("{took}: {said}")).unwrap_or(took))
        }
        (StopReason::Completed | StopReason::Interrupted | StopReason::ProcessEnded, _) => None,
    }
}

/// Whether the session ends when the open turn does: nothing is left of what it was told, and nothing of it runs on.
fn ends_with_this_turn(draft: &Draft<'_>) -> bool {
    let state = &draft.state;
    let all_heard = state.messages.iter().all(|waiting| waiting.place == Place::Seen);
    let is_last = all_heard && state.background().is_empty() && state.asks.is_empty();
    state.created().config.ends_with_turn && is_last && !money::is_asked_for(draft)
}

/// A session that is to end with its turn ends when nothing waits and nothing of it runs on.
pub(super) fn end_with_turn(draft: &mut Draft<'_>) {
    if money::is_asked_for(draft) {
        return;
    }
    // What the agent said of its end says more than that it was to end with its turn.
    draft.end_if_done();
    let state = &draft.state;
    // One whose turn failed of a limit goes on when that ends.
    let is_over = state.has_nothing_left() && !state.waits_for_limit();
    if state.created().config.ends_with_turn && is_over && state.turns > 0 {
        draft.stop(StopRule::TurnEnded, By::ostler());
    }
}

fn background(draft: &mut Draft<'_>, tasks: Vec<String>) {
    if draft.state.background() != tasks {
        draft.record(Event::BackgroundChanged(BackgroundChanged { tasks }));
        end_with_turn(draft);
    }
}
