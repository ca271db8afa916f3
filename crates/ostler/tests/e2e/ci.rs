//! `run` as a job in CI meets it: checks, what counts as a failure, and the result object.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

use ostler_domain::Event;
use ostler_testkit::{TestHome, scenario, wait};
use serde_json::{Value, json};

use crate::OSTLER;

fn git(dir: &Path, args: &[&str]) {
    let identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"];
    let done = Command::new("git").args(identity).args(args).current_dir(dir).output().unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// The campaign as a repository with one commit and one file that is not committed.
fn repository(home: &TestHome) {
    let dir = home.campaign_dir();
    fs::write(dir.join("a.txt"), "one\ntwo\n").unwrap();
    git(&dir, &["init", "-q"]);
    git(&dir, &["add", "."]);
    git(&dir, &["commit", "-qm", "first"]);
    fs::write(dir.join("mine.txt"), "not the agent's\n").unwrap();
}

/// Runs a scenario and gives the result object, and the exit code.
fn run(home: &TestHome, args: &[&str], steps: Vec<Value>) -> (Value, i32) {
    let prompt = scenario::of(steps);
    let mut all = vec!["run", "-p", "script", "-o", "json"];
    all.extend(args);
    all.push(&prompt);
    let output = home.run(&all);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    let result = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {err}"));
    (result, output.status.code().unwrap())
}

fn write(path: &str, text: &str) -> Value {
    json!({ "write": { "path": path, "text": text } })
}

#[tokio::test]
async fn what_was_changed_and_committed_is_in_the_result() {
    let home = TestHome::started(OSTLER).await;
    repository(&home);
    // Hidden from the sandbox in which the repository is looked at, too.
    std::fs::write(home.campaign_dir().join(".env"), "SECRET=1\n").unwrap();
    let steps = vec![
        write("a.txt", "one\n2\nthree\n"),
        write("new.rs", "fn main() {}\n"),
        json!({"run": ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qam", "second"]}),
        scenario::say("done"),
    ];
    let (result, code) = run(&home, &[], steps);
    assert_eq!((code, &result["outcome"], &result["check"]), (0, &json!("done"), &Value::Null), "{result}");
    let files = json!([
        {"path": "a.txt", "added": 2, "removed": 1},
        {"path": "new.rs", "added": 1, "removed": 0},
    ]);
    assert_eq!(result["files"], files, "{result}");
    let head =
        Command::new("git").args(["rev-parse", "HEAD"]).current_dir(home.campaign_dir()).output().unwrap();
    assert_eq!(result["commits"], json!([String::from_utf8(head.stdout).unwrap().trim()]));
    let status =
        Command::new("git").args(["status", "--short"]).current_dir(home.campaign_dir()).output().unwrap();
    let status = String::from_utf8(status.stdout).unwrap();
    assert!(
        status.contains("?? mine.txt") && status.contains("?? new.rs"),
        "the index is as it was: {status}"
    );
}

/// As of a variable that nobody set: a job must not be green because nothing was looked at.
#[test]
fn an_empty_check_is_refused() {
    let home = TestHome::new(OSTLER);
    for check in ["", "  "] {
        let run = home.run(&["run", "-p", "script", "--check", check, "hello"]);
        assert_eq!(run.status.code(), Some(2), "{run:?}");
    }
}

#[tokio::test]
async fn a_failing_check_goes_back_to_the_agent() {
    let home = TestHome::started(OSTLER).await;
    let dir = home.campaign_dir();
    // Passes at the third look. The scripted agent answers what it is told in words.
    let check = "echo x >> looks; echo looked $(wc -l < looks); test $(wc -l < looks) -ge 3";
    let (result, code) = run(&home, &["--check", check, "--retries", "2"], vec![scenario::say("first")]);
    assert_eq!(code, 0, "{result}");
    assert_eq!(result["check"], json!({"command": check, "exit": 0, "tries": 3}));
    assert_eq!((&result["turns"], &result["outcome"]), (&json!(3), &json!("done")), "{result}");
    let session = result["session"].as_str().unwrap().parse().unwrap();
    let told: Vec<String> = home
        .events(&home.client().await, session)
        .await
        .into_iter()
        .filter_map(|recorded| match recorded.event {
            Event::MessageAccepted(accepted) => Some(accepted.message.text),
            _ => None,
        })
        .collect();
    assert!(told[1].contains("failed with exit code 1") && told[1].contains("looked 1"), "{told:?}");
    assert!(told.len() == 3 && told[2].contains("looked 2"), "{told:?}");
    assert_eq!(result["files"], Value::Null, "no repository");
    fs::remove_file(dir.join("looks")).unwrap();
    let (result, code) = run(&home, &["--check", check, "--retries", "1"], vec![scenario::say("first")]);
    assert_eq!((code, &result["exit"], &result["check"]["tries"]), (16, &json!(16), &json!(2)), "{result}");
    assert_eq!(result["outcome"], "done");
    // It runs where the agent does: with its home, and without the world outside.
    let steps = vec![json!({"run": ["sh", "-c", "echo fetched > ~/cache"]}), scenario::say("done")];
    let inside = format!("grep -q fetched ~/cache && test ! -e {}", home.home.state().display());
    let (result, code) = run(&home, &["--check", &inside], steps);
    assert_eq!(code, 0, "{result}");
    // What it said before it was checked is told before the check.
    fs::remove_file(dir.join("looks")).unwrap();
    let prompt = scenario::of(vec![scenario::say("first words")]);
    let output = home.run(&["run", "-p", "script", "--check", check, "--retries", "2", &prompt]);
    let err = String::from_utf8_lossy(&output.stderr);
    let at = |word: &str| err.lines().position(|line| line.trim_start().starts_with(word)).unwrap();
    assert!(at("say ") < at("check "), "{err}");
    // With a terminal's form the answer is alone on standard output all the same.
    let output = home.run(&["run", "-p", "script", "--check", "echo noise; exit 7", "hello"]);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(16), "{err}");
    assert!(!out.contains("noise") && err.contains("check failed") && err.contains("7"), "{out}\n{err}");
}

#[tokio::test]
async fn each_way_to_end_has_its_exit_code() {
    let home = TestHome::started(OSTLER).await;
    let ask = vec![json!({"ask": {"tool": "run", "input": "make mischief"}}), scenario::say("done")];
    let exit = |args: &[&str], steps: Vec<Value>| run(&home, args, steps).1;
    assert_eq!(exit(&[], vec![scenario::say("done")]), 0);
    assert_eq!(exit(&[], vec![json!({"exit": 3})]), 10);
    let tokens = json!({"usage": {"input": 900, "output": 200}});
    assert_eq!(exit(&["--budget", "1k"], vec![tokens, json!({"sleep_ms": 60_000})]), 11);
    assert_eq!(exit(&["--timeout", "1s"], vec![json!({"sleep_ms": 60_000})]), 12);
    assert_eq!(exit(&["--fail-on-denied"], ask.clone()), 13);
    assert_eq!(exit(&[], ask), 0);
    assert_eq!(exit(&["--check", "false"], vec![scenario::say("done")]), 16);
    // A turn that failed is not checked, and says so by its own code.
    let (result, code) =
        run(&home, &["--timeout", "1s", "--check", "true"], vec![json!({"sleep_ms": 60_000})]);
    assert_eq!((code, &result["check"]["tries"]), (12, &json!(0)), "{result}");
}

/// The check fails while the session ends of its budget: there is no further try, and nothing of what was paid for is lost.
#[tokio::test]
async fn a_budget_that_is_used_up_leaves_the_answer_of_a_check_that_fails() {
    let home = TestHome::started(OSTLER).await;
    let turn_ended = "{\"type\":\"turn_ended\",\"reason\":\"completed\"}\n";
    let steps = vec![
        scenario::say("the answer"),
        json!({"usage": {"input": 900, "output": 200}}),
        json!({"stdout_raw": turn_ended}),
        // It takes its time to end.
        json!({"hang": true}),
    ];
    let args = ["--budget", "1k", "--check", "test -e nope", "--retries", "2"];
    let (result, code) = run(&home, &args, steps);
    assert_eq!((code, &result["outcome"]), (11, &json!("budget")), "{result}");
    assert_eq!((&result["result"], &result["turns"]), (&json!("the answer"), &json!(1)), "{result}");
    assert_eq!(result["check"], json!({"command": "test -e nope", "exit": 1, "tries": 1}));
}

#[tokio::test]
async fn what_was_denied_comes_with_what_would_allow_it() {
    let home = TestHome::started(OSTLER).await;
    let ask = vec![json!({"ask": {"tool": "run", "input": "make mischief"}}), scenario::say("done")];
    let grant = "ostler campaign set shop 'approve.rule+=allow run make mischief'";
    let (result, _) = run(&home, &["--fail-on-denied"], ask.clone());
    let denied = &result["denied"][0];
    assert_eq!((&denied["grant"], &denied["by"]), (&json!(grant), &json!("ostler")), "{result}");
    assert_eq!(denied["rule"], "no rule allows make mischief", "what of ours decided it");
    let prompt = scenario::of(ask);
    let output = home.run(&["run", "-p", "script", "--name", "told", "--fail-on-denied", &prompt]);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(13), "{err}");
    assert!(err.contains(grant) && err.contains("would allow run: make mischief"), "{err}");
    let shown = String::from_utf8(home.run(&["show", "told"]).stdout).unwrap();
    let denied = shown.lines().find(|line| line.starts_with("denied ")).unwrap();
    assert!(denied.contains("run: make mischief") && denied.contains(grant), "{shown}");
}

#[tokio::test]
async fn the_time_of_a_run_is_over_for_its_check_too() {
    let home = TestHome::started(OSTLER).await;
    let began = std::time::Instant::now();
    // Every try would take a minute, and there would be a hundred: the time is that of all together.
    let hangs = ["--timeout", "3s", "--check", "sleep 60", "--retries", "100"];
    let (result, code) = run(&home, &hangs, vec![scenario::say("done")]);
    assert_eq!((code, &result["outcome"]), (12, &json!("timeout")), "{result}");
    assert_eq!(result["check"], json!({"command": "sleep 60", "exit": null, "tries": 1}));
    // Each failure takes a part of it.
    let fails = ["--timeout", "4s", "--check", "sleep 1; false", "--retries", "100"];
    let (result, code) = run(&home, &fails, vec![scenario::say("done")]);
    assert_eq!((code, &result["outcome"]), (12, &json!("timeout")), "{result}");
    let kept = ["--keep", "--timeout", "3s", "--check", "sleep 60"];
    let (result, code) = run(&home, &kept, vec![scenario::say("done")]);
    assert_eq!((code, &result["outcome"]), (12, &json!("timeout")), "{result}");
    assert!(began.elapsed() < std::time::Duration::from_secs(50), "{:?}", began.elapsed());
}

#[tokio::test]
async fn who_stops_a_session_stops_its_check() {
    let home = TestHome::started(OSTLER).await;
    let prompt = scenario::of(vec![scenario::say("done")]);
    let check = "touch checking; sleep 600";
    let args = ["run", "-p", "script", "--name", "fix", "-o", "json", "--check", check, &prompt];
    let running = home.command(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    wait::until("the check", wait::PATIENCE, || home.campaign_dir().join("checking").exists());
    assert!(home.run(&["stop", "fix"]).status.success());
    let output = running.wait_with_output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &result["outcome"]), (Some(15), &json!("stopped")), "{result}");
}

