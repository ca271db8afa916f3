//! Missions: teams of scripted agents, from a plan to the report.

use std::{fs, time::Duration};

use ostler_testkit::{TestHome, scenario, wait};
use serde_json::{Value, json};

use crate::OSTLER;

pub(crate) const SOON: Duration = Duration::from_secs(60);

pub(crate) fn ok(home: &TestHome, args: &[&str]) -> String {
    let output = home.run(args);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?} failed with {:?}: {err}", output.status.code());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

pub(crate) fn json_of(home: &TestHome, args: &[&str]) -> Value {
    let args: Vec<&str> = args.iter().copied().chain(["-o", "json"]).collect();
    let out = ok(home, &args);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{args:?}: {error}: {out}"))
}

/// What a command that fails says: its exit code and its words.
pub(crate) fn refused(home: &TestHome, args: &[&str]) -> (Option<i32>, String) {
    let output = home.run(args);
    let all = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    (output.status.code(), all.concat())
}

pub(crate) fn with_campaign() -> TestHome {
    let home = TestHome::new(OSTLER);
    ok(&home, &["campaign", "add", ".", "--name", "shop"]);
    home
}

pub(crate) fn shell(script: &str) -> Value {
    json!({"run": ["sh", "-c", script]})
}

/// A task that a scripted agent plays: what stands around it is the brief's.
fn task(steps: Vec<Value>) -> String {
    format!("task = '''\n```scenario\n{}\n```\n'''", scenario::of(steps))
}

pub(crate) fn agent(name: &str, more: &str, steps: Vec<Value>) -> String {
    format!("[[agents]]\nname = \"{name}\"\nprovider = \"script\"\n{more}\n{}\n", task(steps))
}

pub(crate) fn said(name: &str) -> Vec<Value> {
    vec![json!({"usage": {"input": 10, "output": 5}}), scenario::say(&format!("{name} is done"))]
}

/// A plan in the campaign's directory; `mission start` finds it by its name.
pub(crate) fn plan(home: &TestHome, file: &str, head: &str, agents: &[String]) {
    let text = format!("{head}\n{}", agents.join("\n"));
    fs::write(home.campaign_dir().join(file), text).unwrap();
}

pub(crate) fn assignment(whole: &Value, name: &str) -> Value {
    let all = whole["assignments"].as_array().unwrap();
    all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name} in {whole}")).clone()
}

fn status(home: &TestHome, who: &str) -> String {
    json_of(home, &["mission", "show", who])["status"].as_str().unwrap().to_owned()
}

pub(crate) fn until(home: &TestHome, who: &str, wanted: &str) -> Value {
    wait::until(&format!("{who} is {wanted}"), SOON, || status(home, who) == wanted);
    json_of(home, &["mission", "show", who])
}

#[test]
fn every_strategy_runs_to_its_end() {
    let home = with_campaign();
    for (strategy, stages) in [
        ("parallel", ["", "", ""]),
        ("sequential", ["", "", ""]),
        ("pipeline", ["stage = 1", "stage = 2", "stage = 2"]),
    ] {
        let agents = ["a", "b", "c"].iter().zip(stages).map(|(name, more)| agent(name, more, said(name)));
        let head = format!(
            "objective = \"Three things, {strategy}\"\nstrategy = \"{strategy}\"\nname = \"{strategy}\""
        );
        plan(&home, "plan.toml", &head, &agents.collect::<Vec<_>>());
        let out = ok(&home, &["mission", "start", "plan.toml"]);
        assert!(out.contains("3 of 3 completed"), "{strategy}: {out}");
        let whole = json_of(&home, &["mission", "show", strategy]);
        assert_eq!((&whole["status"], &whole["assignments_completed"]), (&json!("completed"), &json!(3)));
        assert_eq!(whole["usage"]["output"], 15, "{whole}");
    }
    // One after the other: none begins before the one before it is over.
    let whole = json_of(&home, &["mission", "show", "sequential"]);
    let moment = |name: &str, field: &str| assignment(&whole, name)[field].as_str().unwrap().to_owned();
    assert!(moment("b", "started") >= moment("a", "ended") && moment("c", "started") >= moment("b", "ended"));
    // In stages: both of the second were handed what the first had said.
    let whole = json_of(&home, &["mission", "show", "pipeline"]);
    assert_eq!(assignment(&whole, "c")["needs"], json!(["a"]));
    let session = assignment(&whole, "c")["session"].as_str().unwrap().to_owned();
    let log = ok(&home, &["events", "--session", &session, "-o", "jsonl"]);
    assert!(log.contains("a is done"), "{log}");
}

