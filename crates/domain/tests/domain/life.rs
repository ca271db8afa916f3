//! Single lives, told step by step.

mod calls;
mod deeds;
mod login;
mod memory;

use ostler_domain::{
    Budget, Event, Hint, Kind, Reason, Refusal, Usage,
    admission::Standing,
    ask::Ask,
    budget::WhenUsedUp,
    call::{Call, CallFault, Reply},
    event::{AskKind, By, ContextMeasured, Raw, StopReason},
    gateway::Allowance,
    session::{
        AgentRequest, Approve, Attention, Begin, CallUsage, Created, Decision, Effect, ExitFacts, How, Input,
        Link, Outcome, Phase, Report, Request, Restart, RestartPolicy, State, Status, StopRule, Watchdog,
        create, decide,
    },
};

use crate::any::{context, created, message, time};

pub(crate) struct Life {
    pub(crate) state: State,
    kinds: Vec<Kind>,
    pub(crate) effects: Vec<Effect>,
    step: u64,
}

impl Life {
    fn new(restart: RestartPolicy, approve: Approve, ends_with_turn: bool, budget: Option<Budget>) -> Self {
        Self::of(created(restart, approve, ends_with_turn, budget))
    }

    fn of(created: Created) -> Self {
        let events = create(created, vec![(message(0), None)], &By("ann".into()));
        let state = State::replay(events.iter().map(|event| (time(0), event))).unwrap();
        Self { state, kinds: events.iter().map(Event::kind).collect(), effects: vec![], step: 0 }
    }

    pub(crate) fn plain() -> Self {
        Self::new(RestartPolicy::Never, Approve::Ask, false, None)
    }

    fn try_input(&mut self, input: Input) -> Result<(), Refusal> {
        self.step += 1;
        let context = context(self.step);
        let Decision { events, effects } = decide(&self.state, input, &context)?;
        for event in &events {
            self.state.apply(context.now.wall, event);
        }
        self.kinds.extend(events.iter().map(Event::kind));
        self.effects = effects;
        Ok(())
    }

    pub(crate) fn input(&mut self, input: Input) -> &mut Self {
        self.try_input(input).unwrap();
        self
    }

    pub(crate) fn request(&mut self, request: Request) -> &mut Self {
        self.input(Input::Request(request, By("ann".into())))
    }

    pub(crate) fn report(&mut self, report: Report) -> &mut Self {
        self.input(Input::Report(report))
    }

    pub(crate) fn working(&mut self) -> &mut Self {
        self.request(Request::Start)
            .report(Report::Ready { provider_id: None, model: None })
            .input(Input::InputTaped { tag: AgentRequest::Prompt(message(0)).tag() })
            .report(Report::TurnStarted { messages: vec![message(0).id] })
    }

    pub(crate) fn exit(&mut self, how: How) -> &mut Self {
        self.input(Input::Exited(ExitFacts {
            how,
            oom: false,
            memory: None,
            leftovers: vec![],
            asked: None,
            shut_down: false,
            wish: None,
            rung: None,
            cures: Vec::new(),
        }))
    }

    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.kinds.iter().filter(|seen| **seen == kind).count()
    }

    pub(crate) fn attention(&self) -> Option<Attention> {
        self.state.attention(Link::Attached)
    }
}

