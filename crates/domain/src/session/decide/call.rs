//! What the agent said on its session socket. Nothing of it is refused without an answer that says so.

use super::{Draft, report};
use crate::{
    Reason, Refusal,
    ask::{ASKS_OPEN, Ask, AskSettled, Asked, OutputAdded, Spawn},
    call::{Call, CallFault, DoneReported, Reply, StepEnded, StepMark, StepStarted, denied},
    denied::{Denied, DeniedKind},
    event::{By, Event, Recovered},
    handoff::{HandoffRequested, Wish},
    limits::STEPS_OPEN,
    redact::redacted,
    session::{Effect, View},
    text::one_line,
};

/// How much of what was asked for is recorded with its denial.
const TARGET: usize = 100;
const OWN_ONLY: &str = "an agent speaks for its own session only";

pub(super) fn decide(draft: &mut Draft<'_>, at: u64, call: Result<Call, CallFault>) {
    if draft.state.stall().is_some() {
        draft.record(Event::SessionRecovered(Recovered {}));
    }
    let reply = match call {
        // Who only answers has nothing to report, and no work to hand on.
        Ok(call) if draft.state.created().config.no_tools && !matches!(call, Call::Show { .. }) => {
            only_answers(draft)
        }
        Ok(Call::Step { name, mark, note }) => step(draft, redacted(name), mark, redacted(note)),
        Ok(Call::Note { text }) => {
            draft.record(Event::AgentStatus(redacted(text).into()));
            Reply::Ok {}
        }
        Ok(Call::Done { note }) => {
            if !draft.state.done {
                draft.record(Event::DoneReported(DoneReported { note: redacted(note) }));
                draft.end_if_done();
            }
            Reply::Ok {}
        }
        Ok(Call::Handoff(_)) if draft.context.is_work_over => work_is_over(draft),
        Ok(Call::Handoff(wish)) => {
            if draft.state.handoff().is_none() {
                let by = By::session(draft.state.created().id);
                let requested = HandoffRequested { wish: redacted_wish(*wish), by };
                draft.record(Event::HandoffRequested(Box::new(requested)));
                draft.end_if_done();
            }
            Reply::Ok {}
        }
        Ok(Call::Output { name, kind, value }) => {
            draft.record(Event::OutputAdded(OutputAdded {
                name: redacted(name),
                kind,
                value: redacted(value),
            }));
            Reply::Ok {}
        }
        Ok(Call::Spawn(spawn)) => {
            let task = redacted(spawn.task.clone());
            return asked(draft, at, Ask::Spawn(Spawn { task, ..*spawn }));
        }
        Ok(Call::Send { to, text }) => return asked(draft, at, Ask::Send { to, text: redacted(text) }),
        Ok(Call::Assign { agents }) => return asked(draft, at, Ask::Assign { agents: redacted(agents) }),
        Ok(Call::Search { text }) => return asked(draft, at, Ask::Search { text }),
        Ok(Call::Ticket { who }) => return asked(draft, at, Ask::Ticket { who }),
        Ok(Call::Show { who }) => match who.filter(|who| !is_own(draft, who)) {
            // Its number is the host's, and means nothing inside.
            None => Reply::Session(Box::new(View { process: None, ..draft.state.view() })),
            Some(who) => return asked(draft, at, Ask::Show { who }),
        },
        Err(CallFault::Unknown(name)) => deny(draft, &name),
        Err(fault @ CallFault::Malformed(_)) => Reply::Refused(fault.refusal()),
    };
    draft.effect(Effect::Answer { at, reply });
}

/// What is done elsewhere is answered when it is done.
fn asked(draft: &mut Draft<'_>, at: u64, ask: Ask) {
    // The tape is read once; whoever repeats a record has been heard.
    if draft.state.asks.iter().any(|asked| asked.at == at) {
        return;
    }
    if draft.state.asks.len() >= ASKS_OPEN {
        let refusal = Refusal::new(Reason::WrongState, format!("{ASKS_OPEN} asks are under way already"));
        return draft.effect(Effect::Answer { at, reply: Reply::Refused(refusal) });
    }
    if ask.is_change() {
        draft.record(Event::Asked(Box::new(Asked { at, ask: ask.clone() })));
    }
    draft.effect(Effect::Ask { at, ask });
}

