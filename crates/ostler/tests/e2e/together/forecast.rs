//! Whether what members write in trees of their own will merge.

use std::{fs, process::Command};

use ostler_testkit::{TestHome, scenario, wait};
use serde_json::{Value, json};

use super::{is_working, shared};
use crate::missions::{SOON, agent, assignment, json_of, ok, plan, shell, until, with_campaign};

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

fn with_lock() -> TestHome {
    let home = with_campaign();
    git(&home, &["init", "-q", "-b", "main"]);
    fs::write(home.campaign_dir().join("lock"), "one\n").unwrap();
    git(&home, &["add", "lock"]);
    git(&home, &["commit", "-q", "-m", "first"]);
    home
}

#[test]
fn a_collision_is_foreseen_after_a_turn_and_taken_back_after_another() {
    let home = with_lock();
    // One is done after its commit; the other commits nothing, and has a second turn in which it takes its change back.
    let waits = |file: &str| format!("until test -e $OSTLER_MISSION_DIR/{file}; do sleep 0.05; done");
    let api = format!("{}; echo api > lock; git commit -q -a -m mine", waits("begin"));
    let api = vec![shell(&api), scenario::say("api")];
    let ui = format!("echo ui > lock; touch $OSTLER_MISSION_DIR/written; {}", waits("told"));
    let ui = vec![shell(&ui), scenario::say("ui")];
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
    wait::until("ui has written", SOON, || shared.join("written").exists());
    assert_eq!(events(&home), Vec::<Value>::new(), "nobody looks before a turn is over");
    say("begin");
    // The turn of the other still runs: its tree is looked at as it is.
    wait::until("the collision is foreseen", SOON, || events(&home).len() == 1);
    assert!(is_working(&home, "meet", "ui"));
    say("told");
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

#[test]
fn what_the_last_one_leaves_is_foreseen_before_a_mission_without_a_merge_is_over() {
    let home = with_lock();
    let late =
        "until test -e $OSTLER_MISSION_DIR/go; do sleep 0.05; done; echo b > lock; git commit -q -a -m mine";
    let agents = [
        agent(
            "a",
            "worktree = true",
            vec![shell("echo a > lock; git commit -q -a -m mine"), scenario::say("a")],
        ),
        agent("b", "worktree = true", vec![shell(late), scenario::say("b")]),
    ];
    let head = "objective = \"Meet\"\nstrategy = \"parallel\"\nname = \"meet\"";
    plan(&home, "plan.toml", head, &agents);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    wait::until("a is over", SOON, || {
        assignment(&json_of(&home, &["mission", "show", "meet"]), "a")["status"] == "completed"
    });
    assert_eq!(events(&home), Vec::<Value>::new());
    fs::write(shared(&home, "meet").join("go"), "").unwrap();
    let whole = until(&home, "meet", "completed");
    assert_eq!(whole["forecast"][0]["paths"], json!(["lock"]), "{whole}");
    let report = ok(&home, &["mission", "report", "meet"]);
    assert!(report.contains("a × b: lock"), "{report}");
    let log = ok(&home, &["mission", "logs", "meet", "-o", "jsonl"]);
    let at = |kind: &str| log.lines().position(|line| line.contains(kind)).unwrap();
    assert!(at("COLLISION_FORECAST") < at("MISSION_ENDED"), "{log}");
}
