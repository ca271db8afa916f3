//! Budgets in dollars, a session's own, its agent's and its campaign's.

use std::sync::Arc;

use ostler_domain::{
    AgentId, Budget, Event, Kind, Reason, Time, Usage,
    admission::Standing,
    budget::{CampaignBudget, Lent, Used, WhenUsedUp},
    event::{AgentRetrying, By, Process, StopReason, ToolCall, ToolResult, UsageRecorded},
    limits::{BUDGET_SETTLES, BUDGET_TOOL_ENDS},
    price::{Dollars, Price, PriceBook},
    session::{
        Approve, Attention, Billing, BudgetUse, CallUsage, Created, Effect, ExitFacts, How, Input, Link,
        Outcome, Phase, Refused, Report, Request, RestartPolicy, Spawn, State, Status, StopRule, Watchdog,
        create, decide, held,
    },
};

use crate::{
    any::{context, created, message, time},
    life::Life,
};

const CENT: u64 = 10_000;

struct Purse {
    state: State,
    events: Vec<Event>,
    effects: Vec<Effect>,
    prices: PriceBook,
    step: u64,
}

impl Purse {
    fn of(created: Created) -> Purse {
        let events = create(created, vec![(message(0), None)], &By("ann".into()));
        let state = State::replay(events.iter().map(|event| (time(0), event))).unwrap();
        Purse { state, events: Vec::new(), effects: Vec::new(), prices: PriceBook::default(), step: 0 }
    }

    /// At work, with a budget of so many cents.
    fn with(cents: u64, when_used_up: WhenUsedUp) -> Purse {
        let dollars = Some(Dollars(cents * CENT));
        let budget = Budget { tokens: None, dollars, when_used_up };
        let mut purse = Purse::of(created(RestartPolicy::Never, Approve::Ask, false, Some(budget)));
        purse.work();
        purse
    }

    fn work(&mut self) {
        self.request(Request::Start).unwrap();
        self.input(Input::Report(Report::Ready { provider_id: None, model: None })).unwrap();
        self.input(Input::Report(Report::TurnStarted { messages: vec![message(0).id] })).unwrap();
    }

    fn input(&mut self, input: Input) -> Result<(), Reason> {
        self.step += 1;
        let mut context = context(self.step);
        context.prices = Arc::new(self.prices.clone());
        let decision = decide(&self.state, input, &context).map_err(|refusal| refusal.reason)?;
        for event in &decision.events {
            self.state.apply(context.now.wall, event);
        }
        self.events.extend(decision.events);
        self.effects = decision.effects;
        Ok(())
    }

    fn request(&mut self, request: Request) -> Result<(), Reason> {
        self.input(Input::Request(request, By("ann".into())))
    }

    /// A call that costs so many cents: claude-sonnet-5 takes 10 dollars for a million tokens of output.
    fn call(&mut self, model: &str, cents: u64) {
        let usage = Usage { output: cents * 1_000, ..Usage::default() };
        let call = CallUsage { usage, model: Some(model.to_owned()), call: None };
        self.input(Input::Wire(call)).unwrap();
    }

    fn count(&self, kind: Kind) -> usize {
        self.events.iter().filter(|event| event.kind() == kind).count()
    }

    fn last_usage(&self) -> &UsageRecorded {
        let used = self.events.iter().rev().find_map(|event| match event {
            Event::UsageRecorded(used) => Some(used),
            _ => None,
        });
        used.unwrap()
    }

    fn attention(&self) -> Option<Attention> {
        self.state.attention(Link::Attached)
    }

    fn campaign(&mut self, text: &str, cents: u64) {
        let used = Used { tokens: 0, dollars: Dollars(cents * CENT), unpriced: None };
        let budget = CampaignBudget::parse(text);
        self.input(Input::Campaign(BudgetUse { name: "shop".to_owned(), agent: None, budget, used }))
            .unwrap();
    }

