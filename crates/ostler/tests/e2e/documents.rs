//! What programs read: with `-o json` every command that shows something prints exactly one document, and with `-o jsonl`
//! one a line.

use std::process::Output;

use ostler_testkit::{TestHome, scenario, wait};
use serde_json::{Value, json};

use crate::OSTLER;

fn ok(home: &TestHome, args: &[&str]) -> String {
    let output = home.run(args);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?} failed with {:?}: {err}", output.status.code());
    String::from_utf8(output.stdout).unwrap()
}

/// Two sessions that have ended, one that asks and has a message waiting, an agent, a ticket, a mission.
fn filled() -> TestHome {
    let home = TestHome::new(OSTLER);
    ok(&home, &["campaign", "add", ".", "--name", "shop"]);
    ok(&home, &["campaign", "set", "shop", "snapshots=always"]);
    ok(&home, &["agent", "add", "ann", "--role", "builder", "-C", "shop"]);
    for name in ["one", "two"] {
        let steps =
            vec![json!({"usage": {"output": 5}}), json!({"run": ["true"]}), scenario::say("the needle")];
        let prompt = scenario::of(steps);
        ok(&home, &["run", "-p", "script", "-q", "--name", name, "--ticket", "gh:1", &prompt]);
    }
    let asks = scenario::of(vec![json!({"ask": {"tool": "run", "input": "git push"}})]);
    ok(&home, &["run", "-p", "script", "-d", "--keep", "--name", "asks", &asks]);
    ok(&home, &["send", "asks", "and then this"]);
    ok(&home, &["ticket", "add", "mend it", "-C", "shop"]);
    let plan = "name = \"team\"\nobjective = \"x\"\n[[agents]]\nname = \"a\"\nprovider = \"script\"\ntask = \"hello\"\n";
    std::fs::write(home.campaign_dir().join("plan.toml"), plan).unwrap();
    ok(&home, &["mission", "start", "plan.toml", "-d"]);
    wait::until("it asks, and the mission is over", wait::PATIENCE, || {
        let asked: Value = serde_json::from_str(&ok(&home, &["approval", "-o", "json"])).unwrap();
        let mission: Value =
            serde_json::from_str(&ok(&home, &["mission", "show", "team", "-o", "json"])).unwrap();
        !asked["approvals"].as_array().unwrap().is_empty() && mission["status"] == "completed"
    });
    home
}

fn first_id(home: &TestHome, args: &[&str], rows: &str) -> String {
    let listed: Value = serde_json::from_str(&ok(home, args)).unwrap();
    listed[rows][0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn what_is_read_as_json_is_one_document() {
    let home = filled();
    let approval = first_id(&home, &["approval", "-o", "json"], "approvals");
    let message = first_id(&home, &["message", "ls", "-o", "json"], "messages");
    let ticket = first_id(&home, &["ticket", "ls", "-o", "json"], "tickets");
    let reading = format!(
        "ls
         ls -a
         find
         ls --needs-me
         show one
         show shop
         show {approval}
         show {message}
         show {ticket}
         logs one
         logs one two
         logs one two --tail 3
         logs one --kind completion
         logs one --since 1s --kind agent_error
         approval
         approval ls -a
         approval show {approval}
         message ls asks -a
         message show {message}
         campaign ls
         campaign show shop
         agent ls
         agent show ann
         conversation ls
         conversation show one
         ticket ls
         ticket show {ticket}
         mission ls -a
         mission show team
         mission graph team
         mission logs team
         mission logs team --tail 2
         mission report team
         mission plan plan.toml
         mission template ls
         chain show one
         search needle
         seance one needle
         cost
         cost --by day
         usage audit one
         price ls
         provider ls
         provider show script
         policy show
         policy test path read .
         policy test command git status
         sandbox show shop
         sandbox check
         retention plan
         node ls
         worktree ls
         worktree gc --dry-run
         conversation prune --idle 1d --dry-run
         notify ls
         share ls
         api token
         sql SELECT+1
         du
         db check
         audit verify
         daemon status
         daemon logs
         service status
         config show
         config get limits.sessions
         config path
         metrics
         doctor --quick
         diff one
         stop --status working,running --dry-run
         resume --lost --dry-run
         version
         version --check"
    );
    let mut wrong = Vec::new();
    for line in reading.lines().map(str::trim) {
        let args: Vec<String> = line.split(' ').map(|word| word.replace('+', " ")).collect();
        let args: Vec<&str> = ["-o", "json"].into_iter().chain(args.iter().map(String::as_str)).collect();
        let Output { stdout, stderr, status } = home.run(&args);
        let text = String::from_utf8(stdout).unwrap();
        let document: Result<Value, _> = serde_json::from_str(&text);
        if !document.is_ok_and(|document| document.is_object() || document.is_array()) {
            let err = String::from_utf8_lossy(&stderr);
            wrong.push(format!("{line}: exit {:?}: {text:.300} {err:.300}", status.code()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_has_no_end_is_refused_as_one_document_and_printed_line_by_line() {
    let home = filled();
    for line in ["events", "watch", "tape one", "logs -f asks", "mission logs -f team", "daemon logs -f"] {
        let args: Vec<&str> = line.split(' ').chain(["-o", "json"]).collect();
        let refused = home.run(&args);
        let err = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{line}: {err}");
        assert!(refused.stdout.is_empty() && err.contains("jsonl"), "{line}: {err}");
    }
    let lines = |args: &[&str]| -> Vec<Value> {
        ok(&home, args).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let whole: Value = serde_json::from_str(&ok(&home, &["logs", "one", "two", "-o", "json"])).unwrap();
    assert_eq!(whole["events"].as_array().unwrap(), &lines(&["logs", "one", "two", "-o", "jsonl"]));
    assert_eq!(whole["next_cursor"], Value::Null);
}

#[test]
fn several_that_were_changed_are_one_document_and_one_alone_is_itself() {
    let home = TestHome::new(OSTLER);
    ok(&home, &["campaign", "add", ".", "--name", "shop"]);
    for name in ["one", "two", "three", "four"] {
        ok(&home, &["run", "-p", "script", "-d", "--keep", "--name", name, "hello"]);
    }
    let read = |args: &[&str]| -> Value { serde_json::from_str(&ok(&home, args)).unwrap() };
    assert_eq!(read(&["stop", "one", "-o", "json"])["name"], "one");
    let names = |document: &Value| -> Vec<String> {
        let rows = document["sessions"].as_array().unwrap().iter();
        rows.map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&read(&["stop", "two", "three", "-o", "json"])), ["two", "three"]);
    let waited = home.run(&["wait", "two", "three", "-o", "json"]);
    assert_eq!(waited.status.code(), Some(15), "they were stopped");
    let mut waited = names(&serde_json::from_slice(&waited.stdout).unwrap());
    waited.sort();
    assert_eq!(waited, ["three", "two"]);
    assert_eq!(names(&read(&["stop", "--agent", "four", "-y", "-o", "json"])), ["four"]);
    let lines = home.run(&["wait", "two", "three", "-o", "jsonl"]).stdout;
    assert_eq!(String::from_utf8(lines).unwrap().lines().count(), 2);
}
