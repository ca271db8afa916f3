//! What people see of a mission: progress, waits, times, prices, the drawing, the report, and what agents are told.

use std::time::Duration;

use ostler_domain::{
    event::Event,
    mission::{
        AssignmentStatus, Interval, Request, SessionEnd, Spent, brief,
        draw::{self, Doing},
        estimate::estimate,
        eta::{Eta, History, HitRate, NoCost, Sample, eta},
        preview,
    },
    price::Dollars,
    session::Outcome,
    ticket::{Output, OutputKind},
};

use super::world::{World, end};

const TEAM: &str = "name = \"checkout-v2\"\nobjective = \"Move the checkout\"\nstrategy = \"pipeline\"\n[merge]\ninto = \"main\"\n\
    [[agents]]\nname = \"plan\"\nrole = \"planner\"\ntask = \"Make a plan\"\nstage = 1\n\
    [[agents]]\nname = \"build\"\nrole = \"builder\"\ntask = \"Build part\"\nstage = 2\ninstances = 3\nworktree = true\nretries = 0\n\
    [[agents]]\nname = \"review\"\nrole = \"reviewer\"\ntask = \"Review\"\nstage = 3\non_dep_failure = \"run\"\n";

fn team() -> World {
    let mut world = World::started(TEAM);
    world.seconds = 180;
    let output = Output { name: "plan".to_owned(), kind: OutputKind::Path, value: "PLAN.md".to_owned() };
    let mut ended = SessionEnd { ..end(Outcome::Done) };
    ended.product.outputs.push(output);
    ended.spent.cost = Dollars(410_000);
    world.finish_as("plan", ended);
    world.seconds += 600;
    world.finish_as("build-1", SessionEnd { spent: Default::default(), ..end(Outcome::Done) });
    world
}

#[test]
fn progress_is_counted_by_role() {
    let progress = team().state.progress();
    assert_eq!((progress.all.total, progress.all.completed, progress.percent()), (5, 2, 40));
    let roles: Vec<(&str, u32, u32, u32, u32, u32)> = progress
        .roles
        .iter()
        .map(|(role, n)| (role.as_str(), n.total, n.pending, n.running, n.completed, n.failed))
        .collect();
    assert_eq!(roles, [("planner", 1, 0, 0, 1, 0), ("builder", 3, 0, 2, 1, 0), ("reviewer", 1, 1, 0, 0, 0)]);
}

#[test]
fn waits_are_said_in_words() {
    let world = team();
    let merge = world.state.merge_wait().unwrap();
    assert_eq!(merge.words(&world.state, &world.now()), "for review", "the last that is left");
    let wait = world.waits_for("review");
    assert_eq!(wait.words(&world.state, &world.now()), "for build-2 (running 10m), build-3 (running 10m)");
}

#[test]
fn the_graph_is_drawn_with_what_goes_on() {
    let world = team();
    let busy = world.session("build-3");
    let doing = |session| {
        let now = if session == busy { "run: npm test · 31s".to_owned() } else { String::new() };
        Some(Doing { now, cost: Some(Dollars(2_250_000)), tokens: 41_200, stands: None })
    };
    let lines = draw::mission(&world.state, world.now().wall, 100, doing);
    assert_eq!(
        lines,
        [
            "plan ✓ 3m 15 $0.41 ─┬─ build-1 ✓ 10m ───────────┬─ review ◌ ── merge ◌",
            "                    ├─ build-2 ● 10m 41k $2.25 ─┤",
            "                    └─ build-3 ● 10m 41k $2.25 ─┘   run: npm test · 31s",
        ]
    );
    let narrow = draw::mission(&world.state, world.now().wall, 30, |_| None);
    assert_eq!(narrow[0], "1  plan ✓ 3m 15 $0.41");
    assert_eq!(narrow.len(), 6);
}

fn sample(role: &str, seconds: u64, cents: u64) -> Sample {
    Sample {
        role: role.to_owned(),
        kind: "task".to_owned(),
        model: None,
        took: Duration::from_secs(seconds),
        cost: Ok(Dollars(cents * 10_000)),
    }
}