#[test]
fn an_orderly_life() {
    let mut life = Life::new(RestartPolicy::Never, Approve::Ask, true, None);
    life.working();
    assert_eq!(
        (life.state.status(Link::Attached), life.state.status(Link::Detached)),
        (Status::Working, Status::Running)
    );
    life.report(Report::Completion("done".into()))
        .report(Report::TurnEnded { stop_reason: StopReason::Completed });
    let stop = Effect::Stop(StopRule::TurnEnded, By::ostler());
    assert_eq!(life.effects, [Effect::Tell(AgentRequest::End), stop]);
    life.exit(How::Exited { code: 0 });
    assert_eq!(
        (life.state.outcome(), life.state.status(Link::Attached)),
        (Some(Outcome::Done), Status::Stopped)
    );
    assert_eq!(
        life.kinds,
        [
            Kind::SessionCreated,
            Kind::MessageAccepted,
            Kind::SessionStarting,
            Kind::SessionStarted,
            Kind::MessageSent,
            Kind::MessageDelivered,
            Kind::TurnStarted,
            Kind::MessageSeen,
            Kind::AgentCompletion,
            Kind::TurnEnded,
            Kind::MessageAnswered,
            Kind::SessionStopRequested,
            Kind::SessionStopped,
        ]
    );
}

#[test]
fn a_prompt_while_working_waits_for_the_turn() {
    let mut life = Life::plain();
    life.working().request(Request::prompt(message(1)));
    assert!(life.effects.is_empty());
    assert_eq!(life.state.view().messages_waiting, 1);
    life.report(Report::TurnEnded { stop_reason: StopReason::Completed });
    assert_eq!(life.effects, [Effect::Tell(AgentRequest::Prompt(message(1)))]);
}

#[test]
fn ways_out() {
    let ended = |prepare: fn(&mut Life), how: How| {
        let mut life = Life::plain();
        prepare(&mut life);
        life.exit(how);
        (life.state.outcome().unwrap(), life.state.ended().unwrap().obituary.sentence.clone())
    };
    let starting = |life: &mut Life| {
        life.request(Request::Start);
    };
    let working = |life: &mut Life| {
        life.working();
    };
    let idle = |life: &mut Life| {
        life.working().report(Report::TurnEnded { stop_reason: StopReason::Completed });
    };
    assert_eq!(ended(starting, How::Exited { code: 0 }).0, Outcome::FailedStart);
    assert_eq!(ended(idle, How::Exited { code: 0 }).0, Outcome::Done);
    assert_eq!(ended(working, How::Exited { code: 0 }).0, Outcome::Crashed);
    assert_eq!(
        ended(working, How::Exited { code: 3 }),
        (Outcome::Crashed, "The agent ended by itself with exit code 3 in the middle of a turn.".into())
    );
    assert_eq!(
        ended(working, How::Signaled { signal: 9 }),
        (
            Outcome::Crashed,
            "The agent was ended by signal 9 (SIGKILL) in the middle of a turn; Ostler did not send it."
                .into()
        )
    );
    assert_eq!(
        ended(idle, How::Lost { reason: "the machine restarted".into() }).1,
        "Lost: the machine restarted."
    );
    for (how, outcome) in
        [(How::Signaled { signal: 9 }, Outcome::Oom), (How::Exited { code: 0 }, Outcome::Done)]
    {
        let mut life = Life::plain();
        idle(&mut life);
        let exit = ExitFacts {
            how,
            oom: true,
            memory: None,
            leftovers: vec![],
            asked: None,
            shut_down: false,
            wish: None,
            rung: None,
            cures: Vec::new(),
        };
        assert_eq!(
            life.input(Input::Exited(exit)).state.outcome(),
            Some(outcome),
            "a child was killed for its memory"
        );
    }
}

#[test]
fn a_message_that_nobody_saw_is_unknown_and_one_never_written_goes_on() {
    let mut life = Life::plain();
    life.request(Request::Start).report(Report::Ready { provider_id: None, model: None });
    life.input(Input::InputTaped { tag: AgentRequest::Prompt(message(0)).tag() })
        .request(Request::prompt(message(1)));
    life.exit(How::Signaled { signal: 11 });
    assert!(life.kinds.contains(&Kind::MessageUnknown));
    assert_eq!(
        life.state.undelivered().map(|message| message.text.as_str()).collect::<Vec<_>>(),
        ["message 1"]
    );
}

