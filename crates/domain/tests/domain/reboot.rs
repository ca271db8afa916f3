//! The machine restarts under its sessions: who is lost with it, who goes on, and for how much.

use ostler_domain::{
    Event, Time, Usage,
    event::{By, Process, StopReason},
    price::{Dollars, Price, PriceBook},
    reboot::{GoingOn, OnReboot, awaits_a_word},
    session::{
        Approve, Context, ExitFacts, How, Input, Outcome, Report, Request, Restart, RestartPolicy, Spawn,
        State, StopRule, create, decide,
    },
    time::BootId,
};

use crate::any::{context, created, message, time};

/// A session of the boot `boot` that works, and then is looked at in another one.
struct Lost {
    state: State,
    step: u64,
    on_reboot: OnReboot,
}

impl Lost {
    fn working(restart: RestartPolicy) -> Self {
        let created = created(restart, Approve::Ask, false, None);
        let events = create(created, vec![(message(0), None)], &By("ann".into()));
        let state = State::replay(events.iter().map(|event| (time(0), event))).unwrap();
        let mut lost = Self { state, step: 0, on_reboot: OnReboot::Ask };
        lost.ask(Request::Start);
        lost.input(Input::Spawned(Spawn { agent: Process { pid: 7, start_time: 8 }, holds_calls: false }));
        lost.report(Report::Ready { provider_id: None, model: Some("claude-x".into()) });
        lost.input(Input::InputTaped { tag: ostler_domain::session::AgentRequest::Prompt(message(0)).tag() });
        lost.report(Report::TurnStarted { messages: vec![message(0).id] });
        lost
    }

    fn at_rest(mut self) -> Self {
        self.report(Report::TurnEnded { stop_reason: StopReason::Completed });
        self
    }

    fn now(&self, boot: &str) -> Context {
        let mut context = context(self.step);
        context.now.boot = BootId(boot.into());
        context.on_reboot = self.on_reboot;
        context
    }

    fn input(&mut self, input: Input) {
        self.input_in("boot", input);
    }

    fn input_in(&mut self, boot: &str, input: Input) -> Vec<Event> {
        self.step += 1;
        let context = self.now(boot);
        let events = decide(&self.state, input, &context).unwrap().events;
        for event in &events {
            self.state.apply(context.now.wall, event);
        }
        events
    }

    fn ask(&mut self, request: Request) {
        self.input(Input::Request(request, By("ann".into())));
    }

    fn report(&mut self, report: Report) {
        self.input(Input::Report(report));
    }

    /// It is found to have ended, in this boot. When the machine came back, where that is why.
    fn found(&mut self, boot: &str, how: How, shut_down: bool) -> Option<Time> {
        let exit = ExitFacts {
            how,
            oom: false,
            memory: None,
            leftovers: vec![],
            asked: shut_down.then(|| "signal: keeper SIGTERM".to_owned()),
            shut_down,
            wish: None,
            rung: None,
            cures: Vec::new(),
        };
        let events = self.input_in(boot, Input::Exited(exit));
        events.iter().find_map(|event| match event {
            Event::SessionFailed(ended) | Event::SessionStopped(ended) => Some(ended.machine_restarted),
            _ => None,
        })?
    }

    fn lost(&mut self, boot: &str) -> Option<Time> {
        self.found(boot, How::Lost { reason: "the machine restarted while it ran".into() }, false)
    }
}

#[test]
fn what_another_boot_finds_gone_was_lost_with_the_machine() {
    let mut session = Lost::working(RestartPolicy::Never);
    let back = session.lost("another");
    let now = session.now("another").now;
    assert_eq!(back, Some(now.wall.minus(now.since_boot)), "the moment at which the machine came back");
    let view = session.state.view();
    assert_eq!((view.outcome, view.restart), (Some(Outcome::Lost), None));
    assert!(view.obituary.unwrap().sentence.contains("the machine restarted"));

    let mut here = Lost::working(RestartPolicy::Never);
    assert_eq!(here.lost("boot"), None, "the machine is the same: its keeper was killed");
    assert_eq!(here.state.outcome(), Some(Outcome::Lost));
}

