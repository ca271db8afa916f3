//! What takes something away says what, asks where a person is there, and can be asked what it would do.

use std::fs;

use ostler_testkit::TestHome;
use serde_json::Value;

use crate::{OSTLER, exec::OnTerminal};

fn ok(home: &TestHome, args: &[&str]) -> String {
    let output = home.run(args);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?} failed with {:?}: {err}", output.status.code());
    String::from_utf8(output.stdout).unwrap()
}

fn json_of(home: &TestHome, args: &[&str]) -> Value {
    let out = ok(home, args);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{args:?}: {error}: {out}"))
}

fn shop() -> TestHome {
    let home = TestHome::new(OSTLER);
    ok(&home, &["campaign", "add", ".", "--name", "shop"]);
    ok(&home, &["agent", "add", "api", "-p", "script"]);
    home
}

#[test]
fn a_person_is_asked_before_something_is_forgotten_and_a_program_is_not() {
    let home = shop();
    for (args, asks) in [
        (&["campaign", "rm", "shop"][..], "forget campaign shop"),
        (&["agent", "rm", "api"], "forget agent shop/agent/api"),
    ] {
        let mut on = OnTerminal::start(&home, args);
        on.until_shown(asks);
        on.type_in("n\n");
        on.until_shown("nothing was changed");
        assert!(on.child.wait().unwrap().success());
    }
    assert!(
        ok(&home, &["agent", "ls", "-q"]).lines().count() == 1 && !ok(&home, &["campaign", "ls"]).is_empty()
    );
    let mut on = OnTerminal::start(&home, &["agent", "rm", "api"]);
    on.until_shown("[y/N]");
    on.type_in("y\n");
    on.until_shown("forgotten");
    let mut on = OnTerminal::start(&home, &["campaign", "rm", "shop", "-y"]);
    on.until_shown("forgotten");
    assert!(!on.has_shown("[y/N]"));
    ok(&home, &["campaign", "add", ".", "--name", "shop"]);
    ok(&home, &["campaign", "rm", "shop"]);
}

#[test]
fn a_dry_run_says_what_would_be_and_changes_nothing() {
    let home = shop();
    ok(&home, &["run", "-d", "-p", "script", "--name", "talk", "hello"]);
    ok(&home, &["config", "set", "nodes.far.address", "ssh://far.example"]);
    let before = || {
        let all = [&["campaign", "ls"][..], &["agent", "ls"], &["conversation", "ls"], &["config", "show"]];
        let all = all.map(|args| ok(&home, &[args, &["-o", "name"]].concat()));
        (all, fs::read_to_string(home.home.config_toml()).unwrap(), home.daemon().unwrap().pid)
    };
    let was = before();
    for (args, would) in [
        (&["campaign", "rm", "shop"][..], "would forget campaign shop"),
        (&["agent", "rm", "api"], "would forget agent shop/agent/api"),
        (&["conversation", "rm", "talk"], "would close conversation talk and have"),
        (&["conversation", "reset", "talk"], "would close conversation talk and open"),
        (&["conversation", "archive", "talk"], "would close conversation talk for good"),
        (&["node", "rm", "far"], "would forget far, ssh://far.example"),
        (&["config", "unset", "nodes.far"], "would unset nodes.far"),
        (&["db", "vacuum"], "would write the database anew"),
        (&["daemon", "restart"], "would end and start anew the daemon (pid "),
        (&["daemon", "stop"], "would end the daemon (pid "),
        (&["restart", "talk"], "talk"),
    ] {
        let said = ok(&home, &[args, &["--dry-run"]].concat());
        assert!(said.contains(would), "{args:?}: {said}");
        json_of(&home, &[args, &["--dry-run", "-o", "json"]].concat());
    }
    assert_eq!(before(), was);
    assert_eq!(json_of(&home, &["campaign", "rm", "shop", "--dry-run", "-o", "json"])["name"], "shop");
    // Whoever says yes where nothing is asked is not refused.
    ok(&home, &["campaign", "set", "shop", "budget=1usd", "-y"]);
    ok(&home, &["config", "unset", "nodes.far", "--yes"]);
}

#[test]
fn messages_that_would_be_taken_back_still_wait() {
    let home = shop();
    ok(&home, &["run", "-d", "-p", "script", "--name", "busy", "{\"steps\":[{\"sleep_ms\":60000}]}"]);
    ok(&home, &["send", "busy", "later", "--mode", "followup"]);
    let waiting = || ok(&home, &["message", "ls", "busy", "-q"]);
    let id = waiting().trim().to_owned();
    assert!(!id.is_empty());
    for args in [&["message", "clear", "busy", "--dry-run"][..], &["message", "rm", &id, "--dry-run"]] {
        assert!(ok(&home, args).contains("would be taken back"), "{args:?}");
    }
    assert_eq!(waiting().trim(), id);
}
