//! Agents that add assignments to the mission they work for.

use std::fs;

use ostler_testkit::{TestHome, scenario, wait};
use serde_json::json;

use super::is_working;
use crate::{
    calls::mcp,
    missions::{SOON, agent, assignment, json_of, ok, plan, said, shell, until, with_campaign},
};

const ADAPTIVE: &str = "objective = \"Grow\"\nstrategy = \"adaptive\"\nname = \"grow\"\n";

fn put(home: &TestHome, file: &str, text: &str) {
    fs::write(home.campaign_dir().join(file), text).unwrap();
}

fn found(home: &TestHome, file: &str) -> String {
    fs::read_to_string(home.campaign_dir().join(file)).unwrap()
}

#[test]
fn an_agent_adds_to_its_mission_as_much_as_it_may() {
    let home = with_campaign();
    let more =
        agent("help", "instances = 2", said("help")) + &agent("sum", "needs = [\"help\"]", said("sum"));
    put(&home, "more.toml", &more);
    put(&home, "many.toml", &agent("many", "instances = 2", said("many")));
    put(&home, "bad.toml", "[[agents]]\nname = \"x\"\nneeds = [\"sum\"]\n");
    let tries = "ostler mission add more.toml > added; for file in more many bad; do ostler mission add - < $file.toml \
                 >> refused 2>&1; done; ostler mission add grow more.toml >> refused 2>&1; true";
    let lead = vec![shell(tries), scenario::say("lead")];
    plan(
        &home,
        "plan.toml",
        &format!("{ADAPTIVE}[limits]\nadded = 4\ndepth = 1"),
        &[agent("lead", "", lead)],
    );
    ok(&home, &["mission", "start", "plan.toml"]);

    assert_eq!(found(&home, "added"), "help-1\nhelp-2\nsum\n");
    let refused = found(&home, "refused");
    assert!(refused.contains("help-1\nhelp-2\nsum\n"), "asked again, it is the same: {refused}");
    assert!(refused.contains("agents may add 4 assignments to this mission; 1 are left"), "{refused}");
    assert!(refused.contains("the plan has a mistake") && refused.contains("task"), "{refused}");
    assert!(refused.contains("an agent may speak for its own session only"), "{refused}");
    let whole = json_of(&home, &["mission", "show", "grow"]);
    assert_eq!(
        (&whole["status"], &whole["assignments_completed"]),
        (&json!("completed"), &json!(4)),
        "{whole}"
    );
    assert_eq!(assignment(&whole, "sum")["needs"], json!(["help-1", "help-2"]));
    let log = ok(&home, &["mission", "logs", "grow", "-o", "jsonl"]);
    assert_eq!(log.matches("\"ASSIGNMENTS_ADDED\"").count(), 1, "{log}");
}

#[test]
fn a_model_adds_with_a_tool_and_what_is_added_goes_no_deeper_than_it_may() {
    let home = with_campaign();
    put(&home, "deep.toml", &agent("deep", "", said("deep")));
    let tried = "ostler mission add deep.toml 2> deeper; true";
    // Some shells read backslashes: what is said has no other line.
    let agents = "agents = [{ name = \"one\", provider = \"script\", task = \"say something\" }]";
    let call = json!({"name": "assign", "arguments": {"agents": agents}});
    let lead = vec![shell(&mcp(&[call])), scenario::say("lead")];
    plan(&home, "plan.toml", &format!("{ADAPTIVE}[limits]\ndepth = 1"), &[agent("lead", "", lead)]);
    ok(&home, &["mission", "start", "plan.toml"]);
    let whole = json_of(&home, &["mission", "show", "grow"]);
    assert_eq!(assignment(&whole, "one")["status"], "completed", "{whole}");

    put(&home, "one.toml", &agent("one", "", vec![shell(tried), scenario::say("one")]));
    let lead = vec![shell("ostler mission add one.toml"), scenario::say("lead")];
    plan(&home, "plan.toml", &format!("{ADAPTIVE}[limits]\ndepth = 1"), &[agent("lead", "", lead)]);
    ok(&home, &["mission", "start", "plan.toml"]);
    let deeper = found(&home, "deeper");
    assert!(deeper.contains("assignments that agents add lie at most 1 deep"), "{deeper}");
}

