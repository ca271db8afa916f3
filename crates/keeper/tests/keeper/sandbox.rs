//! A session in a sandbox is kept like any other: started, heard, frozen, stopped, ended, explained.

use ostler_tape::frame::{FrozenBy, Phase, Rung, RungAction};
use ostler_tape::{How, KeeperNote, Stream, ToKeeper};
use rustix::process::Signal;

use crate::support::{Session, TestCgroup, eventually, process_state, signal, wait_until_dead};

/// Detached as far as a process can be.
const WITH_A_DAEMON: &str = "
    setsid sh -c 'sh -c \"exec sleep 1000\" & exit 0' </dev/null >/dev/null 2>&1
    echo ready
    trap '' TERM
    while :; do echo tick; sleep 0.02; done";

fn kill() -> ToKeeper {
    let ladder = vec![Rung { action: RungAction::Kill, wait_ms: 60_000 }];
    ToKeeper::Stop { by: "ada".into(), rule: "stop".into(), ladder }
}

fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// Pid 1 of the agent's pid namespace and everything below it, by their numbers outside.
fn inhabitants(agent: u32) -> Vec<u32> {
    let namespace = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/pid")).unwrap();
    assert_ne!(namespace(agent), namespace(std::process::id()));
    let init = parent(agent).unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let below = |pid: &u32| std::iter::successors(Some(*pid), |&pid| parent(pid)).any(|above| above == init);
    pids.filter(below).collect()
}

#[test]
fn output_and_exit_code_come_out() {
    let mut session = Session::confined("read line; echo \"$line in $PWD as $$\"; exit 7").start();
    let mut daemon = session.connect(1);
    let state = daemon.wait_for_phase(Phase::Running);
    daemon.input(1, b"hi\n");
    daemon.wait_for_phase(Phase::Exited);
    drop(daemon);
    assert_eq!(session.end().how, How::Exited { code: 7 });
    assert_eq!(session.text(Stream::Out), [format!("hi in {} as 2", session.document.cwd.display())]);
    let agent = state.agent.unwrap();
    assert!(agent.pid > 2 && agent.start_time > 0, "the number outside: {agent:?}");
    let started = session.notes().into_iter().find_map(|note| match note {
        KeeperNote::Started { pid, start_time, .. } => Some((pid, start_time)),
        _ => None,
    });
    assert_eq!(started, Some((agent.pid, agent.start_time)));
}

#[test]
fn a_kill_reaches_everything_inside() {
    let mut session = Session::confined(WITH_A_DAEMON).start();
    session.wait_for_line("ready");
    let mut daemon = session.connect(1);
    let agent = daemon.wait_for_phase(Phase::Running).agent.unwrap().pid;
    let inside = inhabitants(agent);
    assert!(inside.len() >= 3, "init, the agent and what it has detached: {inside:?}");
    daemon.send(&kill());
    daemon.wait_for_phase(Phase::Exited);
    drop(daemon);
    assert_eq!(session.end().how, How::Signaled { signal: 9, core: false });
    inside.into_iter().for_each(wait_until_dead);
}

#[test]
fn what_is_left_running_is_named_and_ended() {
    let mut session = Session::confined("sleep 1000 </dev/null >/dev/null 2>&1 & echo done").start();
    let exit = session.end();
    assert_eq!(exit.how, How::Exited { code: 0 });
    assert_eq!(exit.leftovers.iter().map(|process| process.name.as_str()).collect::<Vec<_>>(), ["sleep"]);
    wait_until_dead(exit.leftovers[0].pid);
}

#[test]
fn a_keeper_that_dies_takes_everything_along() {
    let mut session = Session::confined(WITH_A_DAEMON).start();
    session.wait_for_line("ready");
    let agent = session.connect(1).wait_for_phase(Phase::Running).agent.unwrap().pid;
    let inside = inhabitants(agent);
    session.kill_keeper();
    inside.into_iter().for_each(wait_until_dead);
}

