//! What holds for any plan, whatever happens: failures, pauses, crashes, people who change their minds.

use std::{collections::BTreeMap, time::Duration};

use ostler_domain::{
    Name, SessionId, Time,
    admission::Priority,
    budget::{Amount, Used, WhenUsedUp},
    mission::{
        Beside, Errand, Input, Member, Plan, Request, SessionEnd, Status, Strategy as Order, Stuck,
        StuckKind, Wait,
        plan::{CompleteWhen, Given, Limits, Merge, OnDepFailure, Settings, Worktree},
    },
    price::Dollars,
    session::{Approve, Outcome},
};
use proptest::{
    collection::{btree_map, vec},
    option,
    prelude::*,
    sample::select,
};

use super::world::{Live, Moves, World, end};

fn any_text() -> impl Strategy<Value = String> {
    "x[a-z\"'\\\\\n#=é ]{0,20}x"
}

fn any_amount() -> impl Strategy<Value = Amount> {
    (1u64..5_000, option::of(1u64..5_000_000))
        .prop_map(|(tokens, dollars)| Amount { tokens: Some(tokens), dollars: dollars.map(Dollars) })
}

fn any_settings() -> impl Strategy<Value = Settings> {
    let provider = option::of(select(vec!["script".to_owned(), "acp:gemini".to_owned()]));
    let model = option::of(select(vec!["model-1".to_owned(), "model-2".to_owned()]));
    let account = option::of(select(vec!["work".parse::<Name>().unwrap()]));
    let approve = option::of(select(vec![Approve::Ask, Approve::All, Approve::Policy]));
    let worktree = option::of(select(vec![Worktree::None, Worktree::Own]));
    let complete_when = select(vec![
        CompleteWhen::Turn,
        CompleteWhen::Done,
        CompleteWhen::Check("cargo \"test\"".to_owned()),
    ]);
    let rule = select(vec![OnDepFailure::Skip, OnDepFailure::Block, OnDepFailure::Run]);
    let priority = option::of(select(Priority::ALL.to_vec()));
    let first = (provider, model, account, approve, worktree, option::of(any_amount()));
    let second = (
        option::of(1u64..10_000),
        option::of(0u32..3),
        option::of(rule),
        option::of(complete_when),
        priority,
        option::of(any::<bool>()),
    );
    (first, second).prop_map(|(first, second)| {
        let (provider, model, account, approve, worktree, budget) = first;
        let (timeout, retries, on_dep_failure, complete_when, priority, side_effects) = second;
        Settings {
            provider,
            model,
            account,
            approve,
            worktree,
            budget,
            timeout_us: timeout.map(|seconds| seconds * 1_000_000),
            retries: if side_effects == Some(true) { None } else { retries },
            on_dep_failure,
            complete_when,
            priority,
            side_effects,
        }
    })
}

#[derive(Debug, Clone)]
struct Draw {
    instances: u32,
    role: bool,
    task: String,
    needs: Vec<bool>,
    next_stage: bool,
    inputs: Vec<(bool, String)>,
    paths: bool,
    settings: Settings,
}

fn any_member() -> impl Strategy<Value = Draw> {
    let inputs = vec((any::<bool>(), any_text()), 0..2);
    let needs = vec(any::<bool>(), 8);
    (1u32..4, any::<bool>(), any_text(), needs, any::<bool>(), inputs, any::<bool>(), any_settings())
        .prop_map(|(instances, role, task, needs, next_stage, inputs, paths, settings)| Draw {
            instances,
            role,
            task,
            needs,
            next_stage,
            inputs,
            paths,
            settings,
        })
}

fn member(n: usize, draw: Draw, stage: u32, strategy: Order) -> Member {
    let name: Name = format!("m{n}").parse().unwrap();
    let given = |(is_file, text): (bool, String)| if is_file { Given::File(text) } else { Given::Text(text) };
    let needs = draw.needs.iter().take(n).enumerate().filter(|(_, needs)| **needs);
    Member {
        role: if draw.role { "builder".parse().unwrap() } else { name.clone() },
        instances: draw.instances,
        inputs: draw.inputs.into_iter().map(given).collect(),
        // Some meet others, and all instances each other.
        paths: if draw.paths { vec![format!("src/{}", n % 3)] } else { Vec::new() },
        needs: match strategy {
            Order::Adaptive => needs.map(|(need, _)| format!("m{need}").parse().unwrap()).collect(),
            _ => Vec::new(),
        },
        stage: (strategy == Order::Pipeline).then_some(stage),
        settings: draw.settings,
        ..Member::new(name, draw.task)
    }
}