    fn agent(&mut self, text: &str, cents: u64) {
        let used = Used { tokens: 0, dollars: Dollars(cents * CENT), unpriced: None };
        let budget = CampaignBudget::parse(text);
        let agent = Some(AgentId::new(Time::from_micros(1), 1));
        self.input(Input::Agent(BudgetUse { name: "api".to_owned(), agent, budget, used })).unwrap();
    }
}

fn resume(cents: u64) -> Request {
    let dollars = Some(Dollars(cents * CENT));
    Request::Resume { budget: Some(Budget { dollars, ..Budget::default() }), tape_bytes: None }
}

#[test]
fn an_agent_s_budget_holds_beside_its_campaign_s() {
    let mut purse = Purse::with(100, WhenUsedUp::Hold);
    purse.agent("10usd/day", 900);
    assert_ne!(purse.attention(), Some(Attention::BudgetHold));
    purse.agent("10usd/day", 1_000);
    assert_eq!(purse.attention(), Some(Attention::BudgetHold));
    let why = purse.state.holds().agent_budget.clone().unwrap();
    assert!(why.starts_with("agent api: ") && why.contains("today (UTC)"), "{why}");
    purse.campaign("25usd/day", 2_500);
    // Whoever is resumed is told whose budget it is; each of them is its own hold.
    let refused =
        purse.input(Input::Request(Request::Resume { budget: None, tape_bytes: None }, By::ostler()));
    assert_eq!(refused.unwrap_err(), Reason::OverBudget);
    purse.campaign("50usd/day", 2_500);
    assert_eq!(purse.attention(), Some(Attention::BudgetHold));
    purse.agent("20usd/day", 1_000);
    assert_ne!(purse.attention(), Some(Attention::BudgetHold));
    // An agent without a budget holds nobody.
    purse.agent("10usd/day", 1_000);
    purse.agent("", 1_000);
    assert_ne!(purse.attention(), Some(Attention::BudgetHold));
    let mut headless = created(RestartPolicy::Never, Approve::Ask, false, None);
    headless.config.when_used_up = WhenUsedUp::Stop;
    let mut headless = Purse::of(headless);
    headless.work();
    headless.agent("10usd/day", 1_000);
    assert_eq!(headless.state.phase(), Phase::Stopping);
}

#[test]
fn who_is_held_while_it_starts_says_why_and_what_cures_it() {
    let mut purse = Purse::of(created(RestartPolicy::Never, Approve::Ask, false, None));
    purse.request(Request::Start).unwrap();
    assert!(purse.state.view().is_getting_ready());
    purse.campaign("25usd/day", 2_600);
    let held = purse.state.view();
    assert_eq!((held.status, held.attention), (Status::Starting, Some(Attention::BudgetHold)));
    assert!(!held.is_getting_ready());
    assert_eq!(held.evidence, purse.state.holds().campaign_budget.clone().unwrap());
    assert_eq!(held::budget_cure(&held), "ostler campaign set shop budget=AMOUNT/PERIOD");
    purse.campaign("50usd/day", 2_600);
    assert!(purse.state.view().evidence.contains("has not said that it is ready"));
}

#[test]
fn dollars_warn_once_hold_and_go_on_when_more_is_allowed() {
    let mut purse = Purse::with(100, WhenUsedUp::Hold);
    purse.call("claude-sonnet-5", 85);
    purse.call("claude-sonnet-5", 5);
    assert_eq!(purse.count(Kind::BudgetWarned), 1);
    let used = purse.last_usage();
    assert_eq!((used.cost, used.plan), (Some(Dollars(5 * CENT)), false));
    assert!(used.prices.is_some(), "the table's date is told with it");
    purse.call("claude-sonnet-5", 20);
    assert_eq!(purse.attention(), Some(Attention::BudgetHold));
    assert!(purse.state.view().evidence.contains("$1.10 of $1.00 used"), "{}", purse.state.view().evidence);
    assert_eq!(purse.effects, [Effect::Freeze(true)]);
    assert_eq!(purse.request(resume(105)), Err(Reason::OverBudget), "that is not enough");
    purse.request(resume(500)).unwrap();
    assert_eq!(purse.attention(), Some(Attention::Working));
    let allowed = purse.effects.iter().any(
        |effect| matches!(effect, Effect::Allow(allowance) if allowance.dollars == Some(Dollars(500 * CENT))),
    );
    assert!(allowed, "{:?}", purse.effects);
}