#[test]
fn a_keeper_that_dies_takes_a_warden_along_that_does_not_listen() {
    let mut session = Session::confined(WITH_A_DAEMON).start();
    session.wait_for_line("ready");
    let agent = session.connect(1).wait_for_phase(Phase::Running).agent.unwrap().pid;
    let inside = inhabitants(agent);
    let warden = parent(parent(agent).unwrap()).unwrap();
    assert_eq!(parent(warden), Some(session.keeper_pid()));
    signal(warden, Signal::STOP);
    session.kill_keeper();
    inside.into_iter().chain([warden]).for_each(wait_until_dead);
}

#[test]
fn the_tree_is_frozen_and_goes_on() {
    let session = Session::confined(WITH_A_DAEMON).start();
    session.wait_for_line("tick");
    let mut daemon = session.connect(1);
    let agent = daemon.wait_for_phase(Phase::Running).agent.unwrap().pid;
    daemon.send(&ToKeeper::Freeze { on: true });
    daemon.wait_for_state(|state| state.frozen == Some(FrozenBy::Signals));
    eventually("the agent is stopped", || matches!(process_state(agent), Some('T' | 'D')).then_some(()));
    let before = session.text(Stream::Out).len();
    daemon.send(&ToKeeper::Freeze { on: false });
    daemon.wait_for_state(|state| state.frozen.is_none());
    eventually("ticks again", || (session.text(Stream::Out).len() > before + 5).then_some(()));
}

#[test]
fn init_and_below_are_in_the_cgroup() {
    let Some(cgroup) = TestCgroup::new() else {
        eprintln!("skipped: init_and_below_are_in_the_cgroup needs a writable cgroup v2");
        return;
    };
    let mut session = Session::confined("grep ^0: /proc/self/cgroup; echo ready; sleep 1000")
        .with(|document| document.cgroup = Some(cgroup.path.clone()))
        .start();
    session.wait_for_line("ready");
    let mut daemon = session.connect(1);
    let agent = daemon.wait_for_phase(Phase::Running).agent.unwrap().pid;
    let procs = std::fs::read_to_string(cgroup.path.join("cgroup.procs")).unwrap();
    let mut procs: Vec<u32> = procs.lines().map(|line| line.parse().unwrap()).collect();
    let mut inside = inhabitants(agent);
    procs.sort_unstable();
    inside.sort_unstable();
    assert_eq!(procs, inside, "and not the warden");
    assert_eq!(session.text(Stream::Out)[0], "0::/", "which does not see where it is");
    daemon.send(&ToKeeper::Freeze { on: true });
    daemon.wait_for_state(|state| state.frozen == Some(FrozenBy::Cgroup));
    daemon.send(&kill());
    daemon.wait_for_phase(Phase::Exited);
    drop(daemon);
    assert_eq!(session.end().how, How::Signaled { signal: 9, core: false });
}

#[test]
fn a_refusal_is_a_start_that_failed_with_its_reason() {
    let mut session = Session::confined("true")
        .with(|document| document.confinement.as_mut().unwrap().root.inode += 1)
        .start();
    match session.end().how {
        How::NeverStarted { stage, message, hint, .. } => {
            assert_eq!(stage, "root");
            assert!(message.contains("not the directory that was registered"), "{message}");
            assert!(hint.contains("register"), "{hint}");
        }
        how => panic!("{how:?}"),
    }
    let mut session = Session::confined("true").with(|document| document.program = "/nowhere".into()).start();
    assert!(matches!(session.end().how, How::NeverStarted { stage, errno: Some(2), .. } if stage == "exec"));
}

#[test]
fn tampering_is_on_the_tape_before_the_end() {
    let mut session = Session::confined("mkdir .vscode; echo '{}' >.vscode/tasks.json").start();
    assert_eq!(session.end().how, How::Exited { code: 0 });
    let tampered = session.notes().into_iter().find_map(|note| match note {
        KeeperNote::Tampered { names } => Some(names),
        _ => None,
    });
    assert_eq!(tampered, Some(vec![".vscode".to_owned()]));
}

