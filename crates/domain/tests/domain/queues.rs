//! How messages wait: in which order they are told, what gives way, and that none is lost without a receipt.

use std::collections::{BTreeMap, BTreeSet};

use ostler_domain::{
    ConversationId, Event, Kind, Message, MessageId, Mode, Reason,
    conversation::QueueDrop,
    event::{By, StopReason},
    message::{Queue, Said},
    session::{
        AgentRequest, Attention, Effect, How, Input, Report, Request, State, StopRule, create, decide,
    },
};
use proptest::{collection::vec, prelude::*};

use crate::{
    any::{any_created, any_input, any_queue, context, message, time},
    life::Life,
};

fn said(n: u8, mode: Mode) -> Message {
    Message { mode, ..message(n) }
}

fn prompt(message: Message, queue: Queue) -> Request {
    Request::Prompt { said: Box::new(message.into()), queue, dropped: None }
}

fn capped(cap: u32, drop: QueueDrop) -> Queue {
    Queue { cap: Some(cap), drop, ..Queue::default() }
}

fn inbox(state: &State) -> Vec<&str> {
    state.inbox().map(|message| message.text.as_str()).collect()
}

fn told(life: &Life) -> Vec<&str> {
    let text = |effect| match effect {
        &Effect::Tell(AgentRequest::Prompt(ref message) | AgentRequest::Steer(ref message)) => {
            Some(message.text.as_str())
        }
        _ => None,
    };
    life.effects.iter().filter_map(text).collect()
}

fn turn_ends(life: &mut Life) -> &mut Life {
    life.report(Report::TurnEnded { stop_reason: StopReason::Completed })
}

#[test]
fn what_is_to_be_collected_is_one_prompt_and_each_has_its_receipts() {
    let mut life = Life::plain();
    life.working();
    for n in 1..=3 {
        life.request(Request::prompt(said(n, Mode::Collect)));
    }
    life.request(Request::prompt(message(4)));
    turn_ends(&mut life);
    assert_eq!(
        told(&life),
        [
            "3 messages came while you worked:\n\n--- 1 ---\nmessage 1\n\n--- 2 ---\nmessage 2\n\n--- 3 ---\nmessage 3"
        ]
    );
    assert_eq!(inbox(&life.state), ["message 4"], "a followup waits for its own turn");
    let before = life.count(Kind::MessageDelivered);
    life.input(Input::InputTaped { tag: AgentRequest::Prompt(message(1)).tag() });
    assert_eq!(life.count(Kind::MessageDelivered) - before, 3);
    life.report(Report::TurnStarted { messages: vec![message(1).id] });
    assert_eq!(life.count(Kind::MessageSeen), 1 + 3);
    turn_ends(&mut life);
    assert_eq!(life.count(Kind::MessageAnswered), 1 + 3);
    assert_eq!(told(&life), ["message 4"]);
}

#[test]
fn one_to_be_collected_is_said_as_it_is() {
    let mut life = Life::plain();
    life.working().request(Request::prompt(said(1, Mode::Collect)));
    turn_ends(&mut life);
    assert_eq!(told(&life), ["message 1"]);
}

#[test]
fn a_collected_message_that_nobody_saw_is_unknown_like_its_prompt() {
    let mut life = Life::plain();
    life.working();
    life.request(Request::prompt(said(1, Mode::Collect))).request(Request::prompt(said(2, Mode::Collect)));
    turn_ends(&mut life).input(Input::InputTaped { tag: AgentRequest::Prompt(message(1)).tag() });
    life.exit(How::Signaled { signal: 11 });
    assert_eq!(life.count(Kind::MessageUnknown), 2);
    assert_eq!(life.state.undelivered().count(), 0);
}

#[test]
fn an_interrupt_ends_the_turn_and_is_said_before_what_waits() {
    let mut life = Life::plain();
    life.working().request(Request::prompt(message(1))).request(Request::prompt(said(2, Mode::Interrupt)));
    assert_eq!(life.effects, [Effect::Tell(AgentRequest::Interrupt)]);
    assert_eq!(life.count(Kind::InterruptRequested), 1);
    assert_eq!(inbox(&life.state), ["message 2", "message 1"]);
    life.report(Report::TurnEnded { stop_reason: StopReason::Interrupted });
    assert_eq!(told(&life), ["message 2"]);
}

