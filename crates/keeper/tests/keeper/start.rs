//! Who may start, and what an agent starts with.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use ostler_tape::frame::Phase;
use ostler_tape::{ExitRecord, How, KeeperLock, KeeperNote, StatusLine, Stream, write_attempt};

use crate::support::{Session, wait_until_dead};

fn refused_stage(status: StatusLine) -> String {
    match status {
        StatusLine::Refused { stage, .. } => stage,
        StatusLine::Ready { .. } => panic!("the keeper started"),
    }
}

#[test]
fn a_keeper_without_the_lock_refuses() {
    let mut session = Session::new("true");
    let lock = KeeperLock::try_take(session.dir()).unwrap();
    assert_eq!(refused_stage(session.try_start()), "lock");
    assert_eq!(session.wait_for_keeper().code(), Some(126));
    drop(lock);
}

#[test]
fn a_keeper_of_another_attempt_refuses() {
    let mut session = Session::new("true");
    write_attempt(session.dir(), 2).unwrap();
    assert_eq!(refused_stage(session.try_start()), "attempt");
    assert_eq!(session.wait_for_keeper().code(), Some(126));
    assert!(!session.dir().join("tape.exit").exists(), "it left nothing behind");
}

#[test]
fn an_ended_session_is_not_started_again() {
    let mut session = Session::started("true");
    session.end();
    assert_eq!(refused_stage(session.try_start()), "exit_record");
}

#[test]
fn a_document_that_makes_no_sense_is_refused() {
    let later = Session::new("true").with(|document| document.version = 2);
    let relative = Session::new("true").with(|document| document.cwd = "here".into());
    let endless = Session::new("true").with(|document| document.piece_bytes = usize::MAX);
    for mut session in [later, relative, endless] {
        assert_eq!(refused_stage(session.try_start()), "document");
    }
}

#[test]
fn a_missing_program_never_started() {
    let mut session =
        Session::new("true").with(|document| document.program = "/nowhere/agent".into()).start();
    let exit = session.end();
    match exit.how {
        How::NeverStarted { stage, errno, message, .. } => {
            assert_eq!((stage.as_str(), errno), ("exec", Some(2)));
            assert!(message.contains("/nowhere/agent"), "{message}");
        }
        how => panic!("{how:?}"),
    }
    assert!(!session.notes().iter().any(|note| matches!(note, KeeperNote::Started { .. })));
}

#[test]
fn a_missing_directory_is_named() {
    let mut session = Session::new("true").with(|document| document.cwd = "/nowhere".into()).start();
    let exit = session.end();
    assert!(matches!(exit.how, How::NeverStarted { stage, .. } if stage == "cwd"));
}

#[test]
fn the_agent_gets_its_environment_directory_descriptors_and_nothing_else() {
    let script = "env | grep -v -e ^PWD -e ^SHLVL -e ^_= -e ^OLDPWD; pwd; umask; read line";
    let mut session = Session::new(script)
        .with(|document| {
            document.env.push(("COLOUR".into(), "green".into()));
            document.cwd = "/usr".into();
        })
        .start();
    session.wait_for_line("0022");
    assert_eq!(session.text(Stream::Out), ["COLOUR=green", "PATH=/usr/bin:/bin", "/usr", "0022"]);
    let mut daemon = session.connect(1);
    let agent = daemon.wait_for_phase(Phase::Running).agent.unwrap().pid;
    let mut fds: Vec<String> = std::fs::read_dir(format!("/proc/{agent}/fd"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|fd| ["0", "1", "2"].contains(&fd.as_str()) || !leaked_to_this_test(fd))
        .collect();
    fds.sort_unstable();
    assert_eq!(fds, ["0", "1", "2"]);
    daemon.input(1, b"\n");
    drop(daemon);
    session.end();
}

/// Whoever started the tests may have left a descriptor open over exec, which then every child has.
fn leaked_to_this_test(fd: &str) -> bool {
    const O_CLOEXEC: u32 = 0o2_000_000;
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.is_some_and(|flags| u32::from_str_radix(flags.trim(), 8).unwrap() & O_CLOEXEC == 0)
}

#[test]
fn the_agent_leads_a_session_of_its_own_below_init() {
    let session = Session::started("echo $$ >$1/agent; read line");
    let mut daemon = session.connect(1);
    let state = daemon.wait_for_phase(Phase::Running);
    let agent = state.agent.unwrap().pid;
    assert_eq!(session.wait_for_pid("agent"), agent);
    let ids = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<u32> = stat
            .rsplit_once(") ")
            .unwrap()
            .1
            .split(' ')
            .skip(1)
            .take(3)
            .map(|f| f.parse().unwrap())
            .collect();
        (fields[0], fields[1], fields[2])
    };
    let (init, group, leader) = ids(agent);
    assert_eq!((group, leader), (agent, agent));
    let (keeper, ..) = ids(init);
    assert_eq!(keeper, session.keeper_pid());
    assert_eq!(ids(keeper).2, keeper, "the keeper leads its own");
}

#[test]
fn everything_in_the_directory_is_private() {
    let session = Session::started("read line");
    for name in ["keeper.lock", "ctl", "tape.exit", "tape.0000000000000000"] {
        let mode = session.dir().join(name).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_killed_keeper_takes_the_whole_tree_along_and_frees_the_lock() {
    let script = "
        setsid sh -c 'echo $$ >'$1'/detached; while :; do sleep 0.05; done' &
        echo $$ >$1/agent
        while :; do sleep 0.05; done";
    let mut session = Session::started(script);
    let pids = ["agent", "detached"].map(|name| session.wait_for_pid(name));
    session.kill_keeper();
    pids.into_iter().for_each(wait_until_dead);
    assert!(KeeperLock::try_take(session.dir()).unwrap().is_some());
    assert_eq!(ExitRecord::read(session.dir()).unwrap(), None);
}

/// In a pid namespace whose session leader is outside of it, as in a container that a program was sent into.
#[test]
fn a_keeper_starts_in_a_container() {
    const CONTAINER: &[&str] = &["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];
    let allowed = Command::new(CONTAINER[0]).args(&CONTAINER[1..]).arg("true").status();
    if !allowed.is_ok_and(|status| status.success()) {
        assert!(std::env::var_os("CI").is_none(), "this machine makes no pid namespaces");
        eprintln!("skipped: this machine makes no pid namespaces");
        return;
    }
    let mut session = Session::new("echo here; exit 3").by(CONTAINER).start();
    let exit = session.end();
    assert_eq!(exit.how, How::Exited { code: 3 });
    assert_eq!(session.text(Stream::Out), ["here"]);
}