#[test]
fn a_member_whose_work_a_person_calls_done_is_done() {
    let home = with_campaign();
    let works = agent("a", "retries = 0\ncomplete_when = \"done\"", vec![json!({"sleep_ms": 60_000})]);
    plan(&home, "plan.toml", "objective = \"Wait\"\nname = \"waits\"", &[works]);
    ok(&home, &["mission", "start", "-d", "plan.toml"]);
    let session = || {
        let whole = json_of(&home, &["mission", "show", "waits"]);
        assignment(&whole, "a")["session"].as_str().map(str::to_owned)
    };
    // It is named a moment before it is there.
    let works = || {
        let shown = session().map(|id| home.run(&["show", &id, "-o", "json"]));
        let shown = shown.and_then(|out| serde_json::from_slice::<Value>(&out.stdout).ok());
        shown.is_some_and(|session| session["status"] == "WORKING")
    };
    wait::until("its member to work", SOON, works);
    ok(&home, &["done", &session().unwrap()]);
    until(&home, "waits", "completed");
}

#[test]
fn a_mission_that_nobody_watches_is_answered_at_once() {
    let home = with_campaign();
    let asks = vec![json!({"ask": {"tool": "run", "input": "make mischief"}}), scenario::say("went on")];
    let head = "objective = \"Ask\"\nname = \"ask\"";
    plan(&home, "plan.toml", head, &[agent("a", "", asks)]);
    let whole = json_of(&home, &["mission", "start", "plan.toml"]);
    assert_eq!(whole["status"], "completed", "{whole}");
    let session = assignment(&whole, "a")["session"].as_str().unwrap().to_owned();
    assert_eq!(json_of(&home, &["show", &session])["denied"], 1);
    let failed = home.run(&["mission", "start", "plan.toml", "--name", "strict", "--fail-on-denied"]);
    let words = String::from_utf8_lossy(&failed.stderr);
    assert!(failed.status.code() == Some(13) && words.contains("1 denied"), "{failed:?}");
    plan(&home, "calm.toml", "objective = \"Do\"\nname = \"calm\"", &[agent("a", "", said("a"))]);
    ok(&home, &["mission", "start", "calm.toml", "--fail-on-denied"]);
    // The time is that of all of it, wherever the plan comes from; by its older name too.
    plan(&home, "slow.toml", "objective = \"Wait\"", &[agent("a", "", vec![json!({"sleep_ms": 60_000})])]);
    for (n, flag) in ["--timeout", "--time"].iter().enumerate() {
        let name = format!("slow-{n}");
        let ended = home.run(&["mission", "start", "slow.toml", "--name", &name, flag, "1s"]);
        assert_eq!(ended.status.code(), Some(12), "{ended:?}");
    }
}

#[test]
fn an_adaptive_mission_grows_and_shrinks_while_it_runs() {
    let home = with_campaign();
    let slow = vec![json!({"sleep_ms": 4000}), scenario::say("slow")];
    let head = "objective = \"Grow\"\nstrategy = \"adaptive\"\nname = \"grow\"";
    let agents = [
        agent("a", "", slow),
        agent("b", "needs = [\"a\"]", said("b")),
        agent("c", "needs = [\"a\"]", said("c")),
    ];
    plan(&home, "plan.toml", head, &agents);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    plan(&home, "more.toml", "", &[agent("d", "needs = [\"b\"]", said("d"))]);
    ok(&home, &["mission", "add", "grow", "more.toml"]);
    ok(&home, &["mission", "rm", "grow", "c"]);
    let (code, words) = refused(&home, &["mission", "rm", "grow", "nobody"]);
    assert!(code == Some(2) && words.contains("no assignment \"nobody\""), "{code:?} {words}");
    let whole = until(&home, "grow", "completed");
    assert_eq!(assignment(&whole, "d")["status"], "completed");
    assert_eq!(
        (&assignment(&whole, "c")["status"], &assignment(&whole, "c")["removed"]),
        (&json!("cancelled"), &json!(true))
    );
}

