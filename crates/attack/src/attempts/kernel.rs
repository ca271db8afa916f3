//! System calls that nobody confined needs, and second names for those that are forbidden. All arguments are such that
//! nothing would happen.

use super::{any, refused, said, way};
use crate::attempt::{Attempt, Said, usual};
use crate::sys::plain;

const NOWHERE: u64 = 1;
const NONE: u64 = -1_i64 as u64;
const WRONG: u64 = 0xffff;
const X32: i64 = 0x4000_0000;

pub(super) const ALL: &[Attempt] = &[
    usual("kernel/x32", "make forbidden calls by their x32 numbers", |_| {
        if cfg!(not(target_arch = "x86_64")) {
            return Said::Untried("this architecture has no such numbers".to_owned());
        }
        let calls = [
            ("getpid", libc::SYS_getpid),
            ("mount", libc::SYS_mount),
            ("unshare", libc::SYS_unshare),
            ("keyctl", libc::SYS_keyctl),
            ("x32's own ptrace", 521),
            ("x32's own execve", 520),
        ];
        any(calls.map(|(name, number)| way(name, refused(X32 | number, &[0, 0, 0, 0, 0]))))
    }),
    usual("kernel/32-bit", "make a call as a 32-bit program", |_| {
        #[cfg(target_arch = "x86_64")]
        return match crate::sys::getpid_of_i386() {
            pid if pid > 0 => Said::Got(format!("it says that this is process {pid}")),
            other => Said::Blocked(format!("it answers {other}")),
        };
        #[cfg(not(target_arch = "x86_64"))]
        return Said::Untried("this architecture has no such gate".to_owned());
    }),
    usual("kernel/io-uring", "have the kernel make calls in its place", |_| {
        any([
            way("setup", refused(libc::SYS_io_uring_setup, &[1, NOWHERE])),
            way("enter", refused(libc::SYS_io_uring_enter, &[NONE, 0, 0, 0, 0])),
            way("register", refused(libc::SYS_io_uring_register, &[NONE, 0, 0, 0])),
        ])
    }),
    usual("kernel/userfaultfd", "hold the kernel up in the middle of a call", |_| {
        any([
            way("all faults", refused(libc::SYS_userfaultfd, &[0])),
            way("its own faults", refused(libc::SYS_userfaultfd, &[1])),
        ])
    }),
    usual("kernel/secret-memory", "have memory that keeps the machine from hibernating", |_| {
        const SYS_MEMFD_SECRET: i64 = 447;
        refused(SYS_MEMFD_SECRET, &[0])
    }),
    usual("kernel/fanotify", "watch and hold up every access to a file system", |scene| {
        let path = super::c_path(&scene.root);
        let mark = || {
            use crate::sys::{Arg, call, descriptor};
            let group = descriptor(libc::SYS_fanotify_init, &mut [Arg::Number(0), Arg::Number(0)])?;
            let number = std::os::fd::AsRawFd::as_raw_fd(&group) as u64;
            let mut args =
                [number, 1, 0x20, libc::AT_FDCWD as u64].map(Arg::Number).into_iter().collect::<Vec<_>>();
            args.push(Arg::Path(&path));
            call(libc::SYS_fanotify_mark, &mut args)
        };
        any([way("init", refused(libc::SYS_fanotify_init, &[0, 0])), way("mark", said(mark()))])
    }),
    usual("kernel/bpf", "load a program into the kernel", |_| {
        any([
            way("map", refused(libc::SYS_bpf, &[0, NOWHERE, 72])),
            way("program", refused(libc::SYS_bpf, &[5, NOWHERE, 72])),
            way("object", refused(libc::SYS_bpf, &[7, NOWHERE, 72])),
        ])
    }),
    usual("kernel/perf", "measure the kernel and other processes", |_| {
        refused(libc::SYS_perf_event_open, &[NOWHERE, 0, NONE, NONE, 0])
    }),
    usual("kernel/keys", "use the keyrings of the user and the session", |_| {
        any([
            way("session keyring", refused(libc::SYS_keyctl, &[0, -3_i64 as u64, 0, 0, 0])),
            way("user keyring", refused(libc::SYS_keyctl, &[0, -4_i64 as u64, 0, 0, 0])),
            way("add", refused(libc::SYS_add_key, &[NOWHERE, NOWHERE, 0, 0, -4_i64 as u64])),
            way("request", refused(libc::SYS_request_key, &[NOWHERE, NOWHERE, 0, 0])),
        ])
    }),
    usual("kernel/file-handles", "open files by their number, past every directory", |_| {
        any([
            way("open", refused(libc::SYS_open_by_handle_at, &[NONE, NOWHERE, 0])),
            way("name", refused(libc::SYS_name_to_handle_at, &[NONE, NOWHERE, NOWHERE, NOWHERE, 0])),
        ])
    }),
    usual("kernel/modules", "load and remove modules", |_| {
        any([
            way("init", refused(libc::SYS_init_module, &[NOWHERE, 0, NOWHERE])),
            way("finit", refused(libc::SYS_finit_module, &[NONE, NOWHERE, WRONG])),
            way("delete", refused(libc::SYS_delete_module, &[NOWHERE, 0])),
        ])
    }),
    usual("kernel/another-kernel", "start another kernel", |_| {
        any([
            way("load", refused(libc::SYS_kexec_load, &[0, WRONG, NOWHERE, WRONG])),
            way("file", refused(libc::SYS_kexec_file_load, &[NONE, NONE, 0, 0, WRONG])),
        ])
    }),
    usual("kernel/restart", "restart the machine", |_| refused(libc::SYS_reboot, &[0, 0, 0, 0])),
    usual("kernel/swap", "use a file as memory", |_| {
        any([
            way("on", refused(libc::SYS_swapon, &[NOWHERE, 0])),
            way("off", refused(libc::SYS_swapoff, &[NOWHERE])),
        ])
    }),
    usual("kernel/quota", "change quotas of the disk", |_| {
        any([
            way("quotactl", refused(libc::SYS_quotactl, &[WRONG, NOWHERE, 0, 0])),
            way("quotactl_fd", refused(libc::SYS_quotactl_fd, &[NONE, WRONG, 0, 0])),
        ])
    }),
    usual("kernel/accounting", "have every process written down", |_| refused(libc::SYS_acct, &[NOWHERE])),
    usual("kernel/clock", "set the clock", |_| {
        any([
            way("settimeofday", refused(libc::SYS_settimeofday, &[NOWHERE, 0])),
            way("clock_settime", refused(libc::SYS_clock_settime, &[0, NOWHERE])),
            way("adjtimex", refused(libc::SYS_adjtimex, &[NOWHERE])),
            way("clock_adjtime", refused(libc::SYS_clock_adjtime, &[0, NOWHERE])),
        ])
    }),
    usual("kernel/log", "read and clear the kernel's log", |_| refused(libc::SYS_syslog, &[WRONG, 0, 0])),
    usual("kernel/host-name", "give the host another name", |_| {
        any([
            way("host", refused(libc::SYS_sethostname, &[NOWHERE, 1])),
            way("domain", refused(libc::SYS_setdomainname, &[NOWHERE, 1])),
        ])
    }),
    usual("kernel/pages", "move memory between nodes", |_| {
        any([
            way("move_pages", refused(libc::SYS_move_pages, &[0, 0, 0, 0, 0, 0])),
            way("migrate_pages", refused(libc::SYS_migrate_pages, &[0, 0, 0, 0])),
            way("mbind", refused(libc::SYS_mbind, &[0, 0, 0, 0, 0, 0])),
            way("set_mempolicy", refused(libc::SYS_set_mempolicy, &[0, 0, 0])),
        ])
    }),
    usual("kernel/ports", "speak to hardware directly", |_| {
        #[cfg(target_arch = "x86_64")]
        return any([
            way("iopl", refused(libc::SYS_iopl, &[0])),
            way("ioperm", refused(libc::SYS_ioperm, &[0, 0, 0])),
        ]);
        #[cfg(not(target_arch = "x86_64"))]
        return Said::Untried("this architecture has no ports".to_owned());
    }),
    usual("kernel/segments", "change the table of memory segments", |_| {
        #[cfg(target_arch = "x86_64")]
        return refused(libc::SYS_modify_ldt, &[0, NOWHERE, 0]);
        #[cfg(not(target_arch = "x86_64"))]
        return Said::Untried("this architecture has no segments".to_owned());
    }),
    usual("kernel/attributes", "set attributes that the kernel or other programs trust", |scene| {
        let path = super::c_path(&scene.root.join("README.md"));
        let set = |name: &std::ffi::CStr| {
            use crate::sys::{Arg, call};
            let mut args = [Arg::Path(&path), Arg::Path(name), Arg::In(b"x"), Arg::Number(1), Arg::Number(0)];
            said(call(libc::SYS_setxattr, &mut args))
        };
        any([
            way("security", set(c"security.selinux")),
            way("trusted", set(c"trusted.overlay.opaque")),
            way("capability", set(c"security.capability")),
        ])
    }),
    usual("kernel/inode-flags", "make a file that nobody can delete", |scene| {
        let path = scene.scratch("immutable");
        let _ = std::fs::write(&path, "x");
        let Ok(file) = std::fs::File::open(&path) else { return Said::Untried("no file".to_owned()) };
        const FS_IOC_SETFLAGS: u64 = 0x4008_6602;
        const IMMUTABLE: i64 = 0x10;
        use crate::sys::{Arg, call};
        let flags = IMMUTABLE.to_ne_bytes();
        let number = std::os::fd::AsRawFd::as_raw_fd(&file) as u64;
        said(call(libc::SYS_ioctl, &mut [Arg::Number(number), Arg::Number(FS_IOC_SETFLAGS), Arg::In(&flags)]))
    }),
    usual("kernel/namespaces-of-files", "find the user namespace that owns its own", |_| {
        const NS_GET_PARENT: u64 = 0xb702;
        const NS_GET_USERNS: u64 = 0xb701;
        let Ok(own) = std::fs::File::open("/proc/self/ns/user") else {
            return Said::Blocked("its own cannot be opened".to_owned());
        };
        let number = std::os::fd::AsRawFd::as_raw_fd(&own) as u64;
        any([
            way("parent", said(plain(libc::SYS_ioctl, &[number, NS_GET_PARENT, 0]))),
            way("owner", said(plain(libc::SYS_ioctl, &[number, NS_GET_USERNS, 0]))),
        ])
    }),
];
