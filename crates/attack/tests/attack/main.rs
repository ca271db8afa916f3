//! The whole suite against the real sandbox, and some of it against none.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::os::unix::process::CommandExt;
use std::process::Command;

use ostler_domain::attack::{Finding, Verdict};

/// Nobody's, on the machines that tests run on.
const USER: u32 = 54_321;

fn we_are_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn suite(as_user: bool, words: &[&str]) -> Vec<Finding> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_attack-under-test"));
    command.args(["internal", "attack-suite"]).args(words).current_dir("/");
    if as_user && we_are_root() {
        command.uid(USER).gid(USER);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let findings: Vec<Finding> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let held = findings.iter().all(|finding| finding.verdict.held());
    assert_eq!(output.status.success(), held, "{}", output.status);
    assert!(findings.iter().rev().enumerate().all(|(place, finding)| finding.left == place));
    findings
}

#[track_caller]
fn all_held(findings: &[Finding]) {
    assert!(findings.len() > 100, "{}", findings.len());
    for finding in findings.iter().filter(|finding| finding.verdict == Verdict::Untried) {
        eprintln!("untried: {}: {}", finding.name, finding.detail);
    }
    let through: Vec<String> = findings
        .iter()
        .filter(|finding| !finding.verdict.held())
        .map(|finding| format!("{finding:?}"))
        .collect();
    assert!(through.is_empty(), "{}", through.join("\n"));
}

#[test]
fn nothing_gets_through_for_whoever_runs_this() {
    all_held(&suite(false, &[]));
}

#[test]
fn nothing_gets_through_for_an_ordinary_user() {
    if !we_are_root() {
        eprintln!("skipped: not root, and the other test is an ordinary user's");
        return;
    }
    all_held(&suite(true, &[]));
}

#[test]
fn nothing_gets_through_for_root_on_a_users_campaign() {
    if !we_are_root() {
        eprintln!("skipped: not root");
        return;
    }
    all_held(&suite(false, &["--owner", &USER.to_string()]));
}

/// Else a suite in which everything is stopped says nothing.
#[test]
fn without_a_sandbox_things_get_through() {
    let names = [
        "files/read-outside",
        "files/write-outside",
        "files/delete-outside",
        "hidden/read-env",
        "links/to-file",
        "signals/kill",
        "sockets/abstract",
        "sockets/path",
        "network/loopback",
        "git/hook",
    ];
    let mut words = vec!["--unconfined"];
    words.extend(names);
    let findings = suite(false, &words);
    assert_eq!(findings.len(), names.len());
    for finding in findings {
        assert_eq!(finding.verdict, Verdict::GotThrough, "{}: {}", finding.name, finding.detail);
    }
}
