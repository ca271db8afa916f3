//! How long what was said is kept: nothing goes without a rule, and whoever dies in between has lost nothing.

use std::{fs, path::PathBuf, process::Stdio};

use ostler_client::{Client, CreateSession, SendMessage};
use ostler_domain::session::{Attention, View};
use ostler_testkit::{TestHome, scenario, wait};
use serde_json::{Value, json};

use crate::OSTLER;

const DAY: u64 = 86_400;
const WORDS: &str = "the cake is in the cellar";

/// What an agent says that is long enough for a file of its own.
fn turn() -> String {
    scenario::of(vec![
        scenario::say(WORDS),
        json!({"run": ["sh", "-c", "seq 1 5000"]}),
        json!({"usage": {"input": 500, "output": 200}}),
        scenario::say("That is all."),
    ])
}

async fn done(home: &TestHome, client: &Client, prompt: &str) -> View {
    let mut wanted = CreateSession::new("shop", "script");
    wanted.initial_message = Some(prompt.to_owned());
    wanted.ends_with_turn = true;
    let view = client.create_session(wanted).await.unwrap();
    home.ended(&view.id.to_string()).await
}

/// Replaces the daemon by one whose clock is days ahead.
fn days_later(home: &TestHome, days: u64, fault: Option<&str>) -> std::process::Child {
    home.kill_daemon();
    let mut command = home.command(&["daemon", "run"]);
    command.env("OSTLER_CLOCK", format!("{},", days * DAY)).stderr(Stdio::null());
    if let Some(fault) = fault {
        command.env("OSTLER_FAULT", fault);
    }
    let daemon = command.spawn().unwrap();
    wait::until("the daemon", wait::PATIENCE, || home.daemon().is_some());
    daemon
}

fn out(home: &TestHome, args: &[&str]) -> String {
    let output = home.run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json_of(home: &TestHome, args: &[&str]) -> Value {
    serde_json::from_str(&out(home, &[args, &["--json"]].concat())).unwrap()
}

/// The steps of a plan or a run, with what they are for and whether they are spared.
fn steps(plan: &Value) -> Vec<(String, String, bool)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let rows = plan["steps"].as_array().unwrap().iter();
    rows.map(|row| (text(&row["session"]["name"]), text(&row["step"]), !row["spared"].is_null())).collect()
}

fn transcript(home: &TestHome, view: &View, name: &str) -> PathBuf {
    home.home.state().join("conversations").join(view.conversation.to_string()).join(name)
}