#[test]
fn a_failed_need_skips_and_a_retry_does_only_what_was_not_done() {
    let home = with_campaign();
    let head = "objective = \"Fail once\"\nstrategy = \"adaptive\"\nname = \"once\"\n[defaults]\nretries = 0";
    // Each run of an agent leaves a line; the broken one fails until a file is there.
    let ran = |name: &str| shell(&format!("echo {name} >> ran"));
    let broken = vec![ran("broken"), shell("test -e cured || kill -9 $PPID"), scenario::say("whole")];
    let agents = [
        agent("fine", "", vec![ran("fine"), scenario::say("fine")]),
        agent("broken", "", broken),
        agent("after", "needs = [\"broken\", \"fine\"]", vec![ran("after"), scenario::say("after")]),
    ];
    plan(&home, "plan.toml", head, &agents);
    let (code, words) = refused(&home, &["mission", "start", "plan.toml"]);
    assert_eq!(code, Some(17), "{words}");
    let whole = json_of(&home, &["mission", "show", "once"]);
    let of = |name: &str| assignment(&whole, name)["status"].as_str().unwrap().to_owned();
    assert_eq!([of("fine"), of("broken"), of("after")], ["completed", "failed", "skipped"]);
    assert!(assignment(&whole, "after")["why"].as_str().unwrap().contains("broken"), "{whole}");

    // Nobody is there to be asked.
    let (code, words) = refused(&home, &["mission", "retry", "once"]);
    assert!(code == Some(2) && words.contains("-y"), "{code:?} {words}");
    let preview = json_of(&home, &["mission", "retry", "once", "--dry-run"]);
    assert_eq!(preview["runs"], json!(["broken", "after"]), "{preview}");
    assert!(preview["price"]["words"].as_str().unwrap().contains("not known"), "{preview}");
    let (code, words) = refused(&home, &["mission", "retry", "once", "fine", "-y"]);
    assert!(code == Some(4) && words.contains("is completed, and is not done again"), "{code:?} {words}");

    fs::write(home.campaign_dir().join("cured"), "").unwrap();
    ok(&home, &["mission", "retry", "once", "-y"]);
    until(&home, "once", "completed");
    let ran = fs::read_to_string(home.campaign_dir().join("ran")).unwrap();
    assert_eq!(ran.lines().filter(|line| *line == "fine").count(), 1, "{ran}");
    let report = ok(&home, &["mission", "report", "once"]);
    assert!(
        report.starts_with("# Mission once: completed") && report.contains("3 of 3 completed"),
        "{report}"
    );
}

#[test]
fn a_pause_outlives_the_daemon_and_what_was_begun_goes_on() {
    let home = with_campaign();
    let head = "objective = \"Rest\"\nstrategy = \"sequential\"\nname = \"rest\"";
    let counted = vec![scenario::count("n", 30, 100), scenario::say("a")];
    plan(&home, "plan.toml", head, &[agent("a", "", counted), agent("b", "", said("b"))]);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    wait::until("a runs", SOON, || {
        assignment(&json_of(&home, &["mission", "show", "rest"]), "a")["status"] == "running"
    });
    ok(&home, &["mission", "pause", "rest", "-m", "lunch"]);
    ok(&home, &["daemon", "restart"]);
    let whole = json_of(&home, &["mission", "show", "rest"]);
    assert_eq!(
        (&whole["status"], &assignment(&whole, "a")["status"]),
        (&json!("paused"), &json!("paused")),
        "{whole}"
    );
    assert!(whole["wait"].as_str().unwrap().contains("lunch"), "{whole}");
    let screen = ok(&home, &["mission", "show", "rest"]);
    assert!(screen.contains("paused") && screen.contains("lunch"), "{screen}");
    ok(&home, &["mission", "resume", "rest", "-y"]);
    let whole = until(&home, "rest", "completed");
    assert_eq!(assignment(&whole, "a")["attempt"], 1, "{whole}");
}

