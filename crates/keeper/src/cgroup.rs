//! The cgroups of the agent and all it starts: made, frozen, killed, asked about memory, removed.
//!
//! One of version 2 where there is one. Machines that still have version 1 keep memory and process counts there, and
//! some have nothing else: then a group of each of those as well.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ostler_domain::confinement::Limits;
use ostler_tape::launch::{Controller, OldGroup};

/// What is limited, for those who cannot be held to it otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limited {
    Memory,
    Swap,
    TogetherOrNot,
    Tasks,
}

#[derive(Debug)]
pub(crate) struct Cgroup {
    unified: Option<PathBuf>,
    old: Vec<OldGroup>,
}

/// A limit that could not be set: what it is of, its file, and why.
pub(crate) type NotLimited = (Limited, String, io::Error);

impl Cgroup {
    /// Makes what can be made; none if nothing can. The reasons are returned beside it.
    pub(crate) fn create(unified: Option<&Path>, old: &[OldGroup]) -> (Option<Cgroup>, Vec<io::Error>) {
        let mut failed = Vec::new();
        let mut keep = |made: io::Result<()>| made.map_err(|error| failed.push(error)).is_ok();
        // A group of the wrong version could hold the tree, but neither freeze nor limit it.
        let unified = unified.filter(|path| keep(make(path, "cgroup.freeze")));
        let old: Vec<OldGroup> =
            old.iter().filter(|group| keep(make(&group.path, sign(group.controller)))).cloned().collect();
        let cgroup = Cgroup { unified: unified.map(Path::to_owned), old };
        ((cgroup.unified.is_some() || !cgroup.old.is_empty()).then_some(cgroup), failed)
    }

    /// Holds everything inside to these limits; returns those that could not be set.
    pub(crate) fn limit(&self, limits: &Limits) -> Vec<NotLimited> {
        let mut failed = Vec::new();
        let mut set = |what: Limited, unified: &str, old: Option<(Controller, &str)>, value: u64| {
            let mut last = None;
            for file in self.files(unified, old) {
                // Not created: a controller that is not there has no file.
                let opened = fs::OpenOptions::new().write(true).open(&file);
                match opened
                    .and_then(|mut file| io::Write::write_all(&mut file, value.to_string().as_bytes()))
                {
                    Ok(()) => return,
                    Err(error) => last = Some(error),
                }
            }
            let error = last.unwrap_or_else(|| io::ErrorKind::NotFound.into());
            failed.push((what, unified.to_owned(), error));
        };
        if let Some(bytes) = limits.memory_bytes {
            let of_memory = |file| Some((Controller::Memory, file));
            set(Limited::Memory, "memory.max", of_memory("memory.limit_in_bytes"), bytes);
            if self.old(Controller::Memory).is_some_and(|path| path.join(MEMORY_AND_SWAP).exists()) {
                // Counts both, so the same number leaves no room for swap.
                set(Limited::Swap, "memory.swap.max", of_memory(MEMORY_AND_SWAP), bytes);
            } else {
                set(Limited::Swap, "memory.swap.max", of_memory("memory.swappiness"), 0);
            }
            // Half a tree that was killed for want of memory is worth less than none. The old version cannot be told.
            set(Limited::TogetherOrNot, "memory.oom.group", None, 1);
        }
        if let Some(tasks) = limits.tasks {
            set(Limited::Tasks, "pids.max", Some((Controller::Pids, "pids.max")), tasks);
        }
        failed
    }

    /// Where a process writes `0` to enter.
    pub(crate) fn procs(&self) -> Vec<PathBuf> {
        self.groups().map(|group| group.join(PROCS)).collect()
    }

    /// Kills everything inside. Kernels before 5.14 have no such file, and the old version has none; the tree is
    /// walked as well.
    pub(crate) fn kill(&self) -> io::Result<()> {
        self.unified.as_ref().map_or(Ok(()), |group| fs::write(group.join("cgroup.kill"), "1"))
    }

    /// Whether it can be frozen at all.
    pub(crate) fn can_freeze(&self) -> bool {
        self.unified.is_some() || self.old(Controller::Freezer).is_some()
    }

