//! The socket between keeper and whatever starts its agent, and what is said on it.
//!
//! Descriptors of the agent travel on it as ancillary data: so nothing but 0, 1 and 2 is ever inherited, every
//! other descriptor is closed on exec from its first moment on, and init never holds the agent's pipes.
//!
//! ```text
//! keeper ── order (memfd), stdin, stdout, stderr, exec status ──▶ launch, or warden
//! keeper ◀── InitReport ── init, warden     keeper ◀── ExecReport, end of file = running ── launch, or agent
//! keeper ── Remask ──▶ warden               keeper ◀── listener of the gateway, terminal ── warden
//! ```

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use ostler_domain::confinement::Confinement;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, send, sendmsg, socketpair,
    sockopt,
};
use serde::{Deserialize, Serialize};

/// Longest packet; both sides cut lists of names to fit.
const PACKET_BYTES: usize = 16 * 1024;
const DESCRIPTORS: usize = 5;
/// What is said beside a descriptor.
const LISTENER: &[u8] = b"listener";
const TERMINAL: &[u8] = b"terminal";
const OBSERVER: &[u8] = b"observer";

/// What is to be executed, and in what.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    pub program: PathBuf,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub cwd: PathBuf,
    /// Files in which it enters its groups.
    pub cgroup_procs: Vec<PathBuf>,
    /// For a warden, which does nothing without.
    pub confinement: Option<Confinement>,
    /// It is to have a terminal of its own instead of its three pipes; the near side of it is handed to the keeper.
    #[serde(default)]
    pub terminal: Option<TerminalSize>,
    /// What it opens, executes and connects to is told to a descriptor that is handed to the keeper.
    #[serde(default)]
    pub observe: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    pub rows: u16,
    pub columns: u16,
}

/// The agent's ends of its pipes, and the pipe on which is said why the agent could not be started.
#[derive(Debug)]
pub struct AgentEnds {
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    pub exec_status: OwnedFd,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InitReport {
    /// A warden's: pid 1 of the sandbox, by its number outside. What descends from it is the agent's tree.
    Housed { init_pid: u32 },
    /// Launch runs, and is about to become the agent.
    Started { pid: u32, start_time: u64 },
    /// The same, said by the agent itself from inside, where it does not know its number outside. Whoever receives
    /// it sees [`InitReport::Started`] with the number that the kernel vouches for.
    StartedInside { start_time: u64 },
    /// Launch could not be started.
    NotStarted { errno: Option<i32>, message: String },
    /// The agent ended; a status as wait(2) gives it.
    Ended { status: i32 },
    /// A warden's, before it ends the agent: what is to be hidden may be seen.
    Breached { why: String },
    /// A warden's, when all is over: files that make the host run code are not what they were.
    Tampered { names: Vec<String> },
}

/// One line of JSON each on the exec status pipe.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecReport {
    /// The agent starts all the same.
    NoCgroup { reason: String },
    Failed {
        stage: String,
        errno: Option<i32>,
        message: String,
        #[serde(default)]
        hint: String,
    },
}

/// What a keeper tells a warden.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WardenOrder {
    /// These paths below the root have changed: cover what is to be hidden there.
    Remask { paths: Vec<PathBuf> },
}

/// What a look into the channel gave.
#[derive(Debug)]
pub enum Received<T> {
    Message(T),
    /// The socket inside on which the gateway is to listen.
    Listener(OwnedFd),
    /// The near side of the terminal inside.
    Terminal(OwnedFd),
    /// What tells of calls inside; see [`crate::observe::Observer`].
    Observer(OwnedFd),
    NotYet,
    Closed,
}

/// The keeper's end and the other one; packets keep messages apart.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (keeper, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    // Before anything is sent: each message then carries its sender's process number as the keeper sees it.
    sockopt::set_socket_passcred(&keeper, true)?;
    Ok((keeper, other))
}

pub fn send_report(channel: impl AsFd, report: &InitReport) -> io::Result<()> {
    send(channel, &serde_json::to_vec(report)?, SendFlags::NOSIGNAL)?;
    Ok(())
}

