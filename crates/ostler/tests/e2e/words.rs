//! What commands say came of it, where that is not what was asked for.

use std::{os::unix::process::CommandExt, process::Output};

use ostler_testkit::{TestHome, scenario, skip, wait};
use rustix::process::Signal;
use serde_json::json;

use crate::OSTLER;

/// Nobody's number on every system.
const NOBODY: u32 = 65_534;

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn shop() -> TestHome {
    let home = TestHome::new(OSTLER);
    assert!(home.run(&["campaign", "add", ".", "--name", "shop"]).status.success());
    home
}

/// A session in the middle of a turn that does this.
fn working(home: &TestHome, step: serde_json::Value) -> String {
    let prompt = scenario::of(vec![step]);
    let output = home.run(&["run", "-d", "-q", &prompt]);
    let id = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    wait::until("work", wait::PATIENCE, || said(&home.run(&["ls", "-o", "json"])).contains("\"WORKING\""));
    id
}

#[test]
fn an_interrupt_says_whether_the_turn_ended() {
    let home = shop();
    let id = working(&home, json!({"sleep_ms": 60_000}));
    assert!(home.run(&["pause", &id]).status.success());
    let words = said(&home.run(&["interrupt", &id]));
    assert!(words.contains("when it goes on"), "{words}");
    assert!(home.run(&["resume", &id]).status.success());
    wait::until("the turn's end", wait::PATIENCE, || {
        said(&home.run(&["ls", "-o", "json"])).contains("\"RUNNING\"")
    });
    let words = said(&home.run(&["interrupt", &id]));
    assert!(words.contains("no turn to interrupt"), "{words}");

    let deaf = working(&home, json!({"hang": true}));
    let words = said(&home.run(&["interrupt", &deaf]));
    assert!(words.contains("has not yet"), "{words}");
}

#[test]
fn a_second_stop_does_not_claim_the_first_one_s_work() {
    let home = shop();
    let id = working(&home, json!({"sleep_ms": 60_000}));
    assert!(said(&home.run(&["kill", &id])).contains("killed"));
    for verb in ["kill", "stop"] {
        let words = said(&home.run(&[verb, &id]));
        assert!(words.contains("had ended before"), "{words}");
    }
}

#[test]
fn a_prompt_beyond_all_limits_is_refused_in_plain_words() {
    let home = shop();
    let file = home.path().join("prompt");
    std::fs::write(&file, "x".repeat(40 << 20)).unwrap();
    let output = home.run(&["run", "-d", "-f", file.to_str().unwrap()]);
    let words = said(&output);
    assert!(!output.status.success() && words.contains("MiB") && !words.contains("decod"), "{words}");
}

#[test]
fn a_daemon_that_says_nothing_is_remarked_upon() {
    let home = shop();
    let daemon = home.daemon().unwrap();
    daemon.signal(Signal::STOP);
    let mut waiting = home.command(&["ls"]).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut said = std::io::BufReader::new(waiting.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).unwrap();
    daemon.signal(Signal::CONT);
    assert!(line.contains("no answer"), "{line}");
    assert!(waiting.wait().unwrap().success(), "and when it goes on, so does the command");
}