#[test]
fn the_next_session_has_what_this_one_left() {
    let mut purse = Purse::with(100, WhenUsedUp::Hold);
    purse.call("claude-sonnet-5", 30);
    let prices = context(0).prices;
    let left = |purse: &Purse, instead: Option<u64>| {
        let instead =
            instead.map(|cents| Budget { dollars: Some(Dollars(cents * CENT)), ..Budget::default() });
        purse.state.budget_left(instead, &prices).map(|left| left.and_then(|left| left.dollars))
    };
    assert_eq!(left(&purse, None), Ok(Some(Dollars(70 * CENT))));
    assert_eq!(left(&purse, Some(500)), Ok(Some(Dollars(470 * CENT))));
    purse.call("claude-sonnet-5", 80);
    let refusal = left(&purse, None).unwrap_err();
    assert_eq!(refusal.reason, Reason::OverBudget);
    assert!(refusal.hints.iter().any(|hint| hint.command.contains("--budget 2.20usd")), "{refusal:?}");
    assert!(left(&purse, Some(105)).is_err(), "that is not enough");
    assert_eq!(left(&purse, Some(200)), Ok(Some(Dollars(90 * CENT))));
    let free = Purse::of(created(RestartPolicy::Never, Approve::Ask, false, None));
    assert_eq!(free.state.budget_left(None, &prices), Ok(None), "no budget, no end");
}

fn lent(spent: u64, held: u64) -> Input {
    let (dollars, held_dollars) = (Dollars(spent * CENT), Dollars(held * CENT));
    Input::Helpers(Lent { dollars, held_dollars, ..Lent::default() })
}

#[test]
fn what_helpers_hold_is_not_the_asker_s_and_what_they_leave_is_again() {
    let mut purse = Purse::with(100, WhenUsedUp::Stop);
    purse.call("claude-sonnet-5", 30);
    purse.input(lent(0, 40)).unwrap();
    let allowed = purse.effects.iter().find_map(|effect| match effect {
        Effect::Allow(allowance) => allowance.dollars,
        _ => None,
    });
    assert_eq!(allowed, Some(Dollars(60 * CENT)), "its gateway lets no more pass than it has not given away");
    let left = purse.state.budget_left(None, &purse.prices).unwrap().unwrap();
    assert_eq!(left.dollars, Some(Dollars(30 * CENT)));
    // Even where nobody is there it waits: they may give something back.
    purse.call("claude-sonnet-5", 35);
    assert_eq!(purse.attention(), Some(Attention::BudgetHold));
    let said = purse.state.view().evidence;
    assert!(said.contains("$1.05 of $1.00 used, of which its helpers hold $0.40"), "{said}");
    assert_eq!(purse.request(Request::Resume { budget: None, tape_bytes: None }), Err(Reason::OverBudget));
    purse.input(lent(10, 0)).unwrap();
    assert_eq!(purse.attention(), Some(Attention::Working), "it goes on by itself");
    purse.input(lent(10, 30)).unwrap();
    assert_eq!(purse.attention(), Some(Attention::BudgetHold));
    purse.input(lent(40, 0)).unwrap();
    assert_eq!(purse.state.phase(), Phase::Stopping, "they have used all of it");
    assert_eq!(purse.count(Kind::HelpersCharged), 4);
}

