//! What becomes of a mission and its assignments, case by case.

use std::time::Duration;

use ostler_domain::{
    Reason, SessionId, Time,
    event::Event,
    limits::{MISSION_RETRY_FIRST, MISSION_START_TRIES},
    mission::{
        AssignmentStatus as As, Effect, Hold, Input, Membership, Request, Status, Stuck, StuckKind,
        Succession, Wait, preview,
    },
    session::Outcome,
};

use super::world::{World, end};

const CHAIN: &str = "objective = \"x\"\nstrategy = \"sequential\"\n[defaults]\nretries = 0\n\
    [[agents]]\nname = \"a\"\ntask = \"t\"\n[[agents]]\nname = \"b\"\ntask = \"t\"\n[[agents]]\nname = \"c\"\ntask = \"t\"\n";

/// Plan, two builders, review; with what the review does when a builder fails.
fn diamond(review: &str) -> String {
    format!(
        "objective = \"x\"\nstrategy = \"adaptive\"\n[defaults]\nretries = 0\n[[agents]]\nname = \"plan\"\ntask = \"t\"\n\
        [[agents]]\nname = \"api\"\ntask = \"t\"\nneeds = [\"plan\"]\n[[agents]]\nname = \"db\"\ntask = \"t\"\nneeds = [\"plan\"]\n\
        [[agents]]\nname = \"review\"\ntask = \"t\"\nneeds = [\"api\", \"db\"]\n{review}\n"
    )
}

fn single(settings: &str) -> World {
    World::started(&format!("objective = \"x\"\n[[agents]]\nname = \"a\"\ntask = \"t\"\n{settings}\n"))
}

fn resume() -> Request {
    Request::Resume { budget: None, time: None, which: Vec::new() }
}

fn retry() -> Request {
    Request::Retry { which: Vec::new(), budget: None, time: None }
}

fn wait_for_retry(world: &mut World) {
    world.tick(MISSION_RETRY_FIRST.as_secs() * 64);
}

#[test]
fn a_chain_goes_on_one_by_one_and_is_completed() {
    let mut world = World::started(CHAIN);
    for name in ["a", "b", "c"] {
        assert_eq!(world.running(), [name]);
        assert_eq!(world.state.status(), Status::Running);
        world.finish(name, Outcome::Done);
    }
    assert_eq!(world.state.status(), Status::Completed);
    assert_eq!(world.reports, 1);
}

#[test]
fn nothing_begins_before_somebody_starts_it() {
    let mut world = World::new(super::world::plan_of(CHAIN));
    world.tick(10);
    assert_eq!((world.running().len(), world.state.status()), (0, Status::Created));
    assert_eq!(world.waits_for("a"), Wait::Start);
    world.ask(Request::Start { forecast: None });
    world.ask(Request::Start { forecast: None });
    assert_eq!(world.sessions.len(), 1);
}

#[test]
fn what_needs_something_that_failed_is_skipped_and_says_so() {
    let mut world = World::started(CHAIN);
    world.finish("a", Outcome::Crashed);
    assert_eq!(
        [world.status("a"), world.status("b"), world.status("c")],
        [As::Failed, As::Skipped, As::Skipped]
    );
    let end = |name: &str| world.state.slots()[world.state.find(name).unwrap()].end().unwrap().why.clone();
    assert_eq!([end("b"), end("c")], ["a failed", "b was skipped"]);
    assert_eq!(world.state.status(), Status::Failed);
    assert_eq!(world.state.ended().unwrap().why, "1 failed, 2 skipped");
}

#[test]
fn what_is_declared_to_run_runs_once_everything_is_over() {
    let mut world = World::started(&diamond("on_dep_failure = \"run\""));
    world.finish("plan", Outcome::Done);
    world.finish("api", Outcome::Crashed);
    assert_eq!(world.running(), ["db"]);
    world.finish("db", Outcome::Done);
    assert_eq!(world.running(), ["review"]);
    world.finish("review", Outcome::Done);
    assert_eq!(world.state.status(), Status::Partial);
}

