//! Paths that a member alone may write.

use std::fs;

use ostler_testkit::{scenario, wait};
use serde_json::json;

use crate::missions::{SOON, agent, assignment, json_of, ok, plan, shell, until, with_campaign};

#[test]
fn a_member_writes_what_it_has_leased_and_nothing_else() {
    let home = with_campaign();
    let camp = home.campaign_dir();
    fs::create_dir_all(camp.join("src")).unwrap();
    for file in ["src/a.rs", "src/b.ts", "notes.txt"] {
        fs::write(camp.join(file), "old\n").unwrap();
    }
    // Its directory is made; a pattern is what was there at its start.
    let tries = "touch src/api/new; for file in src/a.rs src/b.ts src/c.rs notes.txt other; do \
                 echo $file >> $file && echo $file >> src/api/wrote; done 2>> src/api/errors; \
                 echo free > /tmp/x && echo free > $HOME/x && echo free > $OSTLER_MISSION_DIR/x && echo scratch >> src/api/wrote; true";
    let head = "objective = \"Lease\"\nstrategy = \"parallel\"\nname = \"lease\"";
    let leases = "paths = [\"src/api\", \"src/*.rs\"]";
    plan(&home, "plan.toml", head, &[agent("a", leases, vec![shell(tries), scenario::say("a")])]);
    ok(&home, &["mission", "start", "plan.toml"]);
    let found = |file: &str| fs::read_to_string(camp.join(file)).unwrap();
    assert_eq!(found("src/api/wrote"), "src/a.rs\nscratch\n", "{}", found("src/api/errors"));
    assert_eq!(found("src/api/errors").lines().count(), 4);
    assert_eq!((found("src/b.ts").as_str(), found("notes.txt").as_str()), ("old\n", "old\n"));
    assert!(!camp.join("other").exists() && !camp.join("src/c.rs").exists());
    // A helper of its own writes no more than it may.
    let helper =
        scenario::of(vec![shell("echo x > stolen; echo x > src/api/helped; true"), scenario::say("h")]);
    let lead =
        shell(&format!("ostler spawn help '{helper}'; until test -e src/api/helped; do sleep 0.05; done"));
    plan(&home, "plan.toml", head, &[agent("a", leases, vec![lead, scenario::say("a")])]);
    ok(&home, &["mission", "start", "plan.toml"]);
    assert!(!camp.join("stolen").exists());
}

#[test]
fn two_that_would_write_the_same_do_not_run_at_once() {
    let home = with_campaign();
    let script = |name: &str| {
        shell(&format!(
            "mkdir src/busy && echo {name} >> src/ran; until test -e go; do sleep 0.05; done; rmdir src/busy"
        ))
    };
    let head = "objective = \"Turns\"\nstrategy = \"parallel\"\nname = \"turns\"";
    let one = agent("one", "paths = [\"src\"]", vec![script("one"), scenario::say("one")]);
    let two = agent("two", "paths = [\"docs/two\", \"src\"]", vec![script("two"), scenario::say("two")]);
    let free = agent("free", "paths = [\"free\"]", vec![shell("touch free/x"), scenario::say("free")]);
    plan(&home, "plan.toml", head, &[one, two, free]);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    wait::until("free is done", SOON, || {
        assignment(&json_of(&home, &["mission", "show", "turns"]), "free")["status"] == "completed"
    });
    let whole = json_of(&home, &["mission", "show", "turns"]);
    let two = assignment(&whole, "two");
    assert_eq!((&two["status"], &two["attempt"]), (&json!("ready"), &json!(0)), "{whole}");
    assert_eq!(two["paths"], json!(["docs/two", "src"]));
    assert!(two["wait"].as_str().unwrap().contains("which has leased what is in src"), "{whole}");
    assert!(ok(&home, &["mission", "show", "turns"]).contains("which has leased what is in"));
    fs::write(home.campaign_dir().join("go"), "").unwrap();
    until(&home, "turns", "completed");
    assert_eq!(fs::read_to_string(home.campaign_dir().join("src/ran")).unwrap(), "one\ntwo\n");
}

#[test]
fn who_has_leased_nothing_waits_for_whoever_has_and_the_plan_says_so() {
    let home = with_campaign();
    let head = "objective = \"Alone\"\nstrategy = \"parallel\"\nname = \"alone\"";
    let leased = "mkdir -p src; until test -e src/go; do sleep 0.05; done; echo leased >> src/ran";
    let one = agent("one", "paths = [\"src\"]", vec![shell(leased), scenario::say("one")]);
    let free = agent("free", "", vec![shell("echo free >> src/ran"), scenario::say("free")]);
    plan(&home, "plan.toml", head, &[one, free]);
    let planned = ok(&home, &["mission", "plan", "plan.toml"]);
    assert!(planned.contains("free waits for one: both could write src"), "{planned}");
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    wait::until("one works", SOON, || home.campaign_dir().join("src").is_dir());
    let whole = json_of(&home, &["mission", "show", "alone"]);
    let free = assignment(&whole, "free");
    assert_eq!((&free["status"], &free["attempt"]), (&json!("ready"), &json!(0)), "{whole}");
    assert!(free["wait"].as_str().unwrap().contains("which has leased what is in src"), "{whole}");
    fs::write(home.campaign_dir().join("src/go"), "").unwrap();
    until(&home, "alone", "completed");
    assert_eq!(fs::read_to_string(home.campaign_dir().join("src/ran")).unwrap(), "leased\nfree\n");
}