    pub(crate) fn freeze(&self, on: bool) -> io::Result<()> {
        match (&self.unified, self.old(Controller::Freezer)) {
            (Some(group), _) => fs::write(group.join("cgroup.freeze"), if on { "1" } else { "0" }),
            (None, Some(group)) => {
                fs::write(group.join("freezer.state"), if on { "FROZEN" } else { "THAWED" })
            }
            (None, None) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    pub(crate) fn is_populated(&self) -> bool {
        let unified =
            self.unified.as_ref().and_then(|group| event(&group.join("cgroup.events"), "populated"));
        let has_members =
            |group: &OldGroup| fs::read_to_string(group.path.join(PROCS)).is_ok_and(|text| !text.is_empty());
        unified.is_some_and(|count| count > 0) || self.old.iter().any(has_members)
    }

    /// How many inside the kernel killed for want of memory.
    pub(crate) fn oom_kills(&self) -> u64 {
        let files = self.files("memory.events", Some((Controller::Memory, "memory.oom_control")));
        files.iter().find_map(|file| event(file, "oom_kill").filter(|count| *count > 0)).unwrap_or(0)
    }

    /// What everything inside has.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        self.number("memory.current", "memory.usage_in_bytes")
    }

    /// The most that everything inside ever had. Kernels before 5.19 do not say so in the new version.
    pub(crate) fn memory_peak_bytes(&self) -> Option<u64> {
        self.number("memory.peak", "memory.max_usage_in_bytes")
    }

    fn number(&self, unified: &str, old: &str) -> Option<u64> {
        let files = self.files(unified, Some((Controller::Memory, old)));
        files.iter().find_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok())
    }

    /// Removes the groups; one stays if something in it cannot die.
    pub(crate) fn remove(&self) -> io::Result<()> {
        // Each is tried, whatever becomes of the others.
        let removed: Vec<io::Result<()>> = self.groups().map(fs::remove_dir).collect();
        removed.into_iter().collect()
    }

    fn groups(&self) -> impl Iterator<Item = &PathBuf> {
        self.unified.iter().chain(self.old.iter().map(|group| &group.path))
    }

    fn old(&self, controller: Controller) -> Option<&PathBuf> {
        self.old.iter().find(|group| group.controller == controller).map(|group| &group.path)
    }

    /// The same thing in both versions, as far as there are groups for it.
    fn files(&self, unified: &str, old: Option<(Controller, &str)>) -> Vec<PathBuf> {
        let unified = self.unified.iter().map(|group| group.join(unified));
        let old = old.and_then(|(controller, file)| Some(self.old(controller)?.join(file)));
        unified.chain(old).collect()
    }
}

const PROCS: &str = "cgroup.procs";
const MEMORY_AND_SWAP: &str = "memory.memsw.limit_in_bytes";

/// A file that a group of this controller has.
const fn sign(controller: Controller) -> &'static str {
    match controller {
        Controller::Memory => "memory.limit_in_bytes",
        Controller::Pids => "pids.max",
        Controller::Freezer => "freezer.state",
    }
}

fn make(group: &Path, sign: &str) -> io::Result<()> {
    match fs::create_dir(group) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::metadata(group.join(sign)).map(drop);
    if found.is_err() {
        let _ = fs::remove_dir(group);
    }
    found
}

