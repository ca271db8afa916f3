//! What bounds a mission: places, tokens, dollars, time.

use std::time::Duration;

use ostler_domain::{
    Reason,
    budget::{Amount, Used},
    event::Event,
    mission::{AssignmentStatus as As, Beside, Effect, Hold, Request, Status, Wait, preview},
    price::Dollars,
    session::Outcome,
};

use super::world::World;

fn resume(budget: Option<Amount>, time: Option<Duration>) -> Request {
    Request::Resume { budget, time, which: Vec::new() }
}

#[test]
fn no_more_run_than_may_and_the_pressing_go_first() {
    let mut world = World::started(
        "objective = \"x\"\n[limits]\nconcurrency = 2\n[[agents]]\nname = \"low\"\ntask = \"t\"\npriority = \"low\"\n\
        [[agents]]\nname = \"usual\"\ntask = \"t\"\ninstances = 2\n[[agents]]\nname = \"high\"\ntask = \"t\"\npriority = \"high\"\n",
    );
    assert_eq!(world.running(), ["usual-1", "high"]);
    assert_eq!(world.waits_for("low"), Wait::Place { most: 2 });
    world.finish("high", Outcome::Done);
    assert_eq!(world.running(), ["usual-1", "usual-2"]);
}

#[test]
fn roles_providers_and_accounts_have_places_of_their_own() {
    let mut world = World::started(
        "objective = \"x\"\n[limits]\nroles = { builder = 1 }\nproviders = { codex = 1 }\naccounts = { work = 1 }\n\
        [[agents]]\nname = \"a\"\nrole = \"builder\"\ntask = \"t\"\ninstances = 2\n\
        [[agents]]\nname = \"b\"\ntask = \"t\"\ninstances = 2\nprovider = \"codex\"\n\
        [[agents]]\nname = \"c\"\ntask = \"t\"\ninstances = 2\naccount = \"work\"\n",
    );
    assert_eq!(world.running(), ["a-1", "b-1", "c-1"]);
    assert_eq!(world.waits_for("a-2"), Wait::PlaceOfRole { role: "builder".to_owned(), most: 1 });
    assert_eq!(world.waits_for("b-2"), Wait::PlaceOfProvider { provider: "codex".to_owned(), most: 1 });
    assert_eq!(world.waits_for("c-2"), Wait::PlaceOfAccount { account: "work".to_owned(), most: 1 });
    world.finish("b-1", Outcome::Done);
    assert_eq!(world.running(), ["a-1", "b-2", "c-1"], "who waits is passed by");
}

#[test]
fn who_would_write_what_another_has_leased_waits_for_it() {
    let mut world = World::started(
        "objective = \"x\"\n[[agents]]\nname = \"api\"\ntask = \"t\"\npaths = [\"src/api\", \"docs/*.md\"]\n\
        [[agents]]\nname = \"login\"\ntask = \"t\"\npaths = [\"src/api/login.rs\"]\n\
        [[agents]]\nname = \"words\"\ntask = \"t\"\npaths = [\"docs/a.md\"]\n\
        [[agents]]\nname = \"ui\"\ntask = \"t\"\npaths = [\"src/ui\"]\n\
        [[agents]]\nname = \"free\"\ntask = \"t\"\nworktree = true\n",
    );
    assert_eq!(world.running(), ["api", "ui", "free"]);
    let path = || "src/api/login.rs".to_owned();
    assert_eq!(world.waits_for("login"), Wait::Lease { path: path(), by: 0 });
    let words = world.waits_for("words").words(&world.state, &world.now());
    assert!(
        words.starts_with("for api (running") && words.ends_with("leased what is in docs/a.md"),
        "{words}"
    );
    world.crash();
    world.finish("api", Outcome::Done);
    assert_eq!(world.running(), ["login", "words", "ui", "free"]);
}

