//! What an agent says of itself, and what it is answered.

use super::*;

fn call(at: u64, line: &str) -> Input {
    Input::Call { at, call: Call::parse(line.as_bytes()) }
}

#[test]
fn an_agent_tells_of_its_steps_and_is_answered() {
    let mut life = Life::plain();
    life.working().input(call(9, r#"{"call":"step","name":"build","mark":"start"}"#));
    assert_eq!(life.effects, [Effect::Answer { at: 9, reply: Reply::Ok {} }]);
    // Asked twice, true once.
    life.input(call(10, r#"{"call":"step","name":"build","mark":"start"}"#))
        .input(call(11, r#"{"call":"step","name":"build","mark":"fail","note":"E0004"}"#));
    assert_eq!(life.kinds.iter().filter(|kind| **kind == Kind::StepStarted).count(), 1);
    assert_eq!(life.kinds.last(), Some(&Kind::StepEnded));
    life.input(call(12, r#"{"call":"step","name":"build","mark":"end"}"#));
    let [Effect::Answer { at: 12, reply: Reply::Refused(refusal) }] = life.effects.as_slice() else {
        panic!("{:?}", life.effects)
    };
    assert_eq!(refusal.reason, Reason::WrongState);
}

#[test]
fn done_ends_the_session_with_its_turn() {
    let mut life = Life::plain();
    life.working().input(call(1, r#"{"call":"done","note":"all green"}"#));
    assert_eq!(life.effects, [Effect::Answer { at: 1, reply: Reply::Ok {} }], "not in the middle of a turn");
    life.report(Report::TurnEnded { stop_reason: StopReason::Completed });
    assert!(life.effects.contains(&Effect::Stop(StopRule::Done, By::ostler())), "{:?}", life.effects);
    life.exit(How::Exited { code: 0 });
    assert_eq!(life.state.outcome(), Some(Outcome::Done));
    assert!(life.state.ended().unwrap().obituary.sentence.contains("said that its work is done"));
}

#[test]
fn what_the_agent_says_of_its_end_counts_also_where_it_ends_with_its_turn() {
    for (said, rule, outcome) in [
        (r#"{"call":"handoff","note":"n"}"#, StopRule::Handoff, Outcome::Handoff),
        (r#"{"call":"done","note":"all done"}"#, StopRule::Done, Outcome::Done),
    ] {
        let mut created = Life::plain().state.created().clone();
        created.config.ends_with_turn = true;
        let mut life = Life::of(created);
        life.working().input(call(1, said));
        life.report(Report::TurnEnded { stop_reason: StopReason::Completed });
        assert_eq!(life.state.stop().map(|stop| stop.rule), Some(rule));
        life.exit(How::Exited { code: 0 });
        assert_eq!(life.state.outcome(), Some(outcome));
    }
}

#[test]
fn done_at_rest_ends_the_session_at_once_and_what_was_said_before_is_answered_first() {
    let mut life = Life::plain();
    life.working().report(Report::TurnEnded { stop_reason: StopReason::Completed });
    life.input(call(1, r#"{"call":"done"}"#));
    assert!(life.effects.contains(&Effect::Stop(StopRule::Done, By::ostler())), "{:?}", life.effects);

    let mut life = Life::plain();
    life.working().input(call(1, r#"{"call":"done"}"#)).request(Request::prompt(message(1)));
    life.report(Report::TurnEnded { stop_reason: StopReason::Completed });
    assert!(matches!(life.effects.as_slice(), [Effect::Tell(AgentRequest::Prompt(_))]), "{:?}", life.effects);
}

#[test]
fn whoever_said_done_and_leaves_in_peace_has_not_crashed() {
    let mut life = Life::plain();
    life.working().input(call(1, r#"{"call":"done"}"#)).exit(How::Exited { code: 0 });
    assert_eq!(life.state.outcome(), Some(Outcome::Done));
    let mut life = Life::plain();
    life.working().input(call(1, r#"{"call":"done"}"#)).exit(How::Exited { code: 3 });
    assert_eq!(life.state.outcome(), Some(Outcome::Crashed));
}

#[test]
fn others_are_answered_for_as_if_there_were_none() {
    let mut life = Life::plain();
    life.working();
    let own = life.state.created().id;
    let mut replies = Vec::new();
    for who in ["ses_01KA0000000000000000000000", "some-other-work", ""] {
        life.input(call(3, &format!(r#"{{"call":"show","who":"{who}"}}"#)));
        // Who may read others is known where all sessions are.
        let ask = Ask::Show { who: who.to_owned() };
        assert_eq!(life.effects, [Effect::Ask { at: 3, ask: ask.clone() }]);
        life.input(Input::Call { at: 3, call: Err(CallFault::Unknown(ask.words())) });
        replies.push(life.effects.clone());
        assert_eq!(life.kinds.last(), Some(&Kind::Denied));
    }
    life.input(call(3, r#"{"call":"stop","who":"some-other-work"}"#));
    replies.push(life.effects.clone());
    assert!(replies.iter().all(|reply| *reply == replies[0]), "{replies:?}");
    for line in [r#"{"call":"show"}"#.to_owned(), format!(r#"{{"call":"show","who":"{own}"}}"#)] {
        life.input(call(3, &line));
        let [Effect::Answer { reply: Reply::Session(view), .. }] = life.effects.as_slice() else {
            panic!("{:?}", life.effects)
        };
        assert_eq!((view.id, view.denied, view.process.is_none()), (own, 4, true));
    }
}

#[test]
fn who_only_answers_has_nothing_to_report() {
    let mut created = Life::plain().state.created().clone();
    created.config.no_tools = true;
    let mut life = Life::of(created);
    life.working().input(call(1, r#"{"call":"done"}"#));
    assert_eq!(life.kinds.last(), Some(&Kind::Denied));
    let [Effect::Answer { reply: Reply::Refused(refusal), .. }] = life.effects.as_slice() else {
        panic!("{:?}", life.effects)
    };
    assert_eq!(refusal.reason, Reason::PermissionDenied);
    assert!(!life.state.has_said_done());
}
