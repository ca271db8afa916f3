//! Missions of thirty agents, played with a clock that is turned by hand: every step failed once, every step repeated once,
//! and the daemon killed after every step.

use ostler_domain::{
    mission::{Plan, Request, SessionEnd, Status, Strategy},
    session::Outcome,
};

use super::world::{World, end, plan_of};

/// Thirty agents, all with checks and work trees, and a merge.
fn thirty(strategy: Strategy) -> Plan {
    let mut text = format!(
        "objective = \"x\"\nstrategy = \"{}\"\n[defaults]\nretries = 1\ncomplete_when = {{ check = \"cargo test\" }}\n\
        worktree = true\n[limits]\nconcurrency = 7\nroles = {{ builder = 5 }}\n[merge]\ninto = \"main\"\n",
        strategy.as_str()
    );
    for n in 0..30 {
        text.push_str(&format!(
            "[[agents]]\nname = \"m{n}\"\nrole = \"{}\"\ntask = \"t\"\n",
            if n % 3 == 0 { "tester" } else { "builder" }
        ));
        match strategy {
            Strategy::Pipeline => text.push_str(&format!("stage = {}\n", n / 6 + 1)),
            Strategy::Adaptive if n > 0 => {
                text.push_str(&format!("needs = [\"m{}\", \"m{}\"]\n", (n - 1) / 2, n / 3))
            }
            _ => {}
        }
    }
    plan_of(&text)
}

/// What is done to one step of a mission.
#[derive(Clone, Copy, PartialEq)]
enum Harm {
    Nothing,
    Fail,
    Repeat,
    Kill,
}

/// Plays a mission to its end and says how many steps that took. The step of this number is harmed, or every one.
fn played(plan: &Plan, harm: Harm, at: Option<usize>, seed: u64) -> (World, usize) {
    let mut world = World::new(plan.clone());
    // Looked at as a whole at the end: after each of many thousand steps would take minutes.
    world.checked = false;
    world.ask(Request::Start { forecast: None });
    let (mut step, mut random) = (0, seed);
    while !world.state.is_over() {
        assert!(step < 1_000, "it does not come to an end");
        let is_harmed = at.is_none_or(|at| at == step);
        let fails = is_harmed && harm == Harm::Fail;
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let pick = (random >> 33) as usize;
        // By assignment: the sessions' own ids depend on what was asked before.
        let mut sessions: Vec<_> = world.live.keys().copied().collect();
        sessions.sort_by_key(|session| world.live[session].assignment);
        let errands: Vec<_> = world.errands.keys().copied().collect();
        if let Some(errand) = errands.get(pick % errands.len().max(1)).copied() {
            world.answer(errand, !fails);
        } else if let Some(session) = sessions.get(pick % sessions.len().max(1)).copied() {
            world.seconds += pick as u64 % 100;
            let outcome = if fails { Outcome::Crashed } else { Outcome::Done };
            world.end_session(session, SessionEnd { said_done: true, ..end(outcome) });
        } else {
            world.tick(5);
            continue;
        }
        if is_harmed && harm == Harm::Repeat {
            world.repeat();
        }
        if is_harmed && harm == Harm::Kill {
            world.crash();
        }
        step += 1;
    }
    world.checked = true;
    world.look();
    (world, step)
}

const SEED: u64 = 0x05_71e4;

#[test]
fn thirty_agents_come_to_an_end_in_every_order() {
    for strategy in Strategy::ALL {
        let (world, steps) = played(&thirty(*strategy), Harm::Nothing, None, SEED);
        assert_eq!((world.state.status(), steps), (Status::Completed, 61), "{}", strategy.as_str());
        assert_eq!(world.sessions.len(), 30);
    }
}

#[test]
fn a_mission_is_completed_though_any_of_its_steps_failed_once() {
    for strategy in Strategy::ALL {
        let plan = thirty(*strategy);
        for at in 0..61 {
            let (mut world, _) = played(&plan, Harm::Fail, Some(at), SEED);
            if world.state.status() == Status::Partial {
                // Only a merge that failed is left to a person.
                world.ask(Request::Retry { which: Vec::new(), budget: None, time: None });
                world.answer_merge(true);
            }
            assert_eq!(world.state.status(), Status::Completed, "{} {at}", strategy.as_str());
            assert!(world.sessions.len() <= 31, "one was tried again: {}", world.sessions.len());
        }
    }
}

#[test]
fn doing_any_step_twice_or_dying_after_it_changes_nothing() {
    for strategy in Strategy::ALL {
        let plan = thirty(*strategy);
        let (quiet, _) = played(&plan, Harm::Nothing, None, SEED);
        for harm in [Harm::Repeat, Harm::Kill] {
            let (world, steps) = played(&plan, harm, None, SEED);
            assert_eq!((world.state.status(), steps, world.sessions.len()), (Status::Completed, 61, 30));
            let kinds = |world: &World| world.log.iter().map(|(_, event)| event.kind()).collect::<Vec<_>>();
            assert_eq!(kinds(&world), kinds(&quiet), "{}", strategy.as_str());
        }
    }
}

#[test]
fn ten_thousand_assignments_are_decided_about_one_by_one() {
    let text = "objective = \"x\"\n[limits]\nconcurrency = 3\n[[agents]]\nname = \"a\"\ntask = \"t\"\ninstances = 10000\n";
    let mut world = World::new(plan_of(text));
    world.checked = false;
    world.ask(Request::Start { forecast: None });
    for _ in 0..50 {
        let session = *world.live.keys().next().unwrap();
        world.end_session(session, end(Outcome::Done));
    }
    assert_eq!(world.running().len(), 3);
    assert_eq!(world.state.progress().all.completed, 50);
    world.look();
}
