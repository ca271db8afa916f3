//! Tickets: work that outlives the sessions which try to do it.

use std::fs;

use ostler_domain::session::Outcome;
use ostler_testkit::{TestHome, scenario};
use serde_json::{Value, json};

use crate::OSTLER;

fn ok(home: &TestHome, args: &[&str]) -> String {
    let output = home.run(args);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?} failed with {:?}: {err}", output.status.code());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn json_of(home: &TestHome, args: &[&str]) -> Value {
    let args: Vec<&str> = args.iter().copied().chain(["-o", "json"]).collect();
    let out = ok(home, &args);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{args:?}: {error}: {out}"))
}

/// What is refused: its exit code and its words.
fn refused(home: &TestHome, args: &[&str]) -> (Option<i32>, String) {
    let output = home.run(args);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn with_campaign() -> TestHome {
    let home = TestHome::new(OSTLER);
    ok(&home, &["campaign", "add", ".", "--name", "shop"]);
    home
}

fn status(home: &TestHome, ticket: &str) -> Value {
    json_of(home, &["ticket", "show", ticket])["status"].clone()
}

fn shell(script: &str) -> Value {
    json!({"run": ["sh", "-c", script]})
}

#[test]
fn a_ticket_waits_for_others_and_is_done_by_whoever_says_so() {
    let home = with_campaign();
    let first = ok(&home, &["ticket", "add", "Write the test", "-q"]);
    let script = "ostler step build start && ostler step build end -m green && ostler done";
    let prompt = scenario::of(vec![json!({"usage": {"output": 7}}), shell(script)]);
    let second = ok(&home, &["ticket", "add", &prompt, "--ref", "gh:shop#2", "--depends-on", &first, "-q"]);
    let (code, words) = refused(&home, &["ticket", "start", "gh:shop#2", "-p", "script"]);
    assert!(code == Some(4) && words.contains("Write the test"), "{code:?} {words}");
    ok(&home, &["ticket", "done", &first, "-m", "by hand"]);
    assert_eq!(json_of(&home, &["ticket", "show", &first])["why"], "by hand");

    let session = ok(&home, &["ticket", "start", "gh:shop#2", "-p", "script", "-q"]);
    ok(&home, &["wait", &session]);
    let whole = json_of(&home, &["show", &second]);
    assert_eq!(whole["status"], "done", "{whole}");
    assert_eq!(whole["iterations"][0]["session"], session.as_str());
    assert_eq!(whole["iterations"][0]["result"], Outcome::Done.as_str());
    assert_eq!((&whole["usage"]["output"], &whole["steps"][0]["success"]), (&json!(7), &json!(true)));
    let listed = json_of(&home, &["ls", "-a", "--ticket", "gh:shop#2"]);
    let row = &listed["sessions"][0];
    assert_eq!((&row["ticket"], &row["ticket_id"]), (&json!("gh:shop#2"), &json!(second)));
    // Nothing is started for what is done, until somebody opens it again.
    let (code, words) = refused(&home, &["run", "-p", "script", "--ticket", "gh:shop#2", "more"]);
    assert!(code == Some(4) && words.contains("ostler ticket reopen gh:shop#2"), "{code:?} {words}");
    let (code, _) = refused(&home, &["restart", &session]);
    assert_eq!(code, Some(4));
    ok(&home, &["ticket", "reopen", "gh:shop#2"]);
    ok(&home, &["run", "-q", "-p", "script", "--ticket", "gh:shop#2", "more"]);
    let whole = json_of(&home, &["ticket", "show", "gh:shop#2"]);
    // Its agent did not say that the work is done.
    assert_eq!(
        (whole["status"].as_str(), whole["iterations"].as_array().unwrap().len()),
        (Some("queued"), 2)
    );
}

#[test]
fn what_came_to_nothing_is_not_tidied_away_while_others_wait_for_it() {
    let home = with_campaign();
    let first = ok(&home, &["ticket", "add", "Write the test", "-q"]);
    let second = ok(&home, &["ticket", "add", "Fix it", "--depends-on", &first, "-q"]);
    ok(&home, &["ticket", "cancel", &first]);
    let (code, words) = refused(&home, &["ticket", "archive", &first]);
    assert!(code == Some(4) && words.contains("--no-depends-on"), "{code:?} {words}");
    assert_eq!(refused(&home, &["ticket", "start", &second, "-p", "script"]).0, Some(4));
    ok(&home, &["ticket", "link", &second, "--no-depends-on", &first]);
    ok(&home, &["ticket", "archive", &first]);
    assert_eq!(status(&home, &first), "archived");
}

#[test]
fn a_reference_that_nobody_wrote_down_becomes_a_ticket() {
    let home = with_campaign();
    ok(&home, &["run", "-q", "-p", "script", "--ticket", "bead:gt-1", "look around"]);
    let whole = json_of(&home, &["ticket", "show", "bead:gt-1"]);
    assert_eq!((&whole["intent"], &whole["status"]), (&json!("look around"), &json!("queued")));
    let (code, _) = refused(&home, &["run", "-p", "script", "--ticket", "nonsense", "x"]);
    assert_eq!(code, Some(3));
    let failing = scenario::of(vec![json!({"exit": 3})]);
    home.run(&["run", "-q", "-p", "script", "--ticket", "bead:gt-1", &failing]);
    assert_eq!(status(&home, "bead:gt-1"), "failed");
    let hits = json_of(&home, &["search", "look around", "--kind", "TICKET_ADDED"]);
    assert_eq!(hits["hits"].as_array().map(Vec::len), Some(1), "{hits}");
}

#[test]
fn what_came_of_a_ticket_is_kept_with_it() {
    let home = with_campaign();
    let ticket = ok(&home, &["ticket", "add", "Fix the login", "--type", "bug", "-q"]);
    ok(&home, &["ticket", "output", &ticket, "fix", "deadbeef", "--kind", "commit"]);
    ok(&home, &["ticket", "output", &ticket, "log", "one\ntwo"]);
    assert_eq!(ok(&home, &["ticket", "show", &ticket, "--value", "log"]), "one\ntwo");
    assert_eq!(refused(&home, &["ticket", "output", &ticket, "fix", "main", "--kind", "commit"]).0, Some(2));
    assert_eq!(refused(&home, &["ticket", "checkpoint", &ticket, "green"]).0, Some(2));
    ok(&home, &["run", "-q", "-p", "script", "--ticket", &ticket, "hello"]);
    for snapshot in ["deadbeef", "3", "nonsense"] {
        let args = ["ticket", "checkpoint", &ticket, "green", "--snapshot", snapshot];
        assert!(matches!(refused(&home, &args).0, Some(2 | 3)), "{snapshot}");
    }
    ok(&home, &["ticket", "checkpoint", &ticket, "green"]);
    let (code, said) = refused(&home, &["ticket", "checkpoint", &ticket, "green"]);
    assert_eq!(code, Some(4), "{said}");
    assert!(
        said.contains("has a checkpoint \"green\" already") && said.contains("turn 1 of session"),
        "{said}"
    );
    ok(&home, &["ticket", "step", &ticket, "review", "start"]);
    assert_eq!(refused(&home, &["ticket", "step", &ticket, "review", "start"]).0, Some(2));
    ok(&home, &["ticket", "step", &ticket, "review", "fail", "-m", "too long"]);
    let whole = json_of(&home, &["ticket", "show", &ticket]);
    assert_eq!((&whole["checkpoints"][0]["turn"], &whole["steps"][0]["success"]), (&json!(1), &json!(false)));
    let listed = json_of(&home, &["ticket", "ls", "-C", "shop", "--type", "bug", "--status", "open"]);
    assert_eq!(listed["tickets"][0]["id"], ticket.as_str());
    ok(&home, &["ticket", "cancel", &ticket]);
    ok(&home, &["ticket", "archive", &ticket]);
    assert_eq!(json_of(&home, &["ticket", "ls"])["tickets"], json!([]));
    // All of it is in the log: tables made anew say the same.
    let before = json_of(&home, &["ticket", "show", &ticket]);
    ok(&home, &["db", "reindex"]);
    assert_eq!(json_of(&home, &["ticket", "show", &ticket]), before);
}

#[test]
fn what_an_agent_says_came_of_its_work_is_an_output_of_its_ticket() {
    let home = with_campaign();
    let steps = json!({"steps": [shell("ostler output report docs/r.md --kind path"), {"say": "done"}]});
    let ticket = ok(&home, &["ticket", "add", "Fix the login", "-q"]);
    ok(&home, &["run", "-q", "-p", "script", "--ticket", &ticket, &steps.to_string()]);
    let whole = json_of(&home, &["ticket", "show", &ticket]);
    let output = &whole["outputs"][0];
    assert_eq!((&output["name"], &output["value"]), (&json!("report"), &json!("docs/r.md")), "{whole}");
    assert_eq!(output["session"], whole["iterations"][0]["session"], "{whole}");
    ok(&home, &["db", "reindex"]);
    assert_eq!(json_of(&home, &["ticket", "show", &ticket])["outputs"], whole["outputs"]);
}

#[test]
fn a_session_is_not_ended_to_go_on_with_what_its_ticket_forbids() {
    let home = with_campaign();
    let session = ok(&home, &["run", "-d", "-q", "-p", "script", "--ticket", "gh:shop#60", "hello"]);
    ok(&home, &["ticket", "done", "gh:shop#60"]);
    for verb in ["restart", "handoff"] {
        let (code, words) = refused(&home, &[verb, &session]);
        assert!(code == Some(4) && words.contains("gh:shop#60"), "{verb}: {code:?} {words}");
        assert_eq!(json_of(&home, &["show", &session])["outcome"], Value::Null, "{verb}");
    }
}

#[test]
fn what_a_person_calls_done_is_done_with_its_ticket() {
    let home = with_campaign();
    let run = |ticket: &str, name: &str| {
        ok(&home, &["run", "-d", "-q", "-p", "script", "--name", name, "--ticket", ticket, "hello"])
    };
    let one = run("gh:shop#70", "one");
    let said = ok(&home, &["done", &one]);
    assert!(said.contains("ticket gh:shop#70 is done"), "{said}");
    let whole = json_of(&home, &["ticket", "show", "gh:shop#70"]);
    assert_eq!(whole["status"], "done", "{whole}");
    assert!(whole["why"].as_str().unwrap().contains("Its work is done, said "), "{whole}");
    // Nor is it left open where the session had ended with its turn.
    ok(&home, &["run", "-q", "-p", "script", "--name", "two", "--ticket", "gh:shop#71", "hello"]);
    assert_eq!(status(&home, "gh:shop#71"), "queued");
    let said = ok(&home, &["done", "two"]);
    assert!(said.contains("had ended before") && said.contains("ticket gh:shop#71 is done"), "{said}");
    assert_eq!(status(&home, "gh:shop#71"), "done");
    // Others go on with it, or it did not end in peace: that is said.
    let (first, second) = (run("gh:shop#72", "first"), run("gh:shop#72", "second"));
    let said = ok(&home, &["done", &first]);
    assert!(said.contains("is running (ostler ticket done gh:shop#72)"), "{said}");
    assert_eq!(status(&home, "gh:shop#72"), "running");
    ok(&home, &["stop", &second]);
    ok(&home, &["done", &second]);
    assert_eq!(status(&home, "gh:shop#72"), "queued", "it was stopped");
}

#[test]
fn nothing_is_promised_to_go_on_with_a_ticket_that_is_over() {
    let home = with_campaign();
    let waits = r#"until test -e go; do sleep 0.05; done; exit 3"#;
    let dies = scenario::of(vec![json!({"run": ["sh", "-c", waits]}), json!({"exit": 3})]);
    let session = ok(
        &home,
        &["run", "-d", "-q", "-p", "script", "--restart", "always", "--ticket", "gh:shop#61", &dies],
    );
    ok(&home, &["ticket", "done", "gh:shop#61"]);
    fs::write(home.campaign_dir().join("go"), "").unwrap();
    home.run(&["wait", &session]);
    let view = json_of(&home, &["show", &session]);
    assert_eq!((&view["outcome"], &view["restart"]), (&json!("crashed"), &Value::Null), "{view}");
}

#[test]
fn what_an_attempt_cost_is_unknown_until_its_model_has_a_price() {
    let home = with_campaign();
    let usage = json!({"usage": {"input": 1_000_000, "output": 0}});
    let script = scenario::of(vec![usage, scenario::say("done")]);
    ok(&home, &["run", "-q", "-p", "script", "--ticket", "gh:shop#62", &script]);
    assert!(ok(&home, &["ticket", "show", "gh:shop#62"]).contains("cost unknown"));
    let whole = json_of(&home, &["ticket", "show", "gh:shop#62"]);
    assert_eq!((&whole["cost_usd"], &whole["iterations"][0]["cost_usd"]), (&Value::Null, &Value::Null));
    let sum = || ok(&home, &["sql", "SELECT sum(cost_usd) IS NULL FROM v1_sessions", "-o", "jsonl"]);
    assert!(sum().contains('1'), "{}", sum());
    ok(&home, &["price", "set", "script", "input=3", "output=15"]);
    assert_eq!(json_of(&home, &["ticket", "show", "gh:shop#62"])["cost_usd"], 3.0);
}

#[test]
fn tickets_never_wait_for_each_other() {
    let home = with_campaign();
    let add = |text: &str, on: &[&str]| {
        let mut args = vec!["ticket", "add", text, "-q"];
        on.iter().for_each(|on| args.extend(["--depends-on", on]));
        ok(&home, &args)
    };
    let one = add("one", &[]);
    let two = add("two", &[&one]);
    let three = add("three", &[&two]);
    let (code, words) = refused(&home, &["ticket", "link", &one, "--depends-on", &three]);
    assert!(code == Some(4) && words.contains("waits for"), "{code:?} {words}");
    ok(&home, &["ticket", "link", &two, "--no-depends-on", &one]);
    ok(&home, &["ticket", "link", &one, "--depends-on", &three, "--ref", "gh:shop#1"]);
    assert_eq!(json_of(&home, &["ticket", "show", "gh:shop#1"])["depends_on"], json!([three]));
}

#[test]
fn another_tracker_s_work_comes_once() {
    let home = with_campaign();
    let file = home.campaign_dir().join("issues.jsonl");
    let beads = |status: &str| {
        let lines = [
            json!({"id": "gt-1", "title": "One", "status": status}),
            json!({"id": "gt-2", "title": "Two", "status": "open", "dependencies": ["gt-1"]}),
        ];
        fs::write(&file, lines.map(|line| line.to_string()).join("\n")).unwrap();
    };
    beads("open");
    let path = file.to_str().unwrap();
    let import = |args: &[&str]| {
        let mut all = vec!["ticket", "import", path];
        all.extend(args);
        let done = json_of(&home, &all);
        [&done["added"], &done["changed"], &done["same"]].map(|count| count.as_u64().unwrap())
    };
    assert_eq!(import(&["--dry-run"]), [2, 0, 0]);
    assert_eq!(json_of(&home, &["ticket", "ls"])["tickets"], json!([]));
    assert_eq!(import(&[]), [2, 0, 0]);
    assert_eq!(import(&[]), [0, 0, 2]);
    beads("closed");
    assert_eq!(import(&[]), [0, 1, 1]);
    assert_eq!(status(&home, "bead:gt-1"), "done");
    let two = json_of(&home, &["ticket", "show", "bead:gt-2"]);
    assert_eq!(two["dependencies"][0]["external_ref"], "bead:gt-1");
    let todo = home.campaign_dir().join("todo.md");
    fs::write(&todo, "- [ ] Tidy up\n- [x] Rest\n").unwrap();
    ok(&home, &["ticket", "import", todo.to_str().unwrap()]);
    assert_eq!(status(&home, "md:todo.md#rest"), "done");
    let other = home.campaign_dir().join("docs");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("todo.md"), "- [x] Tidy up\n").unwrap();
    ok(&home, &["ticket", "import", other.join("todo.md").to_str().unwrap()]);
    assert_eq!(status(&home, "md:todo.md#tidy-up"), "initialized", "another file says nothing of it");
    assert_eq!(status(&home, "md:docs/todo.md#tidy-up"), "done");
    let (code, _) = refused(&home, &["ticket", "import", todo.to_str().unwrap(), "--format", "github"]);
    assert_eq!(code, Some(2));
}