fn blobs(home: &TestHome) -> Vec<PathBuf> {
    let shelves = fs::read_dir(home.home.state().join("blobs")).unwrap().map(|shelf| shelf.unwrap().path());
    let files = shelves.filter(|shelf| shelf.is_dir()).flat_map(|shelf| fs::read_dir(shelf).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

#[tokio::test]
async fn a_session_is_archived_announced_and_deleted_as_the_rules_say_and_not_before() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let view = done(&home, &client, &turn()).await;
    let who = view.id.to_string();
    let plain = transcript(&home, &view, "transcript.jsonl");
    let said = out(&home, &["transcript", "export", &who]);
    wait::until("the transcript", wait::PATIENCE, || {
        fs::read_to_string(&plain).is_ok_and(|text| text == said)
    });
    let logs = out(&home, &["logs", &who]);
    assert!(said.contains(WORDS) && logs.contains("5000"));

    // Without a rule nothing happens, ever.
    let mut daemon = days_later(&home, 9_999, None);
    assert_eq!(steps(&json_of(&home, &["retention", "plan"])), []);
    out(&home, &["campaign", "set", "shop", "retention.archive_after=30d", "retention.delete_after=60d"]);
    home.kill_daemon();
    daemon.wait().unwrap();

    let name = view.name.to_string();
    let step = |step: &str, spared| vec![(name.clone(), step.to_owned(), spared)];
    let mut daemon = days_later(&home, 29, None);
    assert_eq!(steps(&json_of(&home, &["retention", "plan"])), []);
    home.kill_daemon();
    daemon.wait().unwrap();

    let mut daemon = days_later(&home, 31, None);
    assert_eq!(steps(&json_of(&home, &["retention", "run", "--dry-run"])), step("archive", false));
    let nobody = home.run(&["retention", "run"]);
    assert_eq!(nobody.status.code(), Some(2), "it asks first");
    assert_eq!(steps(&json_of(&home, &["retention", "run", "-y"])), step("archive", false));
    assert_eq!(steps(&json_of(&home, &["retention", "run", "-y"])), []);
    let packed = transcript(&home, &view, "transcript.jsonl.zst");
    wait::until("the plain forms to go", wait::PATIENCE, || {
        let is_packed = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "zst");
        !plain.exists() && packed.exists() && blobs(&home).iter().all(is_packed)
    });
    assert_eq!(out(&home, &["transcript", "export", &who]), said, "it is read as before");
    assert_eq!(out(&home, &["logs", &who]), logs);
    out(&home, &["transcript", "verify", &who]);
    out(&home, &["db", "check", "--full"]);
    assert!(out(&home, &["show", &who]).contains("archived"));
    home.kill_daemon();
    daemon.wait().unwrap();

    let mut daemon = days_later(&home, 61, None);
    assert_eq!(steps(&json_of(&home, &["retention", "run", "-y"])), step("mark", false));
    assert_eq!(steps(&json_of(&home, &["retention", "plan"])), [], "it is only announced");
    let listed = json_of(&home, &["retention", "ls"]);
    assert_eq!(listed["retention"][0]["stage"], "marked");
    assert!(out(&home, &["transcript", "export", &who]) == said);
    out(&home, &["retention", "hold", &who, "-m", "an audit"]);
    home.kill_daemon();
    daemon.wait().unwrap();

    let mut daemon = days_later(&home, 80, None);
    assert_eq!(steps(&json_of(&home, &["retention", "run", "-y"])), step("delete", true), "it is held");
    out(&home, &["retention", "hold", &who, "--off"]);
    let cost = json_of(&home, &["cost"]);
    assert_eq!(steps(&json_of(&home, &["retention", "run", "-y"])), step("delete", false));
    let state = home.home.state().to_owned();
    let (tape, agents_home) =
        (state.join("sessions").join(&who), state.join("homes").join(view.conversation.to_string()));
    wait::until("its files to go", wait::PATIENCE, || {
        !tape.exists() && !agents_home.exists() && !packed.parent().unwrap().exists()
    });
    assert!(!out(&home, &["transcript", "export", &who]).contains("cellar"));
    assert!(!out(&home, &["logs", &who]).contains("5000"));
    assert_eq!(json_of(&home, &["search", "cellar"])["hits"].as_array().map_or(0, Vec::len), 0);
    assert!(out(&home, &["ls", "-a"]).contains(&name), "that it was is still known");
    assert!(out(&home, &["show", &who]).contains("what was said was deleted"));
    assert_eq!(json_of(&home, &["cost"]), cost, "and what it cost");
    let refused = home.run(&["retention", "restore", &who]);
    assert_eq!(refused.status.code(), Some(4), "what is gone is gone");
    out(&home, &["db", "check", "--full"]);
    // The conversation can still be gone on with; it begins anew.
    let client = home.client().await;
    let say = SendMessage { who, text: scenario::of(vec![scenario::say("again")]), ..SendMessage::default() };
    let next = client.send_message(say).await.unwrap().sent().unwrap().session;
    home.reaches(&next.id.to_string(), "its answer", |view| view.last_completion.is_some()).await;
    home.kill_daemon();
    daemon.wait().unwrap();
}

#[tokio::test]
async fn whatever_something_that_lives_goes_on_with_is_spared() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    // Days of idleness are not to end it.
    out(&home, &["campaign", "set", "shop", "idle_stop=never"]);
    let first = home.session(&client, &turn()).await;
    home.reaches(&first.id.to_string(), "its turn to end", |view| {
        view.attention == Some(Attention::Idle) && view.turns == 1
    })
    .await;
    client.stop_session(&first.id.to_string(), false).await.unwrap();
    home.ended(&first.id.to_string()).await;
    let text = scenario::of(vec![scenario::say("again")]);
    let say = SendMessage { who: first.id.to_string(), text, ..SendMessage::default() };
    let second = client.send_message(say).await.unwrap().sent().unwrap().session;
    home.reaches(&second.id.to_string(), "its answer", |view| view.last_completion.is_some()).await;
    out(&home, &["campaign", "set", "shop", "retention.archive_after=1d", "retention.delete_after=2d"]);
    let mut daemon = days_later(&home, 9, None);
    home.reaches(&second.id.to_string(), "it to be adopted", |view| view.ended_at.is_none()).await;
    let plan = json_of(&home, &["retention", "run", "-y"]);
    assert_eq!(steps(&plan), [(first.name.to_string(), "mark".to_owned(), true)]);
    assert!(plan["steps"][0]["spared"].as_str().unwrap().contains("lives"));
    assert!(out(&home, &["transcript", "export", &first.id.to_string()]).contains(WORDS));
    home.kill_daemon();
    daemon.wait().unwrap();
}