#[tokio::test]
async fn lines_end_with_the_result() {
    let home = TestHome::started(OSTLER).await;
    let mut command = home.command(&["run", "-p", "script", "-o", "jsonl", "--check", "true", "explain"]);
    let mut child =
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"the context\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let lines: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = lines.last().unwrap();
    assert_eq!((&last["kind"], &last["check"]["exit"]), (&json!("result"), &json!(0)), "{last}");
    assert!(last["result"].as_str().unwrap().contains("the context"), "what is piped in is context: {last}");
    assert!(lines.iter().any(|line| line["kind"] == "TURN_ENDED"), "{lines:?}");
}

/// The `run:` lines of the page's example.
fn lines_of_the_example() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/howto/ci.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, example) = page.split_once("```yaml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let run =
        |line: &str| line.trim_start().trim_start_matches("- ").strip_prefix("run: ").map(str::to_owned);
    example.lines().filter_map(run).collect()
}

#[tokio::test]
async fn the_example_for_ci_runs() {
    let home = TestHome::new(OSTLER);
    let dir = home.path().join("checkout");
    fs::create_dir_all(dir.join(".github")).unwrap();
    fs::write(dir.join(".github/fix.md"), "Correct what ./test.sh complains about.\n").unwrap();
    fs::write(dir.join("test.sh"), "#!/bin/sh\necho x >> tries; test $(wc -l < tries) -ge 2\n").unwrap();
    fs::set_permissions(dir.join("test.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    git(&dir, &["init", "-q"]);
    git(&dir, &["add", "."]);
    git(&dir, &["commit", "-qm", "first"]);
    let programs = Path::new(OSTLER).parent().unwrap().display().to_string();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
    // The page has a budget in dollars, and the agent that stands in for the one with a model costs nothing by itself.
    assert!(home.run(&["price", "set", "script", "input=1", "output=1"]).status.success());
    let lines = lines_of_the_example();
    assert_eq!(lines.len(), 4, "{lines:?}");
    for line in &lines {
        // Each step is a process of its own that shares nothing with the one before but where it works.
        let mut step = home.command_of(Path::new("setsid"), &["-w", "sh", "-ec", line]);
        step.current_dir(&dir).env("PATH", &path).env("PROVIDER", "script").env("CI", "true");
        let done = step.env("GITHUB_STEP_SUMMARY", dir.join("summary.md")).output().unwrap();
        let err = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{line}\n{err}\n{}", String::from_utf8_lossy(&done.stdout));
        if line.contains("--here") {
            assert!(err.contains("(added)"), "what becomes a campaign is said: {err}");
        }
    }
    let result: Value = serde_json::from_slice(&fs::read(dir.join("result.json")).unwrap()).unwrap();
    assert_eq!((&result["exit"], &result["check"]["tries"]), (&json!(0), &json!(2)), "{result}");
    let files = result["files"].as_array().unwrap();
    assert!(files.iter().any(|file| file["path"] == "tries"), "{result}");
    let summary = fs::read_to_string(dir.join("summary.md")).unwrap();
    assert!(summary.contains("Correct what") && summary.contains('#'), "{summary}");
    // Who works elsewhere has another last one, or none.
    let mut other = home.command_of(Path::new("setsid"), &["-w", OSTLER, "show", "-"]);
    let other = other.current_dir(home.path()).env("CI", "true").output().unwrap();
    assert_eq!(other.status.code(), Some(3), "{other:?}");
}
