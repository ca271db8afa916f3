//! Daemons come and go: epochs, a lost one is started again, one that said bye is not.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use ostler_tape::frame::{PROTOCOL, Phase, RefusedReason};
use ostler_tape::{AskedStop, ToKeeper};

use crate::support::{Session, eventually};

#[test]
fn the_highest_epoch_wins() {
    let session = Session::started("read line; echo $line; read line");
    let mut old = session.connect(5);
    assert_eq!((old.hello().0, old_epoch(&mut session.connect(4))), (true, (false, 5)));

    let mut new = session.connect(6);
    let (accepted, epoch, _) = new.hello();
    assert_eq!((accepted, epoch), (true, 6));
    while old.next().is_some() {}

    let mut late = session.connect(5);
    assert_eq!(old_epoch(&mut late), (false, 6));
    late.input(1, b"from the past\n");
    assert_eq!(late.refusal(), (RefusedReason::NotYours, Some(1)));
    new.input(1, b"from now\n");
    session.wait_for_line("from now");
}

fn old_epoch(daemon: &mut crate::support::Daemon) -> (bool, u64) {
    let (accepted, epoch, _) = daemon.hello();
    (accepted, epoch)
}

#[test]
fn unknown_verbs_and_silent_connections_are_borne() {
    let session = Session::started("read line; echo $line");
    let _silent = session.connect_silently();
    let mut daemon = session.connect(1);
    daemon.send(&ToKeeper::Unknown);
    daemon.input(1, b"still here\n");
    session.wait_for_line("still here");
    assert!(session.log().contains("unknown verb"));
}

/// A program that notes that it was started as a daemon would be.
fn install_daemon(session: &Session) {
    let program = session.base().join("daemon.sh");
    let script = format!("#!/bin/sh\necho \"$@\" >>{}/started\n", session.base().display());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let json = serde_json::json!({ "program": program, "pid": 1, "version": "0" });
    fs::write(session.dir().join("daemon.json"), json.to_string()).unwrap();
}

#[test]
fn a_lost_daemon_is_started_again() {
    let session = Session::started("read line");
    install_daemon(&session);
    let mut daemon = session.connect(1);
    daemon.wait_for_phase(Phase::Running);
    drop(daemon);
    assert!(session.wait_for_file("started").starts_with("daemon run --background"));
    eventually("and again, while nobody connects", || {
        let started = fs::read_to_string(session.base().join("started")).unwrap();
        (started.lines().count() >= 2).then_some(())
    });
}

#[test]
fn the_next_daemon_has_the_environment_of_the_last() {
    let session = Session::started("read line");
    let program = session.base().join("daemon.sh");
    let dir = session.base().display();
    fs::write(&program, format!("#!/bin/sh\necho \"$WORD-$OTHER\" >>{dir}/started\n")).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let json = serde_json::json!({ "program": program, "pid": 1, "version": "0" });
    fs::write(session.dir().join("daemon.json"), json.to_string()).unwrap();
    let hello = |epoch| ToKeeper::Hello { protocol: PROTOCOL, epoch, daemon_version: "test".into() };
    let mut daemon = session.connect_silently();
    daemon.send_with(&hello(1), b"WORD=old\0OTHER=old\0");
    let mut next = session.connect_silently();
    next.send_with(&hello(2), b"WORD=secret\0PATH=/usr/bin:/bin\0");
    // An older one, whose word does not count any more, and somebody who says nothing of theirs.
    let mut late = session.connect_silently();
    late.send_with(&hello(1), b"WORD=late\0");
    assert!(!late.hello().0);
    let mut nobody = session.connect_silently();
    nobody.send_with(&hello(3), b"");
    assert!(nobody.hello().0);
    drop((daemon, next, late, nobody));
    assert_eq!(session.wait_for_file("started").lines().next(), Some("secret-"));
    assert!(!session.log().contains("secret"), "{}", session.log());
}

#[test]
fn nobody_is_started_after_a_bye() {
    let mut session = Session::new("while read line; do :; done")
        .with(|document| document.orphan_grace_ms = Some(1_500))
        .start();
    install_daemon(&session);
    let mut daemon = session.connect(1);
    daemon.wait_for_phase(Phase::Running);
    daemon.send(&ToKeeper::Bye {});
    // The grace is several times the first pause, so that a daemon would have been started by then.
    let exit = session.end();
    assert_eq!(exit.asked, Some(AskedStop { by: "keeper".into(), rule: "orphan_grace".into() }));
    assert!(!session.base().join("started").exists());
}

#[test]
fn a_flood_of_states_is_gathered() {
    let session = Session::started("seq 1 100000");
    let mut daemon = session.connect(1);
    let mut states = 0;
    loop {
        let state = daemon.wait_for_state(|_| true);
        states += 1;
        if state.phase == Phase::Exited {
            break;
        }
    }
    assert!(states < 2_000, "{states} frames for 100000 lines");
}

#[test]
fn an_idle_keeper_sleeps_and_is_small() {
    let session = Session::started("echo ready; read line");
    let mut daemon = session.connect(1);
    daemon.wait_for_phase(Phase::Running);
    session.wait_for_line("ready");
    let pid = session.keeper_pid();
    let switches = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    // Time itself is the condition here.
    let before = eventually("it settles", || {
        let before = switches();
        std::thread::sleep(std::time::Duration::from_millis(200));
        (switches() == before).then_some(before)
    });
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert!(switches() - before <= 2, "{} wake-ups in 3 s", switches() - before);
}