#[test]
fn helpers_of_a_session_without_a_budget_are_only_counted() {
    let mut free = Purse::of(created(RestartPolicy::Never, Approve::Ask, false, None));
    free.work();
    free.input(lent(500, 500)).unwrap();
    free.input(lent(500, 500)).unwrap();
    assert_eq!((free.count(Kind::HelpersCharged), free.effects.as_slice()), (1, &[][..]));
    assert_eq!(free.attention(), Some(Attention::Working));
}

#[test]
fn what_a_used_up_budget_holds_is_not_started_again_by_itself() {
    let mut created = created(RestartPolicy::Always, Approve::Ask, false, None);
    created.config.budget = Some(Budget { dollars: Some(Dollars(100 * CENT)), ..Budget::default() });
    let mut purse = Purse::of(created);
    purse.work();
    purse.call("claude-sonnet-5", 120);
    assert_eq!(purse.attention(), Some(Attention::BudgetHold));
    let exit = ExitFacts {
        how: How::Signaled { signal: 9 },
        oom: false,
        memory: None,
        leftovers: vec![],
        asked: None,
        shut_down: false,
        wish: None,
        rung: None,
        cures: Vec::new(),
    };
    purse.input(Input::Exited(exit)).unwrap();
    assert_eq!(purse.state.view().restart, None);
}

#[test]
fn without_a_person_dollars_end_the_session() {
    let mut purse = Purse::with(100, WhenUsedUp::Stop);
    purse.call("claude-sonnet-5", 100);
    assert_eq!(purse.state.phase(), Phase::Stopping);
    let how = ostler_domain::session::How::Signaled { signal: 15 };
    let exit = ostler_domain::session::ExitFacts {
        how,
        oom: false,
        memory: None,
        leftovers: Vec::new(),
        asked: None,
        shut_down: false,
        wish: None,
        rung: None,
        cures: Vec::new(),
    };
    purse.input(Input::Exited(exit)).unwrap();
    assert_eq!(purse.state.outcome(), Some(Outcome::Budget));
    let sentence = purse.state.view().evidence;
    assert_eq!(sentence, "Stopped because its budget of 1usd was used up ($1.00 of $1.00 used).");
}

#[test]
fn a_model_without_a_price_holds_until_it_has_one_and_is_never_counted_as_nothing() {
    let mut purse = Purse::with(100, WhenUsedUp::Hold);
    purse.call("new-model", 10);
    assert_eq!(purse.attention(), Some(Attention::BudgetHold));
    let evidence = purse.state.view().evidence;
    assert!(evidence.contains("ostler price set new-model input=DOLLARS"), "{evidence}");
    assert_eq!(purse.last_usage().cost, None);
    assert_eq!(purse.request(resume(900)), Err(Reason::OverBudget), "more dollars do not help");
    let price = Price { output: Dollars(10_000_000), ..Price::default() };
    purse.prices.own.insert("new-model".to_owned(), price);
    purse.request(resume(100)).unwrap();
    assert_eq!(purse.attention(), Some(Attention::Working));
    let told = purse.effects.iter().find_map(|effect| match effect {
        Effect::Allow(allowance) => allowance.prices.get("new-model").copied(),
        _ => None,
    });
    assert_eq!(told, Some(price), "its gateway hears of the price");
    assert_eq!(purse.state.used(&purse.prices).dollars, Dollars(10 * CENT), "what was used before counts");
    purse.call("new-model", 95);
    assert_eq!(purse.attention(), Some(Attention::BudgetHold));
    assert_eq!(purse.last_usage().prices, None, "a person set the price");
}

#[test]
fn a_later_price_does_not_change_what_a_call_cost() {
    let mut purse = Purse::with(100, WhenUsedUp::Hold);
    purse.call("claude-sonnet-5", 50);
    purse.prices.own.insert("claude-sonnet-5".to_owned(), Price { output: Dollars(1), ..Price::default() });
    assert_eq!(purse.state.used(&purse.prices).dollars, Dollars(50 * CENT));
}