#[test]
fn an_interrupt_ends_a_turn_that_was_about_to_begin() {
    let mut life = Life::plain();
    life.request(Request::Start).report(Report::Ready { provider_id: None, model: None });
    life.request(Request::prompt(said(2, Mode::Interrupt)));
    assert_eq!(life.effects, [], "there is no turn yet");
    life.report(Report::TurnStarted { messages: vec![message(0).id] });
    assert_eq!(life.effects, [Effect::Tell(AgentRequest::Interrupt)]);
}

#[test]
fn nothing_is_delivered_before_it_has_been_quiet() {
    let queue = Queue { debounce_ms: 4, ..Queue::default() };
    let mut life = Life::plain();
    turn_ends(life.working());
    // Steps are a millisecond apart.
    life.request(prompt(message(1), queue)).request(prompt(message(2), queue));
    assert_eq!(told(&life), [""; 0]);
    assert!(life.state.quiet_until().is_some(), "somebody must look again");
    life.input(Input::Quiet).input(Input::Quiet).input(Input::Quiet);
    assert_eq!(told(&life), [""; 0], "not yet: the last one counts");
    life.input(Input::Quiet);
    assert_eq!(told(&life), ["message 1"]);
    assert_eq!(life.state.quiet_until(), None, "nothing to look for while that is on its way");
    turn_ends(life.report(Report::TurnStarted { messages: vec![message(1).id] }));
    assert_eq!(told(&life), ["message 2"]);
}

#[test]
fn an_interrupt_is_not_held_back() {
    let queue = Queue { debounce_ms: 60_000, ..Queue::default() };
    let mut life = Life::plain();
    turn_ends(life.working());
    life.request(prompt(message(1), queue)).request(prompt(said(2, Mode::Interrupt), queue));
    assert_eq!(told(&life), ["message 2"]);
}

#[test]
fn too_many_have_one_give_way_and_the_agent_hears_of_it_where_that_is_wished() {
    for (drop, left) in [
        (QueueDrop::Old, ["message 2", "message 3"]),
        (QueueDrop::New, ["message 1", "message 2"]),
        (QueueDrop::Summarize, ["message 2", "message 3"]),
    ] {
        let mut life = Life::plain();
        life.working();
        for n in 1..=3 {
            life.request(prompt(message(n), capped(2, drop)));
        }
        assert_eq!(inbox(&life.state), left, "{drop:?}");
        assert_eq!(life.count(Kind::MessageDropped), 1, "{drop:?}");
        turn_ends(&mut life);
        let summary = "1 message was dropped because too many waited. They began:\n- message 1\n\n";
        let summary = if drop == QueueDrop::Summarize { summary } else { "" };
        assert_eq!(told(&life), [format!("{summary}{}", left[0])], "{drop:?}");
        turn_ends(life.report(Report::TurnStarted { messages: vec![] }));
        assert!(!told(&life).concat().contains("dropped"), "once is enough");
    }
}

#[test]
fn what_was_dropped_is_told_by_the_next_session_if_this_one_could_not() {
    let mut life = Life::plain();
    life.working();
    for n in 1..=3 {
        life.request(prompt(message(n), capped(1, QueueDrop::Summarize)));
    }
    turn_ends(&mut life);
    assert_eq!(told(&life).len(), 1, "it is on its way");
    life.exit(How::Signaled { signal: 11 });
    let untold = life.state.untold();
    assert_eq!((untold.count, untold.lines.as_slice()), (2, &["message 1".into(), "message 2".into()][..]));
    let carried = life.state.undelivered().cloned();
    let next: Vec<Said> = carried.map(|message| Said { untold: untold.clone(), ..message.into() }).collect();
    let created = life.state.created().clone();
    let events = create(created, next, &By("ann".into()));
    let state = State::replay(events.iter().map(|event| (time(0), event))).unwrap();
    assert_eq!(state.untold(), untold);
}

#[test]
fn a_message_that_is_kept_from_the_agent_is_recorded_and_told_to_nobody() {
    let mut life = Life::plain();
    turn_ends(life.working());
    let dropped = Some("nobody was named".to_owned());
    life.request(Request::Prompt { said: Box::new(message(1).into()), queue: Queue::default(), dropped });
    assert_eq!((told(&life).len(), life.count(Kind::MessageDropped)), (0, 1));
    assert_eq!(inbox(&life.state).len(), 0);
}

