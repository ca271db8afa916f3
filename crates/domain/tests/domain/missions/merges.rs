//! The merge beside the branch, its gate, the branch itself; and the checks, which are run the same way.

use ostler_domain::{
    Event, Kind,
    mission::{
        AssignmentStatus as As, Effect, Errand, Input, Merging, Request, Status, Wait,
        eta::{Eta, History, eta},
        plan, preview,
    },
    session::Outcome,
};

use super::world::{Moves, World};

const PLAN: &str = "objective = \"x\"\ntime = \"1h\"\nwhen_used_up = \"stop\"\n[merge]\ninto = \"main\"\n\
    gate = \"cargo test\"\n[[agents]]\nname = \"a\"\ntask = \"t\"\nworktree = true\n\
    [[agents]]\nname = \"b\"\ntask = \"t\"\n";
const CHECK: &str = "objective = \"x\"\n[defaults]\nretries = 0\n[[agents]]\nname = \"a\"\ntask = \"t\"\n\
    complete_when = { check = \"cargo test\" }\n";
const MERGE: Errand = Errand::Merge { attempt: 1 };

fn merging() -> World {
    let mut world = World::started(PLAN);
    world.finish("a", Outcome::Done);
    world.finish("b", Outcome::Done);
    assert_eq!(world.merge(), Some(1));
    world
}

fn pause() -> Request {
    Request::Pause { why: String::new() }
}

fn resume() -> Request {
    Request::Resume { budget: None, time: None, which: Vec::new() }
}

fn cancel() -> Request {
    Request::Cancel { why: String::new() }
}

fn retry() -> Request {
    Request::Retry { which: Vec::new(), budget: None, time: None }
}

fn moved(world: &World) -> usize {
    world.log.iter().filter(|(_, event)| matches!(event, Event::MergeMoving(_))).count()
}

#[test]
fn branches_are_merged_once_everything_is_completed() {
    let mut world = World::started(PLAN);
    world.finish("a", Outcome::Done);
    assert_eq!(world.merge(), None);
    let session = *world.sessions.keys().next().unwrap();
    world.finish("b", Outcome::Done);
    let from = vec![(world.id("a"), session)];
    let (into, gate) = ("main".to_owned(), Some("cargo test".to_owned()));
    assert!(world.last.contains(&Effect::Merge { attempt: 1, into, gate, from }), "{:?}", world.last);
    assert!(matches!(world.wait(), Some(Wait::Merge { .. })));
    let left = eta(&world.state, &History::default(), &world.now());
    assert_eq!(left, Eta::Merge, "not that it is over in a moment");
    world.crash();
    world.answer_merge(false);
    assert_eq!(
        (world.state.status(), world.state.ended().unwrap().why.as_str()),
        (Status::Partial, "the merge failed")
    );
    let announced = preview(&world.state, &retry()).unwrap();
    assert_eq!((announced.runs.len(), announced.merges_into.as_deref()), (0, Some("main")));
    world.ask(retry());
    assert_eq!((world.merge(), world.running().len()), (Some(2), 0), "only the merge is done again");
    let (one, other) = (world.id("a"), world.id("b"));
    world.give(Input::Collision { one, other, paths: vec!["a.rs".to_owned()], turn: None }).unwrap();
    assert_eq!(world.state.collisions().len(), 1);
    world.answer_merge(true);
    assert_eq!(world.state.status(), Status::Completed);
    assert!(world.state.collisions().is_empty(), "what is merged collides no more");
    assert!(
        world.state.report(world.now().wall, &Default::default()).contains("a × b: a.rs"),
        "and was foreseen"
    );
    let mut failed = World::started(&PLAN.replace("worktree", "retries = 0\nworktree"));
    failed.finish("a", Outcome::Crashed);
    failed.finish("b", Outcome::Done);
    assert_eq!(
        (failed.state.status(), failed.merge()),
        (Status::Partial, None),
        "half of the work is not merged"
    );
    let announced = preview(&failed.state, &retry()).unwrap();
    assert_eq!((announced.runs, announced.merges_into.as_deref()), (vec![0], Some("main")));
}