#[test]
fn only_members_of_adaptive_missions_add_to_them() {
    let home = with_campaign();
    put(&home, "more.toml", &agent("more", "", said("more")));
    let tried = |file: &str| shell(&format!("ostler mission add more.toml 2> {file}; true"));
    let head = "objective = \"Fixed\"\nstrategy = \"sequential\"\nname = \"fixed\"";
    plan(&home, "plan.toml", head, &[agent("a", "", vec![tried("fixed"), scenario::say("a")])]);
    ok(&home, &["mission", "start", "plan.toml"]);
    let refused = found(&home, "fixed");
    assert!(refused.contains("the mission fixed is sequential, and only adaptive ones grow"), "{refused}");
    ok(&home, &["run", "-p", "script", &scenario::of(vec![tried("alone"), scenario::say("alone")])]);
    let refused = found(&home, "alone");
    assert!(refused.contains("this session works for no mission"), "{refused}");
    let (code, words) = crate::missions::refused(&home, &["mission", "add", "more.toml"]);
    assert!(code == Some(2) && words.contains("ostler mission add MISSION FILE"), "{code:?} {words}");
}

#[test]
fn what_is_added_while_no_daemon_runs_is_added_once() {
    let home = with_campaign();
    put(&home, "more.toml", &agent("more", "", vec![shell("echo more >> ran"), scenario::say("more")]));
    // Its turn ends at once: the mission hears of the wish and of the end together.
    let script = "until test -e gone; do sleep 0.05; done; ostler mission add more.toml; touch asked";
    plan(&home, "plan.toml", ADAPTIVE, &[agent("lead", "", vec![shell(script), scenario::say("lead")])]);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    wait::until("lead works", SOON, || is_working(&home, "grow", "lead"));
    home.kill_daemon();
    put(&home, "gone", "");
    wait::until("it has asked", SOON, || home.campaign_dir().join("asked").exists());
    for _ in 0..3 {
        ok(&home, &["mission", "ls", "-a"]);
        home.kill_daemon();
    }
    let whole = until(&home, "grow", "completed");
    assert_eq!(assignment(&whole, "more")["status"], "completed", "{whole}");
    assert_eq!(found(&home, "ran"), "more\n");
    let log = ok(&home, &["mission", "logs", "grow", "-o", "jsonl"]);
    assert_eq!(log.matches("\"ASSIGNMENTS_ADDED\"").count(), 1, "{log}");
}

#[test]
fn what_an_agent_adds_has_no_right_that_it_lacks() {
    let home = with_campaign();
    put(&home, "more.toml", &agent("help", "", said("help")));
    ok(&home, &["campaign", "set", "shop", "env+=OLD"]);
    let script = "until test -e go; do sleep 0.05; done; ostler mission add more.toml";
    plan(&home, "plan.toml", ADAPTIVE, &[agent("lead", "", vec![shell(script), scenario::say("lead")])]);
    ok(&home, &["mission", "start", "-d", "plan.toml"]);
    wait::until("the lead works", SOON, || is_working(&home, "grow", "lead"));
    // What a person grants the campaign now is not the lead's to give.
    ok(&home, &["campaign", "set", "shop", "env+=NEW"]);
    put(&home, "go", "");
    let whole = until(&home, "grow", "completed");
    let given = |member: &str| {
        let session = assignment(&whole, member)["session"].as_str().unwrap().to_owned();
        let events =
            ok(&home, &["events", "--session", &session, "--kind", "SESSION_CREATED", "-o", "jsonl"]);
        let created: serde_json::Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
        created["body"]["policy"]["env"].clone()
    };
    assert_eq!((given("lead"), given("help")), (json!(["OLD"]), json!(["OLD"])));
}