#[test]
fn a_used_up_budget_holds_and_a_raised_one_goes_on() {
    let budget = Budget { tokens: Some(1_000), dollars: None, when_used_up: WhenUsedUp::Hold };
    let use_of = |output| {
        Report::Usage(CallUsage { usage: Usage { output, ..Usage::default() }, ..CallUsage::default() })
    };
    let mut life = Life::new(RestartPolicy::Never, Approve::Ask, false, Some(budget));
    life.working().report(use_of(850));
    assert!(life.kinds.contains(&Kind::BudgetWarned));
    life.report(use_of(200));
    assert_eq!(
        (life.attention(), life.effects.as_slice()),
        (Some(Attention::BudgetHold), &[Effect::Freeze(true)][..])
    );
    assert!(
        life.try_input(Input::Request(Request::Resume { budget: None, tape_bytes: None }, By("ann".into())))
            .is_err()
    );
    life.request(Request::Resume {
        budget: Some(Budget { tokens: Some(5_000), ..budget }),
        tape_bytes: None,
    });
    assert_eq!(
        (life.attention(), life.effects.as_slice()),
        (
            Some(Attention::Working),
            &[
                Effect::Freeze(false),
                Effect::Allow(Allowance { tokens: Some(5_000), ..Allowance::default() }),
            ][..]
        )
    );

    let mut headless = Life::new(
        RestartPolicy::Never,
        Approve::Ask,
        false,
        Some(Budget { when_used_up: WhenUsedUp::Stop, ..budget }),
    );
    headless.working().report(use_of(1_000)).exit(How::Signaled { signal: 15 });
    assert_eq!(headless.state.outcome(), Some(Outcome::Budget));
}

#[test]
fn the_watchdog_s_ladder_is_bounded() {
    let mut life = Life::plain();
    life.working();
    let mut seen = vec![];
    for _ in 0..6 {
        life.input(Input::Watchdog(Watchdog::FirstOutput));
        seen.push(life.effects.clone());
    }
    assert_eq!(
        seen[..3],
        [vec![Effect::Tell(AgentRequest::Nudge)], vec![Effect::Tell(AgentRequest::Interrupt)], vec![]]
    );
    assert_eq!(life.attention(), Some(Attention::Stalled));
    assert_eq!(life.kinds.iter().filter(|kind| **kind == Kind::WatchdogFired).count(), 3);
    life.report(Report::Thinking("back".into()));
    assert_eq!(life.attention(), Some(Attention::Working));

    let mut restarting = Life::new(RestartPolicy::OnFailure, Approve::Ask, false, None);
    restarting.working();
    for _ in 0..3 {
        restarting.input(Input::Watchdog(Watchdog::FirstOutput));
    }
    assert_eq!(restarting.effects, [Effect::Stop(StopRule::StallWatchdog, By::ostler())]);
    restarting.exit(How::Signaled { signal: 9 });
    assert!(matches!(restarting.state.ended().unwrap().restart, Some(Restart::At(_))));
}

#[test]
fn what_is_logged_ends_no_stall() {
    let mut life = Life::plain();
    life.working();
    life.input(Input::Watchdog(Watchdog::FirstOutput));
    life.report(Report::Stderr(Raw { at: 0, bytes: 9, text: "no method".into() }));
    life.report(Report::Alive);
    assert_eq!(life.attention(), Some(Attention::Stalled));
    life.input(Input::Watchdog(Watchdog::FirstOutput));
    assert_eq!(life.effects, [Effect::Tell(AgentRequest::Interrupt)]);
}

#[test]
fn crashes_in_a_row_end_in_quarantine() {
    let mut plan = vec![];
    for short_lives in 0..6 {
        let mut first = created(RestartPolicy::OnFailure, Approve::Ask, false, None);
        first.short_lives = short_lives;
        let mut life = Life::plain();
        life.state = State::new(first, time(0));
        life.working().exit(How::Exited { code: 1 });
        plan.push(life.state.ended().unwrap().restart.clone().unwrap());
    }
    assert!(plan[..4].iter().all(|restart| matches!(restart, Restart::At(_))), "{plan:?}");
    assert!(matches!(plan[4], Restart::Quarantined { short_lives: 5 }));
}