#[test]
fn nobody_writes_the_campaign_s_directory_beside_a_lease_of_it() {
    let text = "objective = \"x\"\nstrategy = \"adaptive\"\n\
        [[agents]]\nname = \"api\"\ntask = \"t\"\npaths = [\"src\"]\n\
        [[agents]]\nname = \"free\"\ntask = \"t\"\n[[agents]]\nname = \"more\"\ntask = \"t\"\n\
        [[agents]]\nname = \"ui\"\ntask = \"t\"\npaths = [\"ui\"]\n\
        [[agents]]\nname = \"own\"\ntask = \"t\"\nworktree = true\n\
        [[agents]]\nname = \"after\"\ntask = \"t\"\nneeds = [\"api\", \"ui\"]\n";
    let mut world = World::started(text);
    assert_eq!(world.running(), ["api", "ui", "own"]);
    assert_eq!(world.waits_for("free"), Wait::Lease { path: "src".to_owned(), by: 0 });
    // What is planned says the same, but of those that take turns anyway.
    let name = |place: usize| world.state.slots()[place].assignment.name.to_string();
    let turns = world.state.lease_turns(9).into_iter();
    let turns: Vec<String> =
        turns.map(|turn| format!("{} {} {}", name(turn.later), name(turn.earlier), turn.path)).collect();
    assert_eq!(turns, ["free api src", "more api src", "ui free ui", "ui more ui"]);
    world.finish("api", Outcome::Crashed);
    world.finish("ui", Outcome::Done);
    assert_eq!(world.running(), ["free", "more", "own"]);
    world.tick(600);
    let words = world.waits_for("api").words(&world.state, &world.now());
    assert!(words.starts_with("for free (running") && words.ends_with("may write what is in src"), "{words}");
}

#[test]
fn what_most_depends_on_goes_first() {
    let world = World::started(
        "objective = \"x\"\nstrategy = \"adaptive\"\n[limits]\nconcurrency = 1\n[[agents]]\nname = \"leaf\"\ntask = \"t\"\n\
        [[agents]]\nname = \"root\"\ntask = \"t\"\n[[agents]]\nname = \"next\"\ntask = \"t\"\nneeds = [\"root\"]\n",
    );
    assert_eq!(world.running(), ["root"]);
}

const BUDGET: &str = "objective = \"x\"\nstrategy = \"sequential\"\nbudget = \"1usd,1000\"\n\
    [[agents]]\nname = \"a\"\ntask = \"t\"\n[[agents]]\nname = \"b\"\ntask = \"t\"\n";

fn used(tokens: u64, micros: u64) -> Used {
    Used { tokens, dollars: Dollars(micros), unpriced: None }
}

#[test]
fn a_used_up_budget_holds_everything_until_there_is_more() {
    let mut world = World::started(BUDGET);
    let session = world.session("a");
    world.used = used(800, 0);
    world.tick(1);
    world.tick(1);
    let warned = world.log.iter().filter(|(_, event)| matches!(event, Event::MissionBudgetWarned(_))).count();
    assert_eq!((warned, world.state.status()), (1, Status::Running));
    world.used = used(1_000, 0);
    world.tick(1);
    assert_eq!(world.last, [Effect::Freeze { session, frozen: true }]);
    assert_eq!((world.state.status(), world.status("a")), (Status::Paused, As::Paused));
    let Some(Wait::Person { hold: Hold::Budget, why }) = world.wait() else { panic!() };
    assert_eq!(why, "$0.00 of $1.00 and 1000 of 1000 tokens used");
    let refusal = world.try_ask(resume(None, None)).unwrap_err();
    assert_eq!(refusal.reason, Reason::OverBudget);
    world.ask(resume(Some(Amount::parse("2k").unwrap()), None));
    assert_eq!(world.last, [Effect::Freeze { session, frozen: false }]);
    assert_eq!(world.state.budget().unwrap().to_string(), "1usd,2k", "the dollars are as they were");
    world.finish("a", Outcome::Done);
    assert_eq!(world.running(), ["b"]);
}