/// What came of an ask.
pub(super) fn settled(draft: &mut Draft<'_>, at: u64, reply: Reply) {
    let Some(asked) = draft.state.asks.iter().find(|asked| asked.at == at) else { return };
    let words = asked.ask.words();
    let mut settled = AskSettled { at, session: None, message: None, refused: None };
    match &reply {
        Reply::Spawned { session, .. } => settled.session = Some(*session),
        Reply::Sent { message } => settled.message = Some(*message),
        Reply::Refused(refusal) => {
            if refusal.reason == Reason::PermissionDenied {
                // What is not its own is denied in the same words whatever it is; a limit is named.
                let rule = if *refusal == denied() { OWN_ONLY } else { refusal.message.as_str() };
                record_denial(draft, &words, rule);
            }
            settled.refused = Some(refusal.message.clone());
        }
        _ => {}
    }
    draft.record(Event::AskSettled(settled));
    draft.effect(Effect::Answer { at, reply });
    report::end_with_turn(draft);
}

fn redacted_wish(wish: Wish) -> Wish {
    let list = |texts: Vec<String>| texts.into_iter().map(redacted).collect();
    Wish {
        note: redacted(wish.note),
        done: list(wish.done),
        decided: list(wish.decided),
        open: list(wish.open),
        ..wish
    }
}

fn is_own(draft: &Draft<'_>, who: &str) -> bool {
    let created = draft.state.created();
    who == created.id.to_string() || who == created.id.short() || who == created.name.as_str()
}

fn only_answers(draft: &mut Draft<'_>) -> Reply {
    let words = "this session has no tools: it is only to answer";
    draft.record(Event::Denied(Denied {
        kind: DeniedKind::Call,
        target: "a call on its socket".to_owned(),
        rule: words.to_owned(),
        grant: None,
    }));
    Reply::Refused(Refusal::new(Reason::PermissionDenied, words))
}

/// Nothing is left that another session could go on with.
fn work_is_over(draft: &mut Draft<'_>) -> Reply {
    let words = "the ticket that this session works on is closed";
    record_denial(draft, "handoff", words);
    Reply::Refused(
        Refusal::new(Reason::TicketClosed, words)
            .because("nobody goes on with work that is over")
            .hint("ostler done", "says that the work is done"),
    )
}

fn deny(draft: &mut Draft<'_>, target: &str) -> Reply {
    record_denial(draft, target, OWN_ONLY);
    Reply::Refused(denied())
}

fn record_denial(draft: &mut Draft<'_>, target: &str, rule: &str) {
    draft.record(Event::Denied(Denied {
        kind: DeniedKind::Call,
        target: one_line(target, TARGET),
        rule: rule.to_owned(),
        grant: None,
    }));
}

fn step(draft: &mut Draft<'_>, name: String, mark: StepMark, note: String) -> Reply {
    let is_open = draft.state.steps.contains(&name);
    match (mark, is_open) {
        // It is so already: callers may ask twice.
        (StepMark::Start, true) => {}
        (StepMark::Start, false) if draft.state.steps.len() >= STEPS_OPEN => {
            return Reply::Refused(
                Refusal::new(Reason::WrongState, format!("{STEPS_OPEN} steps are open already"))
                    .hint("ostler step NAME end", "ends one of them"),
            );
        }
        (StepMark::Start, false) => draft.record(Event::StepStarted(StepStarted { name, note })),
        (StepMark::End | StepMark::Fail, true) => {
            draft.record(Event::StepEnded(StepEnded { name, success: mark == StepMark::End, note }));
        }
        (StepMark::End | StepMark::Fail, false) => {
            let shown = one_line(&name, TARGET);
            return Reply::Refused(
                Refusal::new(Reason::WrongState, format!("no step \"{shown}\" is open"))
                    .hint(format!("ostler step {shown} start"), "begins it"),
            );
        }
    }
    Reply::Ok {}
}