/// A plan that may be one.
pub(crate) fn any_plan() -> impl Strategy<Value = Plan> {
    let limits =
        (option::of(1u32..4), option::of(1u32..3), btree_map(Just("script".to_owned()), 1u32..3, 0..2));
    let accounts = btree_map(Just("work".to_owned()), 1u32..3, 0..2);
    let top = (
        any_text(),
        select(Order::ALL.to_vec()),
        option::of(any_amount()),
        any::<bool>(),
        option::of(1u64..5_000),
        option::of(any::<bool>()),
    );
    let limits = (limits, accounts);
    (top, any_settings(), limits, vec(any_member(), 1..6)).prop_map(|(top, defaults, limits, draws)| {
        let (objective, strategy, budget, stops, time, merges) = top;
        let mut stage = 1;
        let mut agents = Vec::new();
        for (n, draw) in draws.into_iter().enumerate() {
            stage += u32::from(draw.next_stage && n > 0);
            agents.push(member(n, draw, stage, strategy));
        }
        let worktree = |member: &Member| member.settings.worktree.clone().or(defaults.worktree.clone());
        let has_tree = |member: &&Member| worktree(member).is_some_and(|tree| tree != Worktree::None);
        let with_tree = agents.iter().rfind(has_tree).map(|member| member.name.clone());
        let has_builder = agents.iter().any(|member| member.role.as_str() == "builder");
        let ((concurrency, builders, providers), accounts) = limits;
        let roles = builders.filter(|_| has_builder).map(|most| ("builder".to_owned(), most));
        Plan {
            name: None,
            objective,
            strategy,
            priority: Priority::Normal,
            budget,
            when_used_up: if stops { WhenUsedUp::Stop } else { WhenUsedUp::Hold },
            time_us: time.map(|seconds| seconds * 1_000_000),
            defaults,
            limits: Limits {
                concurrency,
                roles: roles.into_iter().collect(),
                providers,
                accounts,
                ..Limits::default()
            },
            merge: merges.zip(with_tree).map(|(of_one, name)| Merge {
                into: "main".to_owned(),
                from: if of_one { vec![name] } else { Vec::new() },
                gate: None,
            }),
            metadata: BTreeMap::new(),
            agents,
        }
    })
}

#[derive(Debug, Clone)]
enum Do {
    Start,
    End(usize, Outcome, bool, bool),
    Handoff(usize),
    Refuse(usize, bool),
    Check(usize, bool),
    Merge(bool),
    Ended(usize),
    Moves(Moves),
    Halt(bool),
    Tick(u64),
    Use(u64),
    Pause,
    PauseByHand(usize),
    Resume(bool),
    Cancel,
    Retry(Vec<usize>),
    Add(u8, Option<usize>, Option<usize>),
    Remove(usize),
    Stuck(usize),
    GetsOn(usize),
    Collide(usize, usize),
    Crash,
    Repeat,
}

fn any_do() -> impl Strategy<Value = Do> {
    let n = || 0usize..20;
    let outcome =
        select(Outcome::ALL.to_vec()).prop_filter("told of apart", |outcome| *outcome != Outcome::Handoff);
    prop_oneof![
        2 => Just(Do::Start),
        8 => (n(), Just(Outcome::Done), any::<bool>(), Just(false)).prop_map(|(n, o, d, f)| Do::End(n, o, d, f)),
        6 => (n(), outcome, any::<bool>(), any::<bool>()).prop_map(|(n, o, d, f)| Do::End(n, o, d, f)),
        1 => n().prop_map(Do::Handoff),
        2 => (n(), any::<bool>()).prop_map(|(n, f)| Do::Refuse(n, f)),
        4 => (n(), any::<bool>()).prop_map(|(n, p)| Do::Check(n, p)),
        2 => any::<bool>().prop_map(Do::Merge),
        2 => n().prop_map(Do::Ended),
        1 => select(vec![Moves::Well, Moves::Fails, Moves::DiesBefore, Moves::DiesAfter]).prop_map(Do::Moves),
        1 => any::<bool>().prop_map(Do::Halt),
        5 => (0u64..700).prop_map(Do::Tick),
        1 => (0u64..6_000).prop_map(Do::Use),
        2 => Just(Do::Pause),
        1 => n().prop_map(Do::PauseByHand),
        3 => any::<bool>().prop_map(Do::Resume),
        1 => Just(Do::Cancel),
        2 => vec(n(), 0..3).prop_map(Do::Retry),
        1 => (any::<u8>(), option::of(n()), option::of(n())).prop_map(|(k, f, need)| Do::Add(k, f, need)),
        1 => n().prop_map(Do::Remove),
        2 => n().prop_map(Do::Stuck),
        1 => n().prop_map(Do::GetsOn),
        1 => (n(), n()).prop_map(|(one, other)| Do::Collide(one, other)),
        3 => Just(Do::Crash),
        2 => Just(Do::Repeat),
    ]
}

