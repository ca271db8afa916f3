//! Sessions that go on with another model, and conversations that begin as a copy.

use ostler_domain::{
    Event, Reason, Refusal,
    event::By,
    session::{
        AgentRequest, Approve, Begin, Decision, Effect, Input, Report, Request, RestartPolicy, State, create,
        decide,
    },
};

use crate::any::{context, created, message, time};

fn begun(begin: Begin) -> State {
    let mut created = created(RestartPolicy::Never, Approve::Ask, false, None);
    created.begin = begin;
    let events = create(created, vec![(message(0), None)], &By("ann".into()));
    State::replay(events.iter().map(|event| (time(0), event))).unwrap()
}

fn then(state: &mut State, input: Input) -> Result<Decision, Refusal> {
    let context = context(1);
    let decision = decide(state, input, &context)?;
    decision.events.iter().for_each(|event| state.apply(context.now.wall, event));
    Ok(decision)
}

fn live() -> State {
    let mut state = begun(Begin::Fresh);
    then(&mut state, Input::Request(Request::Start, By::ostler())).unwrap();
    then(&mut state, ready()).unwrap();
    state
}

fn ready() -> Input {
    Input::Report(Report::Ready { provider_id: None, model: Some("first".into()) })
}

fn change(model: &str, while_it_lives: bool) -> Input {
    Input::Request(Request::Model { model: model.into(), while_it_lives }, By("ann".into()))
}

#[test]
fn another_model_is_told_at_once_or_kept_for_the_next_session() {
    let mut state = live();
    let told = then(&mut state, change("second", true)).unwrap();
    assert!(
        matches!(&told.events[..], [Event::ModelChanged(changed)] if changed.by.0 == "ann" && !changed.at_next_session)
    );
    assert_eq!(told.effects, [Effect::Tell(AgentRequest::Model("second".into()))]);
    assert_eq!((state.view().model.as_deref(), state.next_model()), (Some("second"), Some("second")));
    assert_eq!(
        then(&mut state, change("second", true)).unwrap(),
        Decision::default(),
        "asking twice does it once"
    );

    let nameless = then(&mut state, change(" ", true)).unwrap_err();
    assert_eq!(nameless.message, "the name of the model is empty");

    let mut state = live();
    let kept = then(&mut state, change("second", false)).unwrap();
    assert!(matches!(&kept.events[..], [Event::ModelChanged(changed)] if changed.at_next_session));
    assert_eq!(kept.effects, []);
    assert_eq!((state.view().model.as_deref(), state.next_model()), (Some("first"), Some("second")));
}

#[test]
fn an_agent_that_is_not_ready_or_no_model_is_refused() {
    let mut state = begun(Begin::Fresh);
    assert_eq!(then(&mut state, change("second", true)).unwrap_err().reason, Reason::WrongState);
    assert!(then(&mut state, change("second", false)).is_ok());
    for name in ["", " ", &"x".repeat(257)] {
        assert_eq!(then(&mut live(), change(name, true)).unwrap_err().reason, Reason::InvalidArgument);
    }
}

#[test]
fn a_fork_is_told_what_was_said_only_where_there_was_nothing_to_copy() {
    let fork = || begun(Begin::Fork { provider_id: "a".into(), seed: "You had said: hello.".into() });
    let first_words = |mut state: State| {
        let told = then(&mut state, ready()).unwrap();
        told.effects.into_iter().find_map(|effect| match effect {
            Effect::Tell(AgentRequest::Prompt(message)) => Some(message.text),
            _ => None,
        })
    };
    let starting = |mut state: State| {
        then(&mut state, Input::Request(Request::Start, By::ostler())).unwrap();
        state
    };
    assert_eq!(first_words(starting(fork())).unwrap(), message(0).text);
    let mut lost = starting(fork());
    then(&mut lost, Input::Report(Report::ContextReset { why: "no such session".into() })).unwrap();
    let told = first_words(lost).unwrap();
    assert!(told.starts_with("You had said: hello.") && told.ends_with(&message(0).text), "{told}");
}
