//! The emergency stop works whatever has become of the daemon, its configuration and the keepers, and holds afterwards.

use std::{
    fs,
    process::Output,
    time::{Duration, Instant},
};

use ostler_domain::{
    SessionId,
    session::{Attention, Outcome, View},
};
use ostler_testkit::{TestHome, scenario, wait};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::OSTLER;

/// Far less than the minute that a call may take, and enough for a machine under load.
const SOON: Duration = Duration::from_secs(20);

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn ok(home: &TestHome, args: &[&str]) -> (String, String) {
    let output = home.run(args);
    let said = text(&output);
    assert!(output.status.success(), "{args:?}: {said:?}");
    said
}

/// A session whose agent ends long after the test.
fn at_work(home: &TestHome, name: &str) -> SessionId {
    let script = scenario::of(vec![json!({"run": ["sleep", "300"]})]);
    let (id, _) = ok(home, &["run", "-d", "-q", "--name", name, &script]);
    let id: SessionId = id.trim().parse().unwrap();
    wait::until("the tool to run", wait::PATIENCE, || home.session_processes(id).len() >= 2);
    id
}

fn shop() -> TestHome {
    let home = TestHome::new(OSTLER);
    ok(&home, &["campaign", "add", ".", "--name", "shop"]);
    home
}

fn broken_config(home: &TestHome) {
    fs::write(home.home.config_toml(), "limits = [\n").unwrap();
}

/// Writes something several times a second.
fn ticking(home: &TestHome) -> SessionId {
    let script = json!({"run": ["sh", "-c", "while :; do echo tick >>ticks; sleep 0.02; done"]});
    let (id, _) = ok(home, &["run", "-d", "-q", &scenario::of(vec![script])]);
    goes_on(home);
    id.trim().parse().unwrap()
}

fn ticks(home: &TestHome) -> u64 {
    fs::metadata(home.campaign_dir().join("ticks")).map_or(0, |file| file.len())
}

fn goes_on(home: &TestHome) {
    let before = ticks(home);
    wait::until("it to go on", wait::PATIENCE, || ticks(home) > before);
}

fn stands_still(home: &TestHome) -> bool {
    let before = ticks(home);
    std::thread::sleep(Duration::from_millis(500));
    ticks(home) == before
}

fn json_of(home: &TestHome, args: &[&str]) -> Value {
    let (out, _) = ok(home, args);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{args:?}: {error}: {out}"))
}

/// A daemon that comes back holds to it, starts nobody and has recorded how those ended that there were.
async fn holds(home: &TestHome, killed: &[SessionId], why: &str) {
    let client = home.start().await;
    let halt = client.status().await.unwrap().halt.expect("the halt does not hold");
    assert_eq!(halt.why, why);
    for id in killed {
        let view = home.ended(&id.to_string()).await;
        assert_eq!(view.outcome, Some(Outcome::Killed), "{view:#?}");
        let said = view.obituary.unwrap().sentence;
        assert!(said.contains("Killed by a halt of all agents"), "{said}");
        assert_eq!(home.census(*id), [] as [&str; 0]);
    }
    assert_eq!(home.run(&["send", &killed[0].to_string(), "go on"]).status.code(), Some(4));
    assert!(!home.home.halt_json().exists(), "it is recorded, and would come back after a release");
    // The next one, too.
    home.kill_daemon();
    assert!(home.start().await.status().await.unwrap().halt.is_some());
    ok(home, &["halt", "--release"]);
    ok(home, &["run", "-q", "hello"]);
    home.kill_daemon();
    assert!(home.start().await.status().await.unwrap().halt.is_none(), "a halt came back");
}

#[tokio::test]
async fn a_halt_needs_neither_a_daemon_nor_its_configuration() {
    let home = shop();
    let sessions = [at_work(&home, "one"), at_work(&home, "two")];
    ok(&home, &["daemon", "stop"]);
    broken_config(&home);
    let (out, err) = ok(&home, &["halt", "-m", "fire"]);
    assert!(out.contains("halted: 2 sessions killed"), "{out}");
    assert!(err.contains("no daemon runs") && err.contains("config.toml has a mistake"), "{err}");
    assert!(err.contains("unclosed array") && !err.contains("| limits"), "{err}");
    for id in sessions {
        assert_eq!(home.session_processes(id).len(), 0);
    }
    assert!(home.home.halt_json().exists());
    let refused = home.run(&["halt", "--release"]);
    let (_, err) = text(&refused);
    assert_eq!(refused.status.code(), Some(2), "{err}");
    assert!(err.contains("ostler config edit"), "{err}");
    home.configure("");
    holds(&home, &sessions, "fire").await;
}

