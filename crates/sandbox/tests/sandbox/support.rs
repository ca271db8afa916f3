//! A campaign to confine a program in, and a keeper's side of its warden.
//!
//! Each test runs once for each way in which a sandbox can be started here ([`each_way`]): as root three times, with a
//! campaign of root's, with one of a user's, and as that user; as an ordinary user once.

use std::fs;
use std::io::{Read, Write, pipe};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use ostler_domain::confinement::{CampaignRoot, Confinement};
use ostler_sandbox::channel::{self, AgentEnds, ExecReport, InitReport, Order, Received};
use tempfile::TempDir;

/// Far longer than anything here takes, on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(30);
/// Nobody's, on the machines that tests run on.
pub(crate) const USER: u32 = 54_321;

/// Waits until `condition` gives something.
pub(crate) fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Who starts the sandbox, and whose the campaign is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    RootOnRoots,
    RootOnUsers,
    User,
}

pub(crate) fn we_are_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs a test in every way that is possible here.
pub(crate) fn each_way(test: impl Fn(Way)) {
    let ways: &[Way] = if we_are_root() {
        &[Way::RootOnRoots, Way::RootOnUsers, Way::User]
    } else {
        println!("not root: a root daemon's two ways are skipped");
        &[Way::User]
    };
    for way in ways {
        println!("--- {way:?}");
        test(*way);
    }
}

/// A campaign in a directory of its own.
pub(crate) struct Campaign {
    way: Way,
    base: TempDir,
    pub(crate) confinement: Confinement,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) cgroup_procs: Option<PathBuf>,
    /// Handed in as standard input, as a keeper never would.
    pub(crate) foreign_stdin: Option<PathBuf>,
}

impl Campaign {
    pub(crate) fn new(way: Way) -> Campaign {
        let base = tempfile::Builder::new().prefix("ostler-sandbox-").tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(base.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let root = base.path().canonicalize().unwrap().join("camp");
        fs::create_dir(&root).unwrap();
        let found = fs::metadata(&root).unwrap();
        let root = CampaignRoot {
            path: root,
            device: found.dev(),
            inode: found.ino(),
            read_only: false,
            leased: Vec::new(),
        };
        let campaign = Campaign {
            way,
            base,
            confinement: Confinement::new(root),
            env: vec![
                ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
                ("HOME".into(), "/home/agent".into()),
            ],
            cwd: None,
            cgroup_procs: None,
            foreign_stdin: None,
        };
        campaign.give(campaign.root());
        campaign
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Confinement)) -> Campaign {
        change(&mut self.confinement);
        self
    }

    pub(crate) fn root(&self) -> &Path {
        &self.confinement.root.path
    }

    /// A directory outside of the campaign, which everybody may enter.
    pub(crate) fn outside(&self) -> &Path {
        self.base.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Hands something to whom the campaign belongs.
    pub(crate) fn give(&self, path: &Path) {
        if we_are_root() && self.way != Way::RootOnRoots {
            std::os::unix::fs::lchown(path, Some(USER), Some(USER)).unwrap();
        }
    }

    /// Hands something to whom the daemon runs as.
    pub(crate) fn give_to_daemon(&self, path: &Path) {
        if we_are_root() && self.way == Way::User {
            chown(path, Some(USER), Some(USER)).unwrap();
        }
    }

    /// A file of the campaign, written from outside.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        let mut made = Vec::new();
        for above in path.ancestors().skip(1).take_while(|above| !above.exists()) {
            made.push(above.to_owned());
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        made.iter().chain([&path]).for_each(|path| self.give(path));
        path
    }

    /// A file of the campaign, replaced as editors do.
    pub(crate) fn replace(&self, name: &str, text: &str) {
        let new = self.write(&format!("{name}~new"), text);
        fs::rename(new, self.path(name)).unwrap();
    }

    /// What a program in the campaign's owner's name would do outside of the sandbox.
    pub(crate) fn run_outside(&self, script: &str) {
        let mut command = Command::new("/bin/sh");
        command.args(["-ec", script]).current_dir(self.root()).env_clear().env("PATH", "/usr/bin:/bin");
        if we_are_root() && self.way != Way::RootOnRoots {
            command.uid(USER).gid(USER);
        }
        assert!(command.status().unwrap().success(), "{script}");
    }

    /// Starts a shell script in the sandbox.
    pub(crate) fn start(&self, script: &str) -> Sandboxed {
        self.start_program("/bin/sh", &["-c", script])
    }

    pub(crate) fn start_program(&self, program: &str, args: &[&str]) -> Sandboxed {
        let (keeper, warden_end) = channel::pair().unwrap();
        let (stdin, keeper_stdin) = pipe().unwrap();
        let (keeper_stdout, stdout) = pipe().unwrap();
        let (keeper_stderr, stderr) = pipe().unwrap();
        let (exec_read, exec_write) = pipe().unwrap();
        let order = Order {
            program: program.into(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            env: self.env.clone(),
            cwd: self.cwd.clone().unwrap_or_else(|| self.root().to_owned()),
            cgroup_procs: self.cgroup_procs.iter().cloned().collect(),
            confinement: Some(self.confinement.clone()),
            terminal: None,
            observe: false,
        };
        let foreign = self.foreign_stdin.as_ref().map(|path| fs::File::open(path).unwrap().into());
        let ends = AgentEnds {
            stdin: foreign.unwrap_or_else(|| stdin.into()),
            stdout: stdout.into(),
            stderr: stderr.into(),
            exec_status: exec_write.into(),
        };
        channel::send_agent(&keeper, &order, &ends).unwrap();
        drop(ends);
        let mut command = Command::new(env!("CARGO_BIN_EXE_warden-under-test"));
        command.args(["internal", "warden"]).env_clear().stdin(Stdio::from(warden_end)).stdout(Stdio::null());
        if we_are_root() && self.way == Way::User {
            command.uid(USER).gid(USER);
        }
        let warden = command.spawn().unwrap();
        Sandboxed {
            warden,
            channel: Some(keeper),
            stdin: Some(OwnedFd::from(keeper_stdin).into()),
            stdout: Some(OwnedFd::from(keeper_stdout).into()),
            stderr: Some(OwnedFd::from(keeper_stderr).into()),
            exec_status: Some(OwnedFd::from(exec_read).into()),
            reports: Vec::new(),
            listener: None,
        }
    }

    /// Runs a script to its end, which must be a success, and returns what it printed.
    #[track_caller]
    pub(crate) fn run(&self, script: &str) -> String {
        let ended = self.start(script).end();
        assert!(
            ended.status.success(),
            "{:?}: {}{}{:?}",
            ended.status,
            ended.stdout,
            ended.stderr,
            ended.refusals
        );
        ended.stdout.trim_end().to_owned()
    }

    /// Runs commands that must each fail.
    #[track_caller]
    pub(crate) fn all_fail(&self, commands: &[&str]) {
        let script: String = commands
            .iter()
            .map(|command| {
                format!("if ({command}) 2>/dev/null; then echo '{}'; fi\n", command.replace('\'', "\""))
            })
            .collect();
        let succeeded = self.run(&script);
        assert_eq!(succeeded, "", "these succeeded");
    }
}

/// A program in a sandbox.
pub(crate) struct Sandboxed {
    pub(crate) warden: Child,
    pub(crate) channel: Option<OwnedFd>,
    pub(crate) stdin: Option<fs::File>,
    stdout: Option<fs::File>,
    stderr: Option<fs::File>,
    exec_status: Option<fs::File>,
    reports: Vec<InitReport>,
    pub(crate) listener: Option<OwnedFd>,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) refusals: Vec<ExecReport>,
    pub(crate) tampered: Vec<String>,
    pub(crate) warden: ExitStatus,
}

impl Sandboxed {
    /// Waits for a report.
    pub(crate) fn report<T>(&mut self, what: &str, mut wanted: impl FnMut(&InitReport) -> Option<T>) -> T {
        eventually(what, || {
            self.hear();
            self.reports.iter().find_map(&mut wanted)
        })
    }