#[test]
fn a_program_does_not_wait_for_ever_for_a_daemon_that_hangs_and_a_restart_cures_it() {
    let home = shop();
    let daemon = home.daemon().unwrap();
    daemon.signal(Signal::STOP);
    let output = home.run(&["ls"]);
    let words = said(&output);
    assert_eq!(output.status.code(), Some(7), "{words}");
    for part in ["DAEMON_UNREACHABLE", "ostler daemon restart", "ostler halt"] {
        assert!(words.contains(part), "{part}: {words}");
    }
    let output = home.run(&["daemon", "restart"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(!daemon.is_alive() && home.run(&["ls"]).status.success());
}

#[test]
fn a_home_that_cannot_be_made_says_what_to_do() {
    let home = TestHome::new(OSTLER);
    let output = home.command(&["ls"]).env("OSTLER_HOME", "/proc/nope").output().unwrap();
    let words = said(&output);
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(
        words.contains("/proc/nope/state cannot be made") && words.contains("OSTLER_HOME=DIR"),
        "{words}"
    );
}

#[test]
fn a_column_that_there_is_none_of_is_refused_in_an_empty_list_too() {
    let home = shop();
    for args in
        [&["ls", "--columns", "xx"][..], &["find", "--columns", "xx"], &["agent", "ls", "--columns", "xx"]]
    {
        let output = home.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", said(&output));
    }
    for args in [&["ls", "--columns", "name,now"][..], &["message", "ls", "--columns", "next"]] {
        let output = home.run(args);
        assert!(output.status.success(), "{args:?}: {}", said(&output));
    }
}

#[test]
fn a_daemon_ends_with_its_home() {
    let home = shop();
    let daemon = home.daemon().unwrap();
    std::fs::rename(home.path(), home.path().with_extension("gone")).unwrap();
    wait::until("its end", wait::PATIENCE, || !daemon.is_alive());
    std::fs::rename(home.path().with_extension("gone"), home.path()).unwrap();
}

#[test]
fn somebody_else_s_daemon_is_not_talked_to() {
    if !rustix::process::geteuid().is_root() {
        skip::impossible("somebody_else_s_daemon_is_not_talked_to", "only root can be somebody else");
        return;
    }
    let home = shop();
    let output = home.command(&["ls"]).uid(NOBODY).gid(NOBODY).output().unwrap();
    let words = said(&output);
    assert_eq!(output.status.code(), Some(5), "{words}");
    assert!(words.contains("PERMISSION_DENIED"), "{words}");
}

#[test]
fn what_has_ended_goes_on_with_the_limits_it_is_given() {
    let home = shop();
    let prompt = scenario::of(vec![json!({"usage": {"input": 850, "output": 0}}), scenario::say("a")]);
    let over = home.run(&["run", "--name", "poor", "--budget", "100", &prompt]);
    assert_eq!(over.status.code(), Some(11), "{}", said(&over));
    let raised = home.run(&["resume", "poor", "--budget", "5000"]);
    assert!(raised.status.success(), "{}", said(&raised));
    let shown: serde_json::Value =
        serde_json::from_slice(&home.run(&["show", "poor", "-o", "json"]).stdout).unwrap();
    let session = shown.get("session").unwrap_or(&shown);
    assert_eq!(session["budget"]["tokens"], 5_000 - 850, "what is used is included: {shown}");
}

#[test]
fn a_name_belongs_to_its_campaign() {
    let home = shop();
    let site = home.path().join("site");
    std::fs::create_dir(&site).unwrap();
    let site_text = site.display().to_string();
    assert!(home.run(&["campaign", "add", &site_text, "--name", "site"]).status.success());
    let sleeping = scenario::of(vec![json!({"sleep_ms": 60_000})]);
    let start = |campaign: &str| {
        let output = home.run(&["run", "-d", "-q", "-C", campaign, "--name", "api-auth", &sleeping]);
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let (in_shop, in_site) = (start("shop"), start("site"));
    let again = home.run(&["run", "-d", "-C", "site", "--name", "api-auth", &sleeping]);
    assert!(said(&again).contains("NAME_TAKEN"), "{}", said(&again));

    let meant = |who: &str, from: &std::path::Path| {
        let output = home.command(&["show", who, "--json"]).current_dir(from).output().unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (answer["session"]["id"].as_str().or(answer["id"].as_str()).map(str::to_owned), said(&output))
    };
    let shop_dir = home.campaign_dir();
    assert_eq!(meant("site/api-auth", &shop_dir).0.as_ref(), Some(&in_site));
    assert_eq!(meant("api-auth", &shop_dir).0.as_ref(), Some(&in_shop));
    assert_eq!(meant("api-auth", &site).0.as_ref(), Some(&in_site));
    let elsewhere = home.command(&["stop", "api-auth"]).current_dir(home.path()).output().unwrap();
    assert_eq!(elsewhere.status.code(), Some(3), "{}", said(&elsewhere));
    let words = said(&elsewhere);
    assert!(words.contains("AMBIGUOUS") && words.contains("shop/api-auth"), "{words}");
    assert!(words.contains("site/api-auth"), "{words}");

    // Here it means the one here, also after that one has ended; elsewhere the one that lives.
    assert!(home.run(&["stop", "api-auth"]).status.success());
    assert_eq!(meant("api-auth", &shop_dir).0.as_ref(), Some(&in_shop));
    assert_eq!(meant("api-auth", home.path()).0.as_ref(), Some(&in_site));
    assert!(home.run(&["stop", &in_site]).status.success());
    let words = meant("api-auth", home.path()).1;
    assert!(words.contains("AMBIGUOUS") && words.contains("site/api-auth"), "{words}");
}

#[test]
fn some_of_many_end_with_the_code_that_is_said() {
    let home = shop();
    working(&home, json!({"sleep_ms": 60_000}));
    assert!(home.run(&["run", "-d", "--name", "two", "hello"]).status.success());
    let some = home.run(&["stop", "two", "nosuch"]);
    assert_eq!(some.status.code(), Some(9));
    assert!(said(&some).contains("[SESSION_UNKNOWN, exit 9]"), "{}", said(&some));
    let none = home.run(&["stop", "nosuch", "neither", "--json"]);
    assert_eq!(none.status.code(), Some(3));
    assert!(said(&none).contains("\"exit\":3"), "{}", said(&none));
}

#[test]
fn logs_tell_a_repetition_once() {
    let home = shop();
    let mut steps: Vec<_> = (0..12).map(|_| json!({"run": ["sh", "-c", "exit 3"]})).collect();
    steps.push(json!({"run": ["true"]}));
    steps.push(scenario::say("done"));
    assert!(home.run(&["run", &scenario::of(steps)]).status.success());
    let logs = said(&home.run(&["logs", "-"]));
    let folded: Vec<&str> = logs.lines().filter(|line| line.contains("exit 3")).collect();
    // The prompt says it too.
    assert!(folded.iter().any(|line| line.contains("× 12")), "{logs}");
    assert_eq!(logs.lines().filter(|line| line.contains("✗")).count(), 1, "{logs}");
}

#[test]
fn config_says_from_when_on_a_change_holds() {
    let home = shop();
    let when = |key: &str, value: &str| said(&home.run(&["config", "set", key, value]));
    assert!(when("limits.sessions", "3").contains("holds at once"));
    assert!(when("provider", "script").contains("from the next session on"));
    assert!(when("idle_stop", "1h").contains("the daemon's next start"));
}

#[test]
fn names_sections_and_units_are_printed_when_they_are_asked_for() {
    let home = shop();
    let started = home.run(&["run", "-d", "-q", "--name", "docs", "hello"]);
    let id = String::from_utf8(started.stdout).unwrap();
    let out = |args: &[&str]| String::from_utf8(home.run(args).stdout).unwrap();
    assert_eq!(out(&["show", "docs", "-o", "name"]), id);
    assert!(out(&["show", "shop", "-q"]).starts_with("cmp_"));
    assert_eq!(home.run(&["logs", "docs", "-o", "name"]).status.code(), Some(2));
    assert_eq!(out(&["ls", "--columns", "name", "--no-headers"]).trim(), "docs");
    assert!(home.run(&["config", "set", "limits.sessions", "7"]).status.success());
    let limits = out(&["config", "get", "limits"]);
    assert!(limits.contains("limits.sessions = 7") && limits.contains("limits.tape = "), "{limits}");
    let columns = ["config", "show", "limits", "--columns", "setting,by", "--no-headers"];
    assert!(out(&columns).lines().any(|line| line.split_whitespace().eq(["limits.sessions", "file"])));
    assert!(out(&["policy", "show", "-o", "name"]).lines().any(|line| line == "net.mode"));
    assert!(out(&["policy", "show", "-o", "jsonl"]).starts_with("{\"key\":\"sandbox\""));
    assert!(out(&["service", "install", "--dry-run"]).contains("ExecStart="));
    let mut edit = home.command(&["config", "edit"]);
    let edit = edit.env_remove("EDITOR").env_remove("VISUAL").output().unwrap();
    assert!(edit.status.code() == Some(2) && said(&edit).contains("ostler config set KEY VALUE"), "{edit:?}");
    let words = said(&home.run(&["node", "add", "x", "build"]));
    assert!(words.contains("ostler node add x ssh://build"), "{words}");
    assert_eq!(out(&["-V"]), out(&["version"]), "with the commit, where it is known");
}