#[test]
fn what_is_declared_to_wait_waits_for_a_person() {
    let ship = "[[agents]]\nname = \"ship\"\ntask = \"t\"\nneeds = [\"review\"]";
    let mut world = World::started(&diamond(&format!("on_dep_failure = \"block\"\n{ship}")));
    world.finish("plan", Outcome::Done);
    world.finish("api", Outcome::Crashed);
    world.finish("db", Outcome::Done);
    assert_eq!(world.state.status(), Status::Running);
    let Wait::Person { hold: Hold::Dependency, why } = world.waits_for("review") else { panic!() };
    assert_eq!(why, "review needs api, which failed");
    let refused = world.try_ask(resume()).unwrap_err();
    assert_eq!(refused.reason, Reason::WrongState, "resuming does not make it right, and says so");
    assert_eq!(refused.why.as_deref(), Some("review needs api, which failed"));
    assert!(refused.hints[0].command.starts_with("ostler mission retry "), "{refused:?}");
    assert!(matches!(world.waits_for("review"), Wait::Person { .. }));
    let announced = preview(&world.state, &retry()).unwrap().runs;
    let announced: Vec<&str> =
        announced.iter().map(|place| world.state.slots()[*place].assignment.name.as_str()).collect();
    assert_eq!(announced, ["api", "review", "ship"], "with what goes on because of it");
    world.ask(retry());
    assert_eq!(world.running(), ["api"]);
    assert!(matches!(world.waits_for("review"), Wait::Needs(_)));
    world.finish("api", Outcome::Done);
    world.finish("review", Outcome::Done);
    world.finish("ship", Outcome::Done);
    assert_eq!(world.state.status(), Status::Completed);
}

#[test]
fn what_waits_in_vain_can_be_removed() {
    let mut world = World::started(&diamond("on_dep_failure = \"block\""));
    world.finish("plan", Outcome::Done);
    world.finish("api", Outcome::Crashed);
    world.finish("db", Outcome::Done);
    let review = world.id("review");
    world.ask(Request::Remove { which: vec![review] });
    assert_eq!(world.state.status(), Status::Partial);
}

#[test]
fn a_failed_attempt_is_tried_again_later_and_goes_on_with_the_one_before() {
    let mut world = single("retries = 2");
    let first = world.session("a");
    world.finish("a", Outcome::Crashed);
    assert_eq!(world.status("a"), As::Ready);
    let Wait::Again { failures: 1, why, .. } = world.waits_for("a") else { panic!() };
    assert_eq!(why, "it ended crashed");
    world.tick(1);
    assert_eq!(world.running().len(), 0, "not yet");
    world.tick(MISSION_RETRY_FIRST.as_secs());
    let second = world.session("a");
    assert_eq!(world.sessions[&second], Some(first));
    let start = world.last.iter().find_map(|effect| match effect {
        Effect::Start(start) => Some(start.clone()),
        _ => None,
    });
    assert_eq!(start.unwrap().why.as_deref(), Some("it ended crashed"));
    world.finish("a", Outcome::Lost);
    wait_for_retry(&mut world);
    world.finish("a", Outcome::Oom);
    assert_eq!(world.status("a"), As::Failed);
    let why = world.state.slots()[0].end().unwrap().why.clone();
    assert_eq!(why, "it ended oom; tried 3 times");
    assert_eq!(world.state.spent().cost.0, 3_000, "every attempt was paid for");
}

#[test]
fn what_would_only_fail_again_is_not_tried_again() {
    for outcome in [Outcome::Budget, Outcome::Stopped, Outcome::Killed, Outcome::Reset] {
        let mut world = single("retries = 5");
        world.finish("a", outcome);
        assert_eq!(world.status("a"), As::Failed, "{outcome:?}");
    }
    let mut world = single("retries = 5");
    world.finish_as("a", ostler_domain::mission::SessionEnd { is_final: true, ..end(Outcome::FailedStart) });
    assert_eq!(world.status("a"), As::Failed);
    let mut world = single("side_effects = true");
    world.finish("a", Outcome::Crashed);
    let why = world.state.slots()[0].end().unwrap().why.clone();
    assert!(why.ends_with("it has side effects, so it is not tried again by itself"), "{why}");
}

