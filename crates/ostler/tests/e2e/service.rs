//! The daemon as a service: its units, the socket that is held for it, what it says to its manager, and a restart of
//! its main process alone within the unit's group. The tests play the service manager.

use std::{
    fs::{self, File},
    os::{
        fd::OwnedFd,
        unix::{
            fs::PermissionsExt,
            net::{UnixDatagram, UnixListener},
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use ostler_domain::session::{Attention, View};
use ostler_testkit::{TestHome, numbers, process::Proc, scenario, skip, wait};

use crate::OSTLER;

/// A service manager that starts daemons and holds their socket.
struct Manager {
    listener: UnixListener,
    /// What daemons say, in order.
    notices: Receiver<String>,
    notice_path: PathBuf,
}

impl Manager {
    fn of(home: &TestHome) -> Manager {
        let run = home.home.run();
        fs::create_dir_all(run).unwrap();
        fs::set_permissions(run, fs::Permissions::from_mode(0o700)).unwrap();
        let notice_path = home.path().join("notify");
        let socket = UnixDatagram::bind(&notice_path).unwrap();
        let (heard, notices) = channel();
        std::thread::spawn(move || {
            let mut room = [0; 256];
            while let Ok(count) = socket.recv(&mut room) {
                if heard.send(String::from_utf8_lossy(&room[..count]).into_owned()).is_err() {
                    return;
                }
            }
        });
        Manager { listener: UnixListener::bind(home.home.control_socket()).unwrap(), notices, notice_path }
    }

    /// Starts a daemon with the socket as its third descriptor, after `first`, a line of shell.
    fn start(&self, home: &TestHome, first: &str) -> Child {
        let script =
            format!("{first} LISTEN_PID=$$; export LISTEN_PID; exec 3<&0 </dev/null; exec \"$0\" daemon run");
        let mut daemon = home.command_of(Path::new("/bin/sh"), &["-c", &script, OSTLER]);
        daemon.stdin(Stdio::from(OwnedFd::from(self.listener.try_clone().unwrap())));
        daemon.env("LISTEN_FDS", "1").env("NOTIFY_SOCKET", &self.notice_path).env("WATCHDOG_USEC", "600000");
        daemon
            .stdout(Stdio::null())
            .stderr(Stdio::from(File::create(home.path().join("daemon.err")).unwrap()));
        daemon.spawn().unwrap()
    }

    fn hears(&self, wanted: &str) {
        loop {
            let said = self
                .notices
                .recv_timeout(wait::PATIENCE)
                .unwrap_or_else(|error| panic!("no {wanted}: {error}"));
            if said.starts_with(wanted) {
                return;
            }
        }
    }
}

fn register(home: &TestHome) {
    let dir = home.campaign_dir();
    let added = home.run(&["campaign", "add", dir.to_str().unwrap(), "--name", "shop"]);
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
}

#[tokio::test]
async fn a_held_socket_outlives_daemons_and_brings_them_back() {
    let home = TestHome::new(OSTLER);
    let manager = Manager::of(&home);
    let mut first = manager.start(&home, "");
    manager.hears("READY=1");
    manager.hears("WATCHDOG=1");
    assert!(home.daemon_file().is_some_and(|file| file.is_service));
    register(&home);
    let client = home.client().await;
    let counting = home.session(&client, &scenario::of(vec![scenario::count("tick", 200, 10)])).await;
    let id = counting.id.to_string();
    home.reaches(&id, "the first completion", |view| view.last_completion.is_some()).await;

    first.kill().unwrap();
    first.wait().unwrap();
    assert!(home.home.control_socket().exists(), "the socket is not the daemon's to remove");
    // Nobody but the keeper can be knocking, and it starts none itself.
    manager.listener.set_nonblocking(true).unwrap();
    let knocked = || !ready(&manager.listener, Duration::from_millis(20)).is_empty();
    wait::until("the keeper to ask for a daemon", wait::PATIENCE, knocked);
    assert!(home.daemon().is_none());

    let mut second = manager.start(&home, "");
    manager.hears("READY=1");
    let is_idle = |view: &View| view.attention == Some(Attention::Idle) && view.messages_waiting == 0;
    assert_eq!(home.reaches(&id, "the turn to end", is_idle).await.outcome, None);
    let client = home.client().await;
    let events = home.events(&client, counting.id).await;
    numbers::assert_gapless(&events, "the session");
    numbers::assert_complete(&numbers::counted(&events, "tick"), 200, "the session");

    // An orderly stop says so, and leaves the socket.
    client.stop_session(&id, true).await.unwrap();
    home.ended(&id).await;
    let stopped = home.run(&["daemon", "stop"]);
    assert!(stopped.status.success());
    manager.hears("STOPPING=1");
    assert!(second.wait().unwrap().success());
    assert!(home.home.control_socket().exists());
}

fn ready(listener: &UnixListener, within: Duration) -> Vec<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(listener, PollFlags::IN)];
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(within.subsec_nanos()) };
    let _ = poll(&mut fds, Some(&timeout));
    if fds[0].revents().is_empty() { Vec::new() } else { vec![()] }
}

