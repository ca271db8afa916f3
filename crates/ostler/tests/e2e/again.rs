//! After a turn that failed: what is told, and how it is tried again.

use ostler_domain::session::{Attention, Outcome};
use ostler_testkit::{TestHome, wait};
use serde_json::{Value, json};

use crate::OSTLER;

/// A prompt whose turn fails.
const WRONG: &str = "{\"steps\":[\n {\"sya\":\"b\"}\n]}";

fn told_again(session: &ostler_client::Session) -> bool {
    let said = session.last_completion.as_deref().unwrap_or_default();
    session.turns > 0 && said.contains("Your last turn failed: ") && said.contains("mistake in line 2")
}

#[tokio::test]
async fn resume_has_a_live_session_try_its_failed_turn_again() {
    let home = TestHome::started(OSTLER).await;
    let run = home.run(&["run", "-d", "-q", "-p", "script", WRONG]);
    let id = String::from_utf8(run.stdout).unwrap().trim().to_owned();
    home.reaches(&id, "a turn that failed", |view| view.attention == Some(Attention::TurnFailed)).await;
    assert!(home.run(&["resume", &id]).status.success());
    home.reaches(&id, "another try", |view| {
        view.turns == 2 && view.attention == Some(Attention::Idle) && told_again(view)
    })
    .await;
    // It was tried again: there is nothing more to resume.
    assert!(home.run(&["resume", &id]).status.success());
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let view = home.client().await.session(&id).await.unwrap();
    assert_eq!((view.turns, view.messages_waiting), (2, 0), "{view:?}");
}

#[tokio::test]
async fn a_run_whose_turn_failed_says_so_and_its_hint_tries_it_again() {
    let home = TestHome::started(OSTLER).await;
    let run = home.run(&["run", "-p", "script", "-o", "json", WRONG]);
    assert_eq!(run.status.code(), Some(10), "{run:?}");
    let told: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!((&told["outcome"], &told["exit"]), (&json!("turn_failed"), &json!(10)), "{told}");
    let id = told["session"].as_str().unwrap();
    assert_eq!(home.ended(id).await.outcome, Some(Outcome::TurnFailed));
    let listed = String::from_utf8(home.run(&["ls"]).stdout).unwrap();
    assert!(listed.contains('✗') && listed.contains("FAILED") && !listed.contains("done"), "{listed}");
    let run = home.run(&["run", "-p", "script", WRONG]);
    let said = String::from_utf8_lossy(&run.stderr).into_owned();
    let hint = said.split_once("ostler resume ").map(|(_, rest)| rest.trim().to_owned());
    let hint = hint.unwrap_or_else(|| panic!("{said}"));
    let resumed = home.run(&["resume", &hint]);
    assert!(resumed.status.success(), "{resumed:?}");
    let next = home.client().await.chain(&hint).await.unwrap().pop().unwrap();
    assert!(next.continues.is_some());
    home.reaches(&next.id.to_string(), "another try", told_again).await;
}

#[tokio::test]
async fn who_waits_for_a_session_hears_that_it_waits_for_somebody() {
    let home = TestHome::started(OSTLER).await;
    let ask = json!({"steps": [{"ask": {"tool": "fetch", "input": "https://a.example"}}, {"say": "on"}]})
        .to_string();
    let run = home.run(&["run", "-d", "-q", "-p", "script", "--approve", "ask", &ask]);
    let id = String::from_utf8(run.stdout).unwrap().trim().to_owned();
    home.reaches(&id, "a question", |view| view.attention == Some(Attention::WaitingApproval)).await;
    let file = |name: &str| home.path().join(name);
    let waiting = |name: &str, args: &[&str]| {
        let said = std::fs::File::create(file(name)).unwrap();
        home.command(args).stdout(std::process::Stdio::piped()).stderr(said).spawn().unwrap()
    };
    let mut send = waiting("send", &["send", "--wait", &id, "and then?"]);
    let mut wait = waiting("wait", &["wait", &id]);
    let read = |name: &str| std::fs::read_to_string(file(name)).unwrap_or_default();
    let approval = home.client().await.session(&id).await.unwrap().approvals_open[0].short();
    for name in ["send", "wait"] {
        wait::until("both to say whom they wait for", wait::PATIENCE, || {
            read(name).contains("waits for approval ")
        });
        let said = read(name);
        assert!(said.contains(&format!("ostler allow {approval}")), "{said}");
        assert!(said.contains(&format!("ostler deny {approval} -m")), "{said}");
    }
    assert!(send.try_wait().unwrap().is_none(), "it keeps waiting");
    assert!(home.run(&["allow", &approval]).status.success());
    let sent = tokio::task::spawn_blocking(move || send.wait_with_output()).await.unwrap().unwrap();
    let said = String::from_utf8(sent.stdout).unwrap();
    assert!(sent.status.success() && said.contains("and then?"), "{said} {}", read("send"));
    assert!(home.run(&["stop", &id]).status.success());
    tokio::task::spawn_blocking(move || wait.wait()).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_new_session_of_an_older_conversation_asks_for_as_long_as_is_set_now() {
    let home = TestHome::started(OSTLER).await;
    let ask = json!({"steps": [{"ask": {"tool": "fetch", "input": "https://a.example"}}]}).to_string();
    let run = home.run(&["run", "-d", "-q", "-p", "script", "hello"]);
    let id = String::from_utf8(run.stdout).unwrap().trim().to_owned();
    home.reaches(&id, "its first turn", |view| {
        view.attention == Some(Attention::Idle) && view.last_completion.is_some()
    })
    .await;
    assert!(home.run(&["stop", &id]).status.success());
    home.ended(&id).await;
    assert!(home.run(&["config", "set", "approvals.limit", "1h"]).status.success());
    assert!(home.run(&["daemon", "restart"]).status.success());
    assert!(home.run(&["send", &id, &ask]).status.success());
    let next = home.client().await.chain(&id).await.unwrap().pop().unwrap().id.to_string();
    home.reaches(&next, "a question", |view| view.attention == Some(Attention::WaitingApproval)).await;
    let listed = home.run(&["approval", "ls"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("denied in 59m") || listed.contains("denied in 1h"), "{listed}");
}
