//! The agent's process tree: everything below init. Signals, freezing and killing of the whole of it.
//!
//! All numbers are the host's: a sandbox's processes are in its `/proc` like any others.

use std::collections::HashSet;
use std::io;

use ostler_tape::ProcessName;
use ostler_tape::frame::{AgentProcess, FrozenBy};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, Signal, kill_process_group, pidfd_send_signal};
use rustix::time::Timespec;

use crate::cgroup::Cgroup;
use crate::process::{Process, descendants};

/// Looks at a tree that goes on forking while it is being stopped. A tree that outruns this many is stopped
/// in part only, and a later freeze or kill finds the rest.
const FREEZE_LOOKS: usize = 100;

#[derive(Debug)]
pub(crate) struct Tree {
    /// What everything descends from: init, or a warden until it has said who its init is.
    top: u32,
    /// There is a warden, and so there will be a pid 1.
    confined: bool,
    /// A sandbox's init. The kernel ends everything inside with it, however it hides.
    pid_one: Option<OwnedFd>,
    cgroup: Option<Cgroup>,
    agent: Option<AgentProcess>,
    /// Missing if the agent had ended before we looked.
    agent_pidfd: Option<OwnedFd>,
    frozen: Option<FrozenBy>,
}

impl Tree {
    pub(crate) fn new(top: u32, confined: bool, cgroup: Option<Cgroup>) -> Tree {
        Tree { top, confined, pid_one: None, cgroup, agent: None, agent_pidfd: None, frozen: None }
    }

    pub(crate) fn set_pid_one(&mut self, pid: u32) {
        // Its warden has not waited for it yet, so the number is still its own.
        let found = Process::find(pid).filter(|found| found.parent == self.top);
        let Some(pidfd) = found.and_then(|found| found.open()) else { return };
        if self.frozen == Some(FrozenBy::Signals) {
            // It was one of many below the warden, and would not be thawed with what is below itself.
            let _ = pidfd_send_signal(&pidfd, Signal::CONT);
        }
        self.top = pid;
        self.pid_one = Some(pidfd);
    }

    pub(crate) fn set_agent(&mut self, process: AgentProcess) {
        let found = Process::find(process.pid).filter(|found| found.start_time == process.start_time);
        self.agent_pidfd = found.and_then(|found| found.open());
        self.agent = Some(process);
    }

    /// The cgroup could not be entered: the tree is walked from now on.
    pub(crate) fn abandon_cgroup(&mut self) {
        if let Some(cgroup) = self.cgroup.take() {
            let _ = cgroup.remove();
        }
    }

    pub(crate) fn agent(&self) -> Option<AgentProcess> {
        self.agent
    }

    pub(crate) fn frozen(&self) -> Option<FrozenBy> {
        self.frozen
    }

    /// Signals the agent's process group, and thaws the tree: a frozen process does not act on a signal.
    pub(crate) fn signal_agent(&mut self, signal: Signal) -> io::Result<()> {
        let agent = self.agent.filter(|_| self.agent_is_alive());
        if let Some(group) = agent.and_then(|agent| Pid::from_raw(agent.pid as i32)) {
            kill_process_group(group, signal)?;
        }
        self.thaw()
    }

    pub(crate) fn freeze(&mut self) -> io::Result<FrozenBy> {
        let how = match self.cgroup.as_ref().filter(|cgroup| cgroup.can_freeze()) {
            Some(cgroup) => {
                cgroup.freeze(true)?;
                FrozenBy::Cgroup
            }
            None => {
                self.stop_all();
                FrozenBy::Signals
            }
        };
        self.frozen = Some(how);
        Ok(how)
    }

    fn stop_all(&self) {
        let mut stopped = HashSet::new();
        for _ in 0..FREEZE_LOOKS {
            let mut new = descendants(self.top);
            new.retain(|process| stopped.insert((process.pid, process.start_time)));
            if new.is_empty() {
                return;
            }
            new.iter().for_each(|process| process.signal(Signal::STOP));
        }
    }

    pub(crate) fn thaw(&mut self) -> io::Result<()> {
        match (self.frozen.take(), &self.cgroup) {
            (Some(FrozenBy::Cgroup), Some(cgroup)) => cgroup.freeze(false),
            (Some(_), _) => {
                descendants(self.top).iter().for_each(|process| process.signal(Signal::CONT));
                Ok(())
            }
            (None, _) => Ok(()),
        }
    }

    /// Kills whatever is alive now. True once nothing was: what is killed may have forked just before.
    pub(crate) fn kill_round(&mut self) -> bool {
        let populated = self.cgroup.as_ref().is_some_and(Cgroup::is_populated);
        if let Some(cgroup) = self.cgroup.as_ref().filter(|_| populated) {
            let _ = cgroup.kill();
        }
        if let Some(pid_one) = &self.pid_one {
            // Nothing inside outlives it, so nobody has to be looked for: with hundreds of sandboxes ended at once, the
            // looking would take longer than the ending.
            let _ = pidfd_send_signal(pid_one, Signal::KILL);
            let has_ended = has_ended(pid_one);
            if self.frozen.take() == Some(FrozenBy::Cgroup) {
                let _ = self.cgroup.as_ref().map(|cgroup| cgroup.freeze(false));
            }
            return has_ended && !populated;
        }
        if self.confined && self.agent.is_none() {
            // A warden may be long at looking through a large campaign; it takes along what it has started.
            Process::find(self.top).iter().for_each(|warden| warden.signal(Signal::KILL));
        }
        let alive = descendants(self.top);
        alive.iter().for_each(|process| process.signal(Signal::KILL));
        // A v1 freezer would hold back even a kill.
        let _ = self.thaw();
        alive.is_empty() && !populated
    }

    /// For good: what is inside a sandbox ends with its init.
    pub(crate) fn has_ended(&self) -> bool {
        self.pid_one.as_ref().is_some_and(has_ended)
            && !self.cgroup.as_ref().is_some_and(Cgroup::is_populated)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.alive().is_empty()
    }

    pub(crate) fn names(&self) -> Vec<ProcessName> {
        self.alive().iter().map(Process::name).collect()
    }

    /// The numbers of everything that lives.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.alive().iter().map(|process| process.pid).collect()
    }

    /// Everything of the tree that lives; nothing does behind a pid 1 that has ended.
    fn alive(&self) -> Vec<Process> {
        if self.pid_one.as_ref().is_some_and(has_ended) { Vec::new() } else { descendants(self.top) }
    }

    /// Processes that the kernel killed for want of memory.
    pub(crate) fn oom_kills(&self) -> u64 {
        self.cgroup.as_ref().map_or(0, Cgroup::oom_kills)
    }

    /// What the kernel says that the tree has.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        self.cgroup.as_ref()?.memory_bytes()
    }

    /// The most that the tree ever had, by the kernel's count.
    pub(crate) fn memory_peak_bytes(&self) -> Option<u64> {
        self.cgroup.as_ref()?.memory_peak_bytes()
    }

    pub(crate) fn remove_cgroup(&self) -> io::Result<()> {
        self.cgroup.as_ref().map_or(Ok(()), Cgroup::remove)
    }

    /// A group id is safe to signal while its leader has not ended; a pidfd is readable once it has.
    fn agent_is_alive(&self) -> bool {
        self.agent_pidfd.as_ref().is_some_and(|pidfd| !has_ended(pidfd))
    }
}

fn has_ended(pidfd: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    !matches!(poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&now)), Ok(0))
}
