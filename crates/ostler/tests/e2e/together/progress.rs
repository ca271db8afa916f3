//! Who gets on and who does not: whatever is new counts, and nobody is held for it.

use std::process::Command;

use ostler_testkit::{TestHome, scenario, wait};
use serde_json::{Value, json};

use crate::missions::{SOON, agent, assignment, json_of, ok, plan, shell, until, with_campaign};

/// More calls than an agent is given that brings nothing new.
const MANY: u64 = 75;

fn many(script: &str) -> Vec<Value> {
    vec![json!({"repeat": MANY, "steps": [shell(script)]}), scenario::say("all of it")]
}

fn with_repository() -> TestHome {
    let home = with_campaign();
    for args in [vec!["init", "-q", "-b", "main"], vec!["commit", "-q", "--allow-empty", "-m", "first"]] {
        let own = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"];
        let done =
            Command::new("git").args(own).args(&args).current_dir(home.campaign_dir()).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
    home
}

#[test]
fn commits_files_and_new_output_are_progress_and_calls_without_any_are_not() {
    let home = with_repository();
    let head = "objective = \"Get on\"\nstrategy = \"parallel\"\nname = \"on\"\n[defaults]\nworktree = true";
    let git = "git -c user.name=Bo -c user.email=bo@example.org";
    let commit = format!("echo {{i}} > m; git add m; {git} commit -qm {{i}} 2>&-");
    let idle = json!({"repeat": 200, "every_ms": 40, "steps": [{"run": ["true", "{i}"]}]});
    let agents = [
        agent("commits", "", many(&commit)),
        agent("files", "", many("echo {i} > m{i}")),
        agent("reads", "", many("echo line {i}")),
        agent("idles", "", vec![idle, scenario::say("out of it")]),
    ];
    plan(&home, "plan.toml", head, &agents);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    let of = |name: &str| assignment(&json_of(&home, &["mission", "show", "on"]), name);
    wait::until("who idles is held", SOON, || of("idles")["status"] == "paused");
    for name in ["commits", "files", "reads"] {
        wait::until(&format!("{name} is done"), SOON, || of(name)["status"] == "completed");
    }
    let log = ok(&home, &["mission", "logs", "on"]);
    let nudged: Vec<&str> = log.lines().filter(|line| line.contains("nudged")).collect();
    assert!(nudged.len() == 1 && nudged[0].contains("idles"), "{log}");
    assert!(log.contains("calls without a new file, commit or result"), "{log}");
    ok(&home, &["mission", "resume", "on", "-y"]);
    until(&home, "on", "completed");
}

#[test]
fn files_are_seen_where_there_is_no_repository() {
    let home = with_campaign();
    let head = "objective = \"Write\"\nstrategy = \"parallel\"\nname = \"write\"";
    // The same call with the same result each time, and a longer file.
    let same = json!({"repeat": 12, "every_ms": 50, "steps": [shell("echo again >> deep/file")]});
    let steps = vec![shell("mkdir -p deep"), same, scenario::say("all of it")];
    plan(&home, "plan.toml", head, &[agent("a", "", steps)]);
    ok(&home, &["mission", "start", "plan.toml"]);
    let log = ok(&home, &["mission", "logs", "write"]);
    assert!(!log.contains("nudged"), "{log}");
}

#[test]
fn what_an_agent_says_to_a_nudge_is_not_its_result() {
    let home = with_campaign();
    let head = "objective = \"Loop\"\nstrategy = \"sequential\"\nname = \"fin\"";
    // It is told when its turn has ended: this agent cannot be told anything before.
    let again = json!({"repeat": 7, "steps": [{"run": ["echo", "same"]}]});
    let told = "until test -e told; do sleep 0.05; done";
    let agents = [agent("a", "", vec![again, shell(told), scenario::say("fin")])];
    plan(&home, "plan.toml", head, &agents);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    let nudged = || ok(&home, &["mission", "logs", "fin"]).contains("nudged");
    wait::until("it is told", SOON, nudged);
    let session = assignment(&json_of(&home, &["mission", "show", "fin"]), "a")["session"].clone();
    let session = session.as_str().unwrap();
    wait::until("the message waits", SOON, || {
        ok(&home, &["events", "--session", session, "-o", "jsonl"]).contains("doing the same again and again")
    });
    std::fs::write(home.campaign_dir().join("told"), "").unwrap();
    until(&home, "fin", "completed");
    assert_eq!(json_of(&home, &["show", session])["turns"], 2, "the nudge was answered");
    let report = ok(&home, &["mission", "report", "fin"]);
    assert!(report.contains("### a\n\n> fin"), "{report}");
}