#[test]
fn what_a_plan_covers_is_told_and_in_no_budget_of_dollars() {
    let budget = Budget { dollars: Some(Dollars(CENT)), ..Budget::default() };
    let mut plan = created(RestartPolicy::Never, Approve::Ask, false, Some(budget));
    plan.config.billing = Billing::Plan;
    let mut purse = Purse::of(plan);
    purse.work();
    purse.call("claude-sonnet-5", 500);
    purse.call("new-model", 500);
    assert!(purse.last_usage().plan);
    assert_eq!(purse.attention(), Some(Attention::Working));
    assert_eq!((purse.state.cost().paid, purse.state.cost().plan), (Dollars(0), Dollars(500 * CENT)));
    purse.campaign("1usd/day", 500);
    assert_eq!(purse.attention(), Some(Attention::Working), "nor in the campaign's");
}

/// A session that ends with its turn, at work with a budget of a dollar.
fn once(when_used_up: WhenUsedUp) -> Purse {
    let budget = Budget { tokens: None, dollars: Some(Dollars(100 * CENT)), when_used_up };
    let mut created = created(RestartPolicy::Never, Approve::Ask, false, Some(budget));
    created.config.ends_with_turn = true;
    let mut purse = Purse::of(created);
    purse.work();
    purse
}

#[test]
fn a_last_call_that_uses_up_the_budget_asks_whoever_is_there_and_ends_what_nobody_watches() {
    let turn_ended = || Input::Report(Report::TurnEnded { stop_reason: StopReason::Completed });
    let exited = || {
        let how = How::Exited { code: 0 };
        let exit = ExitFacts {
            how,
            oom: false,
            memory: None,
            leftovers: Vec::new(),
            asked: None,
            shut_down: false,
            wish: None,
            rung: None,
            cures: Vec::new(),
        };
        Input::Exited(exit)
    };
    // The wire may tell of it before the agent tells the end of its turn, or after.
    for is_wire_first in [true, false] {
        let mut purse = once(WhenUsedUp::Stop);
        if is_wire_first {
            purse.call("claude-sonnet-5", 120);
            purse.input(turn_ended()).unwrap();
        } else {
            purse.input(turn_ended()).unwrap();
            purse.call("claude-sonnet-5", 120);
        }
        purse.input(exited()).unwrap();
        assert_eq!(purse.state.outcome(), Some(Outcome::Budget), "the wire first: {is_wire_first}");
        assert_eq!(purse.count(Kind::BudgetExceeded), 1);
        let why = &purse.state.ended().unwrap().obituary.sentence;
        assert!(why.contains("its budget of 1usd was used up"), "{why}");
    }
    let mut purse = once(WhenUsedUp::Hold);
    purse.call("claude-sonnet-5", 120);
    purse.input(turn_ended()).unwrap();
    assert_eq!((purse.state.phase(), purse.attention()), (Phase::Live, Some(Attention::BudgetHold)));
    purse.request(resume(300)).unwrap();
    assert_eq!(purse.state.phase(), Phase::Stopping, "nothing is left to do");
    purse.input(exited()).unwrap();
    assert_eq!(purse.state.outcome(), Some(Outcome::Done));

    let mut within = once(WhenUsedUp::Stop);
    within.input(turn_ended()).unwrap();
    within.call("claude-sonnet-5", 99);
    within.input(exited()).unwrap();
    assert_eq!(within.state.outcome(), Some(Outcome::Done));
}

impl Purse {
    fn through_a_gateway(mut self) -> Purse {
        let agent = Process { pid: 9, start_time: 9 };
        self.input(Input::Spawned(Spawn { agent, holds_calls: true })).unwrap();
        self
    }
}

fn allows_nothing(effect: &Effect) -> bool {
    matches!(effect, Effect::Allow(allowed) if allowed.tokens == Some(0))
}

fn turn_ended() -> Input {
    Input::Report(Report::TurnEnded { stop_reason: StopReason::Completed })
}

