//! Missions that grow while they run, and shrink.

use ostler_domain::{
    AssignmentId, Reason, Refusal,
    admission::Priority,
    mission::{AssignmentStatus as As, Member, Request, Status, Wait, plan},
    session::{Approve, Outcome},
};

use super::world::World;

fn world() -> World {
    World::started(
        "objective = \"x\"\nstrategy = \"adaptive\"\n[limits]\nadded = 3\ndepth = 1\n[[agents]]\nname = \"lead\"\ntask = \"t\"\n\
        [[agents]]\nname = \"last\"\ntask = \"t\"\nneeds = [\"lead\"]\n",
    )
}

fn members(text: &str) -> Vec<Member> {
    plan::read_members(text, &plan::Terms::default()).unwrap()
}

fn add(world: &mut World, text: &str, from: Option<AssignmentId>) -> Result<(), Refusal> {
    world.try_ask(Request::Add { members: members(text), from })
}

const HELPERS: &str = "[[agents]]\nname = \"help\"\ntask = \"t\"\ninstances = 2\n\
    [[agents]]\nname = \"sum\"\ntask = \"t\"\nneeds = [\"help\", \"lead\"]\n";

#[test]
fn an_agent_adds_assignments_and_they_run() {
    let mut world = world();
    let lead = world.id("lead");
    add(&mut world, HELPERS, Some(lead)).unwrap();
    assert_eq!(world.running(), ["lead", "help-1", "help-2"]);
    let sum = &world.state.slots()[world.state.find("sum").unwrap()].assignment;
    assert_eq!((sum.added_by, sum.depth), (Some(lead), 1));
    let before = world.log.len();
    add(&mut world, HELPERS, Some(lead)).unwrap();
    assert_eq!(world.log.len(), before, "who asks twice gets the same");
    world.crash();
    for name in ["help-1", "help-2", "lead", "last", "sum"] {
        world.finish(name, Outcome::Done);
    }
    assert_eq!(world.state.status(), Status::Completed);
}

#[test]
fn an_agent_adds_no_more_than_it_may() {
    let mut world = world();
    let (lead, last) = (world.id("lead"), world.id("last"));
    let refused = |world: &mut World, text: &str, from| add(world, text, from).unwrap_err();
    let one = "[[agents]]\nname = \"x\"\ntask = \"t\"\n";
    assert_eq!(refused(&mut world, one, Some(last)).reason, Reason::PermissionDenied, "it does not work yet");
    let many = "[[agents]]\nname = \"x\"\ntask = \"t\"\ninstances = 4\n";
    assert_eq!(
        refused(&mut world, many, Some(lead)).message,
        "agents may add 3 assignments to this mission; 3 are left"
    );
    for widens in ["approve = \"all\"", "account = \"work\"", "agent = \"ann\""] {
        let refusal = refused(&mut world, &format!("{one}{widens}\n"), Some(lead));
        assert_eq!(refusal.reason, Reason::PermissionDenied, "{widens}");
    }
    add(&mut world, one, Some(lead)).unwrap();
    let added = world.id("x");
    let deeper = "[[agents]]\nname = \"y\"\ntask = \"t\"\n";
    assert_eq!(
        refused(&mut world, deeper, Some(added)).message,
        "assignments that agents add lie at most 1 deep"
    );
    add(&mut world, "[[agents]]\nname = \"z\"\ntask = \"t\"\ninstances = 9\n", None).unwrap();
}