#[test]
fn a_halt_kills_or_freezes_and_holds_what_has_not_started() {
    let mut life = Life::plain();
    life.request(Request::Halt { freeze: false }).request(Request::Start);
    assert_eq!((life.state.phase(), life.effects.len()), (Phase::Created, 0));
    assert_eq!(Standing::of(&life.state), Standing::Aside, "it takes nobody's place in the line");
    life.request(Request::ReleaseHalt);
    assert_eq!(Standing::of(&life.state), Standing::Waits);
    life.request(Request::Start);
    assert_eq!(life.effects, [Effect::Spawn { attempt: 1 }]);
    life.request(Request::Halt { freeze: true });
    assert_eq!(
        (life.attention(), life.effects.as_slice()),
        (Some(Attention::Paused), &[Effect::Freeze(true)][..])
    );
    life.request(Request::Halt { freeze: false }).exit(How::Signaled { signal: 9 });
    assert_eq!(life.state.outcome(), Some(Outcome::Killed));
}

#[test]
fn a_pause_stops_the_clock() {
    let mut life = Life::plain();
    life.working();
    let left = life.state.deadline().unwrap().remaining(&context(life.step).now);
    life.request(Request::Pause);
    assert_eq!(
        (life.attention(), life.state.deadline(), life.state.watchdog()),
        (Some(Attention::Paused), None, None)
    );
    life.step += 1_000_000;
    life.request(Request::Resume { budget: None, tape_bytes: None });
    let after = life.state.deadline().unwrap().remaining(&context(life.step).now);
    assert!(left.abs_diff(after) < std::time::Duration::from_millis(10), "{left:?} {after:?}");
}

#[test]
fn asking_is_answered_by_a_person_a_policy_or_nobody() {
    let ask = || Report::ApprovalAsked {
        ask: "a1".into(),
        tool: "run".into(),
        input: "make".into(),
        kind: AskKind::Leave,
        action: Default::default(),
        subagent: None,
    };
    let mut person = Life::plain();
    person.working().report(ask());
    assert_eq!(person.attention(), Some(Attention::WaitingApproval));
    let id = person.state.approvals()[0].id;
    person.request(Request::Answer { id, allow: true, message: String::new(), hears_why: true });
    assert!(matches!(person.effects.as_slice(), [Effect::Tell(AgentRequest::Answer { allow: true, .. })]));
    assert!(
        person
            .try_input(Input::Request(
                Request::Answer { id, allow: true, message: String::new(), hears_why: true },
                By("bob".into())
            ))
            .is_err()
    );

    for (approve, allowed) in [(Approve::All, true), (Approve::Nobody, false)] {
        let mut life = Life::new(RestartPolicy::Never, approve, false, None);
        life.working().report(ask());
        assert!(
            matches!(life.effects.as_slice(), [Effect::Tell(AgentRequest::Answer { allow, .. })] if *allow == allowed)
        );
        assert_eq!(life.state.view().denied, u32::from(!allowed));
    }
}

#[test]
fn asking_again_for_what_holds_is_no_error() {
    let mut life = Life::plain();
    life.working();
    for request in [
        Request::Start,
        Request::StartAgain,
        Request::Resume { budget: None, tape_bytes: None },
        Request::ReleaseHalt,
    ] {
        let before = life.kinds.len();
        life.request(request);
        assert_eq!(life.kinds.len(), before);
    }
    life.request(Request::Stop(StopRule::Stop)).request(Request::Stop(StopRule::Stop));
    assert!(life.effects.is_empty());
    life.request(Request::Stop(StopRule::Kill));
    assert_eq!(life.effects.len(), 1, "a kill overtakes an orderly stop");
}