#[test]
fn what_is_said_into_the_turn_is_told_before_what_waits_for_its_end() {
    let mut life = Life::plain();
    life.working();
    life.request(Request::Pause);
    life.request(Request::prompt(message(1)));
    life.request(Request::prompt(said(2, Mode::Steer)));
    assert_eq!(inbox(&life.state), ["message 1", "message 2"]);
    assert_eq!(life.state.in_order(), [2, 1].map(|n| message(n).id));
}

#[test]
fn what_waits_is_taken_back_changed_and_put_in_another_order() {
    let mut life = Life::plain();
    life.working();
    for n in 1..=4 {
        life.request(Request::prompt(message(n)));
    }
    life.request(Request::Cancel { id: message(2).id });
    life.request(Request::Edit { id: message(3).id, text: "something else".into() });
    life.request(Request::Reorder { id: message(4).id, before: None });
    life.request(Request::Reorder { id: message(3).id, before: Some(message(1).id) });
    assert_eq!(inbox(&life.state), ["message 4", "something else", "message 1"]);
    assert_eq!(life.state.in_order(), [4, 3, 1].map(|n| message(n).id));
    let moves = life.count(Kind::MessageMoved);
    life.request(Request::Reorder { id: message(3).id, before: Some(message(1).id) });
    assert_eq!(life.count(Kind::MessageMoved), moves, "it stands there already");
    let (conversation, message_there) = (ConversationId::new(time(0), 3), MessageId::new(time(1), 1));
    life.request(Request::MoveAway { id: message(1).id, conversation, message: message_there });
    turn_ends(&mut life);
    assert_eq!(told(&life), ["message 4"]);
    for too_late in [
        Request::Cancel { id: message(4).id },
        Request::Edit { id: message(4).id, text: "x".into() },
        Request::Reorder { id: message(4).id, before: None },
        Request::Reorder { id: message(3).id, before: Some(message(4).id) },
        Request::Cancel { id: message(2).id },
    ] {
        let refusal = decide(&life.state, Input::Request(too_late, By("ann".into())), &context(99));
        assert_eq!(refusal.unwrap_err().reason, Reason::WrongState);
    }
    life.request(Request::CancelAll);
    assert_eq!(inbox(&life.state).len(), 0);
    assert_eq!(life.count(Kind::MessageCancelled), 2);
}

#[test]
fn what_a_closed_conversation_never_told_is_cancelled() {
    for (rule, cancelled, left) in [(StopRule::Reset, 1, 0), (StopRule::Stop, 0, 1)] {
        let mut life = Life::plain();
        life.working().request(Request::prompt(message(1))).request(Request::Stop(rule));
        life.exit(How::Exited { code: 0 });
        assert_eq!(life.count(Kind::MessageCancelled), cancelled, "{rule:?}");
        assert_eq!(life.state.undelivered().count(), left, "{rule:?}");
    }
}

fn any_prompt() -> impl Strategy<Value = (u8, Mode, Queue)> {
    let mode = prop_oneof![
        3 => Just(Mode::Followup),
        1 => Just(Mode::Steer),
        3 => Just(Mode::Collect),
        1 => Just(Mode::Interrupt),
    ];
    (any::<u8>(), mode, any_queue())
}

#[derive(Debug, Clone)]
enum Step {
    Prompt(u8, Mode, Queue),
    Other(Input),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => any_prompt().prop_map(|(n, mode, queue)| Step::Prompt(n, mode, queue)),
        3 => any_input().prop_map(Step::Other),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens, each message that was accepted waits, is on its way, or has its last receipt, and not two.
    #[test]
    fn no_message_is_lost_without_a_receipt(created in any_created(), steps in vec(any_step(), 0..60)) {
        let mut state = State::new(created, time(0));
        let mut last = BTreeMap::<MessageId, u32>::new();
        let mut accepted = BTreeSet::new();
        for (n, step) in steps.into_iter().enumerate() {
            let context = context(u64::try_from(n).unwrap() + 1);
            let input = match step {
                // Each has an id of its own, as the engine gives it.
                Step::Prompt(text, mode, queue) => {
                    let id = MessageId::new(context.now.wall, u128::try_from(n).unwrap() + 1_000);
                    let message = Message { id, text: format!("said {text}"), mode };
                    Input::Request(prompt(message, queue), By("ann".into()))
                }
                Step::Other(Input::Request(Request::Prompt { .. }, _)) => continue,
                Step::Other(input) => input,
            };
            let Ok(decision) = decide(&state, input, &context) else { continue };
            for event in decision.events {
                match &event {
                    Event::MessageAccepted(body) => {
                        prop_assert!(accepted.insert(body.message.id), "accepted twice");
                    }
                    Event::MessageAnswered(mark) => *last.entry(mark.id).or_default() += 1,
                    Event::MessageUnknown(body) => *last.entry(body.id).or_default() += 1,
                    Event::MessageDropped(body) => *last.entry(body.id).or_default() += 1,
                    Event::MessageCancelled(body) => *last.entry(body.id).or_default() += 1,
                    _ => {}
                }
                state.apply(context.now.wall, &event);
            }
        }
        prop_assert!(last.values().all(|times| *times == 1), "a message has two ends: {last:?}");
        let there: BTreeSet<_> = state.messages().map(|message| message.id).collect();
        for id in accepted {
            prop_assert!(there.contains(&id) != last.contains_key(&id), "{id}: neither here nor ended, or both");
        }
    }

