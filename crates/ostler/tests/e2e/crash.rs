//! The daemon dies; nothing else does.

use ostler_domain::session::Outcome;
use ostler_testkit::{TestHome, numbers, scenario, wait};

use crate::OSTLER;

#[tokio::test]
async fn an_agent_goes_on_while_no_daemon_runs_and_is_found_again() {
    let home = TestHome::started(OSTLER).await;
    let client = home.client().await;
    let created = home.session(&client, &scenario::of(vec![scenario::count("tick", 300, 5)])).await;
    let id = created.id.to_string();
    home.reaches(&id, "the first completion", |view| view.last_completion.is_some()).await;
    home.kill_daemon();
    // The keeper starts another one.
    wait::until("a new daemon", wait::PATIENCE, || home.daemon().is_some());
    let view = home
        .reaches(&id, "the turn to end", |view| {
            view.turns == 1
                && view.messages_waiting == 0
                && view
                    .attention
                    .is_some_and(|attention| attention == ostler_domain::session::Attention::Idle)
        })
        .await;
    assert_eq!(view.outcome, None);
    let client = home.client().await;
    let events = home.events(&client, created.id).await;
    numbers::assert_gapless(&events, "the session");
    numbers::assert_complete(&numbers::counted(&events, "tick"), 300, "the session");
    client.stop_session(&id, false).await.unwrap();
    assert_eq!(home.ended(&id).await.outcome, Some(Outcome::Stopped));
}

#[tokio::test]
async fn who_loses_the_race_for_a_start_waits_for_whoever_won_it() {
    let home = TestHome::started(OSTLER).await;
    home.kill_daemon();
    // Somebody holds the daemon's place and never answers: one that dies before it does.
    let place = std::fs::File::open(home.home.daemon_lock()).unwrap();
    wait::until("the dead one's place", wait::PATIENCE, || place.try_lock().is_ok());
    let commands: Vec<_> = (0..4)
        .map(|_| {
            let mut command = home.command(&["ls"]);
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    drop(place);
    for command in commands {
        let ended = command.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
}
