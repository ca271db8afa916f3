//! Finds the processes that outlived a killed keeper, and ends them.
//!
//! The agent itself dies with its keeper (parent-death signal). What it had started may live on; it is known by
//! the session id in its environment, which only processes of that session carry. A process is signalled through
//! a pidfd that was opened before its environment was read, so a reused number is never hit.
//!
//! Who has a living keeper above it is no leftover: it is the same session in another home, of which ours is a copy.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use ostler_domain::{SessionId, event::Leftover};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How often the census is repeated: a process may have forked while it was taken.
const ROUNDS: usize = 20;
const BETWEEN_ROUNDS: Duration = Duration::from_millis(10);

/// Ends every process of a session and says which there were. Blocks; for a blocking thread.
pub(crate) fn end_leftovers(session: &SessionId, groups: &[PathBuf]) -> Vec<Leftover> {
    let stamp = format!("OSTLER_SESSION_ID={session}");
    let mut ended: Vec<Leftover> = Vec::new();
    for leftover in groups.iter().flat_map(|group| kill_group(group)) {
        if !ended.contains(&leftover) {
            ended.push(leftover);
        }
    }
    for _ in 0..ROUNDS {
        let found = kill_stamped(&stamp);
        if found.is_empty() {
            break;
        }
        for leftover in found {
            if !ended.contains(&leftover) {
                ended.push(leftover);
            }
        }
        std::thread::sleep(BETWEEN_ROUNDS);
    }
    ended
}

/// Ends everything in the session's own cgroup, where it had one. Nobody else is ever in it.
fn kill_group(group: &Path) -> Vec<Leftover> {
    let members = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    if members.lines().filter_map(|pid| pid.parse().ok()).any(is_kept) {
        return Vec::new();
    }
    let found = members
        .lines()
        .filter_map(|pid| {
            Some(Leftover { pid: pid.parse().ok()?, name: name_of(&Path::new("/proc").join(pid)) })
        })
        .collect();
    let _ = fs::write(group.join("cgroup.kill"), "1");
    // The old version has no such file.
    members.lines().filter_map(|pid| open(pid.parse().ok()?)).for_each(|process| {
        let _ = pidfd_send_signal(process, Signal::KILL);
    });
    // A frozen group dies only when it is thawed, in the old version after the signal.
    let _ = fs::write(group.join("cgroup.freeze"), "0");
    let _ = fs::write(group.join("freezer.state"), "THAWED");
    for _ in 0..ROUNDS {
        match fs::remove_dir(group) {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::BUSY.raw_os_error()) => {
                std::thread::sleep(BETWEEN_ROUNDS)
            }
            _ => break,
        }
    }
    found
}

fn open(pid: i32) -> Option<rustix::fd::OwnedFd> {
    pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

fn name_of(proc: &Path) -> String {
    fs::read_to_string(proc.join("comm")).unwrap_or_default().trim().to_owned()
}

fn kill_stamped(stamp: &str) -> Vec<Leftover> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let own = std::process::id();
    processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| *pid != own)
        .filter_map(|pid| kill_if_stamped(pid, stamp))
        .collect()
}

fn kill_if_stamped(pid: u32, stamp: &str) -> Option<Leftover> {
    let fd = pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()?;
    let proc = Path::new("/proc").join(pid.to_string());
    let environ = fs::read(proc.join("environ")).ok()?;
    let is_stamped = environ.split(|byte| *byte == 0).any(|variable| variable == stamp.as_bytes());
    if !is_stamped || is_zombie(&proc) || is_kept(pid) {
        return None;
    }
    let name = name_of(&proc);
    pidfd_send_signal(&fd, Signal::KILL).ok()?;
    Some(Leftover { pid, name })
}

/// Whether a keeper is among the parents of a process.
fn is_kept(pid: u32) -> bool {
    const DEEPEST: usize = 1_000;
    let parents = std::iter::successors(parent_of(pid), |pid| parent_of(*pid));
    parents.take(DEEPEST).take_while(|pid| *pid > 1).any(|pid| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = command.split(|byte| *byte == 0).skip(1);
        (words.next(), words.next()) == (Some(b"internal"), Some(b"keeper"))
    })
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

fn is_zombie(proc: &Path) -> bool {
    // The name in parentheses may hold anything; the state is the first word after the last one.
    fs::read_to_string(proc.join("stat"))
        .ok()
        .and_then(|stat| stat.rsplit_once(") ").map(|(_, rest)| rest.starts_with('Z')))
        .unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use ostler_domain::Time;

    use super::*;

    #[test]
    fn ends_what_carries_the_stamp_and_nothing_else() {
        let id = |entropy| SessionId::new(Time::from_micros(1), entropy);
        let sleeper = |session: &SessionId| {
            Command::new("sleep")
                .arg("60")
                .env("OSTLER_SESSION_ID", session.to_string())
                .stdin(Stdio::null())
                .spawn()
                .unwrap()
        };
        let (ours, other) = (id(1), id(2));
        let (mut stamped, mut stranger) = (sleeper(&ours), sleeper(&other));
        let ended = end_leftovers(&ours, &[]);
        assert_eq!(ended.iter().map(|leftover| leftover.pid).collect::<Vec<_>>(), [stamped.id()]);
        assert!(!stamped.wait().unwrap().success());
        assert!(stranger.try_wait().unwrap().is_none());
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}
