//! A session ends at most once; its events give its state; nothing panics; projections are total.

use ostler_domain::{
    Event, Time,
    event::By,
    session::{AgentRequest, Effect, Input, Link, Phase, State, create, decide},
};
use proptest::{collection::vec, prelude::*};

use crate::any::{any_created, any_input, context, message, time};

fn is_end(event: &Event) -> bool {
    matches!(event, Event::SessionStopped(_) | Event::SessionFailed(_))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn promises_hold_in_every_history(created in any_created(), inputs in vec(any_input(), 0..60)) {
        let mut log: Vec<(Time, Event)> =
            create(created, vec![(message(0), None)], &By("ann".into())).into_iter().map(|event| (time(0), event)).collect();
        let mut live = State::replay(log.iter().map(|(at, event)| (*at, event))).expect("the first event creates");
        let mut told = Vec::new();
        for (step, input) in inputs.into_iter().enumerate() {
            let context = context(u64::try_from(step).unwrap() + 1);
            let before = live.clone();
            let Ok(decision) = decide(&live, input.clone(), &context) else { continue };
            if before.is_ended() {
                prop_assert!(decision.events.is_empty() && decision.effects.is_empty(), "an ended session changed: {input:?}");
            }
            for event in decision.events {
                live.apply(context.now.wall, &event);
                log.push((context.now.wall, event));
            }
            for effect in decision.effects {
                if let Effect::Tell(AgentRequest::Prompt(message) | AgentRequest::Steer(message)) = effect {
                    told.push(message.id);
                }
            }
            // Projections are total in every state, attached or not.
            let view = live.view();
            prop_assert_eq!(view.outcome.is_some(), live.phase() == Phase::Ended);
            prop_assert_eq!(live.attention(Link::Detached).is_some(), matches!(live.phase(), Phase::Starting | Phase::Live | Phase::Stopping));
            prop_assert!(!view.evidence.is_empty());
            prop_assert_eq!(view.session_seq, log.len() as u64);
            let _ = live.watchdog();
        }
        prop_assert!(log.iter().filter(|(_, event)| is_end(event)).count() <= 1, "ended twice");
        if let Some(position) = log.iter().position(|(_, event)| is_end(event)) {
            prop_assert_eq!(position, log.len() - 1, "something happened after the end");
        }
        let replayed = State::replay(log.iter().map(|(at, event)| (*at, event)));
        prop_assert_eq!(replayed.as_ref(), Some(&live));
        let restored = State::from_snapshot(&live.snapshot());
        prop_assert_eq!(restored.as_ref(), Some(&live));
        // The stored form of every event gives the event back.
        for (_, event) in &log {
            prop_assert_eq!(&Event::decode(event.kind(), &event.body()).unwrap(), event);
        }
        // A message is said at most once for each time that it was accepted.
        for id in &told {
            let accepted = log.iter().filter(|(_, event)| match event {
                Event::MessageAccepted(accepted) => accepted.message.id == *id,
                Event::MessageReturned(returned) => returned.id == *id,
                _ => false,
            }).count();
            prop_assert!(told.iter().filter(|other| *other == id).count() <= accepted);
        }
    }

    #[test]
    fn any_bytes_are_no_event_and_no_panic(code in any::<u16>(), body in any::<String>()) {
        if let Some(kind) = ostler_domain::Kind::from_code(code) {
            let _ = Event::decode(kind, &body);
        }
        let _ = body.parse::<ostler_domain::SessionId>();
        let _ = body.parse::<ostler_domain::Name>();
        let _ = ostler_domain::Name::slug(&body);
        let _ = ostler_domain::text::one_line(&body, 10);
    }
}

#[test]
fn kinds_are_found_by_name_and_code() {
    for kind in ostler_domain::Kind::ALL {
        assert_eq!(ostler_domain::Kind::from_code(kind.code()), Some(*kind));
        assert_eq!(ostler_domain::Kind::from_name(kind.name()), Some(*kind));
    }
}

#[test]
fn input_of_every_sort_exists() {
    // Keeps the generator honest when a sort of input is added.
    let covers = |input: &Input| match input {
        Input::Request(..)
        | Input::Report(_)
        | Input::Spawned(_)
        | Input::Lent { .. }
        | Input::InputTaped { .. }
        | Input::Intake(_)
        | Input::TapeDamaged { .. }
        | Input::Tampered { .. }
        | Input::Network(_)
        | Input::Wire(_)
        | Input::CutShort { .. }
        | Input::Call { .. }
        | Input::Served { .. }
        | Input::Denied(_)
        | Input::Exited(_)
        | Input::Watchdog(_)
        | Input::ApprovalsDue
        | Input::TimedOut
        | Input::IdledOut
        | Input::GiveWay
        | Input::Refused(_)
        | Input::LimitEnded
        | Input::Quiet
        | Input::Campaign(_)
        | Input::Agent(_)
        | Input::Helpers(_) => true,
    };
    assert!(covers(&Input::TimedOut));
}
