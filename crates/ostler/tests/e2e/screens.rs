//! What people see and type at a terminal.

use std::fs;

use ostler_testkit::{Proc, TestHome, scenario, wait};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{OSTLER, exec::OnTerminal};

fn shop() -> TestHome {
    let home = TestHome::new(OSTLER);
    assert!(home.run(&["campaign", "add", ".", "--name", "shop"]).status.success());
    home
}

fn asking(home: &TestHome, name: &str) {
    let asks = json!({"ask": {"tool": "run", "input": "cargo add governor"}});
    let prompt = scenario::of(vec![asks, scenario::say("went on")]);
    let run = home.run(&["run", "-p", "script", "-d", "--keep", "-q", "--name", name, &prompt]);
    assert!(run.status.success(), "{run:?}");
    wait::until("a question", wait::PATIENCE, || {
        String::from_utf8_lossy(&home.run(&["approval", "-q"]).stdout).contains("apr_")
    });
}

fn session(home: &TestHome, name: &str) -> Value {
    serde_json::from_slice(&home.run(&["show", name, "-o", "json"]).stdout).unwrap()
}

#[test]
fn who_attaches_answers_by_a_letter_types_a_line_and_leaves() {
    let home = shop();
    asking(&home, "api");
    let mut on = OnTerminal::start(&home, &["attach", "api"]);
    on.until_shown("[a] once");
    wait::until("keys to come one by one", wait::PATIENCE, || on.is_raw());
    on.until_shown("one of these and Enter");
    // A message is one, whatever letter it begins with.
    on.type_in("A word first\r");
    on.until_shown("> A word first");
    let asked = session(&home, "api")["approvals"].as_array().unwrap().len();
    assert_eq!(asked, 1, "nothing was allowed by it");
    on.type_in("a\r");
    on.until_shown("allowed by");
    on.until_shown("went on");
    on.type_in("hello thx\u{7f}ere\r");
    on.until_shown("You said: hello there");
    Proc::of(on.child.id()).unwrap().signal(Signal::INT);
    on.until_shown("api goes on");
    assert_eq!(on.child.wait().unwrap().code(), Some(0));
    assert!(!on.is_raw(), "the terminal is given back");
    assert_eq!(session(&home, "api")["status"], "RUNNING");
}

#[test]
fn a_reason_is_typed_whole_whatever_letters_it_begins_with() {
    let home = shop();
    asking(&home, "api");
    let mut on = OnTerminal::start(&home, &["attach", "api"]);
    on.until_shown("[m] deny and say why");
    on.type_in("m\r");
    on.until_shown("why not? >");
    on.type_in("add a branch\r");
    on.until_shown("run was denied. add a branch");
    on.type_in("\u{4}");
    assert_eq!(on.child.wait().unwrap().code(), Some(0), "Ctrl-D leaves too");
}

#[test]
fn what_is_longer_than_the_screen_is_read_in_the_pager() {
    let home = shop();
    let read = home.path().join("read");
    let on_terminal = |args: &[&str]| {
        let mut command = home.command(args);
        command.env("PAGER", format!("cat > {}", read.display()));
        let mut on = OnTerminal::begin(command);
        assert_eq!(on.child.wait().unwrap().code(), Some(0));
    };
    on_terminal(&["ls"]);
    assert!(!read.exists(), "what fits is printed");
    on_terminal(&["help"]);
    let page = fs::read_to_string(&read).unwrap();
    assert!(page.contains("EMERGENCY") && page.lines().count() > 40, "{page}");
    let prompt = scenario::of((0..60).map(|n| scenario::say(&format!("line {n}"))).collect());
    assert!(home.run(&["run", "-p", "script", "--name", "talker", &prompt]).status.success());
    fs::remove_file(&read).unwrap();
    on_terminal(&["logs", "talker"]);
    let page = fs::read_to_string(&read).unwrap();
    assert!(page.contains("line 3") && page.lines().count() > 40, "{page}");
    fs::remove_file(&read).unwrap();
    on_terminal(&["logs", "-f", "talker"]);
    assert!(!read.exists(), "what is followed is not kept for later");
    let piped = home.command(&["help"]).env("PAGER", "false").output().unwrap();
    assert!(piped.status.success() && piped.stdout.len() > 1_000, "a pipe has no pager");
}

#[test]
fn a_list_is_drawn_anew_as_things_happen() {
    let home = shop();
    let mut on = OnTerminal::start(&home, &["ls", "-w"]);
    on.until_shown("No sessions yet.");
    asking(&home, "api");
    on.until_shown("waiting_approval");
    on.until_shown("1 needs you");
    on.child.kill().unwrap();
    on.child.wait().unwrap();
}

#[test]
fn a_shell_is_offered_names_and_ids_and_no_daemon_is_started_for_it() {
    let home = TestHome::new(OSTLER);
    let offered = |words: &[&str]| {
        let mut args = vec!["--"];
        args.extend(words);
        let output = home
            .command(&args)
            .env("COMPLETE", "bash")
            .env("_CLAP_IFS", "\n")
            .env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string())
            .output()
            .unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(!offered(&["ostler", "show", ""]).contains("api"));
    assert!(home.daemon_file().is_none(), "a key starts no daemon");
    assert!(home.run(&["campaign", "add", ".", "--name", "shop"]).status.success());
    asking(&home, "api");
    assert!(offered(&["ostler", "show", ""]).lines().any(|word| word == "api"));
    assert!(offered(&["ostler", "run", "-C", ""]).lines().any(|word| word == "shop"));
    assert!(offered(&["ostler", "run", "-p", ""]).lines().any(|word| word == "script"));
    let id = String::from_utf8(home.run(&["approval", "-q"]).stdout).unwrap();
    let short = id.trim()[id.trim().len() - 5..].to_lowercase();
    assert!(offered(&["ostler", "allow", ""]).lines().any(|word| word == short));
}