#[tokio::test]
async fn what_is_brought_back_is_as_it_was() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let view = done(&home, &client, &turn()).await;
    let who = view.id.to_string();
    let plain = transcript(&home, &view, "transcript.jsonl");
    let said = out(&home, &["transcript", "export", &who]);
    wait::until("the transcript", wait::PATIENCE, || {
        fs::read_to_string(&plain).is_ok_and(|text| text == said)
    });
    assert_eq!(
        home.run(&["retention", "restore", &who]).status.code(),
        Some(4),
        "there is nothing to restore"
    );
    home.configure("[retention]\narchive_after = \"1d\"\n");
    let mut daemon = days_later(&home, 9, None);
    out(&home, &["retention", "run", "-y"]);
    wait::until("the plain form to go", wait::PATIENCE, || !plain.exists());
    out(&home, &["retention", "restore", &who]);
    wait::until("the plain form to come back", wait::PATIENCE, || {
        fs::read_to_string(&plain).is_ok_and(|text| text == said)
            && !transcript(&home, &view, "transcript.jsonl.zst").exists()
            && blobs(&home).iter().all(|blob| blob.extension().is_none())
    });
    assert_eq!(steps(&json_of(&home, &["retention", "plan"])), [], "rules count from now on");
    home.kill_daemon();
    daemon.wait().unwrap();
}

/// A daemon that dies at any moment of an archive or of a deletion leaves one form or both, and never half a deletion.
#[tokio::test]
async fn whoever_dies_in_between_has_lost_nothing_that_no_rule_deletes() {
    for fault in ["retention:1", "retention:2", "retention-files:1", "retention-files:2"] {
        let home = TestHome::started(OSTLER).await;
        let client = home.client().await;
        let view = done(&home, &client, &turn()).await;
        let who = view.id.to_string();
        let said = out(&home, &["transcript", "export", &who]);
        let plain = transcript(&home, &view, "transcript.jsonl");
        wait::until("the transcript", wait::PATIENCE, || plain.exists());
        out(&home, &["campaign", "set", "shop", "retention.archive_after=1d"]);
        let mut daemon = days_later(&home, 9, Some(fault));
        let _ = home.run(&["retention", "run", "-y"]);
        wait::until("the daemon to die at the fault", wait::PATIENCE, || {
            daemon.try_wait().unwrap().is_some()
        });

        let mut daemon = days_later(&home, 9, None);
        assert_eq!(out(&home, &["transcript", "export", &who]), said, "{fault}");
        out(&home, &["retention", "run", "-y"]);
        wait::until("the plain form to go", wait::PATIENCE, || !plain.exists());
        assert_eq!(out(&home, &["transcript", "export", &who]), said, "{fault}");
        out(&home, &["transcript", "verify", &who]);
        out(&home, &["db", "check", "--full"]);
        out(&home, &["campaign", "set", "shop", "retention.delete_after=2d", "retention.tombstone=1h"]);
        out(&home, &["retention", "run", "-y"]);
        home.kill_daemon();
        daemon.wait().unwrap();

        let mut daemon = days_later(&home, 19, Some(fault));
        let _ = home.run(&["retention", "run", "-y"]);
        wait::until("the daemon to die at the fault", wait::PATIENCE, || {
            daemon.try_wait().unwrap().is_some()
        });
        let mut daemon = days_later(&home, 19, None);
        let is_deleted = json_of(&home, &["retention", "ls"])["retention"][0]["stage"] == "deleted";
        if !is_deleted {
            assert_eq!(out(&home, &["transcript", "export", &who]), said, "{fault}: nobody has recorded it");
        }
        out(&home, &["retention", "run", "-y"]);
        let tape = home.home.state().join("sessions").join(&who);
        wait::until("its files to go", wait::PATIENCE, || !tape.exists());
        assert!(!out(&home, &["transcript", "export", &who]).contains("cellar"), "{fault}");
        out(&home, &["db", "check", "--full"]);
        home.kill_daemon();
        daemon.wait().unwrap();
    }
}

#[tokio::test]
async fn what_somebody_removes_is_announced_and_deleted_and_can_be_taken_back() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let gone = done(&home, &client, &turn()).await;
    let kept = done(&home, &client, &turn()).await;
    let (gone_id, kept_id) = (gone.conversation.to_string(), kept.conversation.to_string());
    for id in [&gone_id, &kept_id] {
        out(&home, &["conversation", "rm", id]);
    }
    let marks = vec![
        (gone.name.to_string(), "mark".to_owned(), false),
        (kept.name.to_string(), "mark".to_owned(), false),
    ];
    // Only said: nothing goes before somebody, or the daemon's hour, follows it.
    assert_eq!(steps(&json_of(&home, &["retention", "plan"])), marks);
    assert!(out(&home, &["logs", &gone.id.to_string()]).contains(WORDS));
    assert_eq!(steps(&json_of(&home, &["retention", "run", "-y"])), marks);
    let said = |args: &[&str]| String::from_utf8(home.run(args).stderr).unwrap();
    let plan = said(&["retention", "plan"]);
    assert!(plan.contains("2 sessions marked") && plan.contains("for good in 13d"), "{plan}");
    let held = out(&home, &["retention", "hold", &kept.id.to_string()]);
    assert!(held.starts_with(&kept.id.short()), "{held}");
    assert!(held.contains("and not while") && !held.contains("is deleted for good"), "{held}");
    let plan = said(&["retention", "plan"]);
    assert!(plan.contains("1 session marked") && plan.contains("1 marked session held"), "{plan}");
    out(&home, &["retention", "hold", &kept.id.to_string(), "--off"]);
    out(&home, &["conversation", "reopen", &kept_id]);
    let standing = client.retention_of(&kept.id.to_string()).await.unwrap();
    assert_eq!(standing.kept.due, None, "called off at once");
    let mut daemon = days_later(&home, 15, None);
    let ran = steps(&json_of(&home, &["retention", "run", "-y"]));
    assert_eq!(ran, [(gone.name.to_string(), "delete".to_owned(), false)]);
    wait::until("the words to go", wait::PATIENCE, || {
        !out(&home, &["logs", &gone.id.to_string()]).contains(WORDS)
    });
    assert!(out(&home, &["logs", &kept.id.to_string()]).contains(WORDS));
    home.kill_daemon();
    daemon.wait().unwrap();
}