#[tokio::test]
async fn a_halt_waits_for_no_daemon_that_hangs() {
    let home = shop();
    let sessions = [at_work(&home, "one"), at_work(&home, "two")];
    let daemon = home.daemon().unwrap();
    daemon.signal(Signal::STOP);
    // A keeper that hangs too takes its agent along.
    home.keeper(sessions[1]).unwrap().signal(Signal::STOP);
    let began = Instant::now();
    let halted = json_of(&home, &["halt", "-m", "fire", "-o", "json"]);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!((&halted["sessions"], &halted["halt"]["why"]), (&json!(2), &json!("fire")), "{halted}");
    let without = &halted["without_daemon"];
    assert_eq!((&without["recorded"], &without["left"]), (&json!(true), &json!([])), "{halted}");
    assert!(without["why"].as_str().unwrap().contains(&format!("pid {}", daemon.pid)), "{halted}");
    assert!(!daemon.is_alive(), "it would not know of the halt when it goes on");
    for id in sessions {
        assert_eq!(home.session_processes(id).len(), 0);
    }
    let client = home.client().await;
    assert_eq!(home.ended(&sessions[0].to_string()).await.outcome, Some(Outcome::Killed));
    drop(client);
    assert!(home.ended(&sessions[1].to_string()).await.outcome.is_some());
    holds(&home, &sessions[..1], "fire").await;
}

#[tokio::test]
async fn what_is_frozen_without_a_daemon_stands_still_until_it_is_released() {
    for is_hung in [false, true] {
        let home = shop();
        let id = ticking(&home);
        match is_hung {
            true => _ = home.daemon().unwrap().signal(Signal::STOP),
            false => {
                ok(&home, &["daemon", "stop"]);
                broken_config(&home);
            }
        }
        let (out, err) = ok(&home, &["halt", "--freeze"]);
        assert!(out.contains("halted: 1 session frozen"), "{out}{err}");
        assert!(stands_still(&home) && !home.session_processes(id).is_empty(), "{:?}", home.census(id));
        home.configure("");
        let client = home.start().await;
        let halt = client.status().await.unwrap().halt.expect("the halt does not hold");
        assert!(halt.freeze);
        let is_paused = |view: &View| view.attention == Some(Attention::Paused);
        assert_eq!(home.reaches(&id.to_string(), "its keeper", is_paused).await.outcome, None);
        assert!(stands_still(&home), "a daemon that came back let it go on");
        ok(&home, &["halt", "--release"]);
        goes_on(&home);
        assert_eq!(client.session(&id.to_string()).await.unwrap().outcome, None);
    }
}

#[tokio::test]
async fn a_daemon_that_hangs_is_named_by_what_is_no_emergency() {
    let home = shop();
    let id = at_work(&home, "one");
    ok(&home, &["halt", "--freeze"]);
    let daemon = home.daemon().unwrap();
    daemon.signal(Signal::STOP);
    for args in [&["halt", "--release"][..], &["halt", "--dry-run"], &["halt", "--mission", "m"]] {
        let began = Instant::now();
        let refused = home.run(args);
        let (_, err) = text(&refused);
        assert_eq!(refused.status.code(), Some(8), "{args:?}: {err}");
        assert!(began.elapsed() < SOON && err.contains(&format!("kill -9 {}", daemon.pid)), "{err}");
    }
    daemon.kill_and_wait();
    ok(&home, &["halt", "--release"]);
    assert_eq!(home.client().await.session(&id.to_string()).await.unwrap().outcome, None);
}

#[tokio::test]
async fn a_home_that_was_copied_halts_nobody_else() {
    let home = shop();
    let id = at_work(&home, "one");
    let copy = home.path().canonicalize().unwrap().join("copy");
    fs::create_dir_all(copy.join("state/sessions")).unwrap();
    fs::copy(home.home.daemon_json(), copy.join("state/daemon.json")).unwrap();
    let daemon = home.daemon().unwrap();
    let mut command = home.command(&["halt", "-o", "json"]);
    let output = command.env("OSTLER_HOME", &copy).env("OSTLER_NO_AUTOSTART", "1").output().unwrap();
    let (out, err) = text(&output);
    let halted: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
    assert_eq!(halted["sessions"], 0, "{halted}");
    assert!(daemon.is_alive());
    assert!(!home.session_processes(id).is_empty());
}

#[tokio::test]
async fn a_daemon_that_stops_after_a_halt_leaves_nobody_at_work() {
    let home = shop();
    let script = scenario::of(vec![json!({"run": ["sh", "-c", "touch up; exec sleep 300"]})]);
    let (id, _) = ok(&home, &["run", "-d", "-q", &script]);
    let id: SessionId = id.trim().parse().unwrap();
    wait::until("the tool to run", wait::PATIENCE, || home.campaign_dir().join("up").exists());
    // It has the last word, and takes its time.
    let [warden] = &home.children_of(&home.keeper(id).unwrap())[..] else { panic!("a keeper has one child") };
    warden.signal(Signal::STOP);
    let (out, _) = ok(&home, &["halt"]);
    assert!(out.contains("1 session killed"), "{out}");
    let (out, _) = ok(&home, &["daemon", "stop"]);
    assert!(!out.contains("without it"), "{out}");
    warden.signal(Signal::CONT);
}
