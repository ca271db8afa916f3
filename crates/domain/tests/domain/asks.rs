//! What agents ask for outside of their sessions.

use ostler_domain::{
    Event, Reason, Refusal, SessionId, Time,
    ask::{ASKS_OPEN, Ask},
    call::{Call, Reply, denied},
    event::By,
    session::{
        Approve, Decision, Effect, Input, Phase, Report, Request, RestartPolicy, State, create, decide,
        effects_to_repeat,
    },
};

use crate::any::{context, created, message, time};

struct Stage {
    state: State,
    step: u64,
    events: Vec<Event>,
}

impl Stage {
    fn live() -> Self {
        let created = created(RestartPolicy::Never, Approve::Ask, false, None);
        let events = create(created, vec![(message(0), None)], &By("ann".into()));
        let state = State::replay(events.iter().map(|event| (time(0), event))).unwrap();
        let mut stage = Self { state, step: 0, events };
        stage.feed(Input::Request(Request::Start, By::ostler()));
        stage.feed(Input::Report(Report::Ready { provider_id: None, model: None }));
        stage
    }

    fn feed(&mut self, input: Input) -> Vec<Effect> {
        self.step += 1;
        let context = context(self.step);
        let Decision { events, effects } = decide(&self.state, input, &context).unwrap();
        events.iter().for_each(|event| self.state.apply(context.now.wall, event));
        self.events.extend(events);
        effects
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn events(&self) -> &[Event] {
        &self.events
    }
}

fn send(at: u64) -> Input {
    Input::Call { at, call: Ok(Call::Send { to: "api".to_owned(), text: format!("hello {at}") }) }
}

fn asks(effects: &[Effect]) -> Vec<u64> {
    effects
        .iter()
        .filter_map(|effect| if let Effect::Ask { at, .. } = effect { Some(*at) } else { None })
        .collect()
}

fn answers(effects: &[Effect]) -> Vec<(u64, Reply)> {
    let answer = |effect: &Effect| match effect {
        Effect::Answer { at, reply } => Some((*at, reply.clone())),
        _ => None,
    };
    effects.iter().filter_map(answer).collect()
}

#[test]
fn an_ask_is_answered_when_it_is_done_and_repeated_until_then() {
    let mut stage = Stage::live();
    let effects = stage.feed(send(7));
    assert_eq!((asks(&effects), answers(&effects).len()), (vec![7], 0));
    assert_eq!(asks(&effects_to_repeat(stage.state())), [7], "a daemon that dies meanwhile does not lose it");
    assert!(asks(&stage.feed(send(7))).is_empty(), "the same call is one ask");
    let session = SessionId::new(Time::from_micros(1), 1);
    let reply = Reply::Spawned { session, name: "x".parse().unwrap(), budget: None };
    let effects = stage.feed(Input::Served { at: 7, reply: reply.clone() });
    assert_eq!(answers(&effects), [(7, reply.clone())]);
    assert!(asks(&effects_to_repeat(stage.state())).is_empty());
    assert!(stage.feed(Input::Served { at: 7, reply }).is_empty(), "it is settled once");
}

#[test]
fn what_is_not_its_own_is_denied_and_recorded() {
    let mut stage = Stage::live();
    stage.feed(send(7));
    stage.feed(Input::Served { at: 7, reply: Reply::Refused(denied()) });
    assert!(
        stage
            .events()
            .iter()
            .any(|event| matches!(event, Event::Denied(denied) if denied.target == "send api"))
    );
    stage.feed(send(8));
    let busy = Refusal::new(Reason::InboxFull, "full");
    let before = stage.events().len();
    stage.feed(Input::Served { at: 8, reply: Reply::Refused(busy) });
    let after = &stage.events()[before..];
    assert!(
        matches!(after, [Event::AskSettled(settled)] if settled.refused.as_deref() == Some("full")),
        "{after:?}"
    );
}

#[test]
fn agents_for_a_mission_are_asked_for_once_and_a_limit_is_named() {
    let mut stage = Stage::live();
    let agents = "[[agents]]\nname = \"x\"\ntask = \"t\"\n".to_owned();
    let call = Input::Call { at: 7, call: Ok(Call::Assign { agents: agents.clone() }) };
    assert_eq!(asks(&stage.feed(call)), [7]);
    let is_recorded = |event: &Event| matches!(event, Event::Asked(asked) if asked.ask == Ask::Assign { agents: agents.clone() });
    assert_eq!(stage.events().iter().filter(|event| is_recorded(event)).count(), 1);
    assert_eq!(asks(&effects_to_repeat(stage.state())), [7], "a daemon that dies meanwhile does not lose it");
    let full = Refusal::new(Reason::PermissionDenied, "3 may be added; none is left");
    stage.feed(Input::Served { at: 7, reply: Reply::Refused(full) });
    let is_named =
        |event: &Event| matches!(event, Event::Denied(denied) if denied.rule.starts_with("3 may be added"));
    assert!(stage.events().iter().any(is_named));
    for empty in ["", " \n"] {
        assert!(Ask::Assign { agents: empty.to_owned() }.fault().is_some());
    }
}

#[test]
fn a_flood_of_asks_is_refused_and_looking_is_not_recorded() {
    let mut stage = Stage::live();
    for at in 0..ASKS_OPEN as u64 {
        assert_eq!(asks(&stage.feed(send(at))), [at]);
    }
    let effects = stage.feed(send(99));
    assert!(matches!(answers(&effects).as_slice(), [(99, Reply::Refused(_))]));
    let mut stage = Stage::live();
    let before = stage.events().len();
    let search = Call::Search { text: "limit".to_owned() };
    assert_eq!(asks(&stage.feed(Input::Call { at: 3, call: Ok(search) })), [3]);
    assert_eq!(stage.events().len(), before);
    assert!(!Ask::Search { text: "x".to_owned() }.is_change());
}

#[test]
fn whoever_asked_for_a_handoff_is_who_has_the_session_stopped() {
    let mut stage = Stage::live();
    assert!(stage.state().turn().is_none(), "at rest it ends at once");
    let wish = Box::new(ostler_domain::handoff::Wish::default());
    stage.feed(Input::Call { at: 7, call: Ok(Call::Handoff(wish)) });
    let own = By::session(stage.state().created().id);
    let by = stage.events().iter().find_map(|event| match event {
        Event::SessionStopRequested(stop) => Some(stop.by.clone()),
        _ => None,
    });
    assert_eq!(by, Some(own));
}

#[test]
fn what_was_asked_for_is_done_before_the_session_that_asked_ends() {
    let mut stage = Stage::live();
    stage.feed(send(7));
    let wish = Box::new(ostler_domain::handoff::Wish::default());
    stage.feed(Input::Call { at: 8, call: Ok(Call::Handoff(wish)) });
    assert_eq!(stage.state().phase(), Phase::Live, "who has asked hears of it");
    assert_eq!(asks(&effects_to_repeat(stage.state())), [7]);
    let effects = stage.feed(Input::Served { at: 7, reply: Reply::Refused(denied()) });
    assert_eq!(answers(&effects).len(), 1);
    assert_eq!(stage.state().phase(), Phase::Stopping);
}
