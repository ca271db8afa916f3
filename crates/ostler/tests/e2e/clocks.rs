//! Clocks that jump and machines that restart.

use std::time::Duration;

use ostler_client::CreateSession;
use ostler_domain::session::{Attention, Outcome};
use ostler_testkit::{TestHome, numbers, scenario, wait};

use crate::OSTLER;

/// Starts a daemon whose clock is stepped.
fn start_stepped(home: &TestHome, step: &str) -> std::process::Child {
    let daemon = home.command(&["daemon", "run", "--background"]).env("OSTLER_CLOCK", step).spawn().unwrap();
    wait::until("the daemon", wait::PATIENCE, || home.daemon().is_some());
    daemon
}

#[tokio::test]
async fn a_stepped_clock_ends_nothing_early_and_loses_no_order() {
    for step in ["86400,", "-3600,"] {
        let home = TestHome::started(OSTLER).await;
        let client = home.client().await;
        let mut wanted = CreateSession::new("shop", "script");
        wanted.timeout = Some(Duration::from_secs(600));
        wanted.initial_message = Some(scenario::of(vec![scenario::count("tick", 150, 10)]));
        let id = client.create_session(wanted).await.unwrap().id;
        home.reaches(&id.to_string(), "work", |view| view.last_completion.is_some()).await;
        client.stop_daemon(false).await.unwrap();
        wait::until("the daemon to be gone", wait::PATIENCE, || home.daemon().is_none());
        let mut daemon = start_stepped(&home, step);
        home.reaches(&id.to_string(), "the turn to end", |view| view.attention == Some(Attention::Idle))
            .await;
        let client = home.client().await;
        let events = home.events(&client, id).await;
        numbers::assert_gapless(&events, "the session");
        numbers::assert_complete(&numbers::counted(&events, "tick"), 150, "the session");
        home.kill_daemon();
        daemon.wait().unwrap();
    }
}

#[tokio::test]
async fn doctor_says_that_the_clock_was_set_back() {
    let home = TestHome::new(OSTLER);
    let clock = |home: &TestHome| -> serde_json::Value {
        let told = home.run(&["doctor", "--quick", "-o", "json"]);
        let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
        let all = told["findings"].as_array().unwrap();
        all.iter().find(|finding| finding["about"] == "clock").unwrap().clone()
    };
    let mut daemon = start_stepped(&home, "86400,");
    assert!(home.run(&["campaign", "add", ".", "--name", "shop"]).status.success());
    let told = clock(&home);
    assert_eq!(told["verdict"], "warn", "{told}");
    assert!(told["text"].as_str().unwrap().contains("was set back"), "{told}");
    assert_eq!(told["fix"], "timedatectl set-ntp true", "{told}");
    home.kill_daemon();
    daemon.wait().unwrap();
    let other = TestHome::started(OSTLER).await;
    assert!(clock(&other)["text"].as_str().unwrap().contains("behind no event"));
}

#[tokio::test]
async fn a_reboot_is_named_as_the_cause() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let id = home.session(&client, &scenario::of(vec![scenario::count("tick", 100_000, 10)])).await.id;
    home.reaches(&id.to_string(), "work", |view| view.last_completion.is_some()).await;
    let keeper = home.keeper(id).unwrap();
    client.stop_daemon(false).await.unwrap();
    wait::until("the daemon to be gone", wait::PATIENCE, || home.daemon().is_none());
    keeper.kill_and_wait();
    let mut daemon = start_stepped(&home, "0,another-boot");
    let view = home.ended(&id.to_string()).await;
    assert_eq!(view.outcome, Some(Outcome::Lost));
    assert!(view.obituary.unwrap().sentence.contains("the machine restarted"));
    home.kill_daemon();
    daemon.wait().unwrap();
}