#[test]
fn idle_means_that_nothing_runs_on() {
    let mut life = Life::new(RestartPolicy::Never, Approve::Ask, true, None);
    let tasks =
        |tasks: &[&str]| Report::Background { tasks: tasks.iter().map(|task| (*task).into()).collect() };
    life.working()
        .report(tasks(&["npm test"]))
        .report(Report::TurnEnded { stop_reason: StopReason::Completed });
    assert_eq!(life.state.attention(Link::Attached), Some(Attention::Working));
    assert_eq!(life.state.view().evidence, "in the background: npm test");
    assert_eq!(life.state.phase(), Phase::Live, "it does not end while something of it runs");
    life.report(tasks(&[]));
    assert_eq!(life.state.phase(), Phase::Stopping);
    assert_eq!(life.effects[0], Effect::Tell(AgentRequest::End));
}

#[test]
fn a_message_may_go_into_the_open_turn() {
    let mut life = Life::plain();
    life.working().request(Request::prompt(message(1)));
    assert_eq!(life.effects, [], "a followup waits");
    let steering = message(201);
    life.request(Request::prompt(steering.clone()));
    assert_eq!(life.effects, [Effect::Tell(AgentRequest::Steer(steering))]);
}

#[test]
fn an_id_is_a_claim_until_a_turn_runs_under_it() {
    let mut life = Life::plain();
    life.request(Request::Start);
    life.report(Report::Ready { provider_id: Some("a".into()), model: None });
    assert_eq!((life.state.view().provider_id.as_deref(), life.state.bound_id()), (Some("a"), None));
    life.report(Report::Bound { provider_id: "a".into(), model: None })
        .report(Report::Bound { provider_id: "a".into(), model: None });
    assert_eq!(life.state.bound_id(), Some("a"));
    assert_eq!(life.kinds.iter().filter(|kind| **kind == Kind::ProviderBound).count(), 1);
}

#[test]
fn a_refused_login_ends_the_session_at_once_and_says_why() {
    let mut life = Life::new(RestartPolicy::Always, Approve::Ask, false, None);
    life.working().report(Report::AuthFailed("401 invalid x-api-key".into()));
    assert!(matches!(&life.effects[..], [Effect::Stop(StopRule::ProviderAuth, _)]));
    life.exit(How::Signaled { signal: 9 });
    let view = life.state.view();
    assert_eq!((view.outcome, view.restart), (Some(Outcome::TurnFailed), None));
    assert!(view.evidence.contains("401 invalid x-api-key"), "{}", view.evidence);
}

#[test]
fn a_refused_key_is_the_same_end_in_any_turn_and_says_what_cures_it() {
    let cure = Hint { command: "export KEY=…".into(), effect: "brings another".into() };
    let ended = |turns: u32| {
        let mut life = Life::plain();
        life.request(Request::Start).report(Report::Ready { provider_id: None, model: None });
        for turn in 1..=turns {
            life.report(Report::TurnStarted { messages: vec![] });
            if turn < turns {
                life.report(Report::TurnEnded { stop_reason: StopReason::Completed });
            }
        }
        life.report(Report::AuthFailed("401".into())).input(Input::Exited(ExitFacts {
            how: How::Signaled { signal: 9 },
            oom: false,
            memory: None,
            leftovers: vec![],
            asked: None,
            shut_down: false,
            wish: None,
            rung: None,
            cures: vec![cure.clone()],
        }));
        let ended = life.state.ended().unwrap().clone();
        assert_eq!((ended.obituary.signal, ended.obituary.cures), (None, vec![cure.clone()]));
        ended.outcome
    };
    assert_eq!(
        [ended(0), ended(1), ended(2), ended(3)],
        [Outcome::FailedStart, Outcome::TurnFailed, Outcome::TurnFailed, Outcome::TurnFailed]
    );
}
