//! Where sessions get cgroups of their own: the places on this machine that we may write.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::Duration,
};

use ostler_domain::{SessionId, service::DAEMON_GROUP};
use ostler_tape::launch::{Controller, OldGroup};

/// How old a session's group must be before somebody else than its keeper removes it.
const SWEEP_AGE: Duration = Duration::from_secs(3_600);
/// The directory of ours below our own group.
const OURS: &str = "ostler";
/// The directory of keepers, beside it.
const KEEPERS: &str = "keepers";

/// Directories below which sessions get groups; empty where there are none that we may write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cgroups {
    /// Of version 2.
    unified: Option<PathBuf>,
    /// Of version 1, for what version 2 does not have here.
    old: Vec<OldGroup>,
    /// Where a service manager leaves us groups beside the daemon's own: the one for keepers.
    keepers: Option<PathBuf>,
}

impl Cgroups {
    /// Finds them, and makes ours below our own group.
    pub(crate) fn find() -> Cgroups {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let Cgroups { unified, old, keepers } =
            places(&read("/proc/self/cgroup"), &read("/proc/self/mounts"));
        let unified = unified.filter(|place| is_ours(place));
        let keepers = keepers.filter(|place| is_ours(place));
        if let Some(unit) = keepers.as_deref().and_then(Path::parent) {
            offer(unit);
        }
        if let Some(place) = &unified {
            offer(place);
        }
        let offered =
            unified.as_ref().map(|place| read(&place.join("cgroup.subtree_control").to_string_lossy()));
        let has = |controller: Controller| match controller {
            // Whatever has a group of version 2 is frozen by it.
            Controller::Freezer => unified.is_some(),
            Controller::Memory | Controller::Pids => {
                offered.iter().any(|offered| offered.split_whitespace().any(|one| one == name(controller)))
            }
        };
        let old = old.into_iter().filter(|group| !has(group.controller) && is_ours(&group.path)).collect();
        Cgroups { unified, old, keepers }
    }

    /// Who ends a session that takes more memory than it may.
    pub(crate) fn memory_held_by(&self) -> &'static str {
        if self.old.iter().any(|group| group.controller == Controller::Memory) {
            return "cgroup v1";
        }
        let offers = |place: &PathBuf| {
            let offered = fs::read_to_string(place.join("cgroup.subtree_control")).unwrap_or_default();
            offered.split_whitespace().any(|one| one == name(Controller::Memory))
        };
        if self.unified.as_ref().is_some_and(offers) { "cgroup v2" } else { "keeper" }
    }

    /// Where no restart of the daemon's unit looks for processes to end.
    pub(crate) fn of_keepers(&self) -> Option<PathBuf> {
        self.keepers.clone()
    }

    pub(crate) fn unified_of(&self, session: &SessionId) -> Option<PathBuf> {
        self.unified.as_ref().map(|parent| parent.join(session.to_string()))
    }

    pub(crate) fn old_of(&self, session: &SessionId) -> Vec<OldGroup> {
        let group = |parent: &OldGroup| OldGroup {
            controller: parent.controller,
            path: parent.path.join(session.to_string()),
        };
        self.old.iter().map(group).collect()
    }

    /// All groups of a session.
    pub(crate) fn all_of(&self, session: &SessionId) -> Vec<PathBuf> {
        self.unified_of(session)
            .into_iter()
            .chain(self.old_of(session).into_iter().map(|old| old.path))
            .collect()
    }

    /// Removes groups that nobody is in and whose sessions ended long ago: a keeper removes its own, but one that was
    /// killed together with its home could not. The kernel lets only empty ones go.
    pub(crate) fn sweep(&self) {
        self.unified.iter().chain(self.old.iter().map(|group| &group.path)).for_each(|parent| sweep(parent));
    }
}

/// Lets groups below have limits. What is not delegated to us stays where it is.
fn offer(place: &Path) {
    for controller in ["+memory", "+pids"] {
        let _ = fs::write(place.join("cgroup.subtree_control"), controller);
    }
}

fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let is_old = |found: fs::Metadata| {
            found.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age > SWEEP_AGE))
        };
        if entry.file_name().to_string_lossy().starts_with("ses_") && entry.metadata().is_ok_and(is_old) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

