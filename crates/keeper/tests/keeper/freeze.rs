//! Freezing and thawing a whole tree, by cgroup and by signals.

use ostler_tape::frame::{FrozenBy, Phase, Rung, RungAction};
use ostler_tape::launch::{Controller, OldGroup};
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

#[test]
fn by_a_cgroup_of_the_old_version() {
    let Some(cgroup) = TestCgroup::old("freezer") else {
        eprintln!("skipped: by_a_cgroup_of_the_old_version needs a writable freezer of cgroup v1");
        return;
    };
    let old = || OldGroup { controller: Controller::Freezer, path: cgroup.path.clone() };
    let start = |session: Session| session.with(|document| document.old_cgroups = vec![old()]).start();
    let mut session = start(Session::new(TICKING));
    freeze_and_thaw(&session, FrozenBy::Cgroup);
    session.kill_keeper();
    eventually("the group is empty", || {
        let members = std::fs::read_to_string(cgroup.path.join("cgroup.procs"));
        members.is_ok_and(|members| members.is_empty()).then_some(())
    });
    // The kernel holds even a kill back from what is frozen: it must be thawed behind it.
    let killed = How::Signaled { signal: 9, core: false };
    kill_while_frozen(start(Session::new(TICKING)), RungAction::Kill, killed.clone());
    let ticking = "while :; do echo tick; sleep 0.02; done";
    kill_while_frozen(start(Session::confined(ticking)), RungAction::Kill, killed);
}

#[test]
fn the_old_version_ends_what_takes_too_much_memory() {
    let (Some(memory), Some(pids)) = (TestCgroup::old("memory"), TestCgroup::old("pids")) else {
        eprintln!("skipped: the_old_version_ends_what_takes_too_much_memory needs cgroup v1");
        return;
    };
    const LIMIT: u64 = 64 << 20;
    let groups = vec![
        OldGroup { controller: Controller::Memory, path: memory.path.clone() },
        OldGroup { controller: Controller::Pids, path: pids.path.clone() },
    ];
    let mut session = Session::confined("echo begun; exec perl -e '$x = q(x) x (200 << 20); sleep 1000'")
        .with(|document| {
            document.old_cgroups = groups;
            let limits = &mut document.confinement.as_mut().unwrap().limits;
            (limits.memory_bytes, limits.tasks) = (Some(LIMIT), Some(50));
        })
        .start();
    session.wait_for_line("begun");
    assert_eq!(std::fs::read_to_string(pids.path.join("pids.max")).unwrap().trim(), "50");
    let exit = session.end();
    assert_eq!(exit.how, How::Signaled { signal: 9, core: false });
    assert!(exit.oom && exit.asked.is_none(), "by the kernel, and that is known: {exit:?}");
}
