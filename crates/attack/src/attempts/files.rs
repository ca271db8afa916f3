//! Files beyond the campaign.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, XattrFlags, mknodat, openat, openat2};

use super::{any, read, said, way};
use crate::attempt::{Attempt, Said, harmless, usual};
use crate::scene::{HOSTS_OWN, Scene};

pub(super) const ALL: &[Attempt] = &[
    harmless("files/read-outside", "read a file beside the campaign", |scene| {
        read(scene.outside("secret.txt"))
    }),
    harmless("files/write-outside", "write into a file beside the campaign", |scene| {
        let file = OpenOptions::new().append(true).open(scene.outside("notes.txt"));
        said(file.and_then(|mut file| file.write_all(b"changed\n")))
    }),
    harmless("files/create-outside", "make a file beside the campaign", |scene| {
        said(File::create_new(scene.outside("new.txt")))
    }),
    harmless("files/delete-outside", "delete a file beside the campaign", |scene| {
        said(fs::remove_file(scene.outside("doomed.txt")))
    }),
    harmless("files/move-inside", "move a file from beside the campaign into it", |scene| {
        said(fs::rename(scene.outside("secret.txt"), scene.scratch("moved.txt")))
    }),
    harmless("files/dot-dot", "climb out of the working directory by dots", |_| {
        read("../../outside/secret.txt")
    }),
    harmless("files/dot-dot-descriptor", "climb out of a directory's descriptor by dots", |scene| {
        let climb = || {
            let root = File::open(&scene.root)?;
            openat(&root, "../outside/secret.txt", OFlags::RDONLY, Mode::empty())
                .map_err(std::io::Error::from)
        };
        said(climb())
    }),
    harmless("files/open-in-root", "have openat2 resolve a way out", |scene| {
        let climb = || {
            let root = File::open("/")?;
            let path = scene.outside("secret.txt");
            openat2(&root, path, OFlags::RDONLY, Mode::empty(), ResolveFlags::IN_ROOT)
                .map_err(std::io::Error::from)
        };
        said(climb())
    }),
    harmless("files/list-outside", "list the directory beside the campaign", |scene| {
        said(fs::read_dir(&scene.outside))
    }),
    harmless("files/other-campaign", "read and write another campaign", |scene| {
        let path = scene.outside("other/code.txt");
        any([
            way("read", read(&path)),
            way("write", said(OpenOptions::new().append(true).open(&path))),
            way("make", said(File::create_new(scene.outside("other/new.txt")))),
        ])
    }),
    harmless("files/truncate-outside", "empty a file without opening it", |scene| {
        let path = super::c_path(&scene.outside("notes.txt"));
        use crate::sys::{Arg, call};
        said(call(libc::SYS_truncate, &mut [Arg::Path(&path), Arg::Number(0)]))
    }),
    harmless("files/chmod-outside", "change the mode of a file beside the campaign", |scene| {
        said(fs::set_permissions(scene.outside("notes.txt"), Permissions::from_mode(0o600)))
    }),
    harmless("files/chown-outside", "change the owner of a file beside the campaign", |scene| {
        said(chown(scene.outside("notes.txt"), Some(scene.user), None))
    }),
    harmless("files/times-outside", "change the times of a file beside the campaign", |scene| {
        let now = rustix::fs::Timespec { tv_sec: 1, tv_nsec: 0 };
        let times = rustix::fs::Timestamps { last_access: now, last_modification: now };
        let path = scene.outside("notes.txt");
        said(rustix::fs::utimensat(rustix::fs::CWD, path, &times, AtFlags::empty()))
    }),
    harmless("files/attribute-outside", "give an attribute to a file beside the campaign", |scene| {
        let path = scene.outside("notes.txt");
        said(rustix::fs::setxattr(path, "user.note", b"here", XattrFlags::empty()))
    }),
    harmless("files/fifo-outside", "write into a fifo beside the campaign", |scene| {
        let fifo = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(scene.outside("fifo"));
        said(fifo.and_then(|mut fifo| fifo.write_all(b"hello")))
    }),
    harmless("files/execute-outside", "execute a program beside the campaign", |scene| {
        said(Command::new(scene.outside("tool")).status())
    }),
    usual("files/system-directories", "leave a file in directories of the system", |scene| {
        let directories = ["/", "/etc", "/etc/cron.d", "/usr", "/usr/bin", "/usr/local/bin", "/run"];
        any(directories.map(|name| way(name, said(File::create_new(scene.stray(Path::new(name)))))))
    }),
    usual("files/shared-directories", "leave a file in the host's /tmp, /var/tmp and /dev/shm", |scene| {
        // These it has for itself: only the host can tell.
        for name in ["/tmp", "/var/tmp", "/dev/shm"] {
            let _ = fs::write(scene.stray(Path::new(name)), "stray");
        }
        Said::Tried("what it made is gone with its sandbox".to_owned())
    }),
    usual("files/users-home", "list the user's home and leave a file there", |scene| {
        let Some(home) = scene.home.as_ref().filter(|home| *home != Path::new("/home/agent")) else {
            return Said::Untried("the user has no home".to_owned());
        };
        any([way("list", said(fs::read_dir(home))), way("make", said(File::create_new(scene.stray(home))))])
    }),
    usual("files/system-programs", "open the system's programs for writing", |_| {
        let programs = ["/usr/bin/env", "/bin/sh", "/usr/bin/git", "/usr/bin/true"];
        let there = programs.into_iter().filter(|path| Path::new(path).exists());
        any(there.map(|path| way(path, said(OpenOptions::new().write(true).open(path)))))
    }),
    usual("files/accounts", "read the host's passwords and keys", |_| {
        let paths = ["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/machine-id", "/etc/ssh", "/root"];
        // Not a byte of them is kept.
        any(paths.map(|path| way(path, said(fs::metadata(path)))))
    }),
    usual("files/hosts-state", "look into the host's /var, /sys, /boot, /srv and /mnt", |_| {
        let paths = ["/var/log", "/var/lib", "/sys", "/sys/kernel", "/boot", "/srv", "/mnt", "/var/spool"];
        any(paths.map(|path| way(path, said(fs::read_dir(path)))))
    }),
    usual("files/hosts-run", "find anything of the host's in /run", |_| {
        let entries = fs::read_dir("/run").into_iter().flatten().flatten();
        match entries.map(|entry| entry.file_name()).find(|name| name != "ostler") {
            Some(name) => Said::Got(format!("/run/{}", name.display())),
            None => Said::Blocked("there is nothing".to_owned()),
        }
    }),
    usual("files/devices", "open disks, memory and the kernel's log", |_| {
        let names = [
            "sda",
            "vda",
            "nvme0n1",
            "dm-0",
            "loop0",
            "mem",
            "kmem",
            "port",
            "kmsg",
            "fuse",
            "kvm",
            "vhost-net",
            "net/tun",
            "mapper/control",
            "loop-control",
            "uinput",
            "userfaultfd",
            "tty0",
            "vcs",
            "snapshot",
            "cpu/0/msr",
        ];
        any(names.map(|name| way(name, said(File::open(Path::new("/dev").join(name))))))
    }),
    usual("files/make-disk", "make a device of the disk that the campaign is on", |scene| {
        make_device(scene, FileType::BlockDevice, scene.device)
    }),
    usual("files/make-memory", "make a device of the machine's memory", |scene| {
        make_device(scene, FileType::CharacterDevice, rustix::fs::makedev(1, 1))
    }),
    usual("files/make-in-tmp", "make a device in /tmp and in /dev/shm", |_| {
        let make = |path: &str| {
            let kind = FileType::CharacterDevice;
            said(mknodat(rustix::fs::CWD, path, kind, Mode::RUSR, rustix::fs::makedev(1, 11)))
        };
        any([way("/tmp", make("/tmp/kmsg")), way("/dev/shm", make("/dev/shm/kmsg"))])
    }),
    usual("files/replace-system", "put a file over a directory entry of the system", |scene| {
        let _ = fs::write(scene.scratch("mine"), "mine");
        let to = |name: &&str| scene.stray(Path::new(name));
        any(HOSTS_OWN
            .iter()
            .filter(|name| !["/tmp", "/var/tmp", "/dev/shm"].contains(name))
            .map(|name| way(name, said(fs::rename(scene.scratch("mine"), to(name))))))
    }),
    usual("files/own-program", "overwrite the program that confines it", |_| {
        let path = ostler_domain::confinement::PROGRAM;
        any([
            way("write", said(OpenOptions::new().write(true).open(path))),
            way("delete", said(fs::remove_file(path))),
            way("move", said(fs::rename(path, "/run/ostler/old"))),
            way("/proc/self/exe", said(OpenOptions::new().write(true).open("/proc/self/exe"))),
        ])
    }),
];

fn make_device(scene: &Scene, kind: FileType, device: u64) -> Said {
    let path = scene.scratch("device");
    let made = mknodat(rustix::fs::CWD, &path, kind, Mode::RUSR | Mode::WUSR, device);
    // It is not opened: that it is there says enough.
    said(made)
}
