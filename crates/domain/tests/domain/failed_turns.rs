//! Turns that came to nothing, and turns that were cut short: who is told, and how it goes on.

use ostler_domain::{
    event::{AgentRetrying, By, StopReason},
    session::{
        AgentRequest, Approve, Attention, Begin, Created, Effect, How, Input, Report, Request, RestartPolicy,
        State, Status, Watchdog, create,
    },
};

use crate::{
    any::{created, message, time},
    life::Life,
};

#[test]
fn who_goes_on_with_a_turn_that_was_cut_short_is_told_so() {
    let mut life = Life::plain();
    life.working().exit(How::Signaled { signal: 9 });
    assert!(life.state.was_cut_short());
    let interrupted = life.state.interruption();
    assert!(
        interrupted.as_deref().unwrap().starts_with("You were interrupted in the middle"),
        "{interrupted:?}"
    );
    let begin = Begin::Resume {
        provider_id: "thread-1".into(),
        interrupted: interrupted.clone(),
        seed: String::new(),
    };
    let next = Created { begin, ..created(RestartPolicy::Never, Approve::Ask, false, None) };
    let events = create(next, vec![(message(0), None)], &By("ann".into()));
    let mut life = Life::plain();
    life.state = State::replay(events.iter().map(|event| (time(0), event))).unwrap();
    assert_eq!(life.state.interruption(), interrupted, "nobody has been told yet");
    life.request(Request::Start).report(Report::Ready { provider_id: None, model: None });
    let Some(Effect::Tell(AgentRequest::Prompt(told))) = life.effects.first() else {
        panic!("{:?}", life.effects)
    };
    assert_eq!(told.text, format!("{}\n\n{}", interrupted.unwrap(), message(0).text));
    life.report(Report::TurnStarted { messages: vec![message(0).id] })
        .report(Report::TurnEnded { stop_reason: StopReason::Completed })
        .request(Request::Prompt(message(1)));
    assert_eq!(life.effects, [Effect::Tell(AgentRequest::Prompt(message(1)))], "once");
    life.report(Report::TurnStarted { messages: vec![message(1).id] })
        .report(Report::TurnEnded { stop_reason: StopReason::Completed })
        .exit(How::Signaled { signal: 9 });
    assert_eq!(life.state.interruption(), None, "it was at rest");
}

#[test]
fn a_turn_that_failed_needs_somebody() {
    let mut life = Life::plain();
    life.working()
        .report(Report::Error("500: no model is loaded".into()))
        .report(Report::TurnEnded { stop_reason: StopReason::Error });
    let view = life.state.view();
    assert_eq!((view.attention, view.status), (Some(Attention::TurnFailed), Status::Running));
    assert_eq!(view.evidence, "500: no model is loaded");
    assert!(Attention::TurnFailed.needs_you());
    life.request(Request::Prompt(message(1))).report(Report::TurnStarted { messages: vec![] });
    assert_eq!(life.attention(), Some(Attention::Working));
    life.report(Report::TurnEnded { stop_reason: StopReason::Completed });
    assert_eq!(life.attention(), Some(Attention::Idle), "a good turn makes up for it");
}

#[test]
fn a_turn_that_failed_of_a_limit_needs_somebody_unless_it_goes_on_by_itself() {
    let failed = |until| {
        let mut life = Life::plain();
        life.working()
            .report(Report::RateLimited { what: "too many requests".into(), until })
            .report(Report::TurnEnded { stop_reason: StopReason::Error });
        life.attention()
    };
    assert_eq!(failed(Some(time(900))), Some(Attention::RateLimited));
    assert_eq!(failed(None), Some(Attention::TurnFailed), "nobody knows when it ends");
}

#[test]
fn a_limit_past_the_time_limit_is_in_the_obituary() {
    let mut life = Life::plain();
    life.working()
        .report(Report::RateLimited { what: "too many requests".into(), until: None })
        .input(Input::TimedOut)
        .report(Report::TurnEnded { stop_reason: StopReason::Interrupted })
        .exit(How::Exited { code: 0 });
    let obituary = life.state.view().obituary.unwrap().sentence;
    assert!(obituary.contains("passed while the model's server limited it"), "{obituary}");
}

#[test]
fn a_turn_that_a_watchdog_ended_has_failed() {
    let mut life = Life::plain();
    life.working().report(Report::Retrying(AgentRetrying {
        why: "503".into(),
        attempt: 1,
        most: 0,
        after_ms: None,
    }));
    life.input(Input::Watchdog(Watchdog::Retries)).input(Input::Watchdog(Watchdog::Retries));
    // What it still says while it lets go is no recovery of this turn.
    life.report(Report::Completion("so far".into()));
    life.report(Report::TurnEnded { stop_reason: StopReason::Interrupted });
    assert_eq!(life.attention(), Some(Attention::TurnFailed));
    assert_eq!(life.state.view().evidence, "interrupted by the retries watchdog: 503");
    let mut life = Life::plain();
    life.working().request(Request::Interrupt);
    life.report(Report::TurnEnded { stop_reason: StopReason::Interrupted });
    assert_eq!(life.attention(), Some(Attention::Idle), "somebody wanted this");
}
