//! `ostler internal init`: the root of the agent's process tree.
//!
//! It adopts and reaps what the agent leaves behind, so that nothing of the agent ever becomes a child of the
//! keeper (which starts daemons, and must not mistake one for an agent's process). It tells the keeper how the
//! agent ended. Its end of the channel is its lifeline: when the keeper closes it, or is gone, however that
//! came about, init kills all that is left of the tree and ends.

use std::io;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use ostler_sandbox::channel::{self, InitReport};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, setsid, wait};
use signal_hook::consts::SIGCHLD;

use crate::lifeline;
use crate::log::log;
use crate::process::Process;
use crate::signals;
use crate::tree::Tree;

/// Between two looks for what a kill has left.
const KILL_ROUND: Duration = Duration::from_millis(5);

pub(crate) fn run() -> ExitCode {
    match keep_house() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log!("init: {error}");
            let report = InitReport::NotStarted { errno: error.raw_os_error(), message: error.to_string() };
            let _ = channel::send_report(io::stdin(), &report);
            ExitCode::FAILURE
        }
    }
}

fn keep_house() -> io::Result<()> {
    set_child_subreaper(Some(getpid()))?;
    setsid()?;
    let mut deaths = signals::pipe(SIGCHLD)?;
    let agent = start()?;
    loop {
        reap(&agent);
        if keeper_let_go(&deaths)? {
            break;
        }
        signals::drain(&mut deaths);
    }
    let mut tree = Tree::new(std::process::id(), false, None);
    while !tree.kill_round() {
        reap(&agent);
        std::thread::sleep(KILL_ROUND);
    }
    Ok(())
}

fn start() -> io::Result<Child> {
    let agent = Command::new("/proc/self/exe")
        .arg0("ostler")
        .args(["internal", "launch"])
        .args(lifeline::parent_args())
        // Launch takes the agent's descriptors off the keeper's channel.
        .stdin(Stdio::inherit())
        .stdout(Stdio::null())
        .spawn()?;
    let start_time = Process::find(agent.id()).map_or(0, |process| process.start_time);
    channel::send_report(io::stdin(), &InitReport::Started { pid: agent.id(), start_time })?;
    Ok(agent)
}

fn reap(agent: &Child) {
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if pid == Pid::from_child(agent) {
            // A keeper that is gone will not hear it, and that is noticed next.
            let _ = channel::send_report(io::stdin(), &InitReport::Ended { status: status.as_raw() });
        }
    }
}

/// Waits for a child to end or for the keeper to let go, and says whether it did.
fn keeper_let_go(deaths: &UnixStream) -> io::Result<bool> {
    let channel = io::stdin();
    // Not for reading: what is in there is for launch.
    let mut fds = [PollFd::new(&channel, PollFlags::empty()), PollFd::new(deaths, PollFlags::IN)];
    match poll(&mut fds, None) {
        Ok(_) => Ok(!fds[0].revents().is_empty()),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}