#[test]
fn a_session_that_cannot_be_created_is_tried_a_few_times_or_not_at_all() {
    let refuse = |world: &mut World, is_final: bool| {
        let session = world.session("a");
        world.live.remove(&session);
        world.sessions.remove(&session);
        let (assignment, attempt) = (world.id("a"), world.state.slots()[0].attempt);
        let why = "the disk is full".to_owned();
        world.give(Input::StartRefused { assignment, attempt, why, is_final }).unwrap();
    };
    let mut world = single("retries = 0");
    for _ in 1..MISSION_START_TRIES {
        refuse(&mut world, false);
        assert_eq!(world.status("a"), As::Ready);
        wait_for_retry(&mut world);
        assert_eq!(world.sessions.values().collect::<Vec<_>>(), [&None], "there was none to go on with");
    }
    refuse(&mut world, false);
    assert_eq!(world.status("a"), As::Failed);
    let mut world = single("retries = 3");
    refuse(&mut world, true);
    assert_eq!(world.status("a"), As::Failed);
    let why = world.state.slots()[0].end().unwrap().why.clone();
    assert_eq!(why, "its session could not be started: the disk is full");
    // Whoever does it again goes on with the last session that there was, and with none that never was.
    let mut world = single("retries = 0");
    let first = world.session("a");
    world.finish("a", Outcome::Crashed);
    world.ask(retry());
    refuse(&mut world, true);
    assert_eq!(world.state.slots()[0].sessions, [first]);
    world.ask(retry());
    assert_eq!(world.sessions[&world.session("a")], Some(first));
}

#[test]
fn an_attempt_waits_for_the_end_of_whoever_has_its_conversation() {
    let busy = |world: &mut World, persons: SessionId| {
        let session = world.session("a");
        world.live.remove(&session);
        world.sessions.remove(&session);
        let (assignment, attempt) = (world.id("a"), world.state.slots()[0].attempt);
        world.give(Input::StartAwaits { assignment, attempt, session: persons }).unwrap();
    };
    let [one, other] = [1, 2].map(|n| SessionId::new(Time::from_micros(0), n));
    let mut world = single("retries = 0");
    let first = world.session("a");
    world.finish("a", Outcome::Crashed);
    world.ask(retry());
    // However often, and however long: that is no try of its own.
    for persons in [one, other].into_iter().cycle().take(4 * MISSION_START_TRIES as usize) {
        busy(&mut world, persons);
        assert_eq!(world.waits_for("a"), Wait::Conversation { session: persons });
        world.tick(3_600);
        world.crash();
        assert_eq!(world.status("a"), As::Ready);
        let words = world.waits_for("a").words(&world.state, &world.now());
        assert!(words.ends_with(&format!("ostler stop {}", persons.short())), "{words}");
        let stranger = SessionId::new(Time::from_micros(0), 3);
        world.give(Input::Freed { session: stranger }).unwrap();
        assert_eq!(world.status("a"), As::Ready);
        world.give(Input::Freed { session: persons }).unwrap();
        assert_eq!(world.sessions[&world.session("a")], Some(first), "it goes on with what there was");
    }
    let took = world.state.slots()[0].took(world.now().wall).unwrap();
    assert!(took.as_secs() < 60, "what somebody else did is not its time: {took:?}");
    // Whoever cancels does not wait for it, and whoever pauses is told so.
    busy(&mut world, one);
    world.ask(Request::Pause { why: String::new() });
    assert!(matches!(world.waits_for("a"), Wait::Pause { .. }));
    world.give(Input::Freed { session: one }).unwrap();
    assert_eq!(world.status("a"), As::Ready);
    world.ask(resume());
    busy(&mut world, one);
    world.ask(Request::Cancel { why: String::new() });
    assert_eq!(world.state.status(), Status::Cancelled);
}

#[test]
fn an_agent_must_say_that_it_is_done_where_that_is_asked_for() {
    let mut world = single("complete_when = \"done\"\nretries = 1");
    world.finish("a", Outcome::Done);
    assert_eq!(world.status("a"), As::Ready, "it did not say so");
    wait_for_retry(&mut world);
    world.finish_as("a", ostler_domain::mission::SessionEnd { said_done: true, ..end(Outcome::Lost) });
    assert_eq!(world.state.status(), Status::Completed, "it said so, and then its process was lost");
}

#[test]
fn a_check_says_whether_the_work_is_done() {
    let mut world = single("complete_when = { check = \"cargo test\" }\nretries = 1");
    world.finish("a", Outcome::Done);
    assert_eq!(world.status("a"), As::Running);
    assert_eq!(world.waits_for("a"), Wait::Check { command: "cargo test".to_owned() });
    world.check("a", false);
    assert_eq!(world.status("a"), As::Ready);
    wait_for_retry(&mut world);
    world.finish("a", Outcome::Done);
    world.check("a", true);
    assert_eq!(world.state.status(), Status::Completed);
    assert_eq!(world.state.slots()[0].end().unwrap().product.text, "It works.");
    assert_eq!(world.state.spent().cost.0, 2_000, "each attempt once");
}

