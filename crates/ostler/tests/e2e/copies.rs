//! A copy of a home is a home of its own: whoever looks at it harms nothing of the one it was copied from.

use std::{fs, process::Command};

use ostler_testkit::{TestHome, scenario, wait};

use crate::OSTLER;

/// A session that counts for as long as the test lasts.
async fn counting(home: &TestHome) -> ostler_domain::SessionId {
    let client = home.client().await;
    let id = home.session(&client, &scenario::of(vec![scenario::count("tick", 100_000, 20)])).await.id;
    home.reaches(&id.to_string(), "work", |view| view.doing.is_some()).await;
    id
}

#[tokio::test]
async fn a_copied_home_does_not_command_the_original_s_daemon() {
    let home = TestHome::started(OSTLER).await;
    let copy = home.path().join("copy");
    let copied = Command::new("cp").arg("-a").arg(home.path().join("home")).arg(&copy).status().unwrap();
    assert!(copied.success());
    let daemon = home.daemon().unwrap();
    let stopped = home.command(&["daemon", "stop"]).env("OSTLER_HOME", &copy).output().unwrap();
    assert!(daemon.is_alive(), "{stopped:?}");
}

#[tokio::test]
async fn a_backup_that_is_opened_ends_nobody_s_agents() {
    for home in [TestHome::started(OSTLER).await, TestHome::started_unconfined(OSTLER).await] {
        let id = counting(&home).await;
        let backup = home.path().join("backup");
        assert!(home.run(&["db", "backup", backup.to_str().unwrap()]).status.success());
        let restored = home.path().join("restored");
        fs::create_dir_all(&restored).unwrap();
        fs::rename(&backup, restored.join("state")).unwrap();
        let ask = |args: &[&str]| {
            let output = home.command(args).env("OSTLER_HOME", &restored).output().unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        wait::until("the copy to see that its agent is not there", wait::PATIENCE, || {
            ask(&["ls", "-a", "-o", "json"]).contains("\"FAILED\"")
        });
        assert!(ask(&["daemon", "stop"]).contains("stopped"));
        let client = home.client().await;
        let seen = client.session(&id.to_string()).await.unwrap().session_seq;
        home.reaches(&id.to_string(), "more work", |view| view.session_seq > seen + 5).await;
    }
}