#[test]
fn aliases_with_a_flag_in_them_do_what_they_stand_for() {
    let home = shop();
    assert!(home.run(&["run", "-p", "script", "-q", "--name", "done", "hello"]).status.success());
    let listed = |args: &[&str]| String::from_utf8(home.run(args).stdout).unwrap();
    assert_eq!(listed(&["find", "-q"]), listed(&["ls", "-a", "-q"]));
    assert!(listed(&["find", "-q"]).starts_with("ses_") && listed(&["ls", "-q"]).is_empty());
    assert_eq!(listed(&["sessions", "find", "-q"]), listed(&["ls", "-a", "-q"]));
    assert_eq!(
        listed(&["sessions", "list", "-a", "--rig", "shop", "-q"]),
        listed(&["ls", "-a", "-C", "shop", "-q"])
    );
    assert_eq!(listed(&["sessions", "show", "done", "-q"]), listed(&["show", "done", "-q"]));
    let chain = listed(&["sessions", "chain", "done", "--json"]);
    assert!(chain.contains("ses_") && chain == listed(&["chain", "show", "done", "--json"]), "{chain}");
    let watched = listed(&["watch", "--after", "0", "--limit", "2", "-o", "jsonl"]);
    assert_eq!(watched, listed(&["events", "-f", "--after", "0", "--limit", "2", "-o", "jsonl"]));
    assert_eq!(watched.lines().count(), 2);
}

#[test]
fn a_person_says_that_the_work_is_done_and_what_it_was() {
    let home = shop();
    asking(&home, "api");
    let text = |args: &[&str], code: i32| {
        let output = home.run(args);
        let all =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{args:?}: {all}");
        all
    };
    assert!(text(&["label", "api", "the login"], 0).contains("is labelled “the login”"));
    assert!(text(&["session", "label", "api", ""], 0).contains("has no label"));
    assert!(text(&["done"], 2).contains("ostler done WHO"), "of which?");
    assert!(text(&["done", "api", "-m", "x"], 2).contains("ostler label api x"));
    let done = text(&["session", "done", "api"], 0);
    assert!(done.contains("Its work is done, said "), "{done}");
    assert_eq!(session(&home, "api")["outcome"], "done");
    assert!(text(&["done", "api"], 0).contains("had ended before"));
    // What many would be done to is shown first.
    asking(&home, "web");
    for verb in ["kill", "interrupt", "stop"] {
        let shown = text(&[verb, "-C", "shop", "--dry-run"], 0);
        assert!(shown.contains("web") && shown.contains("1 session would be"), "{shown}");
    }
    let shown = text(&["halt", "--dry-run"], 0);
    assert!(shown.contains("1 session would be killed"), "{shown}");
    assert_eq!(session(&home, "web")["status"], "RUNNING", "nothing was done");
    let refused = text(&["send", "nobody", "x", "--json"], 3);
    assert!(refused.contains("\"request_id\":\"req_"), "{refused}");
    let told = text(&["ls", "-v"], 0);
    assert!(told.contains("daemon ") && told.contains("pid ") && told.contains("exit 0 after "), "{told}");
}

#[test]
fn one_thing_is_drawn_anew_as_it_happens() {
    let home = shop();
    asking(&home, "api");
    let mut on = OnTerminal::start(&home, &["show", "-w", "api"]);
    on.until_shown("waiting_approval");
    assert!(home.run(&["stop", "api"]).status.success());
    on.until_shown("STOPPED");
    on.child.kill().unwrap();
    on.child.wait().unwrap();
    assert_eq!(home.run(&["show", "-w", "api"]).status.code(), Some(2), "a pipe is no terminal");
}

#[test]
fn who_attaches_to_one_that_has_ended_has_a_new_one() {
    let home = shop();
    let run = home.run(&["run", "-p", "script", "-q", "--name", "old", "hello"]);
    assert!(run.status.success(), "{run:?}");
    let before = session(&home, "old")["id"].clone();
    let mut on = OnTerminal::start(&home, &["attach", "old"]);
    on.until_shown("had ended; a new session goes on");
    on.until_shown("a message, Enter sends it");
    on.type_in("still there?\r");
    on.until_shown("You said: still there?");
    on.type_in("\u{4}");
    assert_eq!(on.child.wait().unwrap().code(), Some(0));
    let after = session(&home, "old");
    assert_ne!(after["id"], before);
    assert_eq!(after["continues"], before);
    // An agent that has not worked yet has its first.
    assert!(home.run(&["agent", "add", "fresh", "-p", "script"]).status.success());
    let mut on = OnTerminal::start(&home, &["attach", "fresh"]);
    on.until_shown("a message, Enter sends it");
    on.type_in("\u{4}");
    assert_eq!(on.child.wait().unwrap().code(), Some(0));
    wait::until("its first session", wait::PATIENCE, || session(&home, "fresh")["status"] == "RUNNING");
}

#[test]
fn a_command_may_make_a_campaign_of_where_it_runs() {
    let home = TestHome::new(OSTLER);
    let refused = home.run(&["exec", "--", "git", "--version"]);
    assert_eq!(refused.status.code(), Some(3), "{refused:?}");
    let run = home.run(&["exec", "--here", "--", "git", "--version"]);
    assert!(run.status.success() && String::from_utf8_lossy(&run.stderr).contains("(added)"), "{run:?}");
    assert!(String::from_utf8_lossy(&run.stdout).contains("git version"), "{run:?}");
}