#[test]
fn news_that_come_late_or_twice_change_nothing() {
    let mut world = single("retries = 1");
    let (session, assignment) = (world.session("a"), world.id("a"));
    let ended = |attempt: u32, session: SessionId| Input::SessionEnded {
        assignment,
        attempt,
        session,
        end: Box::new(end(Outcome::Done)),
    };
    let before = world.log.len();
    world.give(ended(9, session)).unwrap();
    world.give(ended(1, SessionId::new(Time::from_micros(5), 5))).unwrap();
    world.give(Input::Checked { assignment, attempt: 1, passed: true, output: String::new() }).unwrap();
    world.give(Input::Merged { attempt: 1, ok: true, output: String::new(), commit: None }).unwrap();
    assert_eq!(world.log.len(), before);
    world.finish("a", Outcome::Done);
    let before = world.log.len();
    world.give(ended(1, session)).unwrap();
    assert_eq!(world.log.len(), before);
}

#[test]
fn a_handoff_goes_on_in_another_session() {
    let mut world = single("");
    let (old, new) = (world.session("a"), SessionId::new(Time::from_micros(5), 5));
    world.checked = false;
    world.finish("a", Outcome::Handoff);
    assert_eq!(world.status("a"), As::Running);
    let assignment = world.id("a");
    world.give(Input::SessionStarted { assignment, attempt: 1, session: new }).unwrap();
    world.give(Input::SessionStarted { assignment, attempt: 1, session: old }).unwrap();
    assert_eq!(world.session("a"), new);
    let end = Box::new(end(Outcome::Done));
    world.give(Input::SessionEnded { assignment, attempt: 1, session: new, end }).unwrap();
    assert_eq!(world.state.status(), Status::Completed);
}

#[test]
fn a_pause_freezes_what_runs_and_the_end_of_it_undoes_exactly_that() {
    let mut world = World::started(&diamond(""));
    world.finish("plan", Outcome::Done);
    let (api, db) = (world.session("api"), world.session("db"));
    world.paused_by_hand.insert(db);
    world.ask(Request::Pause { why: "lunch".to_owned() });
    assert_eq!(world.last, [Effect::Freeze { session: api, frozen: true }], "db was paused by somebody else");
    assert_eq!((world.status("api"), world.state.status()), (As::Paused, Status::Paused));
    world.ask(Request::Pause { why: "again".to_owned() });
    assert_eq!(world.last, []);
    assert!(matches!(world.waits_for("api"), Wait::Pause { .. }));
    world.end_session(db, end(Outcome::Done));
    world.crash();
    world.ask(resume());
    assert_eq!(world.last, [Effect::Freeze { session: api, frozen: false }]);
    world.finish("api", Outcome::Done);
    assert_eq!(world.running(), ["review"]);
}

#[test]
fn nothing_starts_while_it_is_paused() {
    let mut world = World::started(CHAIN);
    world.ask(Request::Pause { why: String::new() });
    world.finish("a", Outcome::Done);
    assert_eq!(world.running().len(), 0);
    assert!(matches!(world.waits_for("b"), Wait::Pause { .. }));
    world.ask(resume());
    assert_eq!(world.running(), ["b"]);
}

#[test]
fn cancelling_stops_what_runs_and_leaves_the_rest_out() {
    let mut world = World::started(CHAIN);
    world.finish("a", Outcome::Done);
    let session = world.session("b");
    world.ask(Request::Cancel { why: "not needed".to_owned() });
    assert_eq!(world.last, [Effect::Stop { session }]);
    assert_eq!([world.status("b"), world.status("c")], [As::Running, As::Cancelled]);
    assert_eq!(world.waits_for("b"), Wait::Stop);
    world.crash();
    assert!(world.live[&session].stopping);
    world.finish("b", Outcome::Stopped);
    assert_eq!(world.status("b"), As::Cancelled);
    assert_eq!(world.state.status(), Status::Cancelled);
    world.ask(Request::Cancel { why: String::new() });
    let mut unstarted = World::new(super::world::plan_of(CHAIN));
    unstarted.ask(Request::Cancel { why: String::new() });
    assert_eq!(unstarted.state.status(), Status::Cancelled);
}

