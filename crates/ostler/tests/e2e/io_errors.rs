//! The n-th write or sync of the daemon fails, for several n: nothing acknowledged is lost, nothing is doubled.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use ostler_client::{Client, CreateSession};
use ostler_domain::session::Attention;
use ostler_testkit::{TestHome, numbers, scenario, skip, wait};

use crate::OSTLER;

/// Tries something until the failing disk lets it through. Each try is a request of its own.
async fn insist<T, F: Future<Output = Result<T, ostler_client::Error>>>(
    what: &str,
    ask: impl Fn() -> F,
) -> T {
    let deadline = tokio::time::Instant::now() + wait::PATIENCE;
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert!(tokio::time::Instant::now() < deadline, "{what}: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn the_nth_failing_write_or_sync_loses_nothing() {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        skip::lacking("strace, which makes system calls fail, is not installed");
        return;
    }
    for (call, pass) in [("fdatasync", 4), ("fdatasync", 9), ("pwrite64", 31), ("pwrite64", 47)] {
        // The record is there already: what fails is a daemon at work, not the making of a new record.
        let home = TestHome::started(OSTLER).await;
        home.client().await.stop_daemon(true).await.unwrap();
        wait::until("the daemon to be gone", wait::PATIENCE, || home.daemon().is_none());
        let inject = format!("inject={call}:error=EIO:when={pass}");
        let mut daemon = Command::new("strace")
            .args([
                "-f",
                "-o",
                "/dev/null",
                "-e",
                &format!("trace={call}"),
                "-e",
                &inject,
                OSTLER,
                "daemon",
                "run",
            ])
            .env("OSTLER_HOME", home.path().canonicalize().unwrap().join("home"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let client = insist("a connection", || Client::connect(&home.home)).await;
        let mut ids = vec![];
        for _ in 0..3 {
            let mut wanted = CreateSession::new("shop", "script");
            wanted.initial_message = Some(scenario::of(vec![scenario::count("tick", 40, 10)]));
            ids.push(insist("a session", || client.create_session(wanted.clone())).await.id);
        }
        for id in &ids {
            home.reaches(&id.to_string(), "the turn to end", |view| {
                view.attention == Some(Attention::Idle) && view.turns == 1
            })
            .await;
            let events = home.events(&client, *id).await;
            numbers::assert_gapless(&events, &format!("{call} {pass}"));
            numbers::assert_complete(&numbers::counted(&events, "tick"), 40, &format!("{call} {pass}"));
        }
        // The record that was written to meanwhile is sound.
        let checked = home.run(&["db", "check", "--full"]);
        assert!(checked.status.success(), "{call} {pass}: {}", String::from_utf8_lossy(&checked.stdout));
        client.stop_daemon(true).await.unwrap();
        let _ = daemon.wait();
    }
}
