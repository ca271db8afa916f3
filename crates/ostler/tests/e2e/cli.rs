//! The command line against a real daemon: what scripts rely on.

use std::{
    io::Write,
    process::{Output, Stdio},
};

use ostler_testkit::{TestHome, scenario, skip, wait};
use serde_json::{Value, json};

use crate::OSTLER;

fn text(output: &Output) -> (String, String) {
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

fn ok(home: &TestHome, args: &[&str]) -> String {
    let output = home.run(args);
    let (out, err) = text(&output);
    assert!(output.status.success(), "{args:?} failed with {:?}\n{out}\n{err}", output.status.code());
    out
}

fn fails(home: &TestHome, args: &[&str], code: i32, reason: &str) -> String {
    let output = home.run(args);
    let (out, err) = text(&output);
    assert_eq!(output.status.code(), Some(code), "{args:?}\n{out}\n{err}");
    assert!(err.contains(reason), "{args:?} does not say {reason}: {err}");
    assert!(out.is_empty(), "{args:?} wrote to stdout although it failed: {out}");
    err
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn with_campaign() -> TestHome {
    let home = TestHome::new(OSTLER);
    ok(&home, &["campaign", "add", ".", "--name", "shop"]);
    home
}

#[test]
fn a_run_prints_the_answer_alone_and_ends_done() {
    let home = with_campaign();
    let prompt =
        scenario::of(vec![json!({"think": "hm"}), scenario::say("first"), scenario::say("the answer")]);
    let output = home.run(&["run", "--name", "mine", &prompt]);
    let (out, err) = text(&output);
    assert_eq!((output.status.code(), out.as_str()), (Some(0), "the answer\n"), "{err}");
    assert!(err.contains("hm") && err.contains("done"), "{err}");
    assert!(!out.contains('\u{1b}') && !err.contains('\u{1b}'), "colour without a terminal");
    let shown = ok(&home, &["show", "mine"]);
    assert!(shown.contains("done") && shown.contains("sandbox on"), "{shown}");
}

#[test]
fn ls_and_events_have_their_documented_json() {
    let home = with_campaign();
    let usage =
        json!({"usage": {"input": 500, "cache_read": 1, "cache_write": 2, "output": 200, "reasoning": 3}});
    let id = ok(
        &home,
        &["run", "-d", "-q", &scenario::of(vec![usage, scenario::say("tick 1"), scenario::say("tick 2")])],
    )
    .trim()
    .to_owned();
    wait::until("idleness", wait::PATIENCE, || {
        let session = &json_of(&ok(&home, &["ls", "-o", "json"]))["sessions"][0];
        session["attention"] == "idle" && session["turns"] == 1
    });
    let listed = json_of(&ok(&home, &["ls", "-o", "json"]));
    let session = &listed["sessions"][0];
    assert_eq!(session["id"], json!(id));
    assert_eq!(
        (&session["status"], &session["attention"], &session["outcome"]),
        (&json!("RUNNING"), &json!("idle"), &Value::Null)
    );
    assert_eq!(
        session["usage"],
        json!({"input": 500, "cache_read": 1, "cache_write": 2, "output": 200, "reasoning": 3})
    );
    assert_eq!(session["sandbox"], json!("on"));
    assert!(listed.as_object().unwrap().contains_key("next_cursor"));
    let lines = ok(&home, &["events", "-o", "jsonl"]);
    let events: Vec<Value> = lines.lines().map(json_of).collect();
    for event in &events {
        for field in ["seq", "session", "session_seq", "time", "kind"] {
            assert!(event.as_object().unwrap().contains_key(field), "{event}");
        }
    }
    let said: Vec<&Value> = events
        .iter()
        .filter(|event| event["kind"] == "AGENT_COMPLETION")
        .map(|event| &event["body"]["text"])
        .collect();
    assert_eq!(said, ["tick 1", "tick 2"]);
    let status = json_of(&ok(&home, &["daemon", "status", "-o", "json"]));
    assert_eq!(status["pid"], json!(home.daemon().unwrap().pid));
    assert_eq!(ok(&home, &["ls", "-q"]).trim(), id);
    ok(&home, &["kill", &id]);
}

#[test]
fn outcomes_decide_exit_codes() {
    let home = with_campaign();
    let run = |args: &[&str], prompt: Value| {
        let mut all = vec!["run"];
        all.extend(args);
        let prompt = scenario::of(vec![scenario::say("now"), prompt]);
        all.push(&prompt);
        home.run(&all).status.code()
    };
    assert_eq!(run(&[], json!({"exit": 3})), Some(10));
    assert_eq!(run(&["--timeout", "1s"], json!({"sleep_ms": 60_000})), Some(12));
    assert_eq!(run(&["--budget", "100"], json!({"usage": {"output": 500}})), Some(11));
}

#[test]
fn errors_have_reason_hint_and_exit_code() {
    let home = TestHome::new(OSTLER);
    let err = fails(&home, &["run", "hi"], 3, "CAMPAIGN_UNKNOWN");
    assert!(
        err.starts_with("error: ") && err.contains("exit 3") && err.contains("ostler campaign add ."),
        "{err}"
    );
    ok(&home, &["campaign", "add", "."]);
    fails(&home, &["show", "zzzzz"], 3, "SESSION_UNKNOWN");
    fails(&home, &["run", "-p", "levitate", "hi"], 6, "PROVIDER_UNKNOWN");
    fails(&home, &["run", "-p", "codexx", "hi"], 6, "the nearest is codex");
    fails(&home, &["campaign", "add", "/"], 2, "CAMPAIGN_ROOT");
    fails(&home, &["campaign", "add", "/nowhere/at/all"], 2, "CAMPAIGN_ROOT");
    fails(&home, &["levitate"], 2, "levitate");
    let err = fails(&home, &["show", "zzzzz", "-o", "json"], 3, "SESSION_UNKNOWN");
    assert_eq!(json_of(&err)["error"]["reason"], json!("SESSION_UNKNOWN"));
    let err = fails(&home, &["show", "a\u{1b}[2Jb"], 3, "SESSION_UNKNOWN");
    assert!(!err.contains('\u{1b}'));
}

#[test]
fn a_session_is_lived_with_from_the_command_line() {
    let home = with_campaign();
    let counting = scenario::of(vec![scenario::count("tick", 100_000, 20)]);
    let id = ok(&home, &["run", "-d", "-q", "--name", "counter", &counting]).trim().to_owned();
    wait::until("the first tick", wait::PATIENCE, || ok(&home, &["logs", "counter"]).contains("tick 1"));
    ok(&home, &["pause", "counter"]);
    assert!(ok(&home, &["ls"]).contains("paused"));
    ok(&home, &["resume", "counter"]);
    ok(&home, &["interrupt", "counter"]);
    let sent = home.run(&["send", "counter", "--wait", &scenario::of(vec![scenario::say("heard you")])]);
    assert!(sent.status.success(), "{:?}", text(&sent));
    assert!(ok(&home, &["logs", "counter", "--tail", "20"]).contains("heard you"));
    ok(&home, &["stop", "counter"]);
    let waited = home.run(&["wait", &id, "--timeout", "20s"]);
    assert_eq!(waited.status.code(), Some(15), "{:?}", text(&waited));
    fails(&home, &["pause", &id], 4, "WRONG_STATE");
    let restarted = ok(&home, &["restart", "-q", "counter"]).trim().to_owned();
    assert_ne!(restarted, id);
    ok(&home, &["kill", "counter"]);
    assert!(ok(&home, &["show", &restarted]).contains("Killed"));
}

#[test]
fn approvals_are_answered_from_the_command_line() {
    let home = with_campaign();
    let asking =
        scenario::of(vec![json!({"ask": {"tool": "run", "input": "make deploy"}}), scenario::say("went on")]);
    let id = ok(&home, &["run", "-d", "-q", &asking]).trim().to_owned();
    let approval = wait::answer("the question", wait::PATIENCE, || {
        let listed = json_of(&ok(&home, &["ls", "--needs-me", "-o", "json"]));
        listed["sessions"][0]["approvals"][0].as_str().map(str::to_owned)
    });
    ok(&home, &["deny", &approval, "-m", "not today"]);
    wait::until("the agent to go on", wait::PATIENCE, || ok(&home, &["logs", &id]).contains("went on"));
    fails(&home, &["allow", &approval], 4, "APPROVAL_ANSWERED");
    // Nobody is there: denied at once, and counted.
    let output = home.run(&["run", "-o", "json", &asking]);
    let result = json_of(&text(&output).0);
    assert_eq!(
        (&result["schema"], &result["result"], &result["outcome"]),
        (&json!("ostler.run/1"), &json!("went on"), &json!("done"))
    );
}

#[test]
fn the_record_is_checked_rebuilt_and_copied() {
    let home = with_campaign();
    ok(&home, &["run", &scenario::of(vec![scenario::count("tick", 50, 1)])]);
    ok(&home, &["db", "check"]);
    let before = ok(&home, &["ls", "-a", "-o", "json"]);
    ok(&home, &["db", "reindex"]);
    assert_eq!(ok(&home, &["ls", "-a", "-o", "json"]), before);
    let vacuumed = json_of(&ok(&home, &["db", "vacuum", "--json"]));
    assert!(vacuumed["bytes"].as_u64() <= vacuumed["bytes_before"].as_u64(), "{vacuumed}");
    assert_eq!(ok(&home, &["ls", "-a", "-o", "json"]), before);
    let copy = home.path().join("copy");
    ok(&home, &["db", "backup", copy.to_str().unwrap()]);
    fails(&home, &["db", "backup", copy.to_str().unwrap()], 2, "exists");
    assert!(copy.join("ostler.db").exists());
}

#[test]
fn a_changed_line_of_the_audit_log_shows() {
    let home = with_campaign();
    ok(&home, &["run", "hello"]);
    let found = json_of(&ok(&home, &["audit", "verify", "--json"]));
    assert!(found["ok"] == json!(true) && found["lines"].as_u64() >= Some(2), "{found}");
    let path = home.home.state().join("audit.jsonl");
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, whole.replacen("campaign.add", "campaign.sub", 1)).unwrap();
    let broken = home.run(&["audit", "verify"]);
    assert_eq!(broken.status.code(), Some(1));
    assert!(text(&broken).0.contains("line 2: it does not follow"), "{broken:?}");
}

#[test]
fn halt_and_daemon_verbs_work() {
    let home = with_campaign();
    let id = ok(&home, &["run", "-d", "-q", &scenario::of(vec![scenario::count("tick", 100_000, 20)])])
        .trim()
        .to_owned();
    ok(&home, &["halt", "-m", "smells"]);
    fails(&home, &["send", &id, "go on"], 4, "HALTED");
    ok(&home, &["halt", "--release"]);
    ok(&home, &["daemon", "restart"]);
    ok(&home, &["doctor"]);
    ok(&home, &["daemon", "stop"]);
    assert_eq!(home.run(&["daemon", "status"]).status.code(), Some(7));
    assert!(home.run(&["version"]).status.success());
    // A reader that went away is no failure.
    let mut closed = home.command(&["version"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(closed.stdout.take());
    assert!(closed.wait().unwrap().success());
}

#[test]
fn a_prompt_may_come_from_a_file_or_a_pipe() {
    let home = with_campaign();
    let file = home.path().join("prompt.json");
    std::fs::write(&file, scenario::of(vec![scenario::say("from a file")])).unwrap();
    assert_eq!(ok(&home, &["run", "-f", file.to_str().unwrap()]), "from a file\n");
    let mut child = home
        .command(&["run", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(scenario::of(vec![scenario::say("from a pipe")]).as_bytes())
        .unwrap();
    assert_eq!(text(&child.wait_with_output().unwrap()).0, "from a pipe\n");
}

#[test]
fn an_interrupted_run_stops_its_session() {
    let home = with_campaign();
    let counting = scenario::of(vec![scenario::count("tick", 100_000, 20)]);
    let mut run = home
        .command(&["run", "--name", "cut", &counting])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait::until("the first tick", wait::PATIENCE, || {
        home.run(&["logs", "cut"]).stdout.windows(4).any(|window| window == b"tick")
    });
    let process = ostler_testkit::Proc::of(run.id()).unwrap();
    process.signal(rustix::process::Signal::TERM);
    assert_eq!(run.wait().unwrap().code(), Some(143));
    let waited = home.run(&["wait", "cut", "--timeout", "20s"]);
    assert_eq!(waited.status.code(), Some(15));
}

#[test]
fn agents_and_strangers_are_not_let_in() {
    let home = with_campaign();
    // Another user namespace is what agents have.
    let program = home.program().to_str().unwrap().to_owned();
    let output = std::process::Command::new("unshare")
        .args(["-Ur", &program, "ls"])
        .env("OSTLER_HOME", home.path().canonicalize().unwrap().join("home"))
        .output()
        .unwrap();
    let (out, err) = text(&output);
    if err.contains("unshare:") {
        skip::lacking(&format!("agents_and_strangers_are_not_let_in needs user namespaces: {err}"));
        return;
    }
    assert_eq!((output.status.code(), out.as_str()), (Some(5), ""), "{err}");
    assert!(err.contains("PERMISSION_DENIED") && err.contains("user namespace"), "{err}");
}

#[test]
fn the_demo_keeps_its_word() {
    let home = TestHome::new(OSTLER);
    let output = home.command(&["demo", "-o", "json"]).env_remove("OSTLER_HOME").output().unwrap();
    let (out, err) = text(&output);
    assert_eq!(output.status.code(), Some(0), "{out}\n{err}");
    let said: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&said["ok"], &said["mission"], &said["merged"]),
        (&json!(true), &json!("completed"), &json!(true))
    );
    // Five agents, and one of them twice.
    assert_eq!((&said["sessions"], &said["agents_before"]), (&json!(6), &json!(3)), "{said}");
    assert_eq!((&said["lines_lost"], &said["lines_doubled"]), (&json!(0), &json!(0)), "{said}");
    assert_eq!(said["lines_present"], said["lines_expected"], "{said}");
    assert_eq!((&said["escapes_tried"], &said["escapes_stopped"]), (&json!(4), &json!(4)), "{said}");
    assert!(said["cost_usd"].as_f64().is_some_and(|cost| cost > 0.0), "{said}");
    assert!(
        said["duration_ms"].as_u64().is_some_and(|took| took < 45_000),
        "it takes less than 45 s: {said}"
    );
}

#[test]
fn the_sandbox_is_attacked_and_holds() {
    let home = TestHome::new(OSTLER);
    let output =
        home.run(&["sandbox", "check", "--attack", "hidden/read-env", "control/server", "-o", "json"]);
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    for run in said["runs"].as_array().unwrap() {
        let verdicts: Vec<&str> = run["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|found| found["verdict"].as_str().unwrap())
            .collect();
        assert_eq!(verdicts, ["stopped", "works"], "{run}");
    }
    let unknown = home.run(&["sandbox", "check", "--attack", "no-such-area"]);
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");
}
