//! What the model's server did not do: take the key, take more calls, answer at all. Seen on the wire, and so the same for
//! all agents, whether they say it or keep it to themselves.

use std::time::Duration;

use super::Draft;
use crate::{
    Message, MessageId, Mode,
    event::{AgentRetrying, By, Event, MessageAccepted, RateLimited, Recovered, StopReason},
    session::{Refused, Report, StopRule, WatchdogRung},
};

/// What an agent is told whose turn failed of a limit that has ended.
const GO_ON: &str = "The model's rate limit has ended. Go on where you were stopped.";

pub(super) fn decide(draft: &mut Draft<'_>, refused: &Refused) {
    if draft.state.turn().is_none() {
        return;
    }
    match refused.status {
        // Trying again would only be refused again, and some agents do so for minutes.
        401 if draft.state.auth_failure.is_none() => {
            draft.record(Event::ProviderAuthFailed(refused.words().into()));
            draft.stop(StopRule::ProviderAuth, By::ostler());
        }
        429 => {
            let asked = refused.retry_after_ms.map(Duration::from_millis);
            let until = asked.map(|span| draft.context.now.wall.plus(span));
            limited(draft, refused.words(), until);
        }
        // Whether the agent tries again is its own affair; that all its calls fail is known from here.
        0 | 408 | 409 | 425 | 500..=599 if draft.state.failing_since.is_none() => {
            let after_ms = refused.retry_after_ms;
            let retrying = AgentRetrying { why: refused.words(), attempt: 0, most: 0, after_ms };
            draft.record(Event::AgentRetrying(retrying));
        }
        _ => {}
    }
}

/// Records a limit unless it is known already, from the wire or from the agent; whoever knows its end knows more.
pub(super) fn limited(draft: &mut Draft<'_>, what: String, until: Option<crate::Time>) {
    let known = draft.state.rate_limit();
    let is_news = match (known.map(|known| known.until), until) {
        (None, _) => true,
        (Some(None), until) => until.is_some(),
        (Some(Some(_)), None) => false,
        (Some(Some(known)), Some(until)) => until.since(known) > Duration::from_secs(1),
    };
    if is_news {
        draft.record(Event::RateLimited(RateLimited { what, until }));
    }
}

/// Whether a stall ends with what the agent said: one that tries again and again has not recovered.
pub(super) fn recovers(draft: &Draft<'_>, report: &Report) -> bool {
    let Some(stall) = draft.state.stall() else { return false };
    let is_progress = matches!(
        report,
        Report::Thinking(_)
            | Report::ToolCall(_)
            | Report::ToolResult(_)
            | Report::Image(_)
            | Report::Completion(_)
            | Report::TurnEnded { stop_reason: StopReason::Completed }
            | Report::TurnStarted { .. }
            | Report::ApprovalAsked { .. }
    );
    // Some agents log on standard error that they do not know what they were nudged with.
    let is_sign_of_life = matches!(report, Report::Alive | Report::Stderr(_));
    // A turn that comes to nothing is the end of it, and no progress.
    let fails = matches!(report, Report::Error(_))
        || matches!(report, Report::TurnEnded { stop_reason } if *stop_reason != StopReason::Completed);
    // What it says while it lets go of a turn that was interrupted is no work on it.
    let lets_go = stall.rung == WatchdogRung::Interrupt
        && !matches!(
            report,
            Report::Thinking(_)
                | Report::ToolCall(_)
                | Report::TurnStarted { .. }
                | Report::ApprovalAsked { .. }
        );
    !is_sign_of_life && !fails && !lets_go && (stall.watchdog.heeds_output() || is_progress)
}

/// A turn that failed of a limit goes on when the limit has ended.
pub(super) fn limit_ended(draft: &mut Draft<'_>) {
    if !draft.state.waits_for_limit() {
        return;
    }
    if draft.state.stall().is_some() {
        draft.record(Event::SessionRecovered(Recovered {}));
    }
    // What waits in the inbox is said instead.
    if draft.state.deliverable(&draft.context.now).is_none() {
        let id = MessageId::new(draft.context.now.wall, draft.context.entropy);
        let message = Message { id, text: GO_ON.to_owned(), mode: Mode::Followup };
        let conversation = draft.state.created().conversation;
        draft.record(Event::MessageAccepted(MessageAccepted::new(message, conversation, By::ostler())));
    }
    draft.deliver();
}
