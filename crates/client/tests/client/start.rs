//! Starting a daemon: the program is a small script that stands in for it.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use ostler_client::{Client, Error, Home, query::Page};

use crate::fake::{Daemon, Disk};

fn program(dir: &Path, script: &str) -> PathBuf {
    let path = dir.join("ostler");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[tokio::test]
async fn starts_a_daemon_and_waits_until_it_answers() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path().join("home"));
    let program = program(dir.path(), "mkdir -p \"$OSTLER_HOME\"; echo \"$@\" > \"$OSTLER_HOME/arguments\"");
    let arguments = dir.path().join("home/arguments");
    let daemon = tokio::spawn({
        let home = home.clone();
        async move {
            let said = loop {
                match fs::read_to_string(&arguments) {
                    Ok(said) if said.ends_with('\n') => break said,
                    _ => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            };
            (Daemon::start(&home, &Disk::new()), said)
        }
    });
    let client = Client::connect_or_start(&home, &program).await.unwrap();
    let (_daemon, said) = daemon.await.unwrap();
    assert_eq!(said, "daemon run --background\n");
    client.campaigns(Page::of(0, None)).await.unwrap();
}

#[tokio::test]
async fn a_daemon_that_ends_early_is_quoted() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path());
    fs::create_dir_all(home.state()).unwrap();
    fs::write(home.daemon_log(), "an old story\n").unwrap();
    let program =
        program(dir.path(), "echo 'the store is newer' >> \"$OSTLER_HOME/state/daemon.log\"; exit 3");
    let Err(Error::NotStarted { why, log, .. }) = Client::connect_or_start(&home, &program).await else {
        panic!("it started")
    };
    assert_eq!((why.as_str(), log.as_str()), ("it ended with exit status: 3", "the store is newer"));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("ostler");
    let error = Client::connect_or_start(&Home::at(dir.path()), &missing).await.unwrap_err();
    assert!(error.to_string().starts_with(&missing.display().to_string()), "{error}");
}

#[tokio::test]
async fn a_running_daemon_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path());
    let _daemon = Daemon::start(&home, &Disk::new());
    let program = program(dir.path(), "touch \"$OSTLER_HOME/started\"");
    Client::connect_or_start(&home, &program).await.unwrap();
    assert!(!dir.path().join("started").exists());
}
