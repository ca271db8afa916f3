//! The socket between keeper, init and launch, and what is said on it.
//!
//! Descriptors of the agent travel on it as ancillary data: so nothing but 0, 1 and 2 is ever inherited, every
//! other descriptor is closed on exec from its first moment on, and init never holds the agent's pipes.
//!
//! ```text
//! keeper ── order (memfd), stdin, stdout, stderr, exec status ──▶ launch
//! keeper ◀── InitReport ── init          keeper ◀── ExecReport, end of file = running ── launch
//! ```

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg, send, sendmsg, socketpair,
};
use serde::{Deserialize, Serialize};

/// Longest report; they are a few fields each.
const REPORT_BYTES: usize = 4096;
const DESCRIPTORS: usize = 5;

/// What launch is to execute.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) cwd: PathBuf,
    pub(crate) cgroup_procs: Option<PathBuf>,
}

/// The agent's ends of its pipes, and the pipe on which launch says why it could not become the agent.
#[derive(Debug)]
pub(crate) struct AgentEnds {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    pub(crate) exec_status: OwnedFd,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InitReport {
    /// Launch runs, and is about to become the agent.
    Started { pid: u32, start_time: u64 },
    /// Launch could not be started.
    NotStarted { errno: Option<i32>, message: String },
    /// The agent ended; a status as wait(2) gives it.
    Ended { status: i32 },
}

/// One line of JSON each on the exec status pipe.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExecReport {
    /// The agent starts all the same.
    NoCgroup {
        reason: String,
    },
    Failed {
        stage: String,
        errno: Option<i32>,
        message: String,
    },
}

/// What a look into the channel gave.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Report(InitReport),
    NotYet,
    Closed,
}

/// Both ends; packets keep reports apart.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

pub(crate) fn send_report(channel: impl AsFd, report: &InitReport) -> io::Result<()> {
    send(channel, &serde_json::to_vec(report)?, SendFlags::NOSIGNAL)?;
    Ok(())
}

pub(crate) fn receive_report(channel: impl AsFd) -> io::Result<Received> {
    let mut packet = [0; REPORT_BYTES];
    match recv(channel, &mut packet, RecvFlags::DONTWAIT) {
        Ok((0, _)) | Err(rustix::io::Errno::CONNRESET) => Ok(Received::Closed),
        Ok((len, _)) => Ok(Received::Report(serde_json::from_slice(&packet[..len])?)),
        Err(rustix::io::Errno::AGAIN) => Ok(Received::NotYet),
        Err(errno) => Err(errno.into()),
    }
}

pub(crate) fn send_agent(channel: impl AsFd, order: &Order, ends: &AgentEnds) -> io::Result<()> {
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
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(channel, &[IoSlice::new(b"agent")], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

pub(crate) fn receive_agent(channel: impl AsFd) -> io::Result<(Order, AgentEnds)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut packet = [0; REPORT_BYTES];
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

    #[test]
    fn reports_and_descriptors_arrive() {
        let (keeper, init) = pair().unwrap();
        assert_eq!(receive_report(&keeper).unwrap(), Received::NotYet);
        send_report(&init, &InitReport::Ended { status: 9 }).unwrap();
        send_report(&init, &InitReport::Started { pid: 1, start_time: 2 }).unwrap();
        assert_eq!(
            receive_report(&keeper).unwrap(),
            Received::Report(InitReport::Ended { status: 9 }),
            "one at a time"
        );

        let (read, write) = io::pipe().unwrap();
        let clone = || OwnedFd::from(write.try_clone().unwrap());
        let ends = AgentEnds { stdin: clone(), stdout: clone(), stderr: clone(), exec_status: clone() };
        let order = Order {
            program: "/bin/true".into(),
            args: vec!["x".repeat(300_000)],
            env: vec![("A".into(), "b".into())],
            cwd: "/".into(),
            cgroup_procs: None,
        };
        send_agent(&keeper, &order, &ends).unwrap();
        let (received, received_ends) = receive_agent(&init).unwrap();
        assert_eq!(received, order);
        drop((ends, write));
        File::from(received_ends.stderr).write_all(b"hi").unwrap();
        drop((received_ends.stdin, received_ends.stdout, received_ends.exec_status));
        assert_eq!(io::read_to_string(read).unwrap(), "hi");

        drop(keeper);
        assert_eq!(receive_report(&init).unwrap(), Received::Closed);
    }
}