#[test]
fn the_branch_moves_after_the_gate_and_is_told_of_first() {
    let mut world = merging();
    world.answer_merge(true);
    let kinds: Vec<Kind> = world.log.iter().rev().take(4).map(|(_, event)| event.kind()).collect();
    assert_eq!(kinds, [Kind::MissionEnded, Kind::MergeEnded, Kind::MergeMoving, Kind::MergeChecked]);
    assert_eq!((world.state.status(), world.branch.len()), (Status::Completed, 1));
    let mut outrun = merging();
    outrun.moves = Moves::Fails;
    outrun.answer_merge(true);
    assert_eq!((outrun.state.status(), outrun.branch.len()), (Status::Partial, 0));
}

#[test]
fn a_mission_that_ends_ends_the_gate_and_moves_nothing() {
    let cancelled = |world: &mut World| world.ask(cancel());
    let out_of_time = |world: &mut World| world.tick(3_600);
    for (end, status) in [
        (&cancelled as &dyn Fn(&mut World), Status::Cancelled),
        (&out_of_time as &dyn Fn(&mut World), Status::Partial),
    ] {
        let mut world = merging();
        end(&mut world);
        assert_eq!(world.last, [Effect::EndErrand(MERGE)]);
        assert_eq!(world.state.status(), Status::Running, "the gate may still live");
        world.crash();
        assert_eq!(world.merge(), None, "it is not begun again");
        // It had passed just before it was to end.
        world.answer(MERGE, true);
        assert_eq!((world.state.status(), moved(&world)), (status, 0));
        world.ask(retry());
        world.answer_merge(true);
        assert_eq!(world.state.status(), Status::Completed);
    }
}

#[test]
fn a_pause_freezes_the_gate_and_holds_what_passed_it() {
    let mut world = merging();
    world.ask(pause());
    assert_eq!(world.last, [Effect::FreezeErrand(MERGE)]);
    world.crash();
    assert_eq!(world.merge(), None, "nothing is begun while it is paused");
    world.ask(resume());
    assert_eq!(world.merge(), Some(1));
    world.ask(pause());
    // It had passed just before it was frozen.
    world.answer_merge(true);
    assert!(matches!(world.state.merging(), Merging::Checked { .. }));
    world.crash();
    assert_eq!((world.state.status(), moved(&world)), (Status::Paused, 0));
    let mut cancelled = merging();
    cancelled.ask(pause());
    cancelled.answer_merge(true);
    cancelled.ask(cancel());
    assert_eq!((cancelled.state.status(), moved(&cancelled)), (Status::Cancelled, 0));
    world.ask(resume());
    assert_eq!((world.state.status(), moved(&world)), (Status::Completed, 1));
}

#[test]
fn while_everything_is_halted_nothing_is_merged() {
    let mut world = merging();
    world.halted = true;
    world.answer_merge(true);
    world.tick(1);
    assert_eq!((world.state.status(), moved(&world)), (Status::Running, 0));
    world.halted = false;
    world.tick(1);
    assert_eq!((world.state.status(), moved(&world)), (Status::Completed, 1));
    let mut late = World::started(PLAN);
    late.halted = true;
    late.finish("a", Outcome::Done);
    late.finish("b", Outcome::Done);
    assert_eq!(late.merge(), None);
    late.halted = false;
    late.tick(1);
    assert_eq!(late.merge(), Some(1));
}

#[test]
fn a_daemon_that_dies_at_the_branch_leaves_one_merge_and_the_truth() {
    for moves in [Moves::DiesBefore, Moves::DiesAfter] {
        let mut world = merging();
        world.moves = moves;
        world.answer_merge(true);
        assert_eq!((world.state.status(), moved(&world), world.branch.len()), (Status::Completed, 1, 1));
    }
}