    fn hear(&mut self) -> bool {
        while let Some(channel) = &self.channel {
            match channel::receive_report(channel).unwrap() {
                Received::Message(report) => self.reports.push(report),
                Received::Listener(listener) => self.listener = Some(listener),
                Received::NotYet => return true,
                Received::Terminal(_) | Received::Observer(_) => {}
                Received::Closed => return false,
            }
        }
        false
    }

    pub(crate) fn init_pid(&mut self) -> u32 {
        self.report("init's number", |report| match report {
            InitReport::Housed { init_pid } => Some(*init_pid),
            _ => None,
        })
    }

    pub(crate) fn agent_pid(&mut self) -> u32 {
        self.report("the agent's number", |report| match report {
            InitReport::Started { pid, .. } => Some(*pid),
            _ => None,
        })
    }

    pub(crate) fn kill_init(&mut self) {
        let pid = rustix::process::Pid::from_raw(self.init_pid() as i32).unwrap();
        // It may have been killed before, and not be there any more.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }

    /// Writes a line to the program.
    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Reads a line of the program's.
    pub(crate) fn line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        while self.stdout.as_mut().unwrap().read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            line.extend(byte);
        }
        String::from_utf8(line).unwrap()
    }

    /// Waits for the agent to end, then ends everything, and the warden in an orderly way.
    pub(crate) fn end(mut self) -> Ended {
        drop(self.stdin.take());
        let read = |file: Option<fs::File>| {
            std::thread::spawn(move || {
                let mut text = Vec::new();
                file.unwrap().read_to_end(&mut text).unwrap();
                String::from_utf8_lossy(&text).into_owned()
            })
        };
        let stdout = read(self.stdout.take());
        let stderr = read(self.stderr.take());
        let exec_status = read(self.exec_status.take());
        let status = self.report("the agent's end", |report| match report {
            InitReport::Ended { status } => Some(ExitStatus::from_raw(*status)),
            InitReport::NotStarted { message, .. } => panic!("{message}"),
            _ => None,
        });
        let refusals: Vec<ExecReport> =
            exec_status.join().unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        // Unless the warden itself refused, and has nothing to say any more, init goes on until it is killed.
        let mut killed = false;
        eventually("the warden's end", || {
            let is_over = !self.hear();
            let is_housed = self.reports.iter().any(|report| matches!(report, InitReport::Housed { .. }));
            if !is_over && is_housed && !killed {
                self.kill_init();
                killed = true;
            }
            is_over.then_some(())
        });
        let tampered = self.reports.iter().filter_map(|report| match report {
            InitReport::Tampered { names } => Some(names.clone()),
            _ => None,
        });
        Ended {
            status,
            stdout: stdout.join().unwrap(),
            stderr: stderr.join().unwrap(),
            refusals,
            tampered: tampered.flatten().collect(),
            warden: self.warden.wait().unwrap(),
        }
    }
}

impl Drop for Sandboxed {
    fn drop(&mut self) {
        drop(self.channel.take());
        let _ = self.warden.wait();
    }
}