#[test]
fn a_killed_daemon_ends_no_mission_and_nothing_runs_twice() {
    let home = with_campaign();
    let head = "objective = \"Live on\"\nstrategy = \"pipeline\"\nname = \"live\"";
    let steps = |name: &str| {
        vec![shell(&format!("echo {name} >> ran")), json!({"sleep_ms": 700}), scenario::say(name)]
    };
    let agents: Vec<String> = (1..=6)
        .map(|n| agent(&format!("m{n}"), &format!("stage = {}", (n + 1) / 2), steps(&format!("m{n}"))))
        .collect();
    plan(&home, "plan.toml", head, &agents);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(600));
        home.kill_daemon();
        // The next command starts another.
        ok(&home, &["mission", "ls", "-a"]);
    }
    let whole = until(&home, "live", "completed");
    assert!(whole["assignments"].as_array().unwrap().iter().all(|one| one["attempt"] == 1), "{whole}");
    let mut ran: Vec<String> =
        fs::read_to_string(home.campaign_dir().join("ran")).unwrap().lines().map(str::to_owned).collect();
    ran.sort();
    assert_eq!(ran, ["m1", "m2", "m3", "m4", "m5", "m6"]);
}

#[test]
fn the_report_of_a_mission_that_runs_has_what_it_used_so_far() {
    let home = with_campaign();
    ok(&home, &["price", "set", "script", "input=3", "output=15"]);
    let uses = vec![json!({"usage": {"input": 100_000, "output": 1_000}}), json!({"hang": true})];
    plan(&home, "plan.toml", "objective = \"Use\"\nname = \"uses\"", &[agent("a", "", uses)]);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    wait::until("it has used something", SOON, || {
        let whole = json_of(&home, &["mission", "show", "uses"]);
        assignment(&whole, "a")["usage"]["input"] == 100_000
    });
    let report = ok(&home, &["mission", "report", "uses"]);
    assert!(report.contains("- used: 100000 input, 0 cache read, 0 cache write, 1000 output"), "{report}");
    assert!(report.contains("- cost: $0.32") && report.contains("| 101000 | $0.32"), "{report}");
    ok(&home, &["mission", "cancel", "uses"]);
}

#[test]
fn a_mission_that_was_held_for_want_of_a_price_goes_on_when_it_is_set() {
    let home = with_campaign();
    let uses = vec![
        json!({"usage": {"input": 100, "output": 10}}),
        shell("until test -e go; do sleep 0.02; done"),
        scenario::say("a"),
    ];
    let head = "objective = \"Pay\"\nname = \"pay\"\nbudget = \"1usd\"";
    plan(&home, "plan.toml", head, &[agent("a", "", uses.clone())]);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    let whole = until(&home, "pay", "paused");
    assert!(whole["wait"].as_str().unwrap().contains("the model script has no price"), "{whole}");
    ok(&home, &["price", "set", "script", "input=1", "output=1"]);
    fs::write(home.campaign_dir().join("go"), "").unwrap();
    until(&home, "pay", "completed");
    // Of a model that the plan names it is said before anything is done.
    plan(&home, "named.toml", head, &[agent("a", "model = \"new-model\"", uses)]);
    let (code, words) = refused(&home, &["mission", "plan", "named.toml"]);
    assert!(code == Some(2) && words.contains("ostler price set new-model"), "{code:?} {words}");
    assert!(words.contains("the model new-model has no price"), "{words}");
}

