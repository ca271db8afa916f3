//! Processes known by pid and start time, and signals that hit nobody else.

use std::{fs, time::Duration};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A process that can be known again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Proc {
    pub pid: u32,
    pub start_time: u64,
}

impl Proc {
    pub fn of(pid: u32) -> Option<Self> {
        Some(Self { pid, start_time: start_time(pid)? })
    }

    /// A killed process is gone when its last thread is: until then its sockets still answer.
    pub fn is_alive(&self) -> bool {
        let threads = || fs::read_dir(format!("/proc/{}/task", self.pid)).map_or(0, Iterator::count);
        start_time(self.pid) == Some(self.start_time)
            && (state(self.pid).is_some_and(|state| state != 'Z') || threads() > 1)
    }

    /// Says whether the process is stopped by a signal or frozen.
    pub fn is_stopped(&self) -> bool {
        state(self.pid).is_some_and(|state| state == 'T')
    }

    /// Sends a signal to this very process; false when it is gone.
    pub fn signal(&self, signal: Signal) -> bool {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return false };
        let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
        start_time(self.pid) == Some(self.start_time) && pidfd_send_signal(fd, signal).is_ok()
    }

    pub fn kill(&self) -> bool {
        self.signal(Signal::KILL)
    }

    /// Kills it and waits until it is gone.
    pub fn kill_and_wait(&self) {
        self.kill();
        crate::wait::until("a killed process to be gone", Duration::from_secs(10), || !self.is_alive());
    }
}

/// All processes whose environment has this variable with this value.
pub fn with_variable(name: &str, value: &str) -> Vec<Proc> {
    let wanted = format!("{name}={value}");
    let pids =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|all| all.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes()))
    })
    .filter_map(Proc::of)
    .filter(Proc::is_alive)
    .collect()
}

/// All processes in a cgroup whose path has this in it.
pub fn in_cgroup(name: &str) -> Vec<Proc> {
    let pids =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/cgroup")).is_ok_and(|groups| groups.contains(name))
    })
    .filter_map(Proc::of)
    .filter(Proc::is_alive)
    .collect()
}

/// The words of a process's command line.
pub fn command_line(pid: u32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    bytes
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

fn stat(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned())
}

fn start_time(pid: u32) -> Option<u64> {
    stat(pid)?.split(' ').nth(19)?.parse().ok()
}

fn state(pid: u32) -> Option<char> {
    stat(pid)?.chars().next()
}
