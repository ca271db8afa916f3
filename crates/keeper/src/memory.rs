//! The memory limit of a session whose cgroup cannot hold it to one: the keeper adds up, and ends what takes more.
//!
//! Counted is what processes have for themselves, and files in memory that have no name any more: once each, however
//! many have them open or mapped. Files with a name are in file systems with a size of their own, System V's memory has a
//! limit of its own, and programs and other files are the kernel's to take back. A sum can be deceived by somebody who
//! hides a file well enough, in a socket or in a mapping that nobody has touched; a cgroup cannot.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use ostler_domain::limits::MEMORY_LOOK;
use ostler_domain::session::{LargestProcess, OutOfMemory};
use rustix::fs::statfs;

use crate::tree::Tree;

#[derive(Debug)]
pub(crate) struct MemoryWatch {
    limit_bytes: u64,
    holds: HeldBy,
    look_at: Instant,
    /// As it was when the tree was last seen near its limit.
    largest: Option<LargestProcess>,
}

/// Who ends a tree that has more than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeldBy {
    Keeper,
    /// It does so without a word: whoever wants to know who was the largest has looked before.
    Kernel,
}

/// Between two looks at a tree that is far from the limit that the kernel holds it to.
const FAR_LOOK: Duration = Duration::from_secs(5);

impl MemoryWatch {
    pub(crate) fn new(limit_bytes: u64, holds: HeldBy, now: Instant) -> MemoryWatch {
        MemoryWatch { limit_bytes, holds, look_at: now + MEMORY_LOOK, largest: None }
    }

    pub(crate) fn wake_at(&self) -> Instant {
        self.look_at
    }

    pub(crate) fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// What the tree has, if it is time to look and that is too much.
    pub(crate) fn excess(&mut self, tree: &Tree, now: Instant) -> Option<u64> {
        if now < self.look_at {
            return None;
        }
        if self.holds == HeldBy::Kernel {
            let is_near = tree.memory_bytes().is_some_and(|bytes| bytes >= self.limit_bytes / 2);
            self.look_at = now + if is_near { MEMORY_LOOK } else { FAR_LOOK };
            self.largest = if is_near { largest(&tree.pids()) } else { None };
            return None;
        }
        self.look_at = now + MEMORY_LOOK;
        let pids = tree.pids();
        let bytes = memory_bytes(&pids);
        let is_too_much = bytes > self.limit_bytes;
        if is_too_much {
            self.largest = largest(&pids);
        }
        is_too_much.then_some(bytes)
    }

    /// What it has seen, for whoever asks why the tree was ended.
    pub(crate) fn seen(&self, used_bytes: Option<u64>, oom_kills: u64) -> OutOfMemory {
        OutOfMemory {
            limit_bytes: Some(self.limit_bytes),
            used_bytes,
            largest: self.largest.clone(),
            oom_kills,
        }
    }
}

/// The process that has most for itself.
fn largest(pids: &[u32]) -> Option<LargestProcess> {
    let all = pids.iter().filter_map(|pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let name = status.lines().find_map(|line| line.strip_prefix("Name:"))?.trim().to_owned();
        Some(LargestProcess { name, bytes: kib_of(&status, "RssAnon:") * 1024 })
    });
    all.max_by_key(|process| process.bytes)
}

/// What these processes have together.
fn memory_bytes(pids: &[u32]) -> u64 {
    let mut own = 0;
    let mut files = HashMap::new();
    for pid in pids {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        own += kib_of(&status, "RssAnon:") * 1024;
        add_open_files(*pid, &mut files);
        if kib_of(&status, "RssShmem:") > 0 {
            let smaps = fs::read(format!("/proc/{pid}/smaps")).unwrap_or_default();
            add_mapped_files(&String::from_utf8_lossy(&smaps), &mut files);
        }
    }
    own + files.values().map(NamelessFile::bytes).sum::<u64>()
}

fn kib_of(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}

/// A file in memory without a name, by its device and number.
type NamelessFiles = HashMap<(u64, u64), NamelessFile>;

#[derive(Debug, Default)]
struct NamelessFile {
    /// As large as it is, where somebody has it open.
    whole: u64,
    /// The parts that are mapped, shared out among those who have mapped them.
    mapped: u64,
}

impl NamelessFile {
    fn bytes(&self) -> u64 {
        self.whole.max(self.mapped)
    }
}

