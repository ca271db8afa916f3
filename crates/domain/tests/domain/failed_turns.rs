//! Turns that came to nothing, and turns that were cut short: who is told, and how it goes on.

use ostler_domain::{
    Budget, Event, Kind, Usage,
    budget::WhenUsedUp,
    event::{AgentRetrying, By, StopReason},
    notice::Occasion,
    session::{
        AgentRequest, Approve, Attention, Begin, CallUsage, Created, Effect, How, Input, Outcome, Report,
        Request, RestartPolicy, State, Status, StopRule, Watchdog, create, decide,
    },
};

use crate::{
    any::{context, created, message, time},
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
        .request(Request::prompt(message(1)));
    assert_eq!(life.effects, [Effect::Tell(AgentRequest::Prompt(message(1)))], "once");
    life.report(Report::TurnStarted { messages: vec![message(1).id] })
        .report(Report::TurnEnded { stop_reason: StopReason::Completed })
        .exit(How::Signaled { signal: 9 });
    assert_eq!(life.state.interruption(), None, "it was at rest");
}

#[test]
fn a_turn_that_is_interrupted_because_its_session_ends_was_cut_short() {
    let ended = |stops: bool| {
        let mut life = Life::plain();
        life.working();
        if stops {
            life.request(Request::Stop(StopRule::Stop));
        }
        life.report(Report::TurnEnded { stop_reason: StopReason::Interrupted });
        life.exit(How::Exited { code: 0 });
        life.state
    };
    let told = ended(true).interruption().unwrap();
    assert!(told.starts_with("You were interrupted in the middle"), "{told}");
    assert!(!ended(false).was_cut_short());
}

#[test]
fn what_ran_beside_a_turn_is_work_that_was_cut_short() {
    let ended = |tasks: &[&str]| {
        let mut life = Life::plain();
        life.state = State::new(created(RestartPolicy::OnFailure, Approve::Ask, true, None), time(0));
        life.working()
            .report(Report::Background { tasks: tasks.iter().map(|task| (*task).to_owned()).collect() })
            .report(Report::TurnEnded { stop_reason: StopReason::Completed });
        life.exit(How::Signaled { signal: 9 });
        life.state
    };
    let state = ended(&["cargo test"]);
    assert!(state.ended().unwrap().restart.is_some() && state.was_cut_short());
    let told = state.interruption().unwrap();
    assert!(told.ends_with("What you had running beside it is gone: cargo test."), "{told}");
    assert!(!ended(&[]).was_cut_short());
}

