//! What members hand to each other: words with receipts, results, files and commits, and the directory that all share.

use std::{fs, process::Command};

use ostler_testkit::{TestHome, scenario, wait};
use serde_json::json;

use super::shared;
use crate::{
    OSTLER,
    missions::{SOON, agent, assignment, json_of, ok, plan, said, shell, until, with_campaign},
};

#[test]
fn members_say_things_to_each_other_and_see_what_became_of_them() {
    let home = with_campaign();
    let dir = "$OSTLER_MISSION_DIR/messages";
    // The first turn of b lasts until it has heard; what was said is then a turn of its own.
    let b = format!("until ls {dir}/inbox/b/*.md; do sleep 0.05; done");
    let a = format!(
        "until ostler send b 'hello b' > sent 2> early; do sleep 0.05; done; ostler send c hi 2> late; \
         ostler send nobody hi 2> nobody; until grep -q answered {dir}/outbox/a/*.json; do sleep 0.05; done; \
         cat {dir}/outbox/a/*.json > receipt; ostler send b more 2> over; true"
    );
    let head = "objective = \"Talk\"\nstrategy = \"adaptive\"\nname = \"talk\"";
    let agents = [
        agent("a", "", vec![shell(&a), scenario::say("a")]),
        agent("b", "", vec![shell(&b), scenario::say("b")]),
        agent("c", "needs = [\"a\", \"b\"]", said("c")),
    ];
    plan(&home, "plan.toml", head, &agents);
    ok(&home, &["mission", "start", "plan.toml"]);
    let found = |file: &str| fs::read_to_string(home.campaign_dir().join(file)).unwrap();
    let id = found("sent").trim().to_owned();
    let receipt: serde_json::Value = serde_json::from_str(&found("receipt")).unwrap();
    assert_eq!(receipt, json!({"message": id, "to": "b", "receipt": "answered"}));
    assert!(found("late").contains("c is pending, and hears nothing now"), "{}", found("late"));
    assert!(found("nobody").contains("an agent may speak for its own session only"), "{}", found("nobody"));
    let heard = fs::read_to_string(shared(&home, "talk").join(format!("messages/inbox/b/{id}.md"))).unwrap();
    assert!(heard.contains("From a:") && heard.contains("hello b"), "{heard}");
    // The record has the same.
    let row = json_of(&home, &["message", "show", &id]);
    assert_eq!(row["receipt"], "answered", "{row}");
    let whole = json_of(&home, &["mission", "show", "talk"]);
    let session = assignment(&whole, "b")["session"].as_str().unwrap().to_owned();
    let view = json_of(&home, &["show", &session]);
    assert_eq!(view["turns"], 2, "{view}");
    // What b said to a is no result of its work.
    let report = ok(&home, &["mission", "report", "talk"]);
    assert!(report.contains("### b\n\n> b\n"), "{report}");
    let sessions = json_of(&home, &["ls", "-a", "--mission", "talk"]);
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 3, "nobody was woken: {sessions}");
}