pub fn receive_report(channel: impl AsFd) -> io::Result<Received<InitReport>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1), ScmCredentials(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut packet = vec![0; PACKET_BYTES];
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let len = match recvmsg(channel, &mut [IoSliceMut::new(&mut packet)], &mut ancillary, flags) {
        Ok(received) if received.bytes > 0 => received.bytes,
        Ok(_) | Err(Errno::CONNRESET) => return Ok(Received::Closed),
        Err(Errno::AGAIN) => return Ok(Received::NotYet),
        Err(errno) => return Err(errno.into()),
    };
    let mut sender = 0;
    for message in ancillary.drain() {
        match message {
            RecvAncillaryMessage::ScmCredentials(credentials) => {
                sender = credentials.pid.as_raw_nonzero().get() as u32;
            }
            RecvAncillaryMessage::ScmRights(mut fds) => {
                if let Some(fd) = fds.next() {
                    return Ok(match &packet[..len] {
                        TERMINAL => Received::Terminal(fd),
                        OBSERVER => Received::Observer(fd),
                        _ => Received::Listener(fd),
                    });
                }
            }
            _ => {}
        }
    }
    Ok(Received::Message(match serde_json::from_slice(&packet[..len])? {
        InitReport::StartedInside { start_time } => InitReport::Started { pid: sender, start_time },
        report => report,
    }))
}

