//! Becoming somebody else, capabilities, namespaces, and loosening what holds.

use std::fs::{self, File};
use std::os::fd::AsRawFd;

use libc::c_int;

use super::{any, program, read, refused, said, way};
use crate::attempt::{Attempt, Said, usual};
use crate::sys::{self, Arg, call, plain};

const NAMESPACES: [(&str, c_int); 8] = [
    ("user", libc::CLONE_NEWUSER),
    ("mount", libc::CLONE_NEWNS),
    ("pid", libc::CLONE_NEWPID),
    ("network", libc::CLONE_NEWNET),
    ("ipc", libc::CLONE_NEWIPC),
    ("host name", libc::CLONE_NEWUTS),
    ("cgroup", libc::CLONE_NEWCGROUP),
    ("time", 0x80),
];
const CAPABILITY_VERSION: u32 = 0x2008_0522;
const PR_CAP_AMBIENT_RAISE: u64 = 2;

fn bits(flag: c_int) -> u64 {
    u64::from(flag as u32)
}

fn field(name: &str) -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.trim_start_matches(':').trim().to_owned()
}

pub(super) const ALL: &[Attempt] = &[
    usual("privileges/be-root", "become root by every call that changes users", |_| {
        any([
            way("setuid", said(plain(libc::SYS_setuid, &[0]))),
            way("setreuid", said(plain(libc::SYS_setreuid, &[0, 0]))),
            way("setresuid", said(plain(libc::SYS_setresuid, &[0, 0, 0]))),
        ])
    }),
    usual("privileges/be-roots-group", "become a member of root's group", |_| {
        let group = 0_u32.to_ne_bytes();
        any([
            way("setgid", said(plain(libc::SYS_setgid, &[0]))),
            way("setresgid", said(plain(libc::SYS_setresgid, &[0, 0, 0]))),
            way("setgroups", said(call(libc::SYS_setgroups, &mut [Arg::Number(1), Arg::In(&group)]))),
            way("no groups", said(plain(libc::SYS_setgroups, &[0, 0]))),
        ])
    }),
    usual("privileges/file-system-user", "be root for the file system only", |_| {
        let _ = plain(libc::SYS_setfsuid, &[0]);
        let _ = plain(libc::SYS_setfsgid, &[0]);
        let (user, group) = (field("Uid"), field("Gid"));
        let last = |ids: &str| ids.split_whitespace().last().map(str::to_owned);
        if [last(&user), last(&group)].contains(&Some("0".to_owned())) {
            Said::Got(format!("{user} / {group}"))
        } else {
            Said::Blocked("it is as it was".to_owned())
        }
    }),
    usual("privileges/capabilities", "take all capabilities", |_| {
        let header: Vec<u8> = [CAPABILITY_VERSION, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let all = [0xff_u8; 24];
        said(call(libc::SYS_capset, &mut [Arg::In(&header), Arg::In(&all)]))
    }),
    usual("privileges/ambient", "raise ambient capabilities", |_| {
        any((0..41_u64).map(|number| {
            let args = [libc::PR_CAP_AMBIENT as u64, PR_CAP_AMBIENT_RAISE, number, 0, 0];
            way(number, said(plain(libc::SYS_prctl, &args)))
        }))
    }),
    usual("privileges/left-over", "find a capability that was not given up", |_| {
        any(["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"].map(|name| {
            let value = field(name);
            let is_empty = !value.is_empty() && value.bytes().all(|byte| byte == b'0');
            way(name, if is_empty { Said::Blocked("none".to_owned()) } else { Said::Got(value) })
        }))
    }),
    usual("privileges/no-new-privileges", "take back the promise not to gain rights", |_| {
        let _ = plain(libc::SYS_prctl, &[libc::PR_SET_NO_NEW_PRIVS as u64, 0, 0, 0, 0]);
        match plain(libc::SYS_prctl, &[libc::PR_GET_NO_NEW_PRIVS as u64, 0, 0, 0, 0]) {
            Ok(1) => Said::Blocked("it is kept".to_owned()),
            other => Said::Got(format!("{other:?}")),
        }
    }),
    usual("privileges/set-id-programs", "run programs of the host that make their caller root", |scene| {
        let at = scene.scratch("");
        let root = |said: Said| match said {
            Said::Got(text) if text.trim() != "0" => Said::Blocked(format!("ran as {text}")),
            other => other,
        };
        any([
            way("sudo", root(program("sudo", &["-n", "id", "-u"], &at))),
            way("su", root(program("su", &["-c", "id -u"], &at))),
            way("pkexec", root(program("pkexec", &["id", "-u"], &at))),
            way("runuser", root(program("runuser", &["-u", "root", "--", "id", "-u"], &at))),
            way("setpriv", root(program("setpriv", &["--reuid=0", "id", "-u"], &at))),
        ])
    }),
    usual("privileges/unshare", "enter new namespaces of each kind", |_| {
        any(NAMESPACES.map(|(name, flag)| way(name, said(plain(libc::SYS_unshare, &[bits(flag)])))))
    }),
    usual(
        "privileges/unshare-high-bits",
        "enter a new user namespace with bits set that the kernel ignores",
        |_| said(plain(libc::SYS_unshare, &[bits(libc::CLONE_NEWUSER) | 1 << 32])),
    ),
    usual("privileges/unshare-mixed", "enter a new user namespace among harmless wishes", |_| {
        let wishes = libc::CLONE_FS | libc::CLONE_FILES | libc::CLONE_NEWUSER | libc::CLONE_SYSVSEM;
        said(plain(libc::SYS_unshare, &[bits(wishes)]))
    }),
    usual("privileges/clone", "start a process in new namespaces of each kind", |_| {
        // In the time namespace's bit clone sees a part of the signal.
        any(NAMESPACES[..7].iter().map(|(name, flag)| way(name, said(sys::clone(bits(*flag))))))
    }),
    usual("privileges/clone3", "start a process in a new user namespace by the newer call", |_| {
        let mut wish = [0_u8; 88];
        wish[..8].copy_from_slice(&bits(libc::CLONE_NEWUSER).to_ne_bytes());
        wish[32..40].copy_from_slice(&(libc::SIGCHLD as u64).to_ne_bytes());
        match call(libc::SYS_clone3, &mut [Arg::In(&wish), Arg::Number(88)]) {
            // This is the new process, which is not to go on.
            Ok(0) => std::process::abort(),
            other => said(other),
        }
    }),
    usual("privileges/join", "join namespaces, one's own and init's", |_| {
        any(["user", "mnt", "pid", "net"].map(|name| {
            let join = |path: String| {
                File::open(path).and_then(|file| plain(libc::SYS_setns, &[file.as_raw_fd() as u64, 0]))
            };
            let ways = [
                way("own", said(join(format!("/proc/self/ns/{name}")))),
                way("init's", said(join(format!("/proc/1/ns/{name}")))),
            ];
            way(name, any(ways))
        }))
    }),
    usual("privileges/join-process", "join all namespaces of a process", |scene| {
        any([scene.victim, 1].map(|pid| {
            let join = || {
                let process = sys::descriptor(libc::SYS_pidfd_open, &mut [Arg::Number(pid as u64)])?;
                plain(libc::SYS_setns, &[process.as_raw_fd() as u64, bits(libc::CLONE_NEWNS)])
            };
            way(pid, said(join()))
        }))
    }),
    usual("privileges/personality", "run with weaker memory protection", |_| {
        const READ_IMPLIES_EXEC: u64 = 0x40_0000;
        const MMAP_PAGE_ZERO: u64 = 0x10_0000;
        any([READ_IMPLIES_EXEC, MMAP_PAGE_ZERO, READ_IMPLIES_EXEC | 0x4_0000]
            .map(|wish| way(format!("{wish:x}"), said(plain(libc::SYS_personality, &[wish])))))
    }),
    usual("privileges/loosen-landlock", "grant itself everything by a Landlock of its own", |scene| {
        let everything = 0x1fff_u64.to_ne_bytes();
        let grant = || {
            let rules = sys::descriptor(
                libc::SYS_landlock_create_ruleset,
                &mut [Arg::In(&everything), Arg::Number(8), Arg::Number(0)],
            )?;
            let root = File::open("/")?;
            let mut rule = everything.to_vec();
            rule.extend(root.as_raw_fd().to_ne_bytes());
            let number = rules.as_raw_fd() as u64;
            call(
                libc::SYS_landlock_add_rule,
                &mut [Arg::Number(number), Arg::Number(1), Arg::In(&rule), Arg::Number(0)],
            )?;
            plain(libc::SYS_landlock_restrict_self, &[number, 0])
        };
        let granted = grant().is_ok();
        match any([
            way("read", read(scene.outside("secret.txt"))),
            way("write", said(File::create_new(scene.stray(std::path::Path::new("/etc"))))),
            way("/proc", said(fs::write("/proc/self/oom_score_adj", "0"))),
        ]) {
            Said::Blocked(why) => Said::Blocked(format!("granted {granted}, and still: {why}")),
            other => other,
        }
    }),
    usual("privileges/loosen-seccomp", "turn its system call filters off", |_| {
        let _ = plain(libc::SYS_prctl, &[libc::PR_SET_SECCOMP as u64, 0, 0, 0, 0]);
        match field("Seccomp").as_str() {
            "2" => refused(libc::SYS_chroot, &[1]),
            other => Said::Got(format!("seccomp is {other}")),
        }
    }),
    usual("privileges/raise-limits", "raise its limits", |_| {
        let more: Vec<u8> = [u64::MAX, u64::MAX].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let limits = [
            ("core", libc::RLIMIT_CORE),
            ("files", libc::RLIMIT_NOFILE),
            ("processes", libc::RLIMIT_NPROC),
            ("file size", libc::RLIMIT_FSIZE),
            ("locked memory", libc::RLIMIT_MEMLOCK),
            ("queues", libc::RLIMIT_MSGQUEUE),
            ("real time", libc::RLIMIT_RTPRIO),
            ("nice", libc::RLIMIT_NICE),
        ];
        any(limits.map(|(name, limit)| {
            let mut args = [Arg::Number(0), Arg::Number(limit as u64), Arg::In(&more), Arg::Number(0)];
            way(name, said(call(libc::SYS_prlimit64, &mut args)))
        }))
    }),
    usual("privileges/be-first", "run before everybody else", |_| {
        let priority = 1_i32.to_ne_bytes();
        let scheduler = |policy: c_int| {
            call(
                libc::SYS_sched_setscheduler,
                &mut [Arg::Number(0), Arg::Number(policy as u64), Arg::In(&priority)],
            )
        };
        any([
            way("nice", said(plain(libc::SYS_setpriority, &[0, 0, -20_i64 as u64]))),
            way("fifo", said(scheduler(libc::SCHED_FIFO))),
            way("round robin", said(scheduler(libc::SCHED_RR))),
        ])
    }),
    usual("privileges/be-seen-as-root", "be root to itself", |_| {
        let user = field("Uid");
        if user.split_whitespace().any(|id| id == "0") { Said::Got(user) } else { Said::Blocked(user) }
    }),
];