/// How the kernel shows the name of a file that has none any more.
const NAMELESS: &str = " (deleted)";

fn add_open_files(pid: u32, files: &mut NamelessFiles) {
    // `stat` counts in these, whatever the file system does.
    const BLOCK_BYTES: u64 = 512;
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let is_nameless = fs::read_link(&path)
            .is_ok_and(|target| target.as_os_str().as_encoded_bytes().ends_with(NAMELESS.as_bytes()));
        // Others may be on a server that does not answer.
        if !is_nameless || !is_in_memory(&path) {
            continue;
        }
        if let Ok(found) = fs::metadata(&path) {
            files.entry((found.dev(), found.ino())).or_default().whole = found.blocks() * BLOCK_BYTES;
        }
    }
}

fn is_in_memory(path: &Path) -> bool {
    const TMPFS: u32 = 0x0102_1994;
    const HUGE_PAGES: u32 = 0x9584_58f6;
    statfs(path).is_ok_and(|found| [TMPFS, HUGE_PAGES].contains(&(found.f_type as u32)))
}

/// `/proc/<pid>/smaps`: a line for each mapping, and lines about it behind that.
fn add_mapped_files(smaps: &str, files: &mut NamelessFiles) {
    let mut at = None;
    for line in smaps.lines() {
        // `begin-end rwxs offset major:minor inode name`, where all others have a name and a colon in front.
        let mut words = line.split_ascii_whitespace();
        let first = words.next().unwrap_or_default();
        if !first.ends_with(':') {
            let device = words.nth(2).and_then(device);
            let inode = words.next().and_then(|inode| inode.parse().ok());
            at = device.zip(inode).filter(|_| line.ends_with(NAMELESS));
        } else if let (Some(key), "Pss:") = (at, first) {
            let kib: u64 = words.next().and_then(|kib| kib.parse().ok()).unwrap_or(0);
            files.entry(key).or_default().mapped += kib * 1024;
        }
    }
}

/// As `stat` has it.
fn device(text: &str) -> Option<u64> {
    let (major, minor) = text.split_once(':')?;
    Some(rustix::fs::makedev(u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    #[test]
    fn files_without_a_name_count_once() {
        const BYTES: usize = 40 << 20;
        let pids = [std::process::id(), std::process::id()];
        let nameless = |pids: &[u32]| {
            let mut files = HashMap::new();
            pids.iter().for_each(|pid| add_open_files(*pid, &mut files));
            files.values().map(NamelessFile::bytes).sum::<u64>()
        };
        let before = nameless(&pids);
        let mut file = File::from(memfd_create("hungry", MemfdFlags::CLOEXEC).unwrap());
        for _ in 0..BYTES >> 20 {
            file.write_all(&[1; 1 << 20]).unwrap();
        }
        let _again = file.try_clone().unwrap();
        assert_eq!(nameless(&pids) - before, BYTES as u64);
        assert!(memory_bytes(&pids[..1]) >= BYTES as u64);
    }

    #[test]
    fn the_largest_is_told_by_its_name() {
        let own = std::process::id();
        let found = largest(&[1, own, own]).unwrap();
        let name = fs::read_to_string("/proc/self/comm").unwrap();
        assert!(found.bytes > 0);
        assert!(!found.name.is_empty() && largest(&[own]).unwrap().name == name.trim(), "{found:?}");
        assert_eq!(largest(&[]), None);
    }

    #[test]
    fn what_is_mapped_and_nobody_has_open_counts_too() {
        let smaps = "\
7f0000000000-7f0001000000 rw-s 00000000 00:01 77                         /memfd:x (deleted)
Size:              16384 kB
Rss:               16384 kB
Pss:                8192 kB
VmFlags: rd wr sh mr mw me ms sd
7f0002000000-7f0003000000 rw-p 00000000 00:00 0
Pss:                4096 kB
7f0004000000-7f0005000000 r--p 00000000 fe:01 78                         /usr/lib/x.so
Pss:                4096 kB
";
        let mut files = HashMap::new();
        add_mapped_files(smaps, &mut files);
        add_mapped_files(smaps, &mut files);
        let [(key, file)] = files.iter().collect::<Vec<_>>()[..] else { panic!("{files:?}") };
        assert_eq!((*key, file.bytes()), ((rustix::fs::makedev(0, 1), 77), 16 << 20));
    }
}