fn event(file: &Path, key: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?;
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with the files of a group: the machine that tests run on may have no such controllers.
    fn group(dir: &Path, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let group = dir.join(name);
        fs::create_dir(&group).unwrap();
        for (file, text) in files {
            fs::write(group.join(file), text).unwrap();
        }
        group
    }

    fn old(controller: Controller, path: PathBuf) -> OldGroup {
        OldGroup { controller, path }
    }

    const LIMITS: Limits = Limits {
        open_files: 1,
        processes: 1,
        file_bytes: 1,
        tmp_bytes: 1,
        shm_bytes: 1,
        memory_bytes: Some(1 << 30),
        tasks: Some(77),
        address_space_bytes: None,
    };

    fn not_limited(cgroup: &Cgroup) -> Vec<Limited> {
        cgroup.limit(&LIMITS).into_iter().map(|(what, ..)| what).collect()
    }

    #[test]
    fn limits_are_written_where_there_are_files_for_them() {
        let dir = tempfile::tempdir().unwrap();
        let files = ["cgroup.freeze", "memory.max", "memory.swap.max", "pids.max"].map(|name| (name, ""));
        let group = group(dir.path(), "g", &files);
        let (cgroup, failed) = Cgroup::create(Some(&group), &[]);
        let cgroup = cgroup.unwrap();
        assert!(failed.is_empty());
        assert_eq!(not_limited(&cgroup), [Limited::TogetherOrNot]);
        let read = |file| fs::read_to_string(group.join(file)).unwrap();
        assert_eq!((read("memory.max").as_str(), read("memory.swap.max").as_str()), ("1073741824", "0"));
        assert_eq!(read("pids.max"), "77");
        assert!(cgroup.limit(&Limits::default()).is_empty(), "no limit, no file");
        fs::write(group.join("memory.events"), "low 0\nmax 3\noom 1\noom_kill 1\n").unwrap();
        assert_eq!(cgroup.oom_kills(), 1);
        assert_eq!((cgroup.memory_bytes(), cgroup.memory_peak_bytes()), (None, None));
        fs::write(group.join("memory.peak"), "4096\n").unwrap();
        assert_eq!(cgroup.memory_peak_bytes(), Some(4096));
        cgroup.freeze(true).unwrap();
        assert_eq!(read("cgroup.freeze"), "1");
    }

    #[test]
    fn the_old_version_limits_what_the_new_one_does_not_have() {
        let dir = tempfile::tempdir().unwrap();
        let unified =
            group(dir.path(), "unified", &[("cgroup.freeze", ""), ("cgroup.events", "populated 0\n")]);
        let memory = group(
            dir.path(),
            "memory",
            &[("memory.limit_in_bytes", ""), ("memory.memsw.limit_in_bytes", ""), (PROCS, "")],
        );
        let pids = group(dir.path(), "pids", &[("pids.max", ""), (PROCS, "")]);
        let groups = [old(Controller::Memory, memory.clone()), old(Controller::Pids, pids.clone())];
        let (cgroup, _) = Cgroup::create(Some(&unified), &groups);
        let cgroup = cgroup.unwrap();
        assert_eq!(not_limited(&cgroup), [Limited::TogetherOrNot]);
        let read = |path: &Path, file: &str| fs::read_to_string(path.join(file)).unwrap();
        assert_eq!(read(&memory, "memory.limit_in_bytes"), "1073741824");
        assert_eq!(read(&memory, "memory.memsw.limit_in_bytes"), "1073741824");
        assert_eq!(read(&pids, "pids.max"), "77");
        assert_eq!(cgroup.procs(), [unified.join(PROCS), memory.join(PROCS), pids.join(PROCS)]);
        fs::write(memory.join("memory.oom_control"), "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
            .unwrap();
        assert_eq!(cgroup.oom_kills(), 2);
        fs::write(memory.join("memory.usage_in_bytes"), "77\n").unwrap();
        assert_eq!(cgroup.memory_bytes(), Some(77));
        assert!(!cgroup.is_populated());
        fs::write(pids.join(PROCS), "12\n").unwrap();
        assert!(cgroup.is_populated());
        cgroup.freeze(true).unwrap();
        assert_eq!(read(&unified, "cgroup.freeze"), "1", "the new freezer first");
    }

    #[test]
    fn a_machine_with_the_old_version_only_freezes_by_it() {
        let dir = tempfile::tempdir().unwrap();
        let freezer = group(dir.path(), "freezer", &[("freezer.state", "THAWED"), (PROCS, "")]);
        let absent = dir.path().join("no/such/place");
        let groups = [old(Controller::Freezer, freezer.clone()), old(Controller::Memory, absent)];
        let (cgroup, failed) = Cgroup::create(None, &groups);
        let cgroup = cgroup.unwrap();
        assert_eq!(failed.len(), 1);
        assert_eq!(not_limited(&cgroup).len(), 4, "so the keeper adds up for itself");
        assert!(cgroup.can_freeze());
        cgroup.freeze(true).unwrap();
        assert_eq!(fs::read_to_string(freezer.join("freezer.state")).unwrap(), "FROZEN");
        cgroup.freeze(false).unwrap();
        assert_eq!(fs::read_to_string(freezer.join("freezer.state")).unwrap(), "THAWED");
        cgroup.kill().unwrap();
        assert!(Cgroup::create(None, &[]).0.is_none());
    }
}
