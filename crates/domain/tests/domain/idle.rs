//! How long an idle session keeps its process.

use ostler_domain::{
    Event,
    event::{By, StopReason},
    limits::GIVES_WAY_AFTER,
    session::{
        AgentRequest, Approve, Context, Decision, Effect, ExitFacts, How, Input, Outcome, Report, Request,
        RestartPolicy, State, StopRule, create, decide,
    },
};

use crate::any::{context, created, message, time};

struct Idler {
    state: State,
    step: u64,
}

impl Idler {
    fn working() -> Self {
        Self::working_with(Some(HALF_AN_HOUR * 1_000))
    }

    fn working_with(idle_stop_us: Option<u64>) -> Self {
        let mut created = created(RestartPolicy::Always, Approve::Ask, false, None);
        created.config.idle_stop_us = idle_stop_us;
        let events = create(created, vec![(message(0), None)], &By("ann".into()));
        let state = State::replay(events.iter().map(|event| (time(0), event))).unwrap();
        let mut idler = Self { state, step: 0 };
        idler.input(Input::Request(Request::Start, By::ostler()));
        idler.input(Input::Report(Report::Ready { provider_id: None, model: None }));
        idler.input(Input::InputTaped { tag: AgentRequest::Prompt(message(0)).tag() });
        idler.input(Input::Report(Report::TurnStarted { messages: vec![message(0).id] }));
        idler
    }

    fn context(&self) -> Context {
        context(self.step)
    }

    fn input(&mut self, input: Input) -> Vec<Effect> {
        self.step += 1;
        let context = self.context();
        let Decision { events, effects } = decide(&self.state, input, &context).unwrap();
        events.iter().for_each(|event: &Event| self.state.apply(context.now.wall, event));
        effects
    }

    fn exits(&mut self) {
        self.input(Input::Exited(ExitFacts {
            how: How::Exited { code: 0 },
            oom: false,
            memory: None,
            leftovers: vec![],
            asked: None,
            shut_down: false,
            wish: None,
            rung: None,
            cures: Vec::new(),
        }));
    }

    fn turn_ends(&mut self) {
        self.input(Input::Report(Report::TurnEnded { stop_reason: StopReason::Completed }));
    }
}

/// Half an hour, in the steps of a millisecond that the tests take.
const HALF_AN_HOUR: u64 = 30 * 60 * 1_000;
/// As long as an idle session keeps what another waits for.
const GRACE: u64 = GIVES_WAY_AFTER.as_millis() as u64;

#[test]
fn an_idle_session_is_ended_in_peace_and_only_then() {
    let mut idler = Idler::working();
    assert_eq!(idler.state.idles_until(), None, "it works");
    idler.turn_ends();
    let until = idler.state.idles_until().unwrap();
    assert_eq!(until.since(idler.context().now.wall).as_secs(), 30 * 60);
    assert!(idler.input(Input::IdledOut).is_empty(), "not yet");
    idler.step += HALF_AN_HOUR;
    let effects = idler.input(Input::IdledOut);
    assert!(effects.contains(&Effect::Stop(StopRule::Idle, By::ostler())), "{effects:?}");
    assert_eq!(StopRule::Idle.outcome(), Outcome::Done);
    idler.exits();
    let view = idler.state.view();
    assert_eq!(
        (view.outcome, view.restart),
        (Some(Outcome::Done), None),
        "nothing starts it again but a message"
    );
    assert!(view.evidence.contains("Idle for 30 min"), "{}", view.evidence);
}

#[test]
fn an_idle_session_gives_way_after_a_while_and_says_so() {
    let mut idler = Idler::working();
    assert!(idler.input(Input::GiveWay).is_empty(), "it works");
    idler.turn_ends();
    assert!(idler.input(Input::GiveWay).is_empty(), "somebody may answer");
    idler.step += GRACE;
    let effects = idler.input(Input::GiveWay);
    assert!(effects.contains(&Effect::Stop(StopRule::GaveWay, By::ostler())), "{effects:?}");
    idler.exits();
    let view = idler.state.view();
    assert_eq!((view.outcome, view.restart), (Some(Outcome::Done), None));
    assert!(view.evidence.contains("gave its slot to one that waits"), "{}", view.evidence);
}

#[test]
fn who_is_spoken_to_held_or_to_be_kept_does_not_give_way() {
    let mut told = Idler::working();
    told.turn_ends();
    told.step += GRACE;
    told.input(Input::Request(Request::prompt(message(1)), By("ann".into())));
    assert!(told.input(Input::GiveWay).is_empty());
    let mut paused = Idler::working();
    paused.turn_ends();
    paused.input(Input::Request(Request::Pause, By("ann".into())));
    paused.step += GRACE;
    assert!(paused.input(Input::GiveWay).is_empty());
    let mut kept = Idler::working_with(None);
    kept.turn_ends();
    kept.step += GRACE;
    assert!(kept.input(Input::GiveWay).is_empty(), "its idle_stop is never");
}

#[test]
fn who_is_spoken_to_or_held_is_not_idle() {
    let mut idler = Idler::working();
    idler.turn_ends();
    idler.step += HALF_AN_HOUR;
    idler.input(Input::Request(Request::prompt(message(1)), By("ann".into())));
    assert_eq!(idler.state.idles_until(), None);
    assert!(idler.input(Input::IdledOut).is_empty());
    let mut paused = Idler::working();
    paused.turn_ends();
    paused.input(Input::Request(Request::Pause, By("ann".into())));
    assert_eq!(paused.state.idles_until(), None, "a person wants it as it is");
}