#[test]
fn a_helper_s_word_says_nothing_of_the_whole_work() {
    let home = with_campaign();
    let dir = home.campaign_dir();
    fs::write(dir.join("helper"), scenario::of(vec![shell("ostler done -m mine; true")])).unwrap();
    fs::write(
        dir.join("slow"),
        scenario::of(vec![shell("until [ -e end ]; do sleep 0.05; done; ostler done")]),
    )
    .unwrap();
    // Its helper says that it is done; the lead does not.
    let prompt = scenario::of(vec![shell(
        "ostler spawn quick \"$(cat helper)\"; until [ -e go ]; do sleep 0.05; done",
    )]);
    let ticket = ok(&home, &["ticket", "add", &prompt, "-q"]);
    let lead = ok(&home, &["ticket", "start", &ticket, "-p", "script", "-q"]);
    let helpers =
        |lead: &str| json_of(&home, &["chain", "show", lead])["helpers"].as_array().unwrap().clone();
    ostler_testkit::wait::until("the helper to end", ostler_testkit::wait::PATIENCE, || {
        helpers(&lead).first().is_some_and(|helper| helper["outcome"] == "done")
    });
    assert_eq!(status(&home, &ticket), "running", "the lead works on it");
    fs::write(dir.join("go"), "").unwrap();
    ok(&home, &["wait", &lead]);
    assert_eq!(status(&home, &ticket), "queued", "nobody whose work it is has said that it is done");

    // The lead says so while a helper still works: that is what counts, whatever becomes of the helper.
    let prompt = scenario::of(vec![shell("ostler spawn slow \"$(cat slow)\" && ostler done")]);
    let ticket = ok(&home, &["ticket", "add", &prompt, "--ref", "gh:shop#7", "-q"]);
    let lead = ok(&home, &["ticket", "start", &ticket, "-p", "script", "-q"]);
    ok(&home, &["wait", &lead]);
    assert_eq!(status(&home, &ticket), "done");
    fs::write(dir.join("end"), "").unwrap();
    let helper = helpers(&lead)[0]["id"].as_str().unwrap().to_owned();
    ok(&home, &["wait", &helper]);
    assert_eq!(status(&home, &ticket), "done");

    // The chain of a ticket, with all who helped, and its cost in one row.
    let chain = json_of(&home, &["chain", "show", "gh:shop#7"]);
    assert_eq!((&chain["session_count"], &chain["helper_count"]), (&json!(1), &json!(1)), "{chain}");
    let (code, words) = refused(&home, &["chain", "show", "gh:shop#99"]);
    assert!(code == Some(4) || code == Some(3), "{code:?} {words}");
}