    /// What waits never grows beyond what may, and what the agent is told comes in the order in which it was said.
    #[test]
    fn the_cap_holds_and_the_order_is_kept(
        queue in any_queue(),
        steps in vec(prop_oneof![4 => Just(0_u8), 1 => Just(1), 1 => Just(2), 1 => Just(3)], 0..80),
        mode in prop_oneof![Just(Mode::Followup), Just(Mode::Collect), Just(Mode::Steer)],
    ) {
        let mut life = Life::plain();
        life.working();
        let mut said_so_far = 0;
        let mut heard = Vec::new();
        for step in steps {
            match step {
                0 if said_so_far < 200 => {
                    said_so_far += 1;
                    life.request(prompt(said(said_so_far, mode), queue));
                    if let Some(cap) = queue.cap {
                        prop_assert!(life.state.inbox().count() <= cap as usize);
                    }
                }
                1 => drop(life.report(Report::TurnStarted { messages: vec![] })),
                2 => drop(turn_ends(&mut life)),
                _ => drop(life.input(Input::Quiet)),
            }
            let ids = life.effects.iter().filter_map(|effect| match effect {
                Effect::Tell(AgentRequest::Prompt(message) | AgentRequest::Steer(message)) => Some(message.id),
                _ => None,
            });
            heard.extend(ids);
        }
        let in_order: Vec<_> = (0..=said_so_far).map(|n| message(n).id).filter(|id| heard.contains(id)).collect();
        prop_assert_eq!(heard, in_order);
    }
}

#[test]
fn words_that_the_model_did_not_read_wait_again_and_are_said_in_the_next_turn() {
    let mut life = Life::plain();
    life.working();
    life.request(Request::prompt(said(1, Mode::Steer)));
    assert!(life.effects.iter().any(|effect| matches!(effect, Effect::Tell(AgentRequest::Steer(_)))));
    life.input(Input::InputTaped { tag: format!("prompt:{}", message(1).id) });
    life.report(Report::Unread { messages: vec![message(1).id] });
    assert_eq!(inbox(&life.state), ["message 1"]);
    life.report(Report::TurnEnded { stop_reason: StopReason::Interrupted });
    assert_eq!(told(&life), ["message 1"]);
    assert_eq!(
        (life.count(Kind::MessageReturned), life.count(Kind::MessageAnswered)),
        (1, 1),
        "only the first is"
    );
    // What was read is not said again, whoever asks for that.
    life.report(Report::TurnStarted { messages: vec![message(1).id] });
    life.report(Report::Unread { messages: vec![message(1).id] });
    assert_eq!(life.count(Kind::MessageReturned), 1);
    life.report(Report::TurnEnded { stop_reason: StopReason::Completed });
    assert_eq!(life.count(Kind::MessageAnswered), 2);
}

#[test]
fn words_of_which_nobody_can_know_are_said_to_be_so_and_keep_nobody_waiting() {
    let mut life = Life::plain();
    life.working();
    life.request(Request::prompt(said(1, Mode::Steer)));
    life.input(Input::InputTaped { tag: format!("prompt:{}", message(1).id) });
    life.report(Report::Unclear { messages: vec![message(1).id] });
    life.report(Report::TurnEnded { stop_reason: StopReason::Completed });
    assert_eq!((life.count(Kind::MessageUnknown), life.count(Kind::MessageAnswered)), (1, 1));
    assert_eq!(life.attention(), Some(Attention::Idle));
}