#[test]
fn a_retry_does_again_what_was_not_completed_and_nothing_else() {
    let mut world = World::started(&diamond(""));
    world.finish("plan", Outcome::Done);
    let api = world.session("api");
    world.finish("api", Outcome::Crashed);
    world.finish("db", Outcome::Done);
    assert_eq!(world.state.status(), Status::Partial);
    let before = preview(&world.state, &retry()).unwrap();
    let names = |places: &[usize]| -> Vec<String> {
        places.iter().map(|place| world.state.slots()[*place].assignment.name.to_string()).collect()
    };
    assert_eq!(names(&before.runs), ["api", "review"]);
    let completed = Request::Retry { which: vec![world.id("db")], budget: None, time: None };
    assert_eq!(
        preview(&world.state, &completed).unwrap_err().message,
        "db is completed, and is not done again"
    );
    // Whoever was skipped needs what failed.
    let review = Request::Retry { which: vec![world.id("review")], budget: None, time: None };
    assert_eq!(preview(&world.state, &review).unwrap().runs, before.runs);
    world.ask(review);
    assert_eq!((world.running(), world.state.status()), (vec!["api"], Status::Running));
    assert_eq!(world.sessions[&world.session("api")], Some(api), "it goes on where it was");
    world.finish("api", Outcome::Done);
    world.finish("review", Outcome::Done);
    assert_eq!(world.state.status(), Status::Completed);
    assert_eq!(world.try_ask(retry()).unwrap_err().reason, Reason::WrongState);
}

#[test]
fn who_was_about_to_run_without_something_waits_when_it_is_done_again() {
    let mut world = World::started(&diamond("on_dep_failure = \"run\""));
    world.finish("plan", Outcome::Done);
    world.finish("db", Outcome::Done);
    world.ask(Request::Pause { why: String::new() });
    world.finish("api", Outcome::Crashed);
    assert_eq!(world.status("review"), As::Ready);
    world.ask(retry());
    assert_eq!(world.status("review"), As::Pending);
    world.ask(resume());
    assert_eq!(world.running(), ["api"]);
}

#[test]
fn an_attempt_that_ran_without_something_waits_for_it_when_both_are_done_again() {
    let mut world = World::started(&diamond("on_dep_failure = \"run\"\nretries = 1"));
    world.finish("plan", Outcome::Done);
    world.finish("api", Outcome::Crashed);
    world.finish("db", Outcome::Done);
    world.ask(retry());
    assert_eq!(world.running(), ["api", "review"]);
    world.finish("review", Outcome::Crashed);
    assert_eq!(world.status("review"), As::Pending);
    wait_for_retry(&mut world);
    assert_eq!(world.running(), ["api"]);
}

#[test]
fn the_same_work_has_the_same_key_and_other_work_another() {
    let keys = |text: &str| -> Vec<String> {
        let world = World::started(text);
        let started = world.log.iter().filter_map(|(_, event)| match event {
            Event::AssignmentStarted(started) => Some(started.key.to_string()),
            _ => None,
        });
        started.collect()
    };
    let text = "objective = \"x\"\n[[agents]]\nname = \"a\"\ntask = \"t\"\ninstances = 2\n";
    let one = keys(text);
    assert_eq!(one, keys(text));
    assert_ne!(one[0], one[1], "instances are different work");
    for other in
        ["model = \"m\"", "inputs = [\"f\"]", "provider = \"codex\"", "approve = \"all\"", "worktree = true"]
    {
        assert_ne!(keys(&format!("{text}{other}\n"))[0], one[0], "{other}");
    }
}

#[test]
fn an_agent_that_gets_nowhere_is_told_then_held() {
    let mut world = World::started(&diamond(""));
    world.finish("plan", Outcome::Done);
    let (assignment, session) = (world.id("api"), world.session("api"));
    let stuck = |world: &mut World| {
        let stuck = Stuck {
            kind: StuckKind::Loop,
            evidence: "the same call 5 times: ls".to_owned(),
            is_unread: false,
        };
        world.give(Input::Stuck { assignment, attempt: 1, stuck }).unwrap();
    };
    stuck(&mut world);
    assert!(world.told[0].contains("the same call 5 times: ls"), "{:?}", world.told);
    world.give(Input::ProgressSeen { assignment, attempt: 1 }).unwrap();
    stuck(&mut world);
    assert_eq!(world.status("api"), As::Running, "it had got on in between");
    stuck(&mut world);
    assert_eq!(world.last, [Effect::Freeze { session, frozen: true }]);
    assert_eq!([world.status("api"), world.status("db")], [As::Paused, As::Running]);
    assert!(matches!(world.waits_for("api"), Wait::Person { hold: Hold::Loop, .. }));
    assert_eq!(world.state.status(), Status::Running, "the others go on");
    let which = vec![assignment];
    world.ask(Request::Resume { budget: None, time: None, which });
    assert_eq!(world.last, [Effect::Freeze { session, frozen: false }]);
}