fn at<T>(all: Vec<T>, n: usize) -> Option<T> {
    let count = all.len();
    all.into_iter().nth(n.checked_rem(count)?)
}

/// Does it, as far as there is something to do it with.
fn act(world: &mut World, what: Do, step: usize) {
    let live = |world: &World, n: usize| at(world.live.keys().copied().collect(), n);
    let any_id =
        |world: &World, n: usize| at(world.state.slots().iter().map(|slot| slot.assignment.id).collect(), n);
    match what {
        Do::Start => world.ask_any(Request::Start { forecast: None }),
        Do::End(n, outcome, said_done, is_final) => {
            if let Some(session) = live(world, n) {
                world.end_session(session, SessionEnd { said_done, is_final, ..end(outcome) });
            }
        }
        Do::Handoff(n) => {
            let Some(session) = live(world, n) else { return };
            let Live { assignment, attempt, stopping, .. } = world.live[&session].clone();
            world.end_session(session, end(Outcome::Handoff));
            let next = SessionId::new(Time::from_micros(5), step as u128);
            world.sessions.insert(next, Some(session));
            world.live.insert(next, Live { assignment, attempt, frozen: false, stopping });
            world.checked = false;
            world.give(Input::SessionStarted { assignment, attempt, session: next }).unwrap();
            world.checked = true;
            world.look();
        }
        Do::Refuse(n, is_final) => {
            let Some(session) = live(world, n) else { return };
            let Some(live) = world.live.remove(&session) else { return };
            let (assignment, attempt, why) = (live.assignment, live.attempt, "no room".to_owned());
            world.give(Input::StartRefused { assignment, attempt, why, is_final }).unwrap();
        }
        Do::Check(n, passed) => {
            let is_check = |errand: &Errand| matches!(errand, Errand::Check { .. });
            if let Some(check) = at(world.errands.keys().copied().filter(is_check).collect(), n) {
                world.answer(check, passed);
            }
        }
        Do::Merge(ok) if world.merge().is_some() => world.answer_merge(ok),
        Do::Merge(_) => {}
        Do::Ended(n) => {
            if let Some(errand) = at(world.ending.iter().copied().collect(), n) {
                world.answer(errand, false);
            }
        }
        Do::Moves(moves) => world.moves = moves,
        Do::Halt(halted) => {
            world.halted = halted;
            world.tick(0);
        }
        Do::Tick(seconds) => world.tick(seconds),
        Do::Use(tokens) => {
            world.used = Used { tokens, dollars: Dollars(0), unpriced: None };
            world.tick(0);
        }
        Do::Pause => world.ask_any(Request::Pause { why: String::new() }),
        Do::PauseByHand(n) => {
            let fitting = live(world, n).filter(|session| !world.live[session].frozen);
            world.paused_by_hand.extend(fitting);
        }
        Do::Resume(more) => {
            let budget = more.then_some(Amount { tokens: Some(1 << 40), dollars: Some(Dollars(1 << 50)) });
            let time = more.then_some(Duration::from_secs(1 << 20));
            world.ask_any(Request::Resume { budget, time, which: Vec::new() });
        }
        Do::Cancel => world.ask_any(Request::Cancel { why: String::new() }),
        Do::Retry(which) => {
            let which = which.into_iter().filter_map(|n| any_id(world, n)).collect();
            world.ask_any(Request::Retry { which, budget: None, time: None });
        }
        Do::Add(k, from, need) => {
            let name = |n: usize| {
                at(world.state.slots().iter().map(|slot| slot.assignment.name.clone()).collect(), n)
            };
            let needs = need.and_then(name).into_iter().collect();
            let from = from.and_then(|n| any_id(world, n));
            let member = Member::new(format!("added{k}").parse().unwrap(), "t");
            world.ask_any(Request::Add { members: vec![Member { needs, ..member }], from });
        }
        Do::Remove(n) => {
            let which = any_id(world, n).into_iter().collect();
            world.ask_any(Request::Remove { which });
        }
        Do::Stuck(n) => {
            let Some(session) = live(world, n) else { return };
            let (assignment, attempt) = (world.live[&session].assignment, world.live[&session].attempt);
            let stuck =
                Stuck { kind: StuckKind::NoProgress, evidence: "60 calls".to_owned(), is_unread: false };
            world.give(Input::Stuck { assignment, attempt, stuck }).unwrap();
        }
        Do::GetsOn(n) => {
            let Some(session) = live(world, n) else { return };
            let (assignment, attempt) = (world.live[&session].assignment, world.live[&session].attempt);
            world.give(Input::ProgressSeen { assignment, attempt }).unwrap();
        }
        Do::Collide(one, other) => {
            let (one, other) = (any_id(world, one).unwrap(), any_id(world, other).unwrap());
            let paths = vec!["Cargo.lock".to_owned()];
            world.give(Input::Collision { one, other, paths, turn: None }).unwrap();
        }
        Do::Crash => world.crash(),
        Do::Repeat => world.repeat(),
    }
}