#[test]
fn where_nobody_is_there_a_used_up_budget_ends_the_mission() {
    let mut world = World::started(&BUDGET.replace("budget", "when_used_up = \"stop\"\nbudget"));
    let session = world.session("a");
    world.used = used(0, 1_000_000);
    world.tick(1);
    assert_eq!(world.last, [Effect::Stop { session }]);
    world.finish("a", Outcome::Stopped);
    assert_eq!((world.state.status(), world.status("b")), (Status::Failed, As::Cancelled));
    let retry = |budget: Option<&str>| Request::Retry {
        which: Vec::new(),
        budget: budget.map(|budget| Amount::parse(budget).unwrap()),
        time: None,
    };
    assert_eq!(world.try_ask(retry(None)).unwrap_err().reason, Reason::OverBudget);
    world.ask(retry(Some("3usd")));
    assert_eq!(world.running(), ["a"]);
}

#[test]
fn what_has_no_price_is_asked_about() {
    let mut world = World::started(BUDGET);
    world.used = Used { unpriced: Some("new-model".to_owned()), ..used(1, 1) };
    world.tick(1);
    let Some(Wait::Person { why, .. }) = world.wait() else { panic!() };
    assert!(why.contains("the model new-model has no price"), "{why}");
    // Its price was set: nobody has to say that it may go on.
    let session = world.session("a");
    world.used = used(1, 2);
    world.tick(1);
    assert_eq!(world.last, [Effect::Freeze { session, frozen: false }]);
    assert_eq!((world.state.status(), world.wait()), (Status::Running, None));
}

#[test]
fn its_time_stands_still_while_it_is_paused() {
    let text = "objective = \"x\"\ntime = \"1h\"\n[[agents]]\nname = \"a\"\ntask = \"t\"\n";
    let mut world = World::started(text);
    assert!(world.wakes);
    world.tick(3_000);
    world.ask(Request::Pause { why: String::new() });
    world.tick(100_000);
    world.crash();
    world.ask(resume(None, None));
    world.tick(500);
    assert_eq!(world.state.status(), Status::Running);
    world.tick(101);
    assert_eq!(world.state.hold().map(|held| held.hold), Some(Hold::Time));
    assert_eq!(world.state.ran(world.now().wall).as_secs(), 3_601);
    assert_eq!(world.try_ask(resume(None, None)).unwrap_err().reason, Reason::OverBudget);
    world.ask(resume(None, Some(Duration::from_secs(60))));
    world.tick(50);
    assert_eq!(world.state.status(), Status::Running);
    world.tick(20);
    assert_eq!(world.state.status(), Status::Paused);
    let mut stops = World::started(&text.replace("time", "when_used_up = \"stop\"\ntime"));
    stops.tick(3_601);
    stops.finish("a", Outcome::Stopped);
    assert_eq!(stops.state.status(), Status::Failed);
}