#[test]
fn times_and_prices_come_from_history_or_are_said_to_be_unknown() {
    let world = World::started(TEAM);
    let some = (1..=10).flat_map(|n| [sample("planner", n * 10, n), sample("builder", n * 100, n * 10)]);
    let history = History::of(some.clone());
    let now = world.now();
    let Eta::NoHistory { sorts } = eta(&world.state, &history, &now) else { panic!() };
    assert_eq!(sorts, ["reviewer, task, any model"]);
    let all: Vec<usize> = (0..5).collect();
    let known = estimate(&world.state, &all, &history);
    assert_eq!((known.known, known.unknown), (4, 1));
    let words = known.words();
    assert!(words.ends_with("and 1 of unknown cost (no history of reviewer, task, any model)"), "{words}");
    // One says how long one took, and nothing of how long the next takes.
    let one = History::of(some.clone().chain([sample("reviewer", 60, 5)]));
    let little = eta(&world.state, &one, &now);
    let sort = "reviewer, task, any model".to_owned();
    assert_eq!(little, Eta::LittleHistory { sorts: vec![(sort, 1)] });
    let words = little.words(&HitRate::default());
    assert_eq!(words, "no ETA: too little history (1 of at least 4) of (reviewer, task, any model)");
    let words = estimate(&world.state, &[4], &one).words();
    assert_eq!(words, "about $0.05 (too little history to say more: 1 of at least 4)");
    let history = History::of(some.chain([50, 60, 60, 70].map(|seconds| sample("reviewer", seconds, 5))));
    let Eta::In(interval) = eta(&world.state, &history, &now) else { panic!() };
    // Half of the planners took a minute at most, of the builders ten: three of them at once.
    assert_eq!(interval.likely().as_secs(), 60 + 600 + 60);
    assert_eq!((interval.low().as_secs(), interval.high().as_secs()), (20 + 200 + 50, 90 + 900 + 70));
    assert_eq!(estimate(&world.state, &all, &history).likely, Dollars(6 * 10_000 + 3 * 600_000 + 50_000));
    assert_eq!(
        estimate(&world.state, &all, &History::default()).words().split(':').next(),
        Some("the price is not known")
    );
    // What has no price is never said to cost nothing; what is free is.
    let of = |cost: Result<Dollars, NoCost>| {
        let samples = (0..4).map(|_| Sample { cost: cost.clone(), ..sample("reviewer", 60, 5) });
        estimate(&world.state, &[4], &History::of(samples)).words()
    };
    let model = Some("foo-1".to_owned());
    assert_eq!(of(Err(NoCost::Price { model })), "cost unknown (no price for foo-1)");
    assert_eq!(of(Err(NoCost::Plan)), "cost unknown (covered by a plan)");
    assert_eq!(of(Err(NoCost::Usage)), "cost unknown (no usage was reported)");
    assert_eq!(of(Ok(Dollars(0))), "about $0.00, likely below $0.00");
    let shown = eta(&world.state, &history, &now).words(&HitRate { held: 30, of: 37 });
    assert_eq!(shown, "ETA 12m (4m–17m; 81 % of 37 past intervals held)");
    let none = eta(&world.state, &History::default(), &now).words(&HitRate::default());
    assert!(none.starts_with("no ETA: no history of (builder, task, any model)"), "{none}");
}

#[test]
fn what_already_takes_long_is_compared_with_what_took_longer() {
    let mut world = World::started("objective = \"x\"\n[[agents]]\nname = \"builder\"\ntask = \"t\"\n");
    let history = History::of((1..=10).map(|n| sample("builder", n * 100, 1)));
    world.tick(850);
    let Eta::In(interval) = eta(&world.state, &history, &world.now()) else { panic!() };
    assert_eq!(interval.likely().as_secs(), 149, "of 900 and 1000 it is the higher");
    assert!(interval.low() < interval.likely() && interval.likely() < interval.high(), "{interval:?}");
    world.tick(1_000);
    let Eta::In(interval) = eta(&world.state, &history, &world.now()) else { panic!() };
    assert!(interval.likely().as_secs() > 100, "longer than any before: {interval:?}");
    assert!(interval.low() < interval.likely() && interval.likely() < interval.high(), "{interval:?}");
    world.finish("builder", Outcome::Done);
    assert_eq!(eta(&world.state, &history, &world.now()), Eta::Over);
}

#[test]
fn a_forecast_is_kept_to_be_compared_with_what_it_took() {
    let mut world =
        World::new(super::world::plan_of("objective = \"x\"\n[[agents]]\nname = \"a\"\ntask = \"t\"\n"));
    let forecast = Interval::new(Duration::from_secs(10), Duration::from_secs(20), Duration::from_secs(30));
    world.ask(Request::Start { forecast: Some(forecast) });
    world.tick(25);
    world.finish("a", Outcome::Done);
    let Some((_, Event::MissionEnded(ended))) = world.log.last() else { panic!() };
    assert!(forecast.held(Duration::from_micros(ended.ran_us)));
    assert!(
        world
            .state
            .report(world.now().wall, &Default::default())
            .contains("- forecast: 10s to 30s, which held")
    );
}

