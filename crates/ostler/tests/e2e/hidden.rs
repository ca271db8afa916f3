//! Hidden files while an agent runs: replaced ones are covered again at once, tracked ones are warned about, and what
//! looks like a secret is not recorded.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use ostler_domain::{Event, event::Tamper};
use ostler_testkit::{TestHome, scenario, skip, wait};
use serde_json::json;

use crate::OSTLER;

fn shell(script: &str) -> serde_json::Value {
    json!({"run": ["sh", "-c", script]})
}

fn git(dir: &Path, args: &[&str]) -> bool {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(args).current_dir(dir);
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").output().is_ok_and(|done| done.status.success())
}

#[tokio::test]
async fn a_hidden_file_that_is_replaced_is_covered_at_once() {
    let home = TestHome::started(OSTLER).await;
    let camp = home.campaign_dir();
    let deep = camp.join("services/api");
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join(".env"), "first").unwrap();
    let client = home.client().await;
    // Says a hundred times a second what it can see.
    let script = "while :; do { cat services/api/.env new/.env.local; } >seen.tmp 2>/dev/null; mv seen.tmp seen; \
                  echo x >>rounds; sleep 0.01; done";
    let session = home.session(&client, &scenario::of(vec![shell(script)])).await;
    let rounds = || std::fs::metadata(camp.join("rounds")).map_or(0, |found| found.len());
    wait::until("the agent to look", wait::PATIENCE, || rounds() > 4);
    // So that a directory that is not watched yet is not what is measured.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let covered = |what: &str| {
        let began = Instant::now();
        let before = rounds();
        wait::until(what, wait::PATIENCE, || {
            rounds() > before + 4 && std::fs::read(camp.join("seen")).is_ok_and(|seen| seen.is_empty())
        });
        began.elapsed()
    };
    let mut slowest = Duration::ZERO;
    for round in 0..4 {
        std::fs::write(camp.join("services/api/env.new"), format!("canary {round}")).unwrap();
        std::fs::rename(camp.join("services/api/env.new"), deep.join(".env")).unwrap();
        slowest = slowest.max(covered("the replaced file to be covered"));
        tokio::time::sleep(Duration::from_millis(1_100)).await;
    }
    std::fs::create_dir(camp.join("new")).unwrap();
    std::fs::write(camp.join("new/.env.local"), "canary").unwrap();
    slowest = slowest.max(covered("a new file in a new directory to be covered"));
    // A warden that is told nothing looks every five seconds: five times quicker in a row is no luck.
    assert!(slowest < Duration::from_millis(2_500), "{slowest:?}");
    client.stop_session(&session.id.to_string(), true).await.unwrap();
}

#[tokio::test]
async fn a_campaign_with_too_many_directories_to_watch_says_so() {
    let home = TestHome::started(OSTLER).await;
    let camp = home.campaign_dir();
    let said = || String::from_utf8_lossy(&home.run(&["sandbox", "show", "shop"]).stdout).into_owned();
    let client = home.client().await;
    let narrow = home.session(&client, &scenario::of(vec![shell("sleep 600")])).await;
    assert!(!said().contains("covered within seconds"), "{}", said());
    client.stop_session(&narrow.id.to_string(), true).await.unwrap();

    for number in 0..=ostler_domain::limits::WATCHED_DIRECTORIES_OF_CAMPAIGN {
        std::fs::create_dir(camp.join(format!("d{number}"))).unwrap();
    }
    let wide = home.session(&client, &scenario::of(vec![shell("sleep 600")])).await;
    wait::until("the gap to be told of", wait::PATIENCE, || said().contains("covered within seconds"));
    client.stop_session(&wide.id.to_string(), true).await.unwrap();
    wait::until("nobody to be watched over", wait::PATIENCE, || !said().contains("covered within seconds"));
}

#[tokio::test]
async fn a_hidden_file_that_git_tracks_is_warned_about() {
    let home = TestHome::started(OSTLER).await;
    let camp = home.campaign_dir();
    std::fs::write(camp.join(".env"), "TOKEN=1").unwrap();
    std::fs::write(camp.join("main.rs"), "").unwrap();
    if !(git(&camp, &["init", "-q"])
        && git(&camp, &["add", "-f", "."])
        && git(&camp, &["commit", "-qm", "x"]))
    {
        skip::lacking("a_hidden_file_that_git_tracks_is_warned_about needs git");
        return;
    }
    let said = |args: &[&str]| {
        let ran = home.run(args);
        format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr))
    };
    for args in [&["campaign", "add", "."][..], &["campaign", "show", "shop"], &["doctor"]] {
        let text = said(args);
        assert!(text.contains(".env is hidden, but git tracks it"), "{args:?}: {text}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&said(&["campaign", "show", "shop", "--json"])).unwrap();
    assert_eq!(json["tracked_hidden"], json!([".env"]));
    let client = home.client().await;
    let session = home.session(&client, "hello").await;
    let events = home.events(&client, session.id).await;
    let tracked = Event::HiddenTracked(Tamper { names: vec![".env".to_owned()] });
    assert_eq!(events.iter().filter(|recorded| recorded.event == tracked).count(), 1);
    assert!(git(&camp, &["rm", "-q", "--cached", ".env"]));
    assert!(!said(&["campaign", "show", "shop"]).contains("git tracks it"));
}

#[tokio::test]
async fn what_looks_like_a_secret_is_recorded_nowhere_but_on_the_tape() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let key = format!("sk-ant-api03-{}", "R2D2c3po99".repeat(3));
    let commit = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
    let mut wanted = ostler_client::CreateSession::new("shop", "script");
    // Put together inside, so that the prompt, which is told as it is, does not have it.
    let script = format!(
        "k=$(printf '%s%s' sk-ant-api03- {}); echo \"key $k of {commit}\"; ostler note \"got $k\"",
        &key[13..]
    );
    wanted.initial_message = Some(scenario::of(vec![shell(&script)]));
    wanted.ends_with_turn = true;
    let session = client.create_session(wanted).await.unwrap();
    home.ended(&session.id.to_string()).await;
    let events = home.events(&client, session.id).await;
    let output = events.iter().find_map(|recorded| match &recorded.event {
        Event::AgentToolResult(result) => Some(result.output.clone()),
        _ => None,
    });
    assert_eq!(output.unwrap(), format!("key sk-[redacted] of {commit}\n"));
    let notes = events.iter().filter_map(|recorded| match &recorded.event {
        Event::AgentStatus(status) => Some(status.text.clone()),
        _ => None,
    });
    assert_eq!(notes.collect::<Vec<_>>(), ["got sk-[redacted]"]);
    // And how often is said of the session, and of what is written of it for others.
    let redacted = client.session(&session.id.to_string()).await.unwrap().redacted;
    assert_eq!(redacted, 2);
    let id = session.id.to_string();
    let shown = home.run(&["show", &id]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("2 secrets redacted"), "{shown:?}");
    let exported = home.run(&["transcript", "export", &id, "--markdown"]);
    let text = String::from_utf8_lossy(&exported.stdout).into_owned();
    assert!(text.contains("looked like a secret"), "{text}");
    for file in ["ostler.db", "ostler.db-wal", "search.db", "search.db-wal", "daemon.log"] {
        let bytes = std::fs::read(home.home.state().join(file)).unwrap_or_default();
        let found = bytes.windows(key.len()).any(|window| window == key.as_bytes());
        assert!(!found, "{file} has it");
    }
}
