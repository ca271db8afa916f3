//! The cgroup (v2) of the agent and all it starts: made, frozen, killed, asked about memory, removed.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    pub(crate) fn create(path: &Path) -> io::Result<Cgroup> {
        match std::fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let cgroup = Cgroup { path: path.to_owned() };
        // Only v2 has this file; a v1 group could hold the tree but neither freeze nor kill it.
        std::fs::metadata(cgroup.file("cgroup.freeze"))?;
        Ok(cgroup)
    }

    /// Where a process writes `0` to enter.
    pub(crate) fn procs(&self) -> PathBuf {
        self.file("cgroup.procs")
    }

    /// Kills everything inside. Kernels before 5.14 have no such file; the tree is walked as well.
    pub(crate) fn kill(&self) -> io::Result<()> {
        std::fs::write(self.file("cgroup.kill"), "1")
    }

    pub(crate) fn freeze(&self, on: bool) -> io::Result<()> {
        std::fs::write(self.file("cgroup.freeze"), if on { "1" } else { "0" })
    }

    pub(crate) fn is_populated(&self) -> bool {
        self.event("cgroup.events", "populated").is_some_and(|count| count > 0)
    }

    /// Whether the kernel killed something inside for want of memory.
    pub(crate) fn had_oom_kill(&self) -> bool {
        self.event("memory.events", "oom_kill").is_some_and(|count| count > 0)
    }

    /// Removes the group; it stays if something in it cannot die.
    pub(crate) fn remove(&self) -> io::Result<()> {
        std::fs::remove_dir(&self.path)
    }

    fn event(&self, file: &str, key: &str) -> Option<u64> {
        let text = std::fs::read_to_string(self.file(file)).ok()?;
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?;
        value.parse().ok()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}