#[test]
fn an_agent_is_told_what_it_must_know() {
    let mut world = team();
    world.finish("build-2", Outcome::Killed);
    world.finish("build-3", Outcome::Done);
    let place = world.state.find("review").unwrap();
    let told = brief::brief(&world.state, place);
    for words in [
        "You are review (reviewer) in a mission",
        "Move the checkout",
        "# Your task\n\nReview",
        "## build-1 (completed)\n\nIt works.",
        "## build-2 (failed)\n\nIt was not completed: it ended killed",
    ] {
        assert!(told.contains(words), "{words}\n---\n{told}");
    }
    let build = brief::brief(&world.state, world.state.find("build-2").unwrap());
    assert!(build.contains("build-2 (builder, number 2 of 3 with this task)"), "{build}");
    assert!(build.contains("- plan (path): PLAN.md"), "{build}");
    assert!(build.contains("agents/build-2") && !build.contains("ostler mission add"), "{build}");
    let grows = |limits: &str| {
        let text = format!(
            "objective = \"x\"\nstrategy = \"adaptive\"\n{limits}[[agents]]\nname = \"a\"\ntask = \"t\"\n"
        );
        brief::brief(&World::started(&text).state, 0).contains("ostler mission add")
    };
    assert!(grows("") && !grows("[limits]\nadded = 0\n") && !grows("[limits]\ndepth = 0\n"));
}

#[test]
fn only_work_that_will_be_merged_meets_other_work() {
    let mut world = World::started(
        "objective = \"x\"\n[defaults]\nworktree = true\nretries = 0\n[limits]\nconcurrency = 4\n[[agents]]\nname = \"a\"\ntask = \"t\"\ninstances = 3\n\
        [[agents]]\nname = \"root\"\ntask = \"t\"\nworktree = false\n[[agents]]\nname = \"later\"\ntask = \"t\"\n",
    );
    assert_eq!(world.state.meets(0), [1, 2]);
    world.finish("a-2", Outcome::Killed);
    world.finish("a-3", Outcome::Done);
    assert_eq!(world.state.meets(0), [2, 4], "what is done is merged, what failed is not");
    assert!(!world.state.is_to_be_merged(3));
}

#[test]
fn the_report_says_what_came_of_it() {
    let mut world = team();
    world.finish_as("build-2", SessionEnd { why: "exit code 1 | <b>".to_owned(), ..end(Outcome::Killed) });
    let unpriced = Spent { unpriced: true, cost: Dollars(0), ..end(Outcome::Done).spent };
    world.finish_as("build-3", SessionEnd { spent: unpriced, ..end(Outcome::Done) });
    world.finish("review", Outcome::Done);
    let report = world.state.report(world.now().wall, &Default::default());
    for words in [
        "# Mission checkout-v2: partial: 1 failed\n",
        "> Move the checkout\n",
        "- assignments: 4 of 5 completed, 1 failed, 0 skipped or cancelled\n",
        "| build-2 | builder | ✗ failed | 1 | 10m | 15 | $0.0010 | ses_",
        "| build-3 | builder | ✓ completed | 1 | 10m | 15 | unknown (no price for its model) | ses_",
        "output tokens\n- cost: $0.41 and what has no price (its model)\n",
        "failed: exit code 1 \\| <b>\n",
        "- plan (path): PLAN.md\n",
    ] {
        assert!(report.contains(words), "{words}\n---\n{report}");
    }
    let places =
        preview(&world.state, &Request::Retry { which: Vec::new(), budget: None, time: None }).unwrap().runs;
    assert_eq!(places.len(), 1, "the review ran all the same, and is completed");
}

#[test]
fn assignments_are_known_by_every_name_they_have() {
    let world = team();
    let place = world.state.find("build-2").unwrap();
    let assignment = &world.state.slots()[place].assignment;
    let long = assignment.long_name();
    assert!(long.starts_with("agent_builder_2_"), "{long}");
    for name in [long.as_str(), &assignment.id.to_string(), "build-2"] {
        assert_eq!(world.state.find(name), Some(place), "{name}");
    }
    assert_eq!(world.state.find("agent_builder_2_x"), None);
    assert_eq!(world.state.status_of(place), AssignmentStatus::Running);
}

#[test]
fn who_is_tried_again_is_told_what_was_done_again_before_it() {
    let mut world = team();
    let began = world.now().wall;
    world.finish("build-2", Outcome::Crashed);
    world.finish("build-3", Outcome::Done);
    world.seconds += 60;
    world.finish("review", Outcome::Crashed);
    let review = world.state.find("review").unwrap();
    let told = brief::redone(&world.state, review, world.now().wall);
    assert_eq!(told, "", "nothing was done again since then");
    let told = brief::redone(&world.state, review, began);
    assert!(told.contains("## build-3 (completed)") && told.contains("## build-2 (failed)"), "{told}");
    assert!(
        !told.contains("## plan") && !told.contains("## build-1"),
        "what it knows is not said twice: {told}"
    );
}

#[test]
fn whoever_is_merged_is_told_to_leave_nothing_uncommitted() {
    let world = team();
    let told = |name: &str| brief::brief(&world.state, world.state.find(name).unwrap());
    assert!(told("build-2").contains("Only what you commit on your branch is merged"));
    assert!(!told("review").contains("Only what you commit"), "it has no branch");
}