#[test]
fn what_an_agent_adds_has_no_more_rights_than_it_has() {
    let mut world = World::started(
        "objective = \"x\"\nstrategy = \"adaptive\"\n[defaults]\napprove = \"all\"\npriority = \"high\"\n[[agents]]\nname = \"lead\"\n\
        task = \"t\"\nbudget = \"2usd,500k\"\ntimeout = \"10m\"\napprove = \"ask\"\npriority = \"low\"\nworktree = true\npaths = [\"src\"]\n",
    );
    let lead = Some(world.id("lead"));
    let one = |more: &str| format!("[[agents]]\nname = \"x\"\ntask = \"t\"\n{more}\n");
    for wider in ["worktree = false", "worktree = \"main\"", "paths = [\"docs\"]"] {
        let refusal = add(&mut world, &one(wider), lead).unwrap_err();
        assert_eq!(refusal.reason, Reason::PermissionDenied, "{wider}");
    }
    add(&mut world, &one("budget = \"1usd,900k\"\ntimeout = \"1h\""), lead).unwrap();
    let work = world.state.work(world.state.find("x").unwrap());
    assert_eq!(work.budget.unwrap().to_string(), "1usd,500k");
    assert_eq!(work.timeout, Some(std::time::Duration::from_secs(600)));
    assert_eq!((work.approve, work.priority), (Some(Approve::Ask), Priority::Low));
    assert_eq!((&work.worktree, work.paths.as_slice()), (&plan::Worktree::Own, &["src".to_owned()][..]));
    let before = world.log.len();
    add(&mut world, &one("budget = \"1usd,900k\"\ntimeout = \"1h\""), lead).unwrap();
    assert_eq!(world.log.len(), before, "who asks twice gets the same");
}

#[test]
fn what_is_added_must_fit() {
    let mut world = world();
    for (text, message) in [
        ("[[agents]]\nname = \"last\"\ntask = \"other\"\n", "there is an agent \"last\" already"),
        ("[[agents]]\nname = \"x\"\ntask = \"t\"\nneeds = [\"lats\"]\n", "did you mean last?"),
        (
            "[[agents]]\nname = \"x\"\ntask = \"t\"\nneeds = [\"y\"]\n[[agents]]\nname = \"y\"\ntask = \"t\"\nneeds = [\"x\"]\n",
            "x → y → x",
        ),
    ] {
        let refusal = add(&mut world, text, None).unwrap_err();
        assert!(refusal.why.as_ref().unwrap().contains(message), "{refusal}");
    }
    let chain = "objective = \"x\"\nstrategy = \"sequential\"\n[[agents]]\nname = \"a\"\ntask = \"t\"\n";
    let mut chain = World::started(chain);
    let refusal = add(&mut chain, "[[agents]]\nname = \"b\"\ntask = \"t\"\n", None).unwrap_err();
    assert_eq!((refusal.reason, refusal.hints.len()), (Reason::WrongState, 1));
}

#[test]
fn what_needs_something_that_is_over_does_not_wait_for_it() {
    let mut world = world();
    world.finish("lead", Outcome::Done);
    add(&mut world, "[[agents]]\nname = \"x\"\ntask = \"t\"\nneeds = [\"lead\"]\n", None).unwrap();
    assert_eq!(world.running(), ["last", "x"]);
    world.finish("x", Outcome::Budget);
    add(&mut world, "[[agents]]\nname = \"y\"\ntask = \"t\"\nneeds = [\"x\"]\n", None).unwrap();
    assert_eq!(world.status("y"), As::Skipped);
}

#[test]
fn what_is_removed_is_no_longer_waited_for() {
    let mut world = World::started(
        "objective = \"x\"\nstrategy = \"adaptive\"\n[limits]\nconcurrency = 1\n[[agents]]\nname = \"a\"\ntask = \"t\"\n\
        [[agents]]\nname = \"b\"\ntask = \"t\"\n[[agents]]\nname = \"c\"\ntask = \"t\"\nneeds = [\"a\", \"b\"]\n",
    );
    let (a, b) = (world.id("a"), world.id("b"));
    assert_eq!(world.try_ask(Request::Remove { which: vec![a] }).unwrap_err().reason, Reason::WrongState);
    world.ask(Request::Remove { which: vec![b] });
    world.ask(Request::Remove { which: vec![b] });
    assert_eq!(world.status("b"), As::Cancelled);
    assert_eq!(world.state.progress().all.total, 2);
    world.finish("a", Outcome::Done);
    world.finish("c", Outcome::Done);
    assert_eq!(world.state.status(), Status::Completed);
}