#[test]
fn what_a_last_call_paid_for_is_said_before_a_session_that_nobody_watches_ends() {
    let mut purse = once(WhenUsedUp::Stop).through_a_gateway();
    purse.call("claude-sonnet-5", 120);
    assert_eq!(purse.state.phase(), Phase::Live, "its answer is on its way");
    assert!(purse.effects.iter().any(allows_nothing), "{:?}", purse.effects);
    // A call that was under way beside it is no second crossing, and nothing more is said to it.
    purse.call("claude-sonnet-5", 5);
    purse.request(Request::prompt(message(1))).unwrap();
    assert_eq!(purse.count(Kind::BudgetExceeded), 1);
    purse.input(turn_ended()).unwrap();
    assert_eq!(purse.state.stop().map(|stop| stop.rule), Some(StopRule::Budget));
    assert_eq!(purse.count(Kind::MessageSent), 1, "only what it began with");
}

#[test]
fn a_turn_that_waits_for_more_than_its_budget_has_ends_after_a_while() {
    let tool = |subagent: Option<String>| ToolCall {
        tool_id: "t1".to_owned(),
        tool: "run".to_owned(),
        summary: "make".to_owned(),
        input: "{}".to_owned(),
        subagent,
    };
    let mut purse = once(WhenUsedUp::Stop).through_a_gateway();
    purse.call("claude-sonnet-5", 120);
    purse.input(Input::Report(Report::ToolCall(tool(None)))).unwrap();
    assert_eq!(purse.state.watchdog(), Some((Watchdog::BudgetTool, BUDGET_TOOL_ENDS)), "it is at work");
    let result = ToolResult {
        tool_id: "t1".to_owned(),
        success: true,
        exit: None,
        output: String::new(),
        subagent: None,
    };
    purse.input(Input::Report(Report::ToolResult(result))).unwrap();
    assert_eq!(purse.state.watchdog(), Some((Watchdog::Budget, BUDGET_SETTLES)));
    purse.input(Input::Watchdog(Watchdog::Budget)).unwrap();
    assert_eq!(purse.state.stop().map(|stop| stop.rule), Some(StopRule::Budget));
}

#[test]
fn what_a_last_call_paid_for_is_said_before_a_session_that_asks_stands_still() {
    let mut purse = once(WhenUsedUp::Hold).through_a_gateway();
    purse.call("claude-sonnet-5", 120);
    assert_eq!(purse.attention(), Some(Attention::BudgetHold), "that is said at once");
    assert!(!purse.state.is_frozen(), "its answer is on its way");
    assert!(purse.effects.iter().any(allows_nothing), "{:?}", purse.effects);
    // A call that was under way beside it is no second crossing, and nothing more is said to it.
    purse.call("claude-sonnet-5", 5);
    purse.request(Request::prompt(message(1))).unwrap();
    assert_eq!((purse.count(Kind::BudgetExceeded), purse.count(Kind::SessionHeld)), (1, 1));
    purse.input(turn_ended()).unwrap();
    assert_eq!(purse.count(Kind::MessageSent), 1, "only what it began with");
    assert!(purse.effects.contains(&Effect::Freeze(true)), "{:?}", purse.effects);
    assert_eq!((purse.state.phase(), purse.attention()), (Phase::Live, Some(Attention::BudgetHold)));
    purse.request(resume(300)).unwrap();
    assert!(purse.effects.contains(&Effect::Freeze(false)), "{:?}", purse.effects);
    assert_eq!(purse.count(Kind::MessageSent), 2, "what waited is said");
}