#[test]
fn commits_are_handed_on_whenever_the_daemon_dies() {
    for fault in ["tree-made:1", "turn-over:1"] {
        let home = with_repository();
        let mut daemon = home
            .command(&["daemon", "run"])
            .env("OSTLER_FAULT", fault)
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        wait::until("the daemon", SOON, || home.daemon().is_some());
        let head = "objective = \"Hand on\"\nstrategy = \"sequential\"\nname = \"hand\"";
        let build = agent("build", "worktree = true", vec![commits("mywork"), scenario::say("built")]);
        plan(&home, "plan.toml", head, &[build, agent("review", "", said("review"))]);
        home.run(&["mission", "start", "plan.toml", "-d"]);
        wait::until("the daemon to die at the fault", SOON, || daemon.try_wait().unwrap().is_some());
        until(&home, "hand", "completed");
        let report = ok(&home, &["mission", "report", "hand"]);
        assert!(report.contains("- agent/hand-build (commit): "), "{fault}: {report}");
    }
}

#[test]
fn who_waits_for_a_place_is_ready_and_has_not_begun() {
    let home = with_campaign();
    ok(&home, &["campaign", "set", "shop", "limits.sessions=1"]);
    let head = "objective = \"Wait\"\nstrategy = \"parallel\"\nname = \"wait\"";
    let works = |name: &str| {
        let waits = shell("until test -e go; do sleep 0.02; done");
        agent(name, "", vec![waits, json!({"sleep_ms": 1500}), scenario::say(name)])
    };
    plan(&home, "plan.toml", head, &[works("a"), works("b")]);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    // Who of the two comes first is not said.
    let mut waits = None;
    wait::until("one of them waits for a place", SOON, || {
        let whole = json_of(&home, &["mission", "show", "wait"]);
        waits = ["a", "b"].into_iter().find(|name| {
            let one = assignment(&whole, name);
            one["wait"].as_str().is_some_and(|wait| wait.contains("slot")) && one["status"] == "ready"
        });
        waits.is_some()
    });
    let waits = waits.unwrap();
    let whole = json_of(&home, &["mission", "show", "wait"]);
    let works = if waits == "a" { "b" } else { "a" };
    assert_eq!(assignment(&whole, works)["status"], "running", "{whole}");
    assert!(assignment(&whole, waits)["started"].is_null(), "{whole}");
    let screen = ok(&home, &["mission", "show", "wait"]);
    let roles: Vec<Vec<&str>> =
        screen.lines().map(|line| line.split_whitespace().take(5).collect()).collect();
    assert!(roles.contains(&vec![waits, "1", "1", "0", "0"]), "{screen}");
    fs::write(home.campaign_dir().join("go"), "").unwrap();
    until(&home, "wait", "completed");
    let log = ok(&home, &["mission", "logs", "wait", "-o", "jsonl"]);
    let of = |line: &str| {
        line.split_once("\"took_us\":")?.1.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    let took: Vec<u64> = log.lines().filter_map(of).collect();
    assert!(took.len() == 2 && took[1] < took[0] + 1_500_000, "{took:?}: what the other worked is not in it");
}

#[test]
fn a_cancelled_mission_ends_what_runs_and_says_why() {
    let home = with_campaign();
    let head = "objective = \"Stop\"\nstrategy = \"sequential\"\nname = \"stop\"";
    plan(&home, "plan.toml", head, &[agent("a", "", vec![json!({"hang": true})]), agent("b", "", said("b"))]);
    let id = ok(&home, &["mission", "start", "plan.toml", "-d", "-q"]);
    assert!(id.starts_with("msn_"), "{id}");
    wait::until("a runs", SOON, || {
        assignment(&json_of(&home, &["mission", "show", &id]), "a")["status"] == "running"
    });
    ok(&home, &["mission", "cancel", "stop", "-m", "the wrong plan"]);
    let whole = until(&home, "stop", "cancelled");
    let of = |name: &str| assignment(&whole, name)["status"].as_str().unwrap().to_owned();
    assert_eq!([of("a"), of("b")], ["cancelled", "cancelled"]);
    assert!(ok(&home, &["mission", "report", "stop"]).contains("the wrong plan"));
    let live = json_of(&home, &["ls", "--mission", "stop"]);
    assert!(
        live["sessions"].as_array().unwrap().iter().all(|session| session["status"] != "WORKING"),
        "{live}"
    );
    let log = ok(&home, &["mission", "logs", "stop"]);
    assert!(log.contains("stop") && log.contains("the wrong plan") && log.contains("a attempt 1"), "{log}");
}

/// A campaign that is a repository, with a branch that missions merge into.
pub(crate) fn with_repository() -> TestHome {
    let home = TestHome::new(OSTLER);
    let git = "git init -q -b main . && git -c user.name=Ann -c user.email=ann@shop.example commit -q --allow-empty -m first";
    let made = std::process::Command::new("sh").args(["-c", git]).current_dir(home.campaign_dir()).status();
    assert!(made.unwrap().success());
    ok(&home, &["campaign", "add", ".", "--name", "shop"]);
    home
}

pub(crate) fn commits(file: &str) -> Value {
    shell(&format!(
        "echo {file} > {file} && git add {file} && git -c user.name=A -c user.email=a@shop.example commit -q -m {file}"
    ))
}

#[test]
fn what_a_mission_left_behind_goes_when_nothing_would_be_lost() {
    let home = with_repository();
    let head = "objective = \"Leave\"\nstrategy = \"parallel\"\nname = \"leave\"\n[defaults]\nworktree = true\n\
                [merge]\ninto = \"main\"";
    let agents = [
        agent("a", "", vec![commits("one"), scenario::say("a")]),
        agent("b", "", vec![commits("two"), scenario::say("b")]),
    ];
    plan(&home, "plan.toml", head, &agents);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    let (code, words) = refused(&home, &["mission", "rm", "leave"]);
    assert!(code == Some(4) && words.contains("mission cancel leave"), "{code:?} {words}");
    let whole = until(&home, "leave", "completed");
    let id = whole["id"].as_str().unwrap().to_owned();
    let tree = |name: &str| {
        let session = assignment(&whole, name)["session"].as_str().unwrap().to_owned();
        let path = json_of(&home, &["show", &session])["worktree"]["path"].as_str().unwrap().to_owned();
        std::path::PathBuf::from(path)
    };
    let (first, second) = (tree("a"), tree("b"));
    let shared = home.home.state().join("missions").join(&id).join("shared");
    assert!(first.exists() && second.exists() && shared.exists());

    // No rule, nothing to do; then one that is due at once, and what stands against it.
    assert_eq!(json_of(&home, &["retention", "plan"])["steps"], json!([]));
    fs::write(first.join("unsaved"), "work").unwrap();
    ok(&home, &["campaign", "set", "shop", "retention.missions=completed:1s,failed:never"]);
    wait::until("the rule is due", SOON, || {
        json_of(&home, &["retention", "plan"])["steps"].as_array().unwrap().len() == 1
    });
    let step = json_of(&home, &["retention", "plan"])["steps"][0].clone();
    assert!(step["spared"].as_str().unwrap().contains("uncommitted"), "{step}");
    let (code, words) = refused(&home, &["mission", "rm", "leave"]);
    assert!(code == Some(4) && words.contains("is kept"), "{code:?} {words}");
    ok(&home, &["retention", "run", "-y"]);
    assert!(first.exists() && second.exists() && shared.exists(), "nothing of it is touched");

    fs::remove_file(first.join("unsaved")).unwrap();
    let out = ok(&home, &["retention", "run", "-y"]);
    assert!(out.contains("2 work trees removed"), "{out}");
    assert!(!first.exists() && !second.exists() && !shared.exists());
    let archive =
        home.home.state().join("archive/missions").join(&id).join("shared/context/objective.md.zst");
    assert!(archive.exists(), "{}", archive.display());
    assert_eq!(json_of(&home, &["retention", "plan"])["steps"], json!([]));
    // Its record and its report stay.
    assert!(ok(&home, &["mission", "report", "leave"]).starts_with("# Mission leave: completed"));
    assert!(ok(&home, &["mission", "logs", "leave"]).contains("archived"));
    assert!(ok(&home, &["mission", "rm", "leave", "-y"]).contains("nothing was left"));
}

#[test]
fn one_mission_is_halted_and_others_go_on() {
    let home = with_campaign();
    for name in ["one", "other"] {
        let head = format!("objective = \"Hang\"\nstrategy = \"parallel\"\nname = \"{name}\"");
        plan(&home, "plan.toml", &head, &[agent("a", "", vec![json!({"hang": true})])]);
        ok(&home, &["mission", "start", "plan.toml", "-d"]);
        wait::until("a runs", SOON, || {
            let listed = json_of(&home, &["ls", "--mission", name]);
            listed["sessions"].as_array().unwrap().iter().any(|session| session["status"] == "WORKING")
        });
    }
    ok(&home, &["halt", "--mission", "other", "--freeze"]);
    assert_eq!(status(&home, "other"), "paused");
    ok(&home, &["mission", "resume", "other", "-y"]);
    let out = ok(&home, &["halt", "--mission", "one", "-m", "it eats the disk"]);
    assert!(out.contains("1 session of one killed"), "{out}");
    let whole = until(&home, "one", "cancelled");
    let session = assignment(&whole, "a")["session"].as_str().unwrap().to_owned();
    assert_eq!(json_of(&home, &["show", &session])["outcome"], "killed", "it hangs, and was left no time");
    assert!(ok(&home, &["mission", "report", "one"]).contains("it eats the disk"));
    assert_eq!(status(&home, "other"), "running");
    ok(&home, &["halt", "--mission", "other"]);
}

#[test]
fn an_agent_that_does_the_same_again_and_again_is_told_then_held_and_let_go_on() {
    let home = with_campaign();
    let head = "objective = \"Loop\"\nstrategy = \"parallel\"\nname = \"loop\"";
    let again = json!({"repeat": 50, "every_ms": 100, "steps": [{"run": ["false"]}]});
    plan(&home, "plan.toml", head, &[agent("a", "", vec![again, scenario::say("out of it")])]);
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    wait::until("it is held", SOON, || {
        assignment(&json_of(&home, &["mission", "show", "loop"]), "a")["status"] == "paused"
    });
    let log = ok(&home, &["mission", "logs", "loop"]);
    let (told, held) = (log.find("nudged").expect("it is told first"), log.find("held").expect("and held"));
    assert!(told < held, "{log}");
    let screen = ok(&home, &["mission", "show", "loop"]);
    assert!(screen.contains("the same call with the same result 5 times: false"), "{screen}");
    assert!(screen.contains("ostler mission resume loop"), "{screen}");
    ok(&home, &["mission", "resume", "loop", "-y"]);
    let whole = until(&home, "loop", "completed");
    assert_eq!(assignment(&whole, "a")["attempt"], 1, "{whole}");
}

#[test]
fn faults_of_a_plan_are_named_by_their_lines_and_nothing_is_started() {
    let home = with_campaign();
    let text = "objective = \"x\"\nstrategy = \"adaptive\"\n[[agents]]\nname = \"a\"\ntask = \"t\"\nneeds = [\"b\"]\n\
                [[agents]]\nname = \"c\"\ntask = \"t\"\nprovider = \"nobodys\"\n";
    fs::write(home.campaign_dir().join("bad.toml"), text).unwrap();
    for verb in ["plan", "start"] {
        let (code, words) = refused(&home, &["mission", verb, "bad.toml"]);
        assert_eq!(code, Some(2), "{words}");
        assert!(words.contains("bad.toml:6:") && words.contains("bad.toml:10:"), "{words}");
    }
    assert_eq!(json_of(&home, &["mission", "ls", "-a"])["missions"], json!([]));
    let (code, words) = refused(&home, &["mission", "start", "plan-build-reviw"]);
    assert!(code == Some(2) && words.contains("plan-build-review"), "{code:?} {words}");
    let (code, words) = refused(&home, &["run", "-f", "bad.toml", "-p", "script"]);
    assert!(code == Some(2) && words.contains("ostler mission start bad.toml"), "{code:?} {words}");
    let (code, words) = refused(&home, &["mission", "show", "nobody"]);
    assert!(code == Some(3) && words.contains("MISSION_UNKNOWN"), "{code:?} {words}");
}

#[test]
fn programs_are_told_everything_and_sessions_know_their_mission() {
    let home = with_campaign();
    let planned = json_of(&home, &["mission", "plan", "research-and-summarise", "-p", "question=Why?"]);
    assert!(planned["waves"].as_array().unwrap().len() > 1, "{planned}");
    assert!(
        planned["price"]["unknown"].as_u64().unwrap() > 0 && planned["price"]["likely_usd"].is_null(),
        "{planned}"
    );

    let head = "objective = \"Two\"\nstrategy = \"parallel\"\nname = \"two\"\nbudget = \"1M\"";
    plan(&home, "plan.toml", head, &[agent("a", "", said("a")), agent("b", "", said("b"))]);
    let out = ok(&home, &["mission", "start", "plan.toml", "-o", "jsonl"]);
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["kind"], "MISSION_CREATED");
    let last = lines.last().unwrap();
    assert_eq!(
        (&last["kind"], &last["exit"], &last["status"]),
        (&json!("result"), &json!(0), &json!("completed"))
    );

    let listed = json_of(&home, &["mission", "ls", "-a"]);
    assert_eq!(listed["missions"][0]["name"], "two");
    assert_eq!(ok(&home, &["mission", "ls", "-a", "-o", "name"]), "two");
    assert_eq!(json_of(&home, &["show", "two"])["id"], listed["missions"][0]["id"]);
    let sessions = json_of(&home, &["ls", "-a", "--mission", "two"]);
    let sessions = sessions["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 2);
    assert_eq!(sessions[0]["mission"]["id"], listed["missions"][0]["id"]);
    let cost = json_of(&home, &["cost", "--by", "mission"]);
    assert!(cost.to_string().contains("\"two\""), "{cost}");
    // What was done says how long the like takes, when there was enough of it; and what has no price is not free.
    let planned = json_of(&home, &["mission", "plan", "plan.toml"]);
    let words = planned["eta"]["words"].as_str().unwrap();
    assert!(words.contains("too little history (1 of at least 4)"), "{planned}");
    assert_eq!(planned["price"]["words"], "cost unknown (no price for script)", "{planned}");
    assert!(planned["price"]["likely_usd"].is_null(), "{planned}");
    for n in 2..=4 {
        ok(&home, &["mission", "start", "plan.toml", "--name", &format!("two-{n}")]);
    }
    let eta = json_of(&home, &["mission", "plan", "plan.toml"])["eta"].clone();
    let seconds = |key: &str| eta[key].as_f64().unwrap_or_else(|| panic!("{key} of {eta}"));
    assert!(seconds("low_s") < seconds("high_s") && seconds("low_s") <= seconds("likely_s"), "{eta}");
    let graph = json_of(&home, &["mission", "graph", "two"]);
    assert_eq!(graph["waves"], json!([["a", "b"]]));
}

#[test]
fn what_would_block_is_skipped_where_nobody_is_there() {
    let home = with_campaign();
    let head = "objective = \"Block\"\nstrategy = \"adaptive\"\nname = \"block\"";
    let fails = agent("a", "retries = 0\ncomplete_when = \"done\"", said("a"));
    let blocked = agent("b", "needs = [\"a\"]\non_dep_failure = \"block\"", said("b"));
    plan(&home, "plan.toml", head, &[fails, blocked, agent("c", "", said("c"))]);
    let (code, all) = refused(&home, &["mission", "start", "plan.toml"]);
    assert_eq!(code, Some(17), "{all}");
    let whole = json_of(&home, &["mission", "show", "block"]);
    assert_eq!(
        (assignment(&whole, "b")["status"].as_str(), whole["status"].as_str()),
        (Some("skipped"), Some("partial"))
    );
}

#[test]
fn a_mission_that_is_left_to_itself_is_named() {
    let home = with_campaign();
    plan(&home, "plan.toml", "objective = \"Name\"\nname = \"named\"", &[agent("a", "", said("a"))]);
    assert_eq!(ok(&home, &["mission", "start", "plan.toml", "-d", "-o", "name"]), "named");
}
