//! `/dev`: a handful of harmless devices, terminals of its own, and shared memory.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::mount::MountAttrFlags;

use crate::mounts::{self, NO_PROGRAMS};
use crate::refusal::{OrRefuse, Refusal, Stage};

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// As on other mounts, except that devices are meant.
const DEVICE: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

/// The host's devices that are shown.
pub(crate) fn handles() -> Result<Vec<(&'static str, OwnedFd)>, Refusal> {
    let open = |name| {
        let path = Path::new("/dev").join(name);
        let handle =
            mounts::handle(&path).or_refuse(Stage::Mounts, format_args!("opening {}", path.display()))?;
        Ok((name, handle))
    };
    DEVICES.into_iter().map(open).collect()
}

pub(crate) fn fill(dev: &Path, devices: Vec<(&'static str, OwnedFd)>, shm_bytes: u64) -> Result<(), Refusal> {
    let fill = || -> io::Result<()> {
        for (name, handle) in devices {
            let target = dev.join(name);
            fs::write(&target, "")?;
            mounts::bind(handle, mounts::handle(&target)?, DEVICE)?;
        }
        for (name, target) in LINKS {
            symlink(target, dev.join(name))?;
        }
        let add = |name: &str, mount: OwnedFd| {
            let target = dev.join(name);
            fs::create_dir(&target)?;
            mounts::attach(mount, mounts::handle(&target)?)
        };
        add(
            "shm",
            mounts::make("tmpfs", &[("mode", "1777"), ("size", &shm_bytes.to_string())], NO_PROGRAMS)?,
        )?;
        let terminals = [("ptmxmode", "0666"), ("mode", "0620")];
        add("pts", mounts::make("devpts", &terminals, DEVICE)?)
    };
    fill().or_refuse(Stage::Mounts, "filling /dev")
}
