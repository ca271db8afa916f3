//! Mounts by descriptors: no path is resolved twice, and a mount has its attributes before anybody can see it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
};

use crate::sys;

/// Nothing in a sandbox gains rights by being executed, and only the devices that were chosen are devices.
pub(crate) const WRITABLE: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);
pub(crate) const READ_ONLY: MountAttrFlags = WRITABLE.union(MountAttrFlags::MOUNT_ATTR_RDONLY);
pub(crate) const NO_PROGRAMS: MountAttrFlags = WRITABLE.union(MountAttrFlags::MOUNT_ATTR_NOEXEC);
/// For masks: there is nothing in them to be used in any way.
pub(crate) const NOTHING: MountAttrFlags = NO_PROGRAMS.union(MountAttrFlags::MOUNT_ATTR_RDONLY);

/// A copy of the mounts at and below a file or directory, attached nowhere yet.
pub(crate) fn copy(source: impl AsFd) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    Ok(open_tree(source, "", flags)?)
}

/// A second way to a directory, with nothing of what is mounted below it; attached nowhere.
pub(crate) fn bare(source: impl AsFd) -> io::Result<OwnedFd> {
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    Ok(open_tree(source, "", flags)?)
}

pub(crate) fn attach(mount: impl AsFd, target: impl AsFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(mount, "", target, "", flags)?)
}

/// Shows `source` at `target` as well.
pub(crate) fn bind(source: impl AsFd, target: impl AsFd, attributes: MountAttrFlags) -> io::Result<()> {
    let mount = copy(source)?;
    sys::set_mount_attributes(&mount, attributes, true)?;
    attach(mount, target)
}

/// A new file system, attached nowhere yet.
pub(crate) fn make(kind: &str, options: &[(&str, &str)], attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(&context, *key, *value)?;
    }
    fsconfig_create(&context)?;
    Ok(fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// A handle to what is at `path`, which is not followed if it is a link.
pub(crate) fn handle(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// A handle to what `path` leads to.
pub(crate) fn handle_of_target(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// A handle to what is at `path` below `root`, with no link on the way. Somebody else may be renaming directories
/// there at this moment.
pub(crate) fn handle_beneath(root: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    open_beneath(root, path, OFlags::PATH | OFlags::NOFOLLOW)
}

pub(crate) fn open_beneath(root: BorrowedFd<'_>, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    loop {
        match openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            // A directory above was moved while the kernel looked.
            Err(rustix::io::Errno::AGAIN) => {}
            result => return Ok(result?),
        }
    }
}