#[test]
fn a_check_is_frozen_ended_and_begun_again_with_its_mission() {
    let mut world = World::started(CHECK);
    world.finish("a", Outcome::Done);
    let check = Errand::Check { assignment: world.id("a"), attempt: 1 };
    world.ask(pause());
    assert_eq!(world.last, [Effect::FreezeErrand(check)]);
    assert_eq!(world.status("a"), As::Paused);
    assert!(matches!(world.waits_for("a"), Wait::Pause { .. }));
    world.crash();
    assert!(world.errands.is_empty(), "nothing is begun while it is paused");
    world.ask(resume());
    assert!(world.errands.contains_key(&check));
    let mut cancelled = World::started(CHECK);
    cancelled.finish("a", Outcome::Done);
    cancelled.ask(cancel());
    assert_eq!(cancelled.last, [Effect::EndErrand(check)]);
    assert_eq!(cancelled.state.status(), Status::Running, "the check may still live");
    cancelled.crash();
    cancelled.answer(check, false);
    assert_eq!((cancelled.state.status(), cancelled.status("a")), (Status::Cancelled, As::Cancelled));
    world.check("a", true);
    assert_eq!(world.state.status(), Status::Completed);
    // Its session ended while the mission was paused.
    let mut late = World::started(CHECK);
    let session = late.session("a");
    late.paused_by_hand.insert(session);
    late.ask(pause());
    late.finish("a", Outcome::Done);
    assert!(late.errands.is_empty());
    late.ask(resume());
    assert_eq!(late.errands.len(), 1);
    let late_news = Input::MergeTried { attempt: 1, tried: Err(String::new()) };
    late.give(late_news).unwrap();
    assert_eq!(late.errands.len(), 1, "there is no merge");
}

#[test]
fn only_what_is_named_is_merged_and_only_that_must_be_completed() {
    let mut world = World::started(
        "objective = \"x\"\nstrategy = \"adaptive\"\n[defaults]\nretries = 0\nworktree = true\n\
         [merge]\ninto = \"main\"\nfrom = [\"join\"]\n\
         [[agents]]\nname = \"build\"\ninstances = 2\ntask = \"t\"\n\
         [[agents]]\nname = \"join\"\nneeds = [\"build\"]\non_dep_failure = \"run\"\ntask = \"t\"\n",
    );
    world.finish("build-1", Outcome::Done);
    world.finish("build-2", Outcome::Crashed);
    let join = world.session("join");
    assert_eq!(world.merge(), None);
    world.finish("join", Outcome::Done);
    let from = vec![(world.id("join"), join)];
    let (into, gate) = ("main".to_owned(), None);
    assert!(world.last.contains(&Effect::Merge { attempt: 1, into, gate, from }), "{:?}", world.last);
    world.answer_merge(true);
    assert_eq!(
        (world.state.status(), world.state.ended().unwrap().why.as_str()),
        (Status::Partial, "1 failed"),
        "what was merged is, though somebody else failed"
    );
    assert!(matches!(world.state.merging(), Merging::Merged { .. }));
    let announced = preview(&world.state, &retry()).unwrap();
    assert_eq!((announced.runs, announced.merges_into), (vec![1], None));
    world.ask(retry());
    world.finish("build-2", Outcome::Done);
    assert_eq!((world.state.status(), world.merge()), (Status::Completed, None), "it is merged once");
}

#[test]
fn what_the_merge_is_made_of_must_be_there() {
    let plan = "objective = \"x\"\nstrategy = \"adaptive\"\n[merge]\ninto = \"main\"\nfrom = [\"jion\"]\n\
        [[agents]]\nname = \"join\"\ntask = \"t\"\nworktree = true\n[[agents]]\nname = \"read\"\ntask = \"t\"\n";
    let faults = |text: &str| plan::read(text, &plan::Terms::default()).unwrap_err().to_string();
    let unknown = faults(plan);
    assert!(
        unknown.contains("line 5: the merge is from \"jion\"") && unknown.contains("did you mean join?"),
        "{unknown}"
    );
    let without = faults(&plan.replace("jion", "read"));
    assert!(without.contains("the merge is from read, which has no work tree of its own"), "{without}");
}