/// Tells a warden; a list that does not fit into a packet is sent in parts.
pub fn send_remask(channel: impl AsFd, paths: &[PathBuf]) -> io::Result<()> {
    let message = serde_json::to_vec(&WardenOrder::Remask { paths: paths.to_vec() })?;
    if message.len() > PACKET_BYTES && paths.len() > 1 {
        let (first, second) = paths.split_at(paths.len() / 2);
        send_remask(channel.as_fd(), first)?;
        return send_remask(channel, second);
    }
    send(channel, &message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
    Ok(())
}

pub(crate) fn receive_order(channel: impl AsFd) -> io::Result<Received<WardenOrder>> {
    let mut packet = vec![0; PACKET_BYTES];
    match recv(channel, &mut packet, RecvFlags::DONTWAIT) {
        Ok((0, _)) | Err(Errno::CONNRESET) => Ok(Received::Closed),
        Ok((len, _)) => Ok(Received::Message(serde_json::from_slice(&packet[..len])?)),
        Err(Errno::AGAIN) => Ok(Received::NotYet),
        Err(errno) => Err(errno.into()),
    }
}

/// Reports which files were changed, as many names as fit.
pub(crate) fn send_tampered(channel: impl AsFd, mut names: Vec<String>) -> io::Result<()> {
    loop {
        let message = serde_json::to_vec(&InitReport::Tampered { names: names.clone() })?;
        if message.len() <= PACKET_BYTES || names.len() <= 1 {
            send(channel, &message, SendFlags::NOSIGNAL)?;
            return Ok(());
        }
        names.truncate(names.len() / 2);
    }
}

pub(crate) fn send_listener(channel: impl AsFd, listener: BorrowedFd<'_>) -> io::Result<()> {
    send_descriptors(channel, LISTENER, &[listener])
}

pub(crate) fn send_observer(channel: impl AsFd, observer: BorrowedFd<'_>) -> io::Result<()> {
    send_descriptors(channel, OBSERVER, &[observer])
}

pub(crate) fn send_terminal(channel: impl AsFd, terminal: BorrowedFd<'_>) -> io::Result<()> {
    send_descriptors(channel, TERMINAL, &[terminal])
}

/// Starts a warden, or with `mode` "init" whatever starts an agent without a sandbox, by the program that this process
/// is. Returns our end of the channel.
pub fn start(mode: &str, order: &Order, ends: AgentEnds) -> io::Result<(OwnedFd, Child)> {
    let (ours, theirs) = pair()?;
    send_agent(&ours, order, &ends)?;
    drop(ends);
    let child = Command::new("/proc/self/exe")
        .arg0("ostler")
        .args(["internal", mode])
        .env_clear()
        // What a terminal says to the group of whoever waits for a command is not said to its warden.
        .process_group(0)
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok((ours, child))
}

/// What was said of a start that failed, among all that was said on the exec status pipe.
pub fn failed(said: &[u8]) -> Option<ExecReport> {
    let reports = said.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    reports.into_iter().find(|report| matches!(report, ExecReport::Failed { .. }))
}

pub fn send_agent(channel: impl AsFd, order: &Order, ends: &AgentEnds) -> io::Result<()> {
    // An environment can be longer than a packet.
    let mut document = File::from(memfd_create("order", MemfdFlags::CLOEXEC)?);
    document.write_all(&serde_json::to_vec(order)?)?;
    let fds: [BorrowedFd<'_>; DESCRIPTORS] = [
        document.as_fd(),
        ends.stdin.as_fd(),
        ends.stdout.as_fd(),
        ends.stderr.as_fd(),
        ends.exec_status.as_fd(),
    ];
    send_descriptors(channel, b"agent", &fds)
}

fn send_descriptors(channel: impl AsFd, name: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(fds));
    sendmsg(channel, &[IoSlice::new(name)], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

pub fn receive_agent(channel: impl AsFd) -> io::Result<(Order, AgentEnds)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut packet = [0; 64];
    recvmsg(channel, &mut [IoSliceMut::new(&mut packet)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let fds: Vec<OwnedFd> = ancillary
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    let [document, stdin, stdout, stderr, exec_status] = <[OwnedFd; DESCRIPTORS]>::try_from(fds)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the keeper sent no descriptors"))?;
    let mut document = File::from(document);
    let mut json = Vec::new();
    document.rewind()?;
    document.read_to_end(&mut json)?;
    Ok((serde_json::from_slice(&json)?, AgentEnds { stdin, stdout, stderr, exec_status }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(channel: &OwnedFd) -> Option<InitReport> {
        match receive_report(channel).unwrap() {
            Received::Message(report) => Some(report),
            _ => None,
        }
    }

    #[test]
    fn reports_and_descriptors_arrive() {
        let (keeper, init) = pair().unwrap();
        assert!(matches!(receive_report(&keeper).unwrap(), Received::NotYet));
        send_report(&init, &InitReport::Ended { status: 9 }).unwrap();
        send_report(&init, &InitReport::StartedInside { start_time: 2 }).unwrap();
        assert_eq!(report(&keeper), Some(InitReport::Ended { status: 9 }), "one at a time");
        let own = InitReport::Started { pid: std::process::id(), start_time: 2 };
        assert_eq!(report(&keeper), Some(own), "the kernel says who it was");

        let (read, write) = io::pipe().unwrap();
        let clone = || OwnedFd::from(write.try_clone().unwrap());
        let ends = AgentEnds { stdin: clone(), stdout: clone(), stderr: clone(), exec_status: clone() };
        let order = Order {
            program: "/bin/true".into(),
            args: vec!["x".repeat(300_000)],
            env: vec![("A".into(), "b".into())],
            cwd: "/".into(),
            cgroup_procs: Vec::new(),
            confinement: None,
            terminal: None,
            observe: false,
        };
        send_agent(&keeper, &order, &ends).unwrap();
        let (received, received_ends) = receive_agent(&init).unwrap();
        assert_eq!(received, order);
        drop((ends, write));
        File::from(received_ends.stderr).write_all(b"hi").unwrap();
        drop((received_ends.stdin, received_ends.stdout, received_ends.exec_status));
        assert_eq!(io::read_to_string(read).unwrap(), "hi");

        drop(keeper);
        assert!(matches!(receive_report(&init).unwrap(), Received::Closed));
    }

    #[test]
    fn long_lists_are_cut_or_sent_in_parts() {
        let (keeper, warden) = pair().unwrap();
        let paths: Vec<PathBuf> = (0..1_000).map(|n| format!("{n:0>40}").into()).collect();
        send_remask(&keeper, &paths).unwrap();
        let mut received = Vec::new();
        while let Received::Message(WardenOrder::Remask { paths }) = receive_order(&warden).unwrap() {
            received.extend(paths);
        }
        assert_eq!(received, paths);

        send_tampered(&warden, paths.iter().map(|path| path.display().to_string()).collect()).unwrap();
        let Some(InitReport::Tampered { names }) = report(&keeper) else { panic!("no report") };
        assert!((100..1_000).contains(&names.len()));
    }
}