impl World {
    /// Asks for something that may be refused.
    fn ask_any(&mut self, request: Request) {
        if let Err(refusal) = self.try_ask(request) {
            assert!(!refusal.message.is_empty());
        }
    }

    /// Lets everything go well from now on, and somebody be there who helps, until it is over.
    pub(crate) fn bring_to_an_end(&mut self) {
        let more = Amount { tokens: Some(1 << 40), dollars: Some(Dollars(1 << 50)) };
        (self.halted, self.moves) = (false, Moves::Well);
        self.tick(0);
        for _ in 0..2_000 {
            if self.state.is_over() {
                return;
            }
            let is_person = |wait: &Wait| matches!(wait, Wait::Person { .. } | Wait::Pause { .. });
            let waits = self.waits();
            let for_need = waits.iter().find(|(_, wait)| {
                matches!(wait, Wait::Person { hold: ostler_domain::mission::Hold::Dependency, .. })
            });
            if let Some(session) = self.live.keys().next().copied() {
                let outcome = if self.live[&session].stopping { Outcome::Stopped } else { Outcome::Done };
                self.end_session(session, SessionEnd { said_done: true, ..end(outcome) });
            } else if let Some(errand) = self.ending.first().copied() {
                self.answer(errand, false);
            } else if let Some(errand) = self.errands.keys().next().copied() {
                self.answer(errand, true);
            } else if self.state.started_at().is_none() {
                self.ask(Request::Start { forecast: None });
            } else if self.wait().as_ref().is_some_and(is_person) {
                let time = Some(Duration::from_secs(1 << 20));
                self.ask(Request::Resume { budget: Some(more), time, which: Vec::new() });
            } else if let Some((place, _)) = for_need {
                let which = vec![self.state.slots()[*place].assignment.id];
                self.ask(Request::Remove { which });
            } else {
                self.tick(400);
            }
        }
        panic!("it does not come to an end: {:?}", self.waits());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn any_mission_keeps_its_promises_and_comes_to_an_end(
        plan in any_plan(),
        steps in vec(any_do(), 0..60),
    ) {
        let mut world = World::new(plan);
        if world.state.plan().budget.is_none() {
            world.used = Used::default();
        }
        world.ask(Request::Start { forecast: None });
        for (n, step) in steps.into_iter().enumerate() {
            act(&mut world, step, n);
        }
        world.bring_to_an_end();
        prop_assert!(world.live.is_empty());
        prop_assert!(world.state.slots().iter().all(|slot| slot.end().is_some()));
        prop_assert!(world.reports > 0);
        // What was not completed is done again when a person asks for it, and then all of it is.
        let more = Amount { tokens: Some(1 << 40), dollars: Some(Dollars(1 << 50)) };
        for _ in 0..3 {
            if world.state.status() == Status::Completed {
                break;
            }
            let retry = Request::Retry { which: Vec::new(), budget: Some(more), time: None };
            if world.try_ask(retry).is_err() {
                break;
            }
            world.bring_to_an_end();
        }
        let wanted = world.state.slots().iter().any(|slot| !slot.removed);
        prop_assert_eq!(world.state.status() == Status::Completed, wanted, "{:?}", world.state.ended());
        let _ = world.state.report(world.now().wall, &Default::default());
    }

    #[test]
    fn no_event_in_any_order_breaks_a_state(
        plan in any_plan(),
        steps in vec(any_do(), 0..30),
        order in vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let mut world = World::new(plan);
        world.checked = false;
        world.ask(Request::Start { forecast: None });
        for (n, step) in steps.into_iter().enumerate() {
            act(&mut world, step, n);
            world.checked = false;
        }
        let mut state = ostler_domain::mission::State::new(
            match &world.log[0].1 {
                ostler_domain::Event::MissionCreated(created) => created,
                _ => unreachable!(),
            },
            world.log[0].0,
        );
        for index in order {
            let (at, event) = &world.log[index.index(world.log.len())];
            state.apply(*at, event);
            let _ = state.waits(&world.now(), &Beside::default());
            let _ = ostler_domain::mission::decide(&state, Input::Tick, &world.context());
            let _ = state.progress();
        }
    }
}
