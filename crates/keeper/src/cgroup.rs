//! The cgroup (v2) of the agent and all it starts: made, frozen, killed, asked about memory, removed.

use std::io;
use std::path::{Path, PathBuf};

use ostler_domain::confinement::Limits;

/// Where the limit of memory is written.
pub(crate) const MEMORY_MAX: &str = "memory.max";

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

    /// Holds everything inside to these limits; returns the files that could not be written.
    pub(crate) fn limit(&self, limits: &Limits) -> Vec<(&'static str, io::Error)> {
        let mut files = Vec::new();
        if let Some(bytes) = limits.memory_bytes {
            // Half a tree that was killed for want of memory is worth less than none.
            files.extend([(MEMORY_MAX, bytes), ("memory.swap.max", 0), ("memory.oom.group", 1)]);
        }
        files.extend(limits.tasks.map(|tasks| ("pids.max", tasks)));
        let write = |(file, value): (&'static str, u64)| {
            // Not created: a controller that is not there has no file.
            let opened = std::fs::OpenOptions::new().write(true).open(self.file(file));
            let written =
                opened.and_then(|mut opened| io::Write::write_all(&mut opened, value.to_string().as_bytes()));
            written.err().map(|error| (file, error))
        };
        files.into_iter().filter_map(write).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The machine that tests run on may have no such controllers.
    #[test]
    fn limits_are_written_where_there_are_files_for_them() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["cgroup.freeze", "memory.max", "memory.swap.max", "pids.max"] {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        let cgroup = Cgroup::create(dir.path()).unwrap();
        let limits = Limits { memory_bytes: Some(1 << 30), tasks: Some(77), ..Limits::default() };
        let failed = cgroup.limit(&limits);
        assert_eq!(failed.iter().map(|(file, _)| *file).collect::<Vec<_>>(), ["memory.oom.group"]);
        let read = |file| std::fs::read_to_string(dir.path().join(file)).unwrap();
        assert_eq!((read("memory.max").as_str(), read("memory.swap.max").as_str()), ("1073741824", "0"));
        assert_eq!(read("pids.max"), "77");
        assert!(cgroup.limit(&Limits::default()).is_empty(), "no limit, no file");
    }
}