const fn name(controller: Controller) -> &'static str {
    match controller {
        Controller::Memory => "memory",
        Controller::Pids => "pids",
        Controller::Freezer => "freezer",
    }
}

/// Whether the directory is there now and may be written.
fn is_ours(place: &Path) -> bool {
    match DirBuilder::new().mode(0o755).create(place) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            rustix::fs::access(place, rustix::fs::Access::WRITE_OK).is_ok()
        }
        Err(_) => false,
    }
}

/// Where our own groups are, from what the kernel says of us and of its mounts.
fn places(own: &str, mounts: &str) -> Cgroups {
    let mounted = |wanted: &dyn Fn(&str, &str) -> bool| {
        mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (place, kind, options) = (words.next()?, words.next()?, words.next()?);
            wanted(kind, options).then(|| PathBuf::from(place))
        })
    };
    // A service manager starts the daemon in a group below its unit's, so that there may be others beside it.
    let beside =
        |own: &str| own.strip_suffix(DAEMON_GROUP).and_then(|unit| unit.strip_suffix('/')).map(str::to_owned);
    let below = |mount: PathBuf, own: &str| {
        let own = beside(own).unwrap_or_else(|| own.to_owned());
        mount.join(own.trim_start_matches('/')).join(OURS)
    };
    let own_unified = own.lines().find_map(|line| line.strip_prefix("0::"));
    let unified = own_unified.and_then(|own| Some(below(mounted(&|kind, _| kind == "cgroup2")?, own)));
    let keepers = unified
        .as_ref()
        .filter(|_| own_unified.and_then(beside).is_some())
        .map(|sessions| sessions.with_file_name(KEEPERS));
    let old =
        [Controller::Memory, Controller::Pids, Controller::Freezer].into_iter().filter_map(|controller| {
            let is_it = |list: &str| list.split(',').any(|one| one == name(controller));
            let own = own.lines().find_map(|line| {
                let (_, line) = line.split_once(':')?;
                let (controllers, own) = line.split_once(':')?;
                is_it(controllers).then_some(own)
            })?;
            let mount = mounted(&|kind, options| kind == "cgroup" && is_it(options))?;
            Some(OldGroup { controller, path: below(mount, own) })
        });
    Cgroups { unified, old: old.collect(), keepers }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn old(controller: Controller, path: &str) -> OldGroup {
        OldGroup { controller, path: path.into() }
    }

    #[test]
    fn groups_are_found_on_machines_of_each_kind() {
        let new = places("0::/user.slice/a.service\n", "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n");
        assert_eq!(new.unified, Some("/sys/fs/cgroup/user.slice/a.service/ostler".into()));
        assert!(new.old.is_empty() && new.keepers.is_none());

        let service =
            places("0::/user.slice/ostler.service/daemon\n", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
        assert_eq!(service.unified, Some("/sys/fs/cgroup/user.slice/ostler.service/ostler".into()));
        assert_eq!(service.keepers, Some("/sys/fs/cgroup/user.slice/ostler.service/keepers".into()));

        let own = "9:name=systemd:/s\n6:freezer:/\n4:memory:/api/x\n3:cpu,cpuacct:/\n2:pids:/p\n0::/u\n";
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
            cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
            cgroup /sys/fs/cgroup/freezer cgroup rw,relatime,freezer 0 0\n\
            cgroup /sys/fs/cgroup/pids cgroup rw,relatime,pids 0 0\n\
            cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n";
        let both = places(own, mounts);
        assert_eq!(both.unified, Some("/sys/fs/cgroup/unified/u/ostler".into()));
        assert_eq!(
            both.old,
            [
                old(Controller::Memory, "/sys/fs/cgroup/memory/api/x/ostler"),
                old(Controller::Pids, "/sys/fs/cgroup/pids/p/ostler"),
                old(Controller::Freezer, "/sys/fs/cgroup/freezer/ostler"),
            ]
        );
        assert_eq!(places("", mounts), Cgroups::default());
        assert_eq!(places(own, ""), Cgroups::default());
    }
}