#[test]
fn nobody_takes_the_place_of_one_that_would_have_nothing_to_do() {
    let killed = |ends_with_turn, is_seen| {
        let mut life = Life::plain();
        let created = created(RestartPolicy::OnFailure, Approve::Ask, ends_with_turn, None);
        let events = create(created, vec![(message(0), None)], &By("ann".into()));
        life.state = State::replay(events.iter().map(|event| (time(0), event))).unwrap();
        life.request(Request::Start).report(Report::Ready { provider_id: None, model: None });
        life.input(Input::InputTaped { tag: AgentRequest::Prompt(message(0)).tag() });
        if is_seen {
            life.report(Report::TurnStarted { messages: vec![message(0).id] });
        }
        life.exit(How::Signaled { signal: 9 });
        life.state.ended().unwrap().restart.is_some()
    };
    assert!(killed(true, true), "in the middle of its turn");
    assert!(!killed(true, false), "nobody knows whether it heard its message, and nobody says another");
    assert!(killed(false, false), "one that is kept waits for messages");
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
    life.request(Request::prompt(message(1))).report(Report::TurnStarted { messages: vec![] });
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
fn a_turn_that_failed_without_a_word_is_said_to_have() {
    let mut life = Life::plain();
    life.working()
        .report(Report::RateLimited { what: String::new(), until: None })
        .report(Report::TurnEnded { stop_reason: StopReason::Error });
    let view = life.state.view();
    assert_eq!(view.attention, Some(Attention::TurnFailed));
    assert_eq!(view.evidence, "the turn failed, and nothing was said of why");
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
fn a_time_limit_that_passes_over_work_that_is_done_ends_nothing_else() {
    let mut life = Life::plain();
    life.working()
        .report(Report::TurnEnded { stop_reason: StopReason::Completed })
        .input(Input::TimedOut)
        .exit(How::Exited { code: 0 });
    let view = life.state.view();
    assert_eq!(view.outcome, Some(Outcome::Done), "{:?}", view.obituary);
}

#[test]
fn silence_after_a_piece_of_an_answer_is_waited_out_as_silence() {
    let mut life = Life::plain();
    life.working();
    assert_eq!(life.state.watchdog().unwrap().0, Watchdog::FirstOutput, "a piece is no event");
    life.input(Input::Watchdog(Watchdog::Tool));
    assert!(life.state.stall().is_none(), "nobody waits for a tool");
    life.input(Input::Watchdog(Watchdog::Silent));
    assert_eq!(life.state.stall().unwrap().watchdog, Watchdog::Silent);
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

#[test]
fn resume_has_a_turn_that_failed_tried_again_once() {
    let mut life = Life::plain();
    life.working()
        .report(Report::Error("500: no model is loaded".into()))
        .report(Report::TurnEnded { stop_reason: StopReason::Error });
    let resume = || Request::Resume { budget: None, tape_bytes: None };
    life.request(resume());
    let Some(Effect::Tell(AgentRequest::Prompt(told))) = life.effects.first() else {
        panic!("{:?}", life.effects)
    };
    assert!(told.text.starts_with("Your last turn failed: 500: no model is loaded."), "{}", told.text);
    let id = told.id;
    life.request(resume());
    assert_eq!(life.effects, [], "it is told once");
    life.report(Report::TurnStarted { messages: vec![id] })
        .report(Report::TurnEnded { stop_reason: StopReason::Completed });
    life.request(resume());
    assert_eq!(life.effects, [], "nothing failed");
}

#[test]
fn resume_does_not_say_it_where_something_else_waits_or_a_limit_is_waited_for() {
    let mut life = Life::plain();
    life.working().request(Request::prompt(message(1))).request(Request::Pause);
    life.report(Report::TurnEnded { stop_reason: StopReason::Error });
    life.request(Request::Resume { budget: None, tape_bytes: None });
    let told = life.effects.iter().filter(|effect| matches!(effect, Effect::Tell(_))).count();
    assert_eq!(told, 1, "what waits is said instead: {:?}", life.effects);
    let mut life = Life::plain();
    life.working()
        .report(Report::RateLimited { what: "too many requests".into(), until: Some(time(900)) })
        .report(Report::TurnEnded { stop_reason: StopReason::Error })
        .request(Request::Resume { budget: None, tape_bytes: None });
    assert_eq!(life.effects, [], "it goes on when the limit ends");
}

#[test]
fn without_a_key_nothing_is_started_again() {
    let ended = |stage: &str| {
        let mut life = Life::plain();
        life.state = State::new(created(RestartPolicy::Always, Approve::Ask, false, None), time(0));
        let (stage, message) = (stage.to_owned(), "it is not there".to_owned());
        life.request(Request::Start).exit(How::NeverStarted { stage, message, cures: vec![] });
        life.state.ended().unwrap().restart.is_some()
    };
    assert!(ended("directory"));
    assert!(!ended("PROVIDER_AUTH"), "the next one would have none either");
}

#[test]
fn the_end_of_a_session_is_told_once() {
    let mut life = Life::plain();
    life.working().report(Report::AuthFailed("401".into()));
    let decision =
        decide(&life.state, Input::Report(Report::TurnEnded { stop_reason: StopReason::Error }), &context(9));
    let told = decision.unwrap().events.iter().filter(|event| Occasion::of(event).is_some()).count();
    assert_eq!(told, 0, "that the session failed says all");
}

#[test]
fn a_turn_that_was_refused_says_so() {
    let mut life = Life::plain();
    life.working().report(Report::AuthFailed("401 no such key".into()));
    let ended = Input::Report(Report::TurnEnded { stop_reason: StopReason::Error });
    let events = decide(&life.state, ended, &context(9)).unwrap().events;
    let failure = events.iter().find_map(|event| match event {
        Event::TurnEnded(turn) => turn.failure.clone(),
        _ => None,
    });
    assert_eq!(failure.as_deref(), Some("401 no such key"));
}

#[test]
fn a_session_that_ends_with_a_turn_that_failed_has_failed() {
    let mut life = Life::plain();
    life.state = State::new(created(RestartPolicy::Never, Approve::Ask, true, None), time(0));
    life.request(Request::Start)
        .report(Report::Ready { provider_id: None, model: None })
        .report(Report::TurnStarted { messages: vec![] })
        .report(Report::Error("500: there were errors.".into()));
    let failed = Input::Report(Report::TurnEnded { stop_reason: StopReason::Error });
    let events = decide(&life.state, failed.clone(), &context(9)).unwrap().events;
    assert!(events.iter().all(|event| Occasion::of(event).is_none()), "its end is told: {events:?}");
    life.input(failed).exit(How::Exited { code: 0 });
    let view = life.state.view();
    assert_eq!((view.outcome, view.status), (Some(Outcome::TurnFailed), Status::Failed));
    let sentence = view.obituary.unwrap().sentence;
    assert!(
        sentence.starts_with("Its turn failed: 500: there were errors. The agent was stopped"),
        "{sentence}"
    );
    let again = life.state.failed_turn_words().unwrap();
    assert!(again.starts_with("Your last turn failed: 500: there were errors. See"), "{again}");
}

#[test]
fn who_lets_go_of_a_turn_has_not_recovered() {
    let mut life = Life::plain();
    life.working();
    life.input(Input::Watchdog(Watchdog::FirstOutput)).input(Input::Watchdog(Watchdog::FirstOutput));
    life.report(Report::Completion("so far".into()));
    life.report(Report::TurnEnded { stop_reason: StopReason::Interrupted });
    assert_eq!(life.count(Kind::SessionRecovered), 0);
    let mut life = Life::plain();
    life.working().input(Input::Watchdog(Watchdog::FirstOutput));
    life.report(Report::Error("500".into())).report(Report::TurnEnded { stop_reason: StopReason::Error });
    assert_eq!(life.count(Kind::SessionRecovered), 0, "a turn that fails is no progress");
    let mut life = Life::plain();
    life.working();
    life.input(Input::Watchdog(Watchdog::FirstOutput)).input(Input::Watchdog(Watchdog::FirstOutput));
    life.report(Report::Thinking("on I go".into()));
    assert_eq!((life.count(Kind::SessionRecovered), life.attention()), (1, Some(Attention::Working)));
}

#[test]
fn who_is_held_ends_its_turn_when_it_goes_on() {
    let budget = Budget { tokens: Some(10), dollars: None, when_used_up: WhenUsedUp::Hold };
    let mut life = Life::plain();
    life.state = State::new(created(RestartPolicy::Never, Approve::Ask, false, Some(budget)), time(0));
    life.request(Request::Start)
        .report(Report::Ready { provider_id: None, model: None })
        .report(Report::TurnStarted { messages: vec![] });
    let usage = Usage { input: 20, ..Usage::default() };
    life.report(Report::Usage(CallUsage { usage, model: None, call: None }));
    assert_eq!(life.attention(), Some(Attention::BudgetHold));
    life.request(Request::Interrupt);
    assert_eq!(life.effects, [Effect::Tell(AgentRequest::Interrupt)], "the first thing that it will hear");
    assert_eq!(life.attention(), Some(Attention::BudgetHold), "it stands still");
    let more = Budget { tokens: Some(100), ..budget };
    life.request(Request::Resume { budget: Some(more), tape_bytes: None })
        .report(Report::TurnEnded { stop_reason: StopReason::Interrupted });
    assert_eq!(life.attention(), Some(Attention::Idle), "somebody wanted this");
}

#[test]
fn an_agent_that_says_that_it_cannot_work_has_failed_to_start_at_once() {
    let mut life = Life::plain();
    life.request(Request::Start).report(Report::CannotStart("No models are available.".into()));
    assert!(matches!(&life.effects[..], [Effect::Stop(StopRule::CannotStart, _)]), "{:?}", life.effects);
    life.exit(How::Signaled { signal: 9 });
    let ended = life.state.ended().unwrap();
    assert_eq!((ended.outcome, ended.obituary.signal), (Outcome::FailedStart, None));
    let said = "The agent said at its start that it cannot work: No models are available.";
    assert_eq!(ended.obituary.sentence, said);
    // Whoever is ready has got over it.
    let mut life = Life::plain();
    life.working().report(Report::CannotStart("late".into()));
    assert!(life.effects.is_empty() && life.count(Kind::AgentError) == 1);
}