#[test]
fn a_held_turn_that_waits_for_more_stands_still_after_a_while_and_goes_on_when_it_has_it() {
    let mut purse = once(WhenUsedUp::Hold).through_a_gateway();
    purse.call("claude-sonnet-5", 120);
    assert_eq!(purse.state.watchdog(), Some((Watchdog::Budget, BUDGET_SETTLES)));
    purse.input(Input::Watchdog(Watchdog::Budget)).unwrap();
    assert_eq!((purse.state.phase(), purse.effects.as_slice()), (Phase::Live, &[Effect::Freeze(true)][..]));
    assert_eq!(purse.state.watchdog(), None, "a person is waited for");
    // What its campaign uses does not thaw it.
    purse.campaign("1usd/day", 120);
    assert!(purse.state.is_frozen());
    purse.campaign("9usd/day", 120);
    purse.request(resume(300)).unwrap();
    let allowed = purse.effects.iter().find_map(|effect| match effect {
        Effect::Allow(allowed) => Some((allowed.tokens, allowed.dollars, allowed.is_asked_for)),
        _ => None,
    });
    assert_eq!(allowed, Some((None, Some(Dollars(300 * CENT)), false)), "its call may begin");
    assert_eq!((purse.attention(), purse.state.is_frozen()), (Some(Attention::Working), false));
}

#[test]
fn a_campaign_s_and_an_agent_s_budget_let_what_was_paid_for_be_said_too() {
    let mut purse = Purse::of(created(RestartPolicy::Never, Approve::Ask, false, None)).through_a_gateway();
    purse.work();
    purse.campaign("1usd/day", 120);
    purse.agent("1usd/day", 120);
    assert_eq!((purse.attention(), purse.state.is_frozen()), (Some(Attention::BudgetHold), false));
    purse.input(turn_ended()).unwrap();
    assert!(purse.state.is_frozen());
    purse.campaign("5usd/day", 120);
    assert!(purse.state.is_frozen(), "its agent's holds it still");
    purse.agent("5usd/day", 120);
    assert!(!purse.state.is_frozen());
}

#[test]
fn a_budget_that_is_raised_in_its_last_turn_lets_a_session_go_on() {
    let mut purse = once(WhenUsedUp::Stop).through_a_gateway();
    purse.call("claude-sonnet-5", 120);
    purse.request(resume(300)).unwrap();
    assert_ne!(purse.state.watchdog().map(|(watchdog, _)| watchdog), Some(Watchdog::Budget));
    purse.input(turn_ended()).unwrap();
    assert_eq!(purse.state.stop().map(|stop| stop.rule), Some(StopRule::TurnEnded));
}

#[test]
fn without_a_gateway_the_next_call_would_be_under_way_before_anybody_knew() {
    let mut purse = once(WhenUsedUp::Stop);
    purse.call("claude-sonnet-5", 120);
    assert_eq!(purse.state.phase(), Phase::Stopping);
}

#[test]
fn a_campaign_s_budget_holds_its_sessions_and_lets_them_go_on() {
    let mut purse = Purse::of(created(RestartPolicy::Never, Approve::Ask, false, None));
    purse.work();
    purse.campaign("1usd/day", 99);
    assert_eq!(purse.attention(), Some(Attention::Working));
    purse.campaign("1usd/day", 120);
    purse.campaign("1usd/day", 130);
    assert_eq!((purse.attention(), purse.count(Kind::BudgetExceeded)), (Some(Attention::BudgetHold), 1));
    assert_eq!(
        purse.state.view().evidence,
        "campaign shop: $1.20 of $1.00 used today (UTC)",
        "as it was when it was held"
    );
    assert_eq!(purse.request(resume(900)), Err(Reason::OverBudget), "the session's own would not help");
    // The next day, or more was allowed.
    purse.campaign("1usd/day", 0);
    assert_eq!(
        (purse.attention(), purse.effects.as_slice()),
        (Some(Attention::Working), &[Effect::Freeze(false)][..])
    );

    let mut headless = created(RestartPolicy::Never, Approve::Ask, false, None);
    headless.config.when_used_up = WhenUsedUp::Stop;
    let mut headless = Purse::of(headless);
    headless.work();
    headless.campaign("1usd/day", 120);
    assert_eq!(headless.state.phase(), Phase::Stopping);
}

