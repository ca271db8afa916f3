//! The stop ladder, and who asked for it.

use ostler_tape::frame::{Phase, Rung, RungAction};
use ostler_tape::{AskedStop, How, KeeperNote, ToKeeper};
use rustix::process::Signal;

use crate::support::{Session, eventually, is_alive, signal, wait_until_dead};

const STUBBORN: &str = "trap '' TERM INT HUP; echo $$ >$1/agent; while :; do sleep 0.05; done";

fn stop(ladder: &[(RungAction, u64)]) -> ToKeeper {
    let ladder = ladder.iter().map(|&(action, wait_ms)| Rung { action, wait_ms }).collect();
    ToKeeper::Stop { by: "ada".into(), rule: "session stop".into(), ladder }
}

fn asked() -> Option<AskedStop> {
    Some(AskedStop { by: "ada".into(), rule: "session stop".into() })
}

#[test]
fn the_first_rung_that_works_is_the_last() {
    let mut session =
        Session::started("trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.05; done");
    session.wait_for_line("ready");
    let mut daemon = session.connect(1);
    daemon.send(&stop(&[
        (RungAction::CloseInput, 50),
        (RungAction::Signal(15), 60_000),
        (RungAction::Kill, 60_000),
    ]));
    daemon.wait_for_phase(Phase::Stopping);
    daemon.wait_for_phase(Phase::Exited);
    drop(daemon);
    let exit = session.end();
    assert_eq!(exit.how, How::Exited { code: 5 });
    assert_eq!(exit.asked, asked());
    assert_eq!(exit.rung.as_deref(), Some("signal 15"));
    session.wait_for_line("bye");
}

#[test]
fn an_agent_that_ignores_signals_is_killed() {
    let mut session = Session::started(STUBBORN);
    let agent = session.wait_for_pid("agent");
    let mut daemon = session.connect(1);
    daemon.send(&stop(&[(RungAction::Signal(15), 100), (RungAction::Kill, 60_000)]));
    daemon.wait_for_phase(Phase::Exited);
    assert!(!is_alive(agent));
    drop(daemon);
    let exit = session.end();
    assert_eq!(exit.how, How::Signaled { signal: 9, core: false });
    assert_eq!(exit.rung.as_deref(), Some("kill"));
}

#[test]
fn a_second_stop_takes_over_at_once() {
    let mut session = Session::started(STUBBORN);
    session.wait_for_pid("agent");
    let mut daemon = session.connect(1);
    daemon.send(&stop(&[(RungAction::Signal(15), 3_600_000), (RungAction::Kill, 0)]));
    daemon.wait_for_phase(Phase::Stopping);
    daemon.send(&stop(&[(RungAction::Kill, 60_000)]));
    daemon.wait_for_phase(Phase::Exited);
    drop(daemon);
    assert_eq!(session.end().rung.as_deref(), Some("kill"));
}

#[test]
fn a_kill_reaches_the_whole_tree_however_detached() {
    let script = "
        setsid sh -c 'trap \"\" TERM; echo $$ >'$1'/detached; while :; do sleep 0.05; done' &
        sh -c '(echo $$ >'$1'/orphan; exec sleep 1000) & exit' &
        echo $$ >$1/agent
        while :; do sleep 0.05; done";
    let mut session = Session::started(script);
    let pids = ["detached", "agent"].map(|name| session.wait_for_pid(name));
    session.wait_for_file("orphan");
    let mut daemon = session.connect(1);
    daemon.send(&stop(&[(RungAction::Kill, 60_000)]));
    daemon.wait_for_phase(Phase::Exited);
    pids.into_iter().for_each(|pid| assert!(!is_alive(pid)));
    drop(daemon);
    session.end();
}

#[test]
fn sigterm_to_the_keeper_runs_the_default_ladder() {
    let mut session = Session::started("while read line; do :; done; echo $$ >$1/agent; echo over");
    let mut daemon = session.connect(1);
    daemon.wait_for_phase(Phase::Running);
    signal(session.keeper_pid(), Signal::TERM);
    daemon.wait_for_phase(Phase::Exited);
    drop(daemon);
    let exit = session.end();
    assert_eq!(exit.how, How::Exited { code: 0 });
    assert_eq!(exit.rung.as_deref(), Some("close_input"));
    assert_eq!(exit.asked, Some(AskedStop { by: "signal".into(), rule: "keeper SIGTERM".into() }));
}

#[test]
fn a_vanished_session_directory_ends_everything() {
    let mut session = Session::started("echo $$ >$1/agent; while :; do sleep 0.05; done");
    let agent = session.wait_for_pid("agent");
    std::fs::rename(session.dir(), session.base().join("elsewhere")).unwrap();
    session.wait_for_keeper();
    wait_until_dead(agent);
}

#[test]
fn what_happened_on_the_way_is_noted() {
    let session = Session::started(STUBBORN);
    session.wait_for_pid("agent");
    let mut daemon = session.connect(1);
    daemon.send(&stop(&[(RungAction::CloseInput, 10), (RungAction::Kill, 60_000)]));
    daemon.wait_for_phase(Phase::Exited);
    let notes = session.notes();
    let expected = [
        KeeperNote::StopAsked { by: "ada".into(), rule: "session stop".into() },
        KeeperNote::Rung { action: "close_input".into() },
        KeeperNote::InputClosed { reason: "closed by the stop ladder".into() },
        KeeperNote::Rung { action: "kill".into() },
    ];
    assert!(expected.iter().all(|note| notes.contains(note)), "{notes:?}");
    eventually("the keeper leaves soon", || (!is_alive(session.keeper_pid())).then_some(()));
}
