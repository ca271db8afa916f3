//! Namespaces: leaving the host's, and user namespaces that exist for their id maps only.

use std::fs::{self, File};
use std::io::{Read, Write, pipe};
use std::os::fd::OwnedFd;

use ostler_domain::confinement::Confinement;
use ostler_domain::limits::INOTIFY_SHARE;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{WaitOptions, waitpid};
use rustix::thread::UnshareFlags;

use crate::identity::{Identity, Ids, disk_map};
use crate::refusal::{OrRefuse, Refusal, Stage};
use crate::sys::{self, Forked};

/// A mount namespace of our own, still as root: the place to put what only root can reach.
pub(crate) fn leave_mounts() -> Result<(), Refusal> {
    sys::unshare(UnshareFlags::NEWNS).or_refuse(Stage::Namespaces, "making a mount namespace")?;
    keep_mounts_to_ourselves()
}

/// Leaves the host. Processes that are started from now on are in a new pid namespace; this one never is, so it goes
/// on knowing the numbers of the outside.
pub(crate) fn leave_host(identity: &Identity, confinement: &Confinement) -> Result<(), Refusal> {
    // Only root of a user namespace sets the limits of what belongs to it, and inside nobody is root. So there is one
    // around, with nobody in it, for the limits alone.
    sys::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWIPC)
        .or_refuse(Stage::Namespaces, "leaving the host's user and ipc namespaces")?;
    map(Ids { uid: 0, gid: 0 }, identity.outside)?;
    share_memory(confinement.limits.shm_bytes);

    let mut namespaces =
        UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWUTS;
    if confinement.network.is_private() {
        namespaces |= UnshareFlags::NEWNET;
    }
    sys::unshare(namespaces).or_refuse(Stage::Namespaces, "leaving the host's namespaces")?;
    map(identity.inside, Ids { uid: 0, gid: 0 })?;
    share_watches();
    keep_mounts_to_ourselves()
}

/// Who we are in the user namespace that we are in now, and who that is in the one around.
fn map(inside: Ids, outside: Ids) -> Result<(), Refusal> {
    let write = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text)
            .or_refuse(Stage::Namespaces, format_args!("writing {file}"))
    };
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{} {} 1", inside.uid, outside.uid))?;
    write("gid_map", format!("{} {} 1", inside.gid, outside.gid))
}

/// System V's shared memory belongs to no process and is in no file system: it has as much as `/dev/shm`. Before Linux
/// 6.9 only the host's root can say so.
fn share_memory(bytes: u64) {
    for (name, most) in [("shmall", bytes / rustix::param::page_size() as u64), ("shmmax", bytes)] {
        let _ = fs::write(format!("/proc/sys/kernel/{name}"), most.to_string());
    }
}

/// What watches files counts against the user whatever namespace it is in: without a limit of its own, an agent could
/// leave the user's editor none. Kernels that do not know of it have none to give.
fn share_watches() {
    for name in ["instances", "watches"] {
        let users = fs::read_to_string(format!("/proc/sys/fs/inotify/max_user_{name}"));
        if let Some(most) = users.ok().and_then(|text| text.trim().parse::<u64>().ok()) {
            let share = (most / INOTIFY_SHARE).max(1).to_string();
            let _ = fs::write(format!("/proc/sys/user/max_inotify_{name}"), share);
        }
    }
}

/// From outside, what is in the cgroup namespace is what it was made in: so init makes its own, in its group.
pub(crate) fn leave_cgroups() -> Result<(), Refusal> {
    sys::unshare(UnshareFlags::NEWCGROUP).or_refuse(Stage::Namespaces, "making a cgroup namespace")
}

fn keep_mounts_to_ourselves() -> Result<(), Refusal> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .or_refuse(Stage::Mounts, "making all mounts private")
}

/// A user namespace in which root is the agent. Nobody is ever in it: mounts are shown through its map.
pub(crate) fn disk_namespace(identity: &Identity) -> Result<OwnedFd, Refusal> {
    const STAGE: Stage = Stage::IdMap;
    let (mut ready, says_ready) = pipe().or_refuse(STAGE, "making a pipe")?;
    let (mut until_closed, held_open) = pipe().or_refuse(STAGE, "making a pipe")?;
    let child = match sys::fork().or_refuse(STAGE, "starting a process for an id map")? {
        Forked::Parent(child) => child,
        Forked::Child => {
            drop((ready, held_open));
            let made = sys::unshare(UnshareFlags::NEWUSER);
            let mut says_ready = says_ready;
            let _ = says_ready.write_all(&[u8::from(made.is_ok())]);
            let _ = until_closed.read(&mut [0]);
            sys::exit(0)
        }
    };
    drop((says_ready, until_closed));
    let made = (|| {
        let mut answer = [0];
        ready.read_exact(&mut answer).or_refuse(STAGE, "making a user namespace for an id map")?;
        if answer != [1] {
            let error = std::io::Error::from_raw_os_error(rustix::io::Errno::PERM.raw_os_error());
            return Err(error).or_refuse(Stage::Namespaces, "making a user namespace for an id map");
        }
        let proc = format!("/proc/{child}");
        fs::write(format!("{proc}/uid_map"), disk_map(identity.outside.uid))
            .or_refuse(STAGE, "mapping users")?;
        fs::write(format!("{proc}/gid_map"), disk_map(identity.outside.gid))
            .or_refuse(STAGE, "mapping groups")?;
        File::open(format!("{proc}/ns/user")).or_refuse(STAGE, "opening the user namespace")
    })();
    drop(held_open);
    let _ = waitpid(Some(child), WaitOptions::empty());
    made.map(OwnedFd::from)
}