#[test]
fn a_shutdown_in_good_order_loses_sessions_too() {
    let mut session = Lost::working(RestartPolicy::Never);
    assert!(session.found("another", How::Exited { code: 0 }, true).is_some());
    let view = session.state.view();
    assert_eq!(view.outcome, Some(Outcome::Lost));
    assert_eq!(view.obituary.unwrap().sentence, "Lost: the machine was shut down while it ran.");

    let mut here = Lost::working(RestartPolicy::Never);
    assert_eq!(here.found("boot", How::Exited { code: 0 }, true), None);
    assert_eq!(here.state.outcome(), Some(Outcome::Stopped), "somebody ended its keeper");
}

#[test]
fn who_was_to_end_anyway_is_not_lost() {
    let mut session = Lost::working(RestartPolicy::Never);
    session.ask(Request::Stop(StopRule::Stop));
    assert_eq!(session.lost("another"), None);
    assert_eq!(session.state.outcome(), Some(Outcome::Stopped));
}

#[test]
fn sessions_go_on_by_themselves_where_the_machine_s_owner_says_so() {
    for (on_reboot, goes_on) in [(OnReboot::Ask, false), (OnReboot::Leave, false), (OnReboot::Resume, true)] {
        let mut session = Lost::working(RestartPolicy::Never);
        session.on_reboot = on_reboot;
        session.lost("another");
        assert_eq!(matches!(session.state.view().restart, Some(Restart::At(_))), goes_on, "{on_reboot:?}");
    }
    let mut killed = Lost::working(RestartPolicy::Never);
    killed.on_reboot = OnReboot::Resume;
    killed.lost("boot");
    assert_eq!(killed.state.view().restart, None, "only what the machine ended");
    let mut paused = Lost::working(RestartPolicy::Never);
    paused.on_reboot = OnReboot::Resume;
    paused.ask(Request::Pause);
    paused.lost("another");
    assert_eq!(paused.state.view().restart, None, "a person wanted it to stand still");
}

#[test]
fn a_restart_of_the_machine_is_no_short_life() {
    let mut session = Lost::working(RestartPolicy::OnFailure);
    session.lost("another");
    assert_eq!(session.state.short_lives(), 0);
    let mut crashed = Lost::working(RestartPolicy::OnFailure);
    crashed.lost("boot");
    assert_eq!(crashed.state.short_lives(), 1);
}

#[test]
fn nobody_is_asked_about_what_goes_on_already() {
    let mut session = Lost::working(RestartPolicy::OnFailure);
    session.lost("another");
    let view = session.state.view();
    let now = session.now("another").now.wall;
    assert!(!awaits_a_word(&view, now));
    assert!(awaits_a_word(&view, now.plus(std::time::Duration::from_secs(600))), "the promise was not kept");
    let mut session = Lost::working(RestartPolicy::Never);
    session.lost("another");
    assert!(awaits_a_word(&session.state.view(), now));
}

#[test]
fn going_on_costs_what_the_model_reads_again() {
    let dollars = |micros| Dollars(micros);
    let price = Price { input: dollars(3_000_000), output: dollars(15_000_000), ..Price::default() };
    let mut prices = PriceBook::default();
    prices.own.insert("claude-x".into(), price);
    let call =
        Usage { input: 1_000, cache_read: 90_000, cache_write: 8_000, output: 1_000, ..Usage::default() };
    let mut session = Lost::working(RestartPolicy::Never);
    session.lost("another");
    let priced = GoingOn::of(&session.state, Some(&call), false, &prices);
    assert_eq!((priced.is_free, priced.tokens), (false, Some(100_000)));
    assert_eq!(priced.cost, Some(dollars(300_000)), "all of it at the price of uncached input");
    let unpriced = GoingOn::of(&session.state, Some(&call), false, &PriceBook::default());
    assert_eq!((unpriced.tokens, unpriced.cost), (Some(100_000), None), "unknown, not nothing");
    let unseen = GoingOn::of(&session.state, None, false, &prices);
    assert_eq!((unseen.is_free, unseen.tokens, unseen.cost), (false, None, None));

    let mut resting = Lost::working(RestartPolicy::Never).at_rest();
    resting.lost("another");
    assert!(GoingOn::of(&resting.state, Some(&call), false, &prices).is_free, "nobody asks it anything");
}
