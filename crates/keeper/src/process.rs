//! Processes as `/proc` tells of them, and signals that cannot hit the wrong one.

use std::collections::HashSet;

use ostler_tape::ProcessName;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// One line of `/proc/<pid>/stat`. Pid and start time together are never reused within a boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) session: u32,
    pub(crate) start_time: u64,
    name: String,
    dead: bool,
}

impl Process {
    pub(crate) fn find(pid: u32) -> Option<Process> {
        // Names are arbitrary bytes.
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(&String::from_utf8_lossy(&stat))
    }

    fn parse(stat: &str) -> Option<Process> {
        // `pid (name) state ppid …`, and the name may hold spaces and brackets.
        let (head, fields) = stat.rsplit_once(") ")?;
        let (pid, name) = head.split_once(" (")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let field = |number: usize| fields.get(number - 3).copied();
        let threads: u32 = field(20)?.parse().ok()?;
        Some(Process {
            pid: pid.parse().ok()?,
            parent: field(4)?.parse().ok()?,
            session: field(6)?.parse().ok()?,
            start_time: field(22)?.parse().ok()?,
            name: name.to_owned(),
            // A leader that has ended shows as a zombie while its other threads run on.
            dead: matches!(field(3)?, "Z" | "X") && threads <= 1,
        })
    }

    pub(crate) fn name(&self) -> ProcessName {
        ProcessName { pid: self.pid, name: self.name.clone() }
    }

    /// Signals this process, unless it is gone and its number belongs to another.
    pub(crate) fn signal(&self, signal: Signal) {
        let Some(pidfd) = self.open() else { return };
        // An error means that it ended just now.
        let _ = pidfd_send_signal(&pidfd, signal);
    }

    /// A descriptor of exactly this process.
    pub(crate) fn open(&self) -> Option<rustix::fd::OwnedFd> {
        let pidfd = pidfd_open(Pid::from_raw(self.pid as i32)?, PidfdFlags::empty()).ok()?;
        // Looked up again behind the descriptor: what it names now, it names for ever.
        let same = Process::find(self.pid).is_some_and(|found| found.start_time == self.start_time);
        same.then_some(pidfd)
    }
}

/// Everything alive below `root`, which is not included. One look: a tree that forks needs several.
pub(crate) fn descendants(root: u32) -> Vec<Process> {
    let mut others: Vec<Process> = all().collect();
    let mut family = HashSet::from([root]);
    let mut found = Vec::new();
    loop {
        let (children, rest): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|process| family.contains(&process.parent));
        if children.is_empty() {
            break;
        }
        family = children.iter().map(|process| process.pid).collect();
        found.extend(children);
        others = rest;
    }
    found.retain(|process| !process.dead);
    found
}

/// Everything that lives.
pub(crate) fn all() -> impl Iterator<Item = Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(Process::find)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_brackets_are_read() {
        let stat = "7 (a) R (b) S 3 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 1 2 3";
        let process = Process::parse(stat).unwrap();
        assert_eq!((process.pid, process.parent, process.start_time), (7, 3, 99));
        assert_eq!(process.name().name, "a) R (b");
        assert!(!process.dead);
    }

    #[test]
    fn children_are_found_and_only_the_same_process_is_signalled() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let found = descendants(std::process::id());
        let process = found.iter().find(|process| process.pid == child.id()).unwrap();
        let impostor = Process { start_time: process.start_time + 1, ..process.clone() };
        impostor.signal(Signal::KILL);
        assert!(child.try_wait().unwrap().is_none());
        process.signal(Signal::KILL);
        assert!(!child.wait().unwrap().success());
    }
}