#[test]
fn a_daemon_has_new_hidden_files_covered_at_once() {
    let session = Session::confined(
        "echo ready; while ! [ -e .env ]; do sleep 0.01; done
        while cat .env 2>/dev/null; do sleep 0.01; done; echo covered; sleep 1000",
    )
    .start();
    session.wait_for_line("ready");
    let mut daemon = session.connect(1);
    daemon.wait_for_phase(Phase::Running);
    let began = std::time::Instant::now();
    std::fs::write(session.document.cwd.join(".env"), "").unwrap();
    daemon.send(&ToKeeper::Remask { paths: vec![".env".into()] });
    session.wait_for_line("covered");
    assert!(
        began.elapsed() < ostler_domain::limits::RESCAN,
        "before the warden would have looked for itself"
    );
}

#[test]
fn a_session_that_takes_too_much_memory_is_ended() {
    const LIMIT: u64 = 64 << 20;
    // Several processes, none of them too large.
    let hungry = "perl -e '$x = q(x) x (30 << 20); sleep 1000'";
    let mut session = Session::confined(&format!("{hungry} & {hungry} & {hungry} & wait"))
        .with(|document| document.confinement.as_mut().unwrap().limits.memory_bytes = Some(LIMIT))
        .start();
    let exit = session.end();
    assert_eq!(exit.how, How::Signaled { signal: 9, core: false });
    assert_eq!(exit.asked.unwrap().rule, "memory limit");
    assert!(exit.oom, "not somebody who asked for it");
    let noted = session.notes().into_iter().find_map(|note| match note {
        KeeperNote::MemoryLimit { bytes, limit_bytes } => Some((bytes, limit_bytes)),
        _ => None,
    });
    assert!(noted.is_some_and(|(bytes, limit)| bytes > LIMIT && limit == LIMIT), "{noted:?}");
}

/// None of it belongs to a process: it is in files without a name, one open and one only mapped.
#[test]
fn memory_that_hides_in_nameless_files_counts() {
    const LIMIT: u64 = 64 << 20;
    let open = "import os, time
f = os.memfd_create('x')
for _ in range(100): os.write(f, b'x' * (1 << 20))
time.sleep(1000)";
    let mapped = "import os, mmap, time
f = os.memfd_create('x'); os.ftruncate(f, 100 << 20)
m = mmap.mmap(f, 100 << 20); os.close(f)
for n in range(100): m[n << 20:(n + 1) << 20] = b'x' * (1 << 20)
time.sleep(1000)";
    for script in [open, mapped] {
        let mut session = Session::confined(&format!("exec python3 -c \"{script}\""))
            .with(|document| document.confinement.as_mut().unwrap().limits.memory_bytes = Some(LIMIT))
            .start();
        let exit = session.end();
        assert!(exit.oom, "{exit:?}: {:?}", session.text(ostler_tape::Stream::Err));
    }
}

#[test]
fn a_kill_does_not_wait_for_a_sandbox_to_be_made() {
    let mut session = Session::confined("sleep 1000");
    // A warden waits for this lock in the middle of its work.
    let git = session.document.cwd.join(".git");
    std::fs::create_dir(&git).unwrap();
    std::fs::write(git.join("commondir"), ".\n").unwrap();
    let lock = std::fs::File::open(git.join("commondir")).unwrap();
    lock.lock().unwrap();
    let status = session.try_start();
    assert!(matches!(status, ostler_tape::StatusLine::Ready { .. }), "{status:?}");
    let mut daemon = session.connect(1);
    daemon.wait_for_phase(Phase::Starting);
    daemon.send(&kill());
    daemon.wait_for_phase(Phase::Exited);
    drop(daemon);
    let exit = session.end();
    assert!(matches!(&exit.how, How::Lost { reason } if reason.contains("signal: 9")), "{exit:?}");
    assert_eq!(exit.rung.as_deref(), Some("kill"));
}
