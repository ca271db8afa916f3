//! The end of a session, which happens once.

use super::{Draft, approval, inbox};
use crate::{
    ApprovalId, MessageId,
    event::{Event, LeftoversEnded, MessageUnknown, StopReason, TurnEnded},
    reboot,
    session::{Effect, Ended, ExitFacts, How, Outcome, Restart, obituary, open::Place, restart},
};

/// Closes what is open, then records the end.
pub(super) fn decide(draft: &mut Draft<'_>, exit: &ExitFacts) {
    let machine_restarted = reboot::taken_along(&draft.state, exit, &draft.context.now);
    let outcome = obituary::outcome(&draft.state, exit, machine_restarted.is_some());
    let outlived_login = restart::outlived_login(&draft.state, draft.context.now.wall);
    let mut text = obituary::write(&draft.state, exit, outcome, outlived_login, draft.context.now.wall);
    if restart::hands_on_nothing(&draft.state, draft.context) {
        text.sentence.push_str(" Nobody goes on with it: its ticket was closed meanwhile.");
    }
    if !exit.leftovers.is_empty() {
        draft.record(Event::LeftoversEnded(LeftoversEnded { processes: exit.leftovers.clone() }));
    }
    let open: Vec<ApprovalId> = draft.state.approvals().iter().map(|open| open.id).collect();
    approval::expire(draft, open);
    let half_told: Vec<MessageId> = draft
        .state
        .messages
        .iter()
        .filter(|waiting| waiting.place == Place::Delivered)
        .map(|waiting| waiting.message.id)
        .collect();
    for id in half_told {
        let why = "the agent ended before its own output showed that it had read this".to_owned();
        draft.record(Event::MessageUnknown(MessageUnknown { id, why }));
    }
    inbox::cancel_with_conversation(draft);
    if let Some(turn) = draft.state.turn().map(|turn| turn.number) {
        draft.record(Event::TurnEnded(TurnEnded::new(turn, StopReason::ProcessEnded)));
    }
    let restart = restart::plan(&draft.state, exit, outcome, machine_restarted, draft.context);
    if let Some(Restart::At(deadline)) = &restart {
        draft.effect(Effect::Continue { after: deadline.remaining(&draft.context.now) });
    }
    let ended = Ended { outcome, obituary: text, restart, machine_restarted };
    draft.record(if outcome.is_failure() {
        Event::SessionFailed(ended)
    } else {
        Event::SessionStopped(ended)
    });
}

/// Ends a session that was asked to stop before it had a process.
pub(super) fn without_a_process(draft: &mut Draft<'_>) {
    let exit = ExitFacts {
        how: How::NeverStarted {
            stage: "created".to_owned(),
            message: "it was stopped before it started".to_owned(),
            cures: Vec::new(),
        },
        oom: false,
        memory: None,
        leftovers: Vec::new(),
        asked: None,
        shut_down: false,
        wish: None,
        rung: None,
        cures: Vec::new(),
    };
    decide(draft, &exit);
    debug_assert!(draft.state.outcome().is_some_and(|outcome| outcome != Outcome::Lost));
}
