//! Mounts and roots, by the old calls and the new ones. All arguments are such that nothing would be mounted.

use super::{any, refused, way};
use crate::attempt::{Attempt, usual};

/// No address: a call that reaches the kernel answers with EFAULT.
const NOWHERE: u64 = 1;
const HERE: u64 = libc::AT_FDCWD as u64;
const NONE: u64 = -1_i64 as u64;
const SYS_OPEN_TREE_ATTR: i64 = 467;

pub(super) const ALL: &[Attempt] = &[
    usual("mounts/mount", "mount by the old call", |_| {
        any([
            way("mount", refused(libc::SYS_mount, &[NOWHERE, NOWHERE, NOWHERE, 0, 0])),
            way("bind", refused(libc::SYS_mount, &[NOWHERE, NOWHERE, 0, libc::MS_BIND, 0])),
            way("move", refused(libc::SYS_mount, &[NOWHERE, NOWHERE, 0, libc::MS_MOVE, 0])),
        ])
    }),
    usual("mounts/remount", "make a read-only mount writable", |_| {
        refused(libc::SYS_mount, &[0, NOWHERE, 0, libc::MS_REMOUNT | libc::MS_BIND, 0])
    }),
    usual("mounts/set-attributes", "change the attributes of a mount", |_| {
        refused(libc::SYS_mount_setattr, &[HERE, NOWHERE, 0, NOWHERE, 32])
    }),
    usual("mounts/unmount", "unmount what covers something", |_| {
        refused(libc::SYS_umount2, &[NOWHERE, libc::MNT_DETACH as u64])
    }),
    usual("mounts/pivot", "change the root by pivot_root", |_| {
        refused(libc::SYS_pivot_root, &[NOWHERE, NOWHERE])
    }),
    usual("mounts/chroot", "change the root by chroot, to climb out of it", |_| {
        refused(libc::SYS_chroot, &[NOWHERE])
    }),
    usual("mounts/open-file-system", "open a new file system by the new calls", |_| {
        any([
            way("fsopen", refused(libc::SYS_fsopen, &[NOWHERE, 0])),
            way("fsconfig", refused(libc::SYS_fsconfig, &[NONE, 0, 0, 0, 0])),
            way("fsmount", refused(libc::SYS_fsmount, &[NONE, 0, 0])),
            way("fspick", refused(libc::SYS_fspick, &[HERE, NOWHERE, 0])),
        ])
    }),
    usual("mounts/copy-tree", "copy a tree of mounts", |_| {
        any([
            way("open_tree", refused(libc::SYS_open_tree, &[HERE, NOWHERE, 1])),
            way("open_tree_attr", refused(SYS_OPEN_TREE_ATTR, &[HERE, NOWHERE, 1, 0, 0])),
        ])
    }),
    usual("mounts/move", "move a mount away from what it covers", |_| {
        refused(libc::SYS_move_mount, &[HERE, NOWHERE, HERE, NOWHERE, 0])
    }),
    usual("mounts/watch", "watch every file of a mount", |_| {
        any([
            way("fanotify_init", refused(libc::SYS_fanotify_init, &[0, 0])),
            way("reports of files", refused(libc::SYS_fanotify_init, &[0x200, 0])),
        ])
    }),
];
