//! Freezing and thawing a whole tree, by cgroup and by signals.

use ostler_tape::frame::{FrozenBy, Phase, Rung, RungAction};
use ostler_tape::{How, Stream, ToKeeper};

use crate::support::{Session, TestCgroup, eventually, process_state};

const TICKING: &str = "
    sh -c 'echo $$ >'$1'/child; while :; do sleep 0.02; done' &
    echo $$ >$1/agent
    while :; do echo tick; sleep 0.02; done";

fn freeze_and_thaw(session: &Session, how: FrozenBy) {
    let mut daemon = session.connect(1);
    session.wait_for_line("tick");
    let child = session.wait_for_pid("child");
    daemon.send(&ToKeeper::Freeze { on: true });
    daemon.wait_for_state(|state| state.frozen == Some(how));
    if how == FrozenBy::Signals {
        // D: it was just starting a program by vfork, and waits for a child that is stopped.
        let stopped = || matches!(process_state(child), Some('T' | 'D'));
        eventually("the child is stopped", || stopped().then_some(()));
    }
    // What was printed before the freeze may still be in the pipe; then nothing more may come.
    let settled = eventually("silence", || {
        let before = session.text(Stream::Out).len();
        std::thread::sleep(std::time::Duration::from_millis(150));
        (session.text(Stream::Out).len() == before).then_some(before)
    });
    daemon.send(&ToKeeper::Freeze { on: false });
    daemon.wait_for_state(|state| state.frozen.is_none());
    eventually("ticks again", || (session.text(Stream::Out).len() > settled).then_some(()));
}

fn kill_while_frozen(mut session: Session, action: RungAction, expected: How) {
    let mut daemon = session.connect(1);
    session.wait_for_line("tick");
    daemon.send(&ToKeeper::Freeze { on: true });
    daemon.wait_for_state(|state| state.frozen.is_some());
    let ladder = vec![Rung { action, wait_ms: 60_000 }];
    daemon.send(&ToKeeper::Stop { by: "ada".into(), rule: "stop".into(), ladder });
    daemon.wait_for_phase(Phase::Exited);
    drop(daemon);
    assert_eq!(session.end().how, expected);
}

#[test]
fn by_signals() {
    freeze_and_thaw(&Session::started(TICKING), FrozenBy::Signals);
}

#[test]
fn by_cgroup() {
    let Some(cgroup) = TestCgroup::new() else {
        eprintln!("skipped: by_cgroup needs a writable cgroup v2");
        return;
    };
    let mut session =
        Session::new(TICKING).with(|document| document.cgroup = Some(cgroup.path.clone())).start();
    freeze_and_thaw(&session, FrozenBy::Cgroup);
    let mut daemon = session.connect(2);
    let ladder = vec![Rung { action: RungAction::Kill, wait_ms: 60_000 }];
    daemon.send(&ToKeeper::Stop { by: "ada".into(), rule: "stop".into(), ladder });
    daemon.wait_for_phase(Phase::Exited);
    drop(daemon);
    assert_eq!(session.end().how, How::Signaled { signal: 9, core: false });
    assert!(!cgroup.path.exists(), "the cgroup is removed");
}

#[test]
fn a_frozen_tree_is_stopped_all_the_same() {
    let killed = |signal| How::Signaled { signal, core: false };
    kill_while_frozen(Session::started(TICKING), RungAction::Signal(15), killed(15));
    kill_while_frozen(Session::started(TICKING), RungAction::Kill, killed(9));
    if let Some(cgroup) = TestCgroup::new() {
        let session =
            || Session::new(TICKING).with(|document| document.cgroup = Some(cgroup.path.clone())).start();
        kill_while_frozen(session(), RungAction::Signal(15), killed(15));
        kill_while_frozen(session(), RungAction::Kill, killed(9));
    }
}

#[test]
fn a_cgroup_that_cannot_be_made_is_noted_and_done_without() {
    let session =
        Session::new(TICKING).with(|document| document.cgroup = Some("/nowhere/group".into())).start();
    freeze_and_thaw(&session, FrozenBy::Signals);
    assert!(session.notes().iter().any(|note| matches!(note, ostler_tape::KeeperNote::NoCgroup { .. })));
}