#[test]
fn doing_again_gives_it_more_of_what_was_used_up() {
    let text = "objective = \"x\"\ntime = \"1h\"\n[defaults]\nretries = 0\n[[agents]]\nname = \"a\"\ntask = \"t\"\n\
                [[agents]]\nname = \"b\"\ntask = \"t\"\n";
    let retry = |time: Option<u64>| Request::Retry {
        which: Vec::new(),
        budget: None,
        time: time.map(Duration::from_secs),
    };
    // Held for its time, with one that failed: that is done again, and the other goes on.
    let mut world = World::started(text);
    world.finish("a", Outcome::Crashed);
    world.tick(3_601);
    assert_eq!(world.state.hold().map(|held| held.hold), Some(Hold::Time));
    let refused = world.try_ask(retry(None)).unwrap_err();
    assert_eq!(refused.reason, Reason::OverBudget);
    assert!(refused.hints[0].command.starts_with("ostler mission retry x --time"), "{refused:?}");
    let announced = preview(&world.state, &retry(Some(60))).unwrap();
    assert_eq!((announced.runs, announced.goes_on), (vec![0], vec![1]));
    world.ask(retry(Some(60)));
    assert_eq!((world.state.status(), world.running()), (Status::Running, vec!["a", "b"]));
    world.tick(50);
    assert_eq!(world.state.status(), Status::Running);
    world.tick(20);
    assert_eq!(world.state.status(), Status::Paused);
    // While it runs, and while somebody has paused it, what is left grows by as much.
    for is_paused in [false, true] {
        let mut world = World::started(text);
        world.tick(3_000);
        world.finish("a", Outcome::Crashed);
        if is_paused {
            world.ask(Request::Pause { why: String::new() });
        }
        world.ask(retry(Some(600)));
        if is_paused {
            world.crash();
            world.ask(resume(None, None));
        }
        world.tick(1_199);
        assert_eq!(world.state.status(), Status::Running, "{is_paused}");
        world.tick(2);
        assert_eq!(world.state.status(), Status::Paused, "{is_paused}");
    }
    // One that is over has as long as is said, or as its plan says.
    for (time, lasts) in [(Some(600), 600), (None, 3_600)] {
        let mut world = World::started(text);
        world.finish("a", Outcome::Crashed);
        world.finish("b", Outcome::Done);
        world.ask(retry(time));
        world.tick(lasts - 1);
        assert_eq!(world.state.status(), Status::Running, "{time:?}");
        world.tick(2);
        assert_eq!(world.state.status(), Status::Paused, "{time:?}");
    }
}

#[test]
fn doing_again_with_a_larger_budget_lets_go_on_what_was_held_for_it() {
    let mut world = World::started(&BUDGET.replace("sequential", "parallel"));
    world.finish("a", Outcome::Stopped);
    world.used = used(0, 1_000_000);
    world.tick(1);
    assert_eq!(world.state.hold().map(|held| held.hold), Some(Hold::Budget));
    let budget = Some(Amount::parse("3usd").unwrap());
    world.ask(Request::Retry { which: Vec::new(), budget, time: None });
    assert_eq!((world.state.status(), world.running()), (Status::Running, vec!["a", "b"]));
}

#[test]
fn a_pause_within_a_hold_ends_by_itself() {
    let mut world = World::started(BUDGET);
    let session = world.session("a");
    world.used = used(1_000, 0);
    world.tick(1);
    world.ask(Request::Pause { why: String::new() });
    assert_eq!(world.last, [], "it was frozen already");
    world.used = used(900, 0);
    world.ask(resume(None, None));
    assert_eq!(world.last, [Effect::Freeze { session, frozen: false }]);
    assert_eq!(world.state.status(), Status::Running);
}

#[test]
fn while_everything_is_halted_nothing_starts_and_each_says_so() {
    let mut world =
        World::started("objective = \"x\"\n[[agents]]\nname = \"a\"\ntask = \"t\"\nretries = 9\n");
    world.finish("a", Outcome::Crashed);
    world.halted = true;
    world.tick(60);
    assert_eq!(
        (world.running().len(), world.waits_for("a"), world.wait()),
        (0, Wait::Halt, Some(Wait::Halt))
    );
    assert!(Wait::Halt.words(&world.state, &world.now()).contains("ostler halt --release"));
    world.halted = false;
    world.tick(0);
    assert_eq!(world.running(), ["a"]);
}

#[test]
fn a_member_in_the_line_of_the_machine_says_for_what_it_waits() {
    let world = World::started("objective = \"x\"\n[[agents]]\nname = \"a\"\ntask = \"t\"\n");
    assert!(world.waits().is_empty(), "it runs");
    let in_line = [(world.session("a"), "for a slot (2 of 2 run), next in line".to_owned())].into();
    let waits = world.state.waits(&world.now(), &Beside { in_line, ..Beside::default() });
    let words = waits[0].1.words(&world.state, &world.now());
    assert_eq!(words, "to be started: for a slot (2 of 2 run), next in line");
}