#[test]
fn a_collision_is_told_of_once_and_taken_back() {
    let mut world = World::started(&diamond(""));
    let mut turn = 2;
    let mut see = |world: &mut World, paths: &[&str]| {
        turn += 1;
        // Seen from either side, it is the same.
        let names = if turn % 2 == 1 { ["api", "db"] } else { ["db", "api"] };
        let [one, other] = names.map(|name| world.id(name));
        let paths = paths.iter().map(ToString::to_string).collect();
        world.give(Input::Collision { one, other, paths, turn: Some(turn) }).unwrap();
        world.log.iter().filter(|(_, event)| matches!(event, Event::CollisionForecast(_))).count()
    };
    assert_eq!(see(&mut world, &["Cargo.lock"]), 1);
    assert_eq!(see(&mut world, &["Cargo.lock"]), 1);
    assert_eq!(see(&mut world, &["Cargo.lock", "src/a.rs"]), 2);
    let seen = world.state.collisions();
    assert_eq!((seen.len(), seen[0].turn), (1, Some(3)), "it is one since it first was");
    assert_eq!(seen[0].paths, ["Cargo.lock", "src/a.rs"]);
    assert_eq!(see(&mut world, &[]), 3);
    assert!(world.state.collisions().is_empty());
}

#[test]
fn who_goes_on_with_a_member_is_the_member_only_while_its_mission_wants_it() {
    let mut world = World::started(CHAIN);
    let first = world.session("a");
    let place = world.state.find("a").unwrap();
    let member = Membership {
        mission: world.state.id(),
        assignment: world.state.slots()[place].assignment.id,
        attempt: 1,
    };
    // Its work is handed on, or started again.
    assert_eq!(world.state.succession(first, true), Succession::Member(member));
    // It has ended, and nobody knows yet what that came to.
    assert_eq!(world.state.succession(first, false), Succession::Unsettled);
    let next = SessionId::new(Time::from_micros(5), 5);
    world.checked = false;
    let Membership { assignment, attempt, .. } = member;
    world.give(Input::SessionStarted { assignment, attempt, session: next }).unwrap();
    assert_eq!(world.state.succession(first, true), Succession::Outsider, "another one has its place");
    assert_eq!(world.state.succession(next, true), Succession::Member(member));
    let ended = Input::SessionEnded { assignment, attempt, session: next, end: Box::new(end(Outcome::Done)) };
    world.give(ended).unwrap();
    for goes_on in [false, true] {
        assert_eq!(world.state.succession(next, goes_on), Succession::Outsider, "its work is done");
    }
}

#[test]
fn waiting_for_a_place_is_no_time_of_its_work() {
    let mut world = World::started(
        "objective = \"x\"\nstrategy = \"parallel\"\n[[agents]]\nname = \"a\"\ntask = \"t\"\n[[agents]]\nname = \"b\"\ntask = \"t\"\n",
    );
    let begins = |world: &mut World, name: &str, seconds: u64| {
        let place = world.state.find(name).unwrap();
        let slot = &world.state.slots()[place];
        let (assignment, attempt, session) = (slot.assignment.id, slot.attempt, slot.session().unwrap());
        let waited = Duration::from_secs(seconds);
        world.give(Input::SessionBegan { assignment, attempt, session, waited }).unwrap();
    };
    let took = |world: &World, name: &str| {
        let place = world.state.find(name).unwrap();
        world.state.slots()[place].took(world.now().wall).map(|took| took.as_secs())
    };
    let waiting = world.session("b");
    let progress = world.state.progress_beside(|session| session == waiting).all;
    assert_eq!((progress.pending, progress.running), (1, 1));
    world.ask(Request::Pause { why: String::new() });
    world.tick(10);
    world.ask(resume());
    world.tick(20);
    begins(&mut world, "b", 30);
    world.tick(5);
    assert_eq!((took(&world, "a"), took(&world, "b")), (Some(25), Some(5)));
    begins(&mut world, "b", 30);
    assert_eq!(took(&world, "b"), Some(5), "who hears it twice counts it once");
    // Of another attempt only the wait is left out.
    world.finish("b", Outcome::Crashed);
    world.tick(60);
    let before = took(&world, "b").unwrap();
    world.tick(7);
    begins(&mut world, "b", 7);
    assert_eq!(took(&world, "b"), Some(before));
}
