//! What an agent remembers, how full that is, and what it is told when it has lost it.

use super::*;

#[test]
fn how_full_the_context_is_is_told_when_it_is_news() {
    let context = |used| Report::Context(ContextMeasured { used, window: Some(200_000) });
    let mut life = Life::new(RestartPolicy::Never, Approve::Ask, false, None);
    life.working().report(context(20_000)).report(context(20_100)).report(context(122_000));
    assert_eq!(life.kinds.iter().filter(|kind| **kind == Kind::ContextMeasured).count(), 2);
    assert_eq!(life.state.view().context.unwrap().percent(), Some(61));
    life.report(Report::ContextReset { why: "its file is gone".into() });
    assert_eq!(life.state.view().context, None);
}

#[test]
fn an_agent_that_lost_its_memory_is_told_what_was_said() {
    let mut forgetful = created(RestartPolicy::Never, Approve::Ask, false, None);
    forgetful.begin = Begin::Reseed { why: "its file is gone".into(), seed: "You had said: hello.".into() };
    let events = create(forgetful, vec![(message(0), None)], &By("ann".into()));
    assert_eq!(events[1].kind(), Kind::ContextReset);
    let state = State::replay(events.iter().map(|event| (time(0), event))).unwrap();
    let mut life = Life { state, kinds: vec![], effects: vec![], step: 0 };
    life.request(Request::Start).report(Report::Ready { provider_id: None, model: None });
    let [Effect::Tell(AgentRequest::Prompt(said))] = &life.effects[..] else { panic!("{:?}", life.effects) };
    assert_eq!(said.text, "You had said: hello.\n\nmessage 0");
    life.report(Report::TurnStarted { messages: vec![message(0).id] })
        .report(Report::TurnEnded { stop_reason: StopReason::Completed })
        .request(Request::prompt(message(1)));
    assert_eq!(life.effects, [Effect::Tell(AgentRequest::Prompt(message(1)))]);
}

#[test]
fn an_agent_whose_provider_finds_nothing_is_told_what_was_said() {
    let told = |reports: Vec<Report>| {
        let mut resumed = created(RestartPolicy::Never, Approve::Ask, false, None);
        let (interrupted, seed) = (Some("You were interrupted.".into()), "You had said: hello.".into());
        resumed.begin = Begin::Resume { provider_id: "thread-1".into(), interrupted, seed };
        let events = create(resumed, vec![(message(0), None)], &By("ann".into()));
        let state = State::replay(events.iter().map(|event| (time(0), event))).unwrap();
        let mut life = Life { state, kinds: vec![], effects: vec![], step: 0 };
        life.request(Request::Start);
        for report in reports {
            life.report(report);
        }
        match &life.effects[..] {
            [Effect::Tell(AgentRequest::Prompt(said))] => said.text.clone(),
            other => panic!("{other:?}"),
        }
    };
    let ready = || Report::Ready { provider_id: None, model: None };
    assert_eq!(told(vec![ready()]), "You were interrupted.\n\nmessage 0");
    let lost = Report::ContextReset { why: "no such session".into() };
    assert_eq!(told(vec![lost, ready()]), "You had said: hello.\n\nmessage 0");
}