#[test]
fn who_was_removed_is_not_said_to_be_added_again() {
    let mut world = world();
    let text = "[[agents]]\nname = \"x\"\ntask = \"t\"\nneeds = [\"lead\"]\n";
    add(&mut world, text, None).unwrap();
    add(&mut world, text, None).unwrap();
    let x = world.id("x");
    world.ask(Request::Remove { which: vec![x] });
    for text in [text, &text.replace("\"t\"", "\"other\"")] {
        let refusal = add(&mut world, text, None).unwrap_err();
        assert!(refusal.why.as_ref().unwrap().contains("\"x\", and it was removed"), "{refusal}");
    }
    add(&mut world, &text.replace("\"x\"", "\"y\""), None).unwrap();
    assert_eq!(world.state.progress().all.total, 3);
}

const CHAIN: &str = "objective = \"x\"\nstrategy = \"adaptive\"\n[[agents]]\nname = \"a\"\ntask = \"t\"\n\
    [[agents]]\nname = \"b\"\ntask = \"t\"\nneeds = [\"a\"]\n[[agents]]\nname = \"c\"\ntask = \"t\"\nneeds = [\"b\"]\n\
    [[agents]]\nname = \"d\"\ntask = \"t\"\nneeds = [\"c\"]\n";

#[test]
fn who_needs_what_is_removed_needs_what_that_needed() {
    let mut world = World::started(CHAIN);
    let (b, c) = (world.id("b"), world.id("c"));
    world.ask(Request::Remove { which: vec![c] });
    assert_eq!(world.running(), ["a"]);
    assert_eq!(world.waits_for("d"), Wait::Needs(vec![1]));
    world.crash();
    world.ask(Request::Remove { which: vec![b] });
    assert_eq!(world.waits_for("d"), Wait::Needs(vec![0]));
    add(&mut world, "[[agents]]\nname = \"e\"\ntask = \"t\"\nneeds = [\"c\"]\n", None).unwrap();
    assert_eq!(world.waits_for("e"), Wait::Needs(vec![0]), "also who comes later");
    world.finish("a", Outcome::Done);
    assert_eq!(world.running(), ["d", "e"]);
    world.finish("d", Outcome::Done);
    world.finish("e", Outcome::Done);
    assert_eq!(world.state.status(), Status::Completed);
}

#[test]
fn a_stage_that_is_removed_leaves_the_one_before_it_in_front_of_the_next() {
    let stage = |n: u32| format!("[[agents]]\nname = \"s{n}\"\ntask = \"t\"\nstage = {n}\ninstances = 2\n");
    let stages: String = (1..=3).map(stage).collect();
    let mut world = World::started(&format!("objective = \"x\"\nstrategy = \"pipeline\"\n{stages}"));
    let middle = vec![world.id("s2-1"), world.id("s2-2")];
    world.ask(Request::Remove { which: middle });
    assert_eq!(world.running(), ["s1-1", "s1-2"]);
    world.finish("s1-1", Outcome::Done);
    assert_eq!(world.running(), ["s1-2"]);
    world.finish("s1-2", Outcome::Done);
    assert_eq!(world.running(), ["s3-1", "s3-2"]);
}

#[test]
fn a_failure_behind_what_is_removed_is_not_forgotten() {
    let blocked = CHAIN.replace("needs = [\"a\"]", "needs = [\"a\"]\non_dep_failure = \"block\"");
    let mut world = World::started(&blocked);
    world.finish("a", Outcome::Killed);
    let b = world.id("b");
    world.ask(Request::Remove { which: vec![b] });
    assert_eq!((world.status("c"), world.status("d")), (As::Skipped, As::Skipped));
    assert_eq!(world.state.status(), Status::Failed);
}
