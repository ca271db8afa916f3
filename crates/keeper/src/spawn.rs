//! Starting the agent, from the keeper's side: pipes, channel, and who is at its other end. That is a sandbox's warden;
//! or, without a sandbox, an init of our own.

use std::fs::File;
use std::io::{self, PipeReader, Read, pipe};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ostler_sandbox::channel::{self, AgentEnds, ExecReport, Order};
use ostler_tape::{LaunchDocument, environ};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::cgroup::Cgroup;
use crate::log::log;

/// The keeper's ends of everything between it and its agent.
#[derive(Debug)]
pub(crate) struct Spawned {
    /// The warden, or init.
    pub(crate) init: Child,
    pub(crate) channel: OwnedFd,
    pub(crate) exec_status: ExecStatus,
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

pub(crate) fn spawn(document: &LaunchDocument, cgroup: Option<&Cgroup>) -> io::Result<Spawned> {
    let (stdin_read, stdin) = pipe()?;
    let (stdout, stdout_write) = pipe()?;
    let (stderr, stderr_write) = pipe()?;
    let (exec_read, exec_write) = pipe()?;
    // Only our ends: the agent's are files of their own, and programs expect them to block.
    ioctl_fionbio(&stdin, true)?;
    ioctl_fionbio(&stdout, true)?;
    ioctl_fionbio(&stderr, true)?;
    ioctl_fionbio(&exec_read, true)?;
    let ends = AgentEnds {
        stdin: stdin_read.into(),
        stdout: stdout_write.into(),
        stderr: stderr_write.into(),
        exec_status: exec_write.into(),
    };
    let order = Order {
        program: document.program.clone(),
        args: document.args.clone(),
        env: document.env.clone(),
        cwd: document.cwd.clone(),
        cgroup_procs: cgroup.map(Cgroup::procs).unwrap_or_default(),
        confinement: document.confinement.clone(),
        terminal: None,
        observe: false,
    };
    let mode = if document.confinement.is_some() { "warden" } else { "init" };
    let (channel, inits_end) = channel::pair()?;
    channel::send_agent(&channel, &order, &ends)?;
    let init = Command::new("/proc/self/exe")
        .arg0("ostler")
        .args(["internal", mode])
        .env_clear()
        .stdin(Stdio::from(inits_end))
        .stdout(Stdio::null())
        .spawn()?;
    let exec_status = ExecStatus { pipe: Some(exec_read), text: Vec::new() };
    Ok(Spawned {
        init,
        channel,
        exec_status,
        stdin: stdin.into(),
        stdout: stdout.into(),
        stderr: stderr.into(),
    })
}

/// The pipe that ends when launch has become the agent, or has said why not.
#[derive(Debug)]
pub(crate) struct ExecStatus {
    pipe: Option<PipeReader>,
    text: Vec<u8>,
}

impl ExecStatus {
    pub(crate) fn pipe(&self) -> Option<&PipeReader> {
        self.pipe.as_ref()
    }

    /// Everything launch said, once it will say no more.
    pub(crate) fn read(&mut self) -> Option<Vec<ExecReport>> {
        match self.pipe.as_mut()?.read_to_end(&mut self.text) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
            Err(error) => log!("launch could not be heard: {error}"),
            Ok(_) => {}
        }
        self.pipe = None;
        let lines = self.text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        Some(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }
}

/// Connects, and has nothing to say. A queue that is full is somebody's who will come to it.
fn knock(path: &Path) -> io::Result<()> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&socket, &SocketAddrUnix::new(path)?) {
        Ok(()) | Err(Errno::AGAIN) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether somebody answers where `daemon.json` says. Where a service manager holds the socket, asking starts one.
pub(crate) fn is_answering(daemon_json: &Path) -> bool {
    DaemonJson::read(daemon_json).is_ok_and(|daemon| knock(&daemon.socket).is_ok())
}

#[derive(serde::Deserialize)]
struct DaemonJson {
    program: std::path::PathBuf,
    #[serde(default)]
    socket: std::path::PathBuf,
    #[serde(default)]
    is_service: bool,
}

impl DaemonJson {
    fn read(path: &Path) -> io::Result<Self> {
        Ok(serde_json::from_reader(File::open(path)?)?)
    }
}

/// Starts the daemon that `daemon.json` names: the installed program, never this keeper's own, older image. Its
/// lock makes one too many harmless. Where a service manager holds the socket, it starts the daemon for whoever
/// connects, and there is no child of ours. It has the environment of the daemon before it, where that was told; a keeper's own
/// may be that of one long gone.
pub(crate) fn spawn_daemon(daemon_json: &Path, environment: &[u8]) -> io::Result<Option<Child>> {
    let DaemonJson { program, socket, is_service } = DaemonJson::read(daemon_json)?;
    if is_service && knock(&socket).is_ok() {
        return Ok(None);
    }
    let mut daemon = Command::new(program);
    if !environment.is_empty() {
        daemon.env_clear().envs(environ::read(environment));
    }
    daemon
        .args(["daemon", "run", "--background"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map(Some)
}