#[test]
fn a_session_of_a_used_up_campaign_waits_to_be_started() {
    let mut purse = Purse::of(created(RestartPolicy::Never, Approve::Ask, false, None));
    purse.campaign("1usd/day", 120);
    purse.request(Request::Start).unwrap();
    assert_eq!(purse.state.phase(), Phase::Created);
    assert!(purse.state.view().evidence.contains("campaign shop"), "{}", purse.state.view().evidence);
    assert_eq!(Standing::of(&purse.state), Standing::Aside);
    purse.campaign("5usd/day", 120);
    assert_eq!(Standing::of(&purse.state), Standing::Waits);
    purse.request(Request::Start).unwrap();
    assert_eq!(Standing::of(&purse.state), Standing::Runs);
}

#[test]
fn a_turn_that_failed_of_a_limit_is_told_once_to_go_on() {
    let mut purse = Purse::of(created(RestartPolicy::Never, Approve::Ask, false, None));
    purse.work();
    let refused = Refused { status: 429, retry_after_ms: Some(1), failure: String::new() };
    purse.input(Input::Refused(refused.clone())).unwrap();
    purse.input(Input::Refused(refused)).unwrap();
    assert_eq!(purse.count(Kind::RateLimited), 1, "it is known already");
    assert_eq!(purse.state.limit_ends(), None, "the agent may try again by itself");
    purse.input(Input::Report(Report::TurnEnded { stop_reason: StopReason::Error })).unwrap();
    assert!(purse.state.limit_ends().is_some());
    for _ in 0..3 {
        purse.input(Input::LimitEnded).unwrap();
    }
    assert_eq!(purse.count(Kind::MessageAccepted), 1, "once");
    assert_eq!(purse.state.limit_ends(), None);
}

#[test]
fn watchdogs_sleep_while_a_limit_holds_whose_end_was_said() {
    let mut purse = Purse::of(created(RestartPolicy::Never, Approve::Ask, false, None));
    purse.work();
    let retrying = AgentRetrying { why: "429".into(), attempt: 1, most: 0, after_ms: None };
    purse.input(Input::Report(Report::Retrying(retrying))).unwrap();
    let limited =
        |retry_after_ms| Input::Refused(Refused { status: 429, retry_after_ms, failure: String::new() });
    // Again and again, each time with an end.
    for _ in 0..3 {
        purse.input(limited(Some(60_000))).unwrap();
        assert!(purse.state.watchdogs_sleep_until(context(purse.step).now.wall).is_some());
        purse.input(Input::Watchdog(Watchdog::Retries)).unwrap();
        assert_eq!(purse.count(Kind::SessionStalled), 0, "it waits, as it was told to");
    }
    let end = purse.state.rate_limit().and_then(|limit| limit.until).unwrap();
    assert_eq!(purse.state.watchdogs_sleep_until(end), None, "the limit is over");
    assert_eq!(purse.state.watchdog().unwrap().0, Watchdog::Retries);

    let mut purse = Purse::of(created(RestartPolicy::Never, Approve::Ask, false, None));
    purse.work();
    let retrying = AgentRetrying { why: "429".into(), attempt: 1, most: 0, after_ms: None };
    purse.input(Input::Report(Report::Retrying(retrying))).unwrap();
    purse.input(limited(None)).unwrap();
    purse.input(Input::Watchdog(Watchdog::Retries)).unwrap();
    assert_eq!(purse.count(Kind::SessionStalled), 1, "nobody knows what it waits for");
}

#[test]
fn an_answer_that_was_cut_is_told_and_the_report_of_it_counts() {
    let mut life = Life::plain();
    let call = Some("msg_1".to_owned());
    life.working().input(Input::CutShort { model: None, call: call.clone() });
    assert!(life.state.view().usage.is_zero());
    let usage = Usage { output: 7, ..Usage::default() };
    life.report(Report::Usage(CallUsage { usage, model: None, call }));
    assert_eq!((life.state.view().usage, life.count(Kind::UsageRecorded)), (usage, 2));
}
