//! The last steps of a process that becomes the agent: everything is given up, then the program is executed.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use ostler_domain::confinement::Confinement;
use rustix::fs::{FileType, Gid, Mode, Uid, fchown, fstat};
use rustix::process::{DumpableBehavior, ioctl_tiocsctty, set_dumpable_behavior, setsid, umask};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::thread::set_no_new_privs;
use seccompiler::BpfProgram;

use crate::channel::{InitReport, Order, send_observer, send_report};
use crate::identity::Ids;
use crate::refusal::{OrRefuse, Refusal, Stage};
use crate::{landlock, limits, observe, seccomp, sys};

/// What keeps files of a campaign readable for the user's other programs; the keeper's own mask is private.
const AGENT_UMASK: Mode = Mode::WGRP.union(Mode::WOTH);

/// The agent's ends of its pipes.
#[derive(Debug)]
pub(crate) struct Stdio {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

impl Stdio {
    /// Programs open their own streams by name, `/dev/stderr`, for which these must be theirs.
    pub(crate) fn give_to(&self, Ids { uid, gid }: Ids) -> Result<(), Refusal> {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        for stream in [&self.stdin, &self.stdout, &self.stderr] {
            // Only pipes: whatever else it is has an owner of its own.
            let is_pipe = fstat(stream).is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_fifo());
            if is_pipe {
                fchown(stream, Some(uid), Some(gid))
                    .or_refuse(Stage::Identity, "giving the agent its streams")?;
            }
        }
        Ok(())
    }
}

pub(crate) fn run(
    order: &Order,
    confinement: &Confinement,
    stdio: &Stdio,
    filters: &[BpfProgram],
) -> Result<Infallible, Refusal> {
    // Its files in /proc are its own, as they are after the exec. Init, whose copy it is, has just hidden its own.
    set_dumpable_behavior(DumpableBehavior::Dumpable)
        .or_refuse(Stage::Init, "owning the agent's files in /proc")?;
    // Said by this process itself: the keeper learns from the kernel who said it.
    let report =
        InitReport::StartedInside { start_time: start_time().or_refuse(Stage::Init, "reading /proc")? };
    send_report(io::stdin().as_fd(), &report).or_refuse(Stage::Init, "reporting to the keeper")?;

    // A session, and so a process group, of its own: the stop ladder signals the group.
    setsid().or_refuse(Stage::Init, "leading a session")?;
    if order.terminal.is_some() {
        ioctl_tiocsctty(&stdio.stdin).or_refuse(Stage::Init, "taking the terminal")?;
    }
    std::env::set_current_dir(&order.cwd)
        .or_refuse(Stage::Cwd, format_args!("entering {}", order.cwd.display()))?;
    umask(AGENT_UMASK);
    sys::default_signals();
    // Closed by the exec; until then it is there to hand out what tells of calls.
    let channel = io::stdin().as_fd().try_clone_to_owned().or_refuse(Stage::Init, "keeping the channel")?;
    refuse_foreign(stdio)?;
    let connect = || -> io::Result<()> {
        dup2_stdin(&stdio.stdin)?;
        dup2_stdout(&stdio.stdout)?;
        dup2_stderr(&stdio.stderr)?;
        sys::close_descriptors_on_exec()
    };
    connect().or_refuse(Stage::Init, "connecting the agent's pipes")?;

    limits::set(&confinement.limits)?;
    limits::drop_capabilities()?;
    set_no_new_privs(true).or_refuse(Stage::Limits, "giving up new privileges")?;
    landlock::restrict(confinement)?;
    seccomp::restrict(filters)?;
    if order.observe {
        let observer = observe::begin()?;
        send_observer(&channel, observer.as_fd()).or_refuse(Stage::Seccomp, "handing out what is watched")?;
    }
    // `exec` also empties the signal mask and restores SIGPIPE.
    let error = Command::new(&order.program)
        .args(&order.args)
        .env_clear()
        .envs(order.env.iter().map(|(name, value)| (name, value)))
        .exec();
    Err(error).or_refuse(Stage::Exec, order.program.display())
}

/// Pipes and terminals were made for the agent. With a directory, a file or a socket of the host's it would have more
/// than what can be read and written there: a way to walk, a mode to change, somebody else to connect to.
fn refuse_foreign(Stdio { stdin, stdout, stderr }: &Stdio) -> Result<(), Refusal> {
    for stream in [stdin, stdout, stderr] {
        let found = fstat(stream).or_refuse(Stage::Init, "looking at the agent's streams")?;
        if !matches!(FileType::from_raw_mode(found.st_mode), FileType::Fifo | FileType::CharacterDevice) {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied))
                .or_refuse(Stage::Init, "handing in a stream that is no pipe and no terminal");
        }
    }
    Ok(())
}

/// Field 22 of our own line in `/proc`, which is the same inside and outside.
fn start_time() -> io::Result<u64> {
    let stat = std::fs::read("/proc/self/stat")?;
    let stat = String::from_utf8_lossy(&stat);
    // The name, field 2, may hold spaces and brackets.
    let field = stat.rsplit_once(") ").and_then(|(_, fields)| fields.split(' ').nth(19)?.parse().ok());
    field.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/self/stat is not understood"))
}
