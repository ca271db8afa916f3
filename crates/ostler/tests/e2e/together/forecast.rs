//! Whether what members write in trees of their own will merge.

use std::{fs, process::Command};

use ostler_testkit::{TestHome, scenario, wait};
use serde_json::{Value, json};

use super::{is_working, shared};
use crate::missions::{SOON, agent, json_of, ok, plan, shell, until, with_campaign};

fn git(home: &TestHome, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=Ann", "-c", "user.email=ann@example.org"])
        .args(args)
        .current_dir(home.campaign_dir())
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

fn events(home: &TestHome) -> Vec<Value> {
    let log = ok(home, &["mission", "logs", "meet", "-o", "jsonl"]);
    let all = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|event| event["kind"] == "COLLISION_FORECAST").collect()
}

#[test]
fn a_collision_is_foreseen_after_a_turn_and_taken_back_after_another() {
    let home = with_campaign();
    git(&home, &["init", "-q", "-b", "main"]);
    fs::write(home.campaign_dir().join("lock"), "one\n").unwrap();
    git(&home, &["add", "lock"]);
    git(&home, &["commit", "-q", "-m", "first"]);
    // One is done after its commit; the other commits nothing, and has a second turn in which it takes its change back.
    let waits = |file: &str| format!("until test -e $OSTLER_MISSION_DIR/{file}; do sleep 0.05; done");
    let api = vec![shell("echo api > lock; git commit -q -a -m mine"), scenario::say("api")];
    let ui = vec![shell(&format!("echo ui > lock; {}", waits("told"))), scenario::say("ui")];
    let last = vec![shell(&waits("over")), scenario::say("last")];
    let agents =
        [agent("api", "worktree = true", api), agent("ui", "worktree = true", ui), agent("last", "", last)];
    let head = "objective = \"Meet\"\nstrategy = \"parallel\"\nname = \"meet\"";
    plan(&home, "plan.toml", head, &agents);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    let shared = shared(&home, "meet");
    let say = |file: &str| fs::write(shared.join(file), "").unwrap();
    wait::until("ui works", SOON, || is_working(&home, "meet", "ui"));
    let second = format!("{}; git checkout -q lock", waits("go"));
    ok(&home, &["send", "meet-ui", &scenario::of(vec![shell(&second), scenario::say("as it was")])]);
    assert_eq!(events(&home), Vec::<Value>::new(), "nothing is foreseen in the middle of a turn");
    say("told");
    wait::until("the collision is foreseen", SOON, || events(&home).len() == 1);
    let whole = json_of(&home, &["mission", "show", "meet"]);
    let seen = &whole["forecast"][0];
    assert_eq!((&seen["one"], &seen["other"]), (&json!("api"), &json!("ui")), "{whole}");
    assert_eq!((&seen["paths"], &seen["turn"]), (&json!(["lock"]), &json!(1)), "{whole}");
    let screen = ok(&home, &["mission", "show", "meet"]);
    assert!(screen.contains("FORECAST"), "{screen}");
    assert!(screen.contains("api × ui will collide in lock (since turn 1)"), "{screen}");
    say("go");
    wait::until("it is taken back", SOON, || events(&home).len() == 2);
    assert_eq!(json_of(&home, &["mission", "show", "meet"])["forecast"], json!([]));
    say("over");
    until(&home, "meet", "completed");
}
