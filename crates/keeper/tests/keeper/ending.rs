//! How an agent's end is recorded.

use ostler_tape::frame::Phase;
use ostler_tape::{ExitRecord, How, KeeperLock, Stream, WrittenBy};
use rustix::process::Signal;

use crate::support::{Session, TestCgroup, eventually, is_alive, signal};

#[test]
fn an_exit_code_is_recorded() {
    let mut session = Session::started("echo last words; exit 3");
    let exit = session.end();
    assert_eq!(exit.how, How::Exited { code: 3 });
    assert_eq!((exit.asked, exit.rung, exit.oom), (None, None, false));
    assert_eq!((exit.leftovers.len(), exit.untaped_bytes), (0, 0));
    assert_eq!(exit.written_by, WrittenBy::Keeper);
    assert_eq!(session.text(Stream::Out), ["last words"]);
    assert!(KeeperLock::try_take(session.dir()).unwrap().is_some());
}

#[test]
fn a_signal_is_recorded() {
    let mut session = Session::started("kill -USR1 $$; sleep 60");
    assert_eq!(session.end().how, How::Signaled { signal: Signal::USR1.as_raw(), core: false });
}

#[test]
fn the_daemon_hears_of_the_end_and_its_bye_releases_the_keeper() {
    let mut session = Session::started("read line");
    let mut daemon = session.connect(1);
    daemon.wait_for_phase(Phase::Running);
    daemon.input(1, b"\n");
    let state = daemon.wait_for_phase(Phase::Exited);
    let exit = ExitRecord::read(session.dir()).unwrap().expect("written before it is told");
    assert_eq!(state.tape_end, exit.tape_end);
    assert_eq!(exit.last_input_no, 1);
    daemon.send(&ostler_tape::ToKeeper::Bye {});
    assert!(daemon.next().is_none());
    session.end();
}

#[test]
fn what_an_agent_leaves_running_is_named_and_killed() {
    let script = "(echo $$ >/dev/null; sleep 1000 & echo $! >$1/left) ; echo gone";
    let mut session = Session::started(script);
    let left = session.wait_for_pid("left");
    let exit = session.end();
    assert_eq!(exit.how, How::Exited { code: 0 });
    assert_eq!(exit.leftovers.iter().map(|found| found.name.as_str()).collect::<Vec<_>>(), ["sleep"]);
    assert_eq!(exit.leftovers[0].pid, left);
    assert!(!is_alive(left));
    assert_eq!(session.text(Stream::Out), ["gone"]);
}

#[test]
fn a_fork_that_prints_after_the_agent_is_gone_is_still_heard() {
    let mut session = Session::started("(sleep 0.3; echo late) & exit 0");
    let exit = session.end();
    assert_eq!(exit.how, How::Exited { code: 0 });
    assert_eq!(session.text(Stream::Out), ["late"]);
    assert_eq!(exit.leftovers, []);
}

#[test]
fn a_dead_init_is_a_lost_agent() {
    let mut session =
        Session::started("echo $PPID >$1/init; echo $$ >$1/agent; while :; do sleep 0.05; done");
    let agent = session.wait_for_pid("agent");
    signal(session.wait_for_pid("init"), Signal::KILL);
    let exit = session.end();
    assert!(matches!(exit.how, How::Lost { .. }), "{exit:?}");
    eventually("the agent went with it", || (!is_alive(agent)).then_some(()));
}

#[test]
fn an_agent_killed_for_want_of_memory_is_recorded_so() {
    let Some(cgroup) = TestCgroup::new() else {
        eprintln!("skipped: an_agent_killed_for_want_of_memory_is_recorded_so needs a writable cgroup v2");
        return;
    };
    let mut session = Session::new("read line && exec tail /dev/zero")
        .with(|document| document.cgroup = Some(cgroup.path.clone()))
        .start();
    let mut daemon = session.connect(1);
    daemon.wait_for_phase(Phase::Running);
    if std::fs::write(cgroup.path.join("memory.max"), "20000000").is_err() {
        eprintln!("skipped: an_agent_killed_for_want_of_memory_is_recorded_so needs the memory controller");
        return;
    }
    let _ = std::fs::write(cgroup.path.join("memory.swap.max"), "0");
    daemon.input(1, b"\n");
    daemon.wait_for_phase(Phase::Exited);
    drop(daemon);
    assert!(session.end().oom);
}