#[test]
fn text_files_and_commits_are_handed_to_those_who_need_them() {
    let home = with_campaign();
    let camp = home.campaign_dir();
    let git = |args: &[&str]| {
        let own = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"];
        let done = Command::new("git").args(own).args(args).current_dir(&camp).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    let dir = "$OSTLER_MISSION_DIR";
    let make = format!(
        "echo text > made.txt; git add made.txt; git commit -q -m 'Make it'; echo report > {dir}/agents/make/report.md; \
         ostler output plan 'two parts'; cat {dir}/context/objective.md > {dir}/agents/make/objective; \
         rm -rf {dir}/context; mv {dir}/context {dir}/away; echo changed > {dir}/context/plan.toml"
    );
    let uses = format!(
        "cat {dir}/agents/make/report.md > {dir}/got; git log --all --format=%s >> {dir}/got; \
         git show agent/hand-make:made.txt >> {dir}/got; grep -q pipeline {dir}/context/plan.toml && echo plan >> {dir}/got"
    );
    let head =
        "objective = \"Hand on\"\nstrategy = \"pipeline\"\nname = \"hand\"\n[defaults]\nworktree = true";
    let agents = [
        agent("make", "stage = 1", vec![shell(&make), scenario::say("it is made")]),
        agent("use", "stage = 2", vec![shell(&uses), scenario::say("used")]),
    ];
    plan(&home, "plan.toml", head, &agents);
    ok(&home, &["mission", "start", "plan.toml"]);
    let shared = shared(&home, "hand");
    let got = fs::read_to_string(shared.join("got")).unwrap();
    let lines: Vec<&str> = got.lines().collect();
    assert_eq!(lines, ["report", "Make it", "first", "text", "plan"], "{got}");
    assert_eq!(fs::read_to_string(shared.join("agents/make/objective")).unwrap(), "Hand on\n");
    // Its brief says all of it.
    let whole = json_of(&home, &["mission", "show", "hand"]);
    let session = assignment(&whole, "use")["session"].as_str().unwrap().to_owned();
    let log = ok(&home, &["events", "--session", &session, "-o", "jsonl"]);
    for told in
        ["it is made", "plan (text): two parts", "$OSTLER_MISSION_DIR/agents/make/report.md", "Make it"]
    {
        assert!(log.contains(told), "{told}: {log}");
    }
    assert!(log.contains("agent/hand-make (commit)"), "{log}");
}

/// Two members of which one is over, and its mission learns that only after a while.
fn with_one_that_has_just_ended(mouth: &str) -> (TestHome, String) {
    let home = TestHome::new(OSTLER);
    let added = home
        .command(&["campaign", "add", ".", "--name", "shop"])
        .env("OSTLER_SLOW", "member-ended:4000")
        .output();
    assert!(added.unwrap().status.success());
    let head = "objective = \"Late\"\nstrategy = \"parallel\"\nname = \"late\"";
    let agents =
        [agent("victim", "", said("victim")), agent("mouth", "", vec![shell(mouth), scenario::say("m")])];
    plan(&home, "plan.toml", head, &agents);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    let whole = json_of(&home, &["mission", "show", "late"]);
    let victim = assignment(&whole, "victim")["session"].as_str().unwrap().to_owned();
    wait::until("its session has ended", SOON, || {
        let shown = home.run(&["show", &victim, "-o", "json"]);
        let view: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap_or_default();
        view["outcome"] == "done"
    });
    let whole = json_of(&home, &["mission", "show", "late"]);
    assert_eq!(assignment(&whole, "victim")["status"], "running", "the mission knows it already: {whole}");
    (home, victim)
}

#[test]
fn what_is_said_to_a_member_that_has_just_ended_wakes_nobody() {
    let mouth = "until test -e ended; do sleep 0.05; done; ostler send victim late 2> heard; true";
    let (home, _) = with_one_that_has_just_ended(mouth);
    fs::write(home.campaign_dir().join("ended"), "").unwrap();
    let whole = until(&home, "late", "completed");
    let heard = fs::read_to_string(home.campaign_dir().join("heard")).unwrap();
    assert!(heard.contains("victim is completed, and hears nothing now"), "{heard}");
    assert_eq!(assignment(&whole, "victim")["attempt"], 1, "{whole}");
    let sessions = json_of(&home, &["ls", "-a"]);
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 2, "somebody was woken: {sessions}");
}

#[test]
fn a_person_talks_to_a_member_that_is_over_outside_of_its_mission() {
    let mouth = "until test -e ended; do sleep 0.05; done";
    let (home, victim) = with_one_that_has_just_ended(mouth);
    // It is taken in first what the member came to.
    ok(&home, &["send", &victim, "and then?", "--wait"]);
    let whole = json_of(&home, &["mission", "show", "late"]);
    let member = assignment(&whole, "victim");
    assert_eq!((&member["status"], &member["session"]), (&json!("completed"), &json!(victim)), "{whole}");
    let missions = |home: &TestHome| -> Vec<bool> {
        let chain = json_of(home, &["chain", "show", &victim]);
        chain["sessions"].as_array().unwrap().iter().map(|one| one["mission"].is_object()).collect()
    };
    assert_eq!(missions(&home), [true, false]);
    // Nor does whoever takes its work over become a member again.
    let handed =
        json_of(&home, &["chain", "show", &victim])["sessions"][1]["id"].as_str().unwrap().to_owned();
    ok(&home, &["handoff", &handed, "-m", "go on"]);
    assert_eq!(missions(&home), [true, false, false]);
    fs::write(home.campaign_dir().join("ended"), "").unwrap();
    until(&home, "late", "completed");
    let sessions = json_of(&home, &["ls", "-a", "--mission", "late"]);
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 2, "{sessions}");
}