#[tokio::test]
async fn what_was_to_go_goes_also_when_its_campaign_was_removed() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    out(&home, &["campaign", "set", "shop", "retention.delete_after=60d"]);
    let marked = done(&home, &client, &turn()).await;
    let ruled = done(&home, &client, &turn()).await;
    out(&home, &["conversation", "rm", &marked.conversation.to_string()]);
    let mark = vec![(marked.name.to_string(), "mark".to_owned(), false)];
    assert_eq!(steps(&json_of(&home, &["retention", "run", "-y"])), mark);
    out(&home, &["campaign", "rm", "shop"]);
    let words_of = |view: &View| out(&home, &["logs", &view.id.to_string()]).contains(WORDS);
    let mut daemon = days_later(&home, 15, None);
    let delete = vec![(marked.name.to_string(), "delete".to_owned(), false)];
    assert_eq!(steps(&json_of(&home, &["retention", "run", "-y"])), delete);
    wait::until("the words to go", wait::PATIENCE, || !words_of(&marked));
    assert!(words_of(&ruled), "no rule says so yet");
    home.kill_daemon();
    daemon.wait().unwrap();
    let mut daemon = days_later(&home, 61, None);
    let mark = vec![(ruled.name.to_string(), "mark".to_owned(), false)];
    assert_eq!(steps(&json_of(&home, &["retention", "run", "-y"])), mark, "its own rule holds on");
    home.kill_daemon();
    daemon.wait().unwrap();
}

#[tokio::test]
async fn what_missions_of_a_removed_campaign_left_goes_and_holds_up_nobody() {
    let home = TestHome::started(OSTLER).await;
    out(&home, &["campaign", "set", "shop", "retention.missions=1d"]);
    for name in ["first", "second"] {
        let plan = ["--objective", "x", "--agent", "a=hello", "--provider", "script", "--name", name];
        out(&home, &[&["mission", "start", "-C", "shop"], &plan[..]].concat());
    }
    out(&home, &["campaign", "rm", "shop"]);
    out(&home, &["mission", "rm", "first"]);
    let mut daemon = days_later(&home, 2, None);
    let due = json_of(&home, &["retention", "plan"])["steps"].clone();
    assert_eq!((due.as_array().unwrap().len(), &due[0]["mission"]["name"]), (1, &json!("second")), "{due}");
    out(&home, &["retention", "run", "-y"]);
    assert_eq!(json_of(&home, &["retention", "plan"])["steps"], json!([]));
    home.kill_daemon();
    daemon.wait().unwrap();
}

#[tokio::test]
async fn many_that_nobody_uses_are_removed_at_once_after_a_question() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let one = done(&home, &client, "one").await;
    done(&home, &client, "two").await;
    let listed = |args: &[&str]| {
        let pruned = json_of(&home, &[&["conversation", "prune", "--idle"], args].concat());
        (pruned["is_done"].as_bool().unwrap(), pruned["conversations"].as_array().unwrap().len())
    };
    assert_eq!(listed(&["1h", "-y"]), (true, 0), "both were just used");
    assert_eq!(home.run(&["conversation", "prune", "--idle", "1ms"]).status.code(), Some(2), "nobody to ask");
    assert_eq!(listed(&["1ms", "--dry-run"]), (false, 2));
    let conversation = || json_of(&home, &["conversation", "show", &one.conversation.to_string()]);
    assert_eq!(conversation()["closed"], Value::Null);
    assert_eq!(listed(&["1ms", "-C", "shop", "-y"]), (true, 2));
    assert_eq!(conversation()["close_reason"], "removed");
    assert_eq!(listed(&["1ms", "-y"]), (true, 0));
}