#[test]
fn the_units_are_what_systemd_understands() {
    let home = TestHome::new(OSTLER);
    let root = home.path().join("root");
    let root_text = root.to_str().unwrap();
    for args in [
        &["service", "install", "--root", root_text][..],
        &["service", "install", "--system", "--user", "root", "--root", root_text],
    ] {
        let installed =
            home.command(args).env("HOME", "/home/ann").env_remove("XDG_CONFIG_HOME").output().unwrap();
        assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    }
    let user = root.join("home/ann/.config/systemd/user");
    let system = root.join("etc/systemd/system");
    for (dir, flags) in [(&user, &["--user"][..]), (&system, &["--system"])] {
        let units = ["ostler.service", "ostler.socket"].map(|name| dir.join(name));
        assert!(units.iter().all(|unit| unit.exists()), "{}", dir.display());
        let mut verify = Command::new("systemd-analyze");
        verify.args(flags).args(["verify", "--man=no"]).args(&units).env("SYSTEMD_LOG_LEVEL", "warning");
        verify.env("XDG_RUNTIME_DIR", home.path());
        let Ok(verified) = verify.output() else {
            skip::lacking("the_units_are_what_systemd_understands needs systemd-analyze");
            return;
        };
        let said = String::from_utf8_lossy(&verified.stderr);
        let ours: Vec<&str> = said.lines().filter(|line| line.contains("ostler")).collect();
        // A setting of a later systemd is left out with a word, by an earlier one.
        let ours: Vec<_> = ours.iter().filter(|line| !line.contains("DelegateSubgroup")).collect();
        assert!(ours.is_empty(), "{ours:#?}");
    }
    let gone = home
        .command(&["service", "uninstall", "--root", root_text, "--json"])
        .env("HOME", "/home/ann")
        .env_remove("XDG_CONFIG_HOME")
        .output()
        .unwrap();
    assert!(gone.status.success() && !user.join("ostler.service").exists());
    let told: serde_json::Value = serde_json::from_slice(&gone.stdout).unwrap();
    assert_eq!((&told["scope"], &told["installed"]), (&"user".into(), &false.into()), "{told}");
}

#[test]
fn nothing_is_installed_where_systemd_does_not_run() {
    if std::path::Path::new("/run/systemd/system").exists() {
        skip::impossible("nothing_is_installed_where_systemd_does_not_run", "systemd runs here");
        return;
    }
    let home = TestHome::new(OSTLER);
    let config = home.path().join("elsewhere");
    for args in [&["service", "install"][..], &["service", "install", "--user", "-o", "json"]] {
        let mut command = home.command(args);
        let refused = command.env_remove("OSTLER_HOME").env("HOME", &config).output().unwrap();
        let err = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(4), "{err}");
        assert!(err.contains("systemd does not run here") && err.contains("ostler daemon start"), "{err}");
        assert!(refused.stdout.is_empty() && !config.exists(), "something was installed");
    }
    for args in [&["service", "status", "--user", "ann"][..], &["service", "status", "--system"]] {
        assert_eq!(home.run(args).status.code(), Some(2), "{args:?}");
    }
}

/// A group of our own of version 2, where we may make one.
struct Unit {
    path: PathBuf,
}

impl Unit {
    fn make(home: &TestHome) -> Option<Unit> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let mount = mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (place, kind) = (words.next()?, words.next()?);
            (kind == "cgroup2").then(|| PathBuf::from(place))
        })?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::"))?.trim_start_matches('/').to_owned();
        let path = mount.join(own).join(format!("{}.service", home.path().file_name()?.to_str()?));
        fs::create_dir(&path).ok()?;
        fs::create_dir(path.join("daemon")).ok()?;
        Some(Unit { path })
    }

    fn members(&self, group: &str) -> Vec<u32> {
        let text = fs::read_to_string(self.path.join(group).join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|pid| pid.parse().ok()).collect()
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        // Directories only: the files of a group go with it.
        fn remove(at: &Path) {
            for entry in
                fs::read_dir(at).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir())
            {
                remove(&entry.path());
            }
            let _ = fs::remove_dir(at);
        }
        for _ in 0..50 {
            remove(&self.path);
            if !self.path.exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[tokio::test]
async fn a_restart_of_the_unit_ends_the_daemon_alone() {
    let home = TestHome::new(OSTLER);
    let Some(unit) = Unit::make(&home) else {
        let test = "a_restart_of_the_unit_ends_the_daemon_alone";
        skip::impossible(test, "no cgroup of version 2 may be written here");
        return;
    };
    let manager = Manager::of(&home);
    let enter = format!("echo $$ > {}/daemon/cgroup.procs;", unit.path.display());
    let mut daemon = manager.start(&home, &enter);
    manager.hears("READY=1");
    register(&home);
    let client = home.client().await;
    let session = home.session(&client, &scenario::of(vec![scenario::count("tick", 400, 10)])).await;
    let id = session.id.to_string();
    home.reaches(&id, "the first completion", |view| view.last_completion.is_some()).await;
    let keeper = home.keeper(session.id).unwrap();
    assert!(unit.members("keepers").contains(&keeper.pid));
    assert_eq!(unit.members("daemon"), [daemon.id()]);
    let inside: Vec<u32> = home.session_processes(session.id).iter().map(|process| process.pid).collect();
    let in_group = unit.members(&format!("ostler/{id}"));
    assert!(!inside.is_empty() && inside.iter().all(|pid| in_group.contains(pid)), "{inside:?} {in_group:?}");

    // What `KillMode=process` does: the main process ends, and another one is started in the same group.
    let agents: Vec<Proc> = home.session_processes(session.id);
    let main = Proc::of(daemon.id()).unwrap();
    main.kill();
    daemon.wait().unwrap();
    let mut again = manager.start(&home, &enter);
    manager.hears("READY=1");
    let view = home
        .reaches(&id, "the session to be adopted", |view| view.attention == Some(Attention::Working))
        .await;
    assert_eq!(view.outcome, None);
    assert!(agents.iter().all(Proc::is_alive));
    let client = home.client().await;
    client.stop_session(&id, true).await.unwrap();
    home.ended(&id).await;
    numbers::assert_gapless(&home.events(&client, session.id).await, "the session");
    assert!(home.run(&["daemon", "stop"]).status.success());
    again.wait().unwrap();
}
