//! Signals to processes of the host's, tracing them, and changing how they run.

use std::fs::{self, File};

use libc::c_int;

use super::{EMPTY, any, refused, said, way};
use crate::attempt::{Attempt, Said, harmless, usual};
use crate::scene::Scene;
use crate::sys::{self, Arg, call, plain};

const PTRACE_SEIZE: u64 = 0x4206;
const F_SETSIG: u64 = 10;

fn victim(scene: &Scene) -> u64 {
    scene.victim as u64
}

fn signal(scene: &Scene, call: libc::c_long, args: &[u64]) -> Said {
    let mut all = vec![victim(scene)];
    all.extend(args);
    said(plain(call, &all))
}

pub(super) const ALL: &[Attempt] = &[
    harmless("signals/exists", "ask whether a process of the host's is there", |scene| {
        signal(scene, libc::SYS_kill, &[0])
    }),
    harmless("signals/kill", "kill a process of the host's", |scene| {
        signal(scene, libc::SYS_kill, &[libc::SIGKILL as u64])
    }),
    harmless("signals/stop", "stop a process of the host's", |scene| {
        signal(scene, libc::SYS_kill, &[libc::SIGSTOP as u64])
    }),
    harmless("signals/group", "kill a process group of the host's", |scene| {
        said(plain(libc::SYS_kill, &[(-i64::from(scene.victim)) as u64, libc::SIGTERM as u64]))
    }),
    harmless("signals/thread", "kill a thread of the host's by tkill and tgkill", |scene| {
        let number = victim(scene);
        any([
            way("tkill", said(plain(libc::SYS_tkill, &[number, libc::SIGKILL as u64]))),
            way("tgkill", said(plain(libc::SYS_tgkill, &[number, number, libc::SIGKILL as u64]))),
        ])
    }),
    harmless("signals/queue", "queue a signal for a process of the host's", |scene| {
        // The first number is the signal, the third its origin: SI_QUEUE.
        let mut details = [0_u8; 128];
        details[..4].copy_from_slice(&libc::SIGKILL.to_ne_bytes());
        details[8..12].copy_from_slice(&(-1_i32).to_ne_bytes());
        let kill = Arg::Number(libc::SIGKILL as u64);
        said(call(libc::SYS_rt_sigqueueinfo, &mut [Arg::Number(victim(scene)), kill, Arg::In(&details)]))
    }),
    harmless("signals/pidfd", "kill a process of the host's through a descriptor", |scene| {
        let kill = || {
            let fd = sys::descriptor(libc::SYS_pidfd_open, &mut [Arg::Number(victim(scene))])?;
            let number = std::os::fd::AsRawFd::as_raw_fd(&fd) as u64;
            plain(libc::SYS_pidfd_send_signal, &[number, libc::SIGKILL as u64])
        };
        said(kill())
    }),
    harmless("signals/owner", "have the kernel signal a process of the host's when data comes", |scene| {
        let (Ok((reader, writer)), kind) = (std::io::pipe(), libc::F_SETOWN as u64) else {
            return Said::Untried("no pipe".to_owned());
        };
        let number = std::os::fd::AsRawFd::as_raw_fd(&reader) as u64;
        let owned = plain(libc::SYS_fcntl, &[number, kind, victim(scene)]);
        let _ = plain(libc::SYS_fcntl, &[number, F_SETSIG, libc::SIGKILL as u64]);
        let _ = plain(libc::SYS_fcntl, &[number, libc::F_SETFL as u64, libc::O_ASYNC as u64]);
        let _ = std::io::Write::write(&mut &writer, b"x");
        said(owned)
    }),
    usual("signals/everybody", "continue every process there is", |scene| {
        // Harmless as it is, it is not to be done where it reaches the host.
        let here = fs::read_link("/proc/self/ns/pid").map(|link| link.display().to_string());
        if here.is_ok_and(|here| here == scene.pid_namespace) {
            return Said::Got("this is the host's pid namespace".to_owned());
        }
        let _ = plain(libc::SYS_kill, &[-1_i64 as u64, libc::SIGCONT as u64]);
        Said::Tried("nobody outside heard of it".to_owned())
    }),
    usual("signals/init", "kill the sandbox's own init", |_| {
        let _ = plain(libc::SYS_kill, &[1, libc::SIGKILL as u64]);
        let _ = plain(libc::SYS_kill, &[1, libc::SIGTERM as u64]);
        std::thread::sleep(std::time::Duration::from_millis(20));
        Said::Blocked("init is still there".to_owned())
    }),
    harmless("processes/priority", "slow a process of the host's down", |scene| {
        said(plain(libc::SYS_setpriority, &[libc::PRIO_PROCESS as u64, victim(scene), 19]))
    }),
    harmless("processes/priority-group", "slow a process group of the host's down", |scene| {
        said(plain(libc::SYS_setpriority, &[libc::PRIO_PGRP as u64, victim(scene), 19]))
    }),
    usual("processes/priority-user", "slow every process of the user down", |scene| {
        let _ = plain(libc::SYS_setpriority, &[libc::PRIO_USER as u64, u64::from(scene.user), 19]);
        let _ = plain(libc::SYS_setpriority, &[libc::PRIO_USER as u64, 0, 19]);
        const IOPRIO_WHO_USER: u64 = 3;
        const IDLE: u64 = 3 << 13;
        let _ = plain(libc::SYS_ioprio_set, &[IOPRIO_WHO_USER, u64::from(scene.user), IDLE]);
        let _ = plain(libc::SYS_ioprio_set, &[IOPRIO_WHO_USER, 0, IDLE]);
        Said::Tried("nobody outside runs any slower".to_owned())
    }),
    harmless("processes/affinity", "bind a process of the host's to one processor", |scene| {
        let mask = 1_u64.to_ne_bytes();
        said(call(
            libc::SYS_sched_setaffinity,
            &mut [Arg::Number(victim(scene)), Arg::Number(8), Arg::In(&mask)],
        ))
    }),
    harmless("processes/scheduler", "change how a process of the host's is scheduled", |scene| {
        let zero = 0_i32.to_ne_bytes();
        let idle = Arg::Number(libc::SCHED_IDLE as u64);
        said(call(libc::SYS_sched_setscheduler, &mut [Arg::Number(victim(scene)), idle, Arg::In(&zero)]))
    }),
    harmless("processes/limits", "read and lower the limits of a process of the host's", |scene| {
        let mut old = [0_u8; 16];
        let new: Vec<u8> = [64_u64, 64].iter().flat_map(|value| value.to_ne_bytes()).collect();
        let files = Arg::Number(libc::RLIMIT_NOFILE as u64);
        let mut args = [Arg::Number(victim(scene)), files, Arg::In(&new), Arg::Out(&mut old)];
        said(call(libc::SYS_prlimit64, &mut args))
    }),
    usual("processes/join-session", "join a process group of the host's", |scene| {
        any([
            way("setpgid", said(plain(libc::SYS_setpgid, &[0, victim(scene)]))),
            way("setpgid of it", said(plain(libc::SYS_setpgid, &[victim(scene), victim(scene)]))),
            way("getsid", said(plain(libc::SYS_getsid, &[victim(scene)]))),
        ])
    }),
    harmless("ptrace/attach", "trace a process of the host's", |scene| {
        any([
            way("attach", said(plain(libc::SYS_ptrace, &[libc::PTRACE_ATTACH as u64, victim(scene), 0, 0]))),
            way("seize", said(plain(libc::SYS_ptrace, &[PTRACE_SEIZE, victim(scene), 0, 0]))),
        ])
    }),
    usual("ptrace/init", "trace the sandbox's own init", |_| {
        said(plain(libc::SYS_ptrace, &[PTRACE_SEIZE, 1, 0, 0]))
    }),
    usual("ptrace/be-traced", "be traced, to change calls after the filter has seen them", |_| {
        refused(libc::SYS_ptrace, &[libc::PTRACE_TRACEME as u64, 0, 0, 0])
    }),
    harmless("ptrace/read-memory", "read the memory of another process", |scene| {
        let mut room = [0_u8; 16];
        let local: Vec<u8> = [room.as_mut_ptr() as u64, room.len() as u64]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        let ways = [scene.victim, 1].map(|pid: c_int| {
            let pid = Arg::Number(pid as u64);
            // The kernel looks for the process before it looks for the memory.
            let mut args =
                [pid, Arg::In(&local), Arg::Number(1), Arg::In(&local), Arg::Number(1), Arg::Number(0)];
            let read = call(libc::SYS_process_vm_readv, &mut args);
            match read {
                Err(error) if error.raw_os_error() == Some(libc::EFAULT) => {
                    way("readv", Said::Got("it may, and there is nothing at that address".to_owned()))
                }
                other => way("readv", said(other)),
            }
        });
        any(ways)
    }),
    usual("ptrace/write-memory", "write the memory of init", |_| {
        refused(libc::SYS_process_vm_writev, &[1, 0, 0, 0, 0, 0])
    }),
    usual("ptrace/take-descriptor", "take a descriptor out of init", |_| {
        let take = || {
            let init = sys::descriptor(libc::SYS_pidfd_open, &mut [Arg::Number(1)])?;
            plain(libc::SYS_pidfd_getfd, &[std::os::fd::AsRawFd::as_raw_fd(&init) as u64, 0, 0])
        };
        said(take())
    }),
    harmless("ptrace/take-hosts-descriptor", "take a descriptor out of a process of the host's", |scene| {
        let take = || {
            let victim = sys::descriptor(libc::SYS_pidfd_open, &mut [Arg::Number(victim(scene))])?;
            plain(libc::SYS_pidfd_getfd, &[std::os::fd::AsRawFd::as_raw_fd(&victim) as u64, 0, 0])
        };
        said(take())
    }),
    usual("ptrace/compare", "compare kernel objects with init's", |_| {
        refused(libc::SYS_kcmp, &[1, 1, 0, 0, 0])
    }),
    usual("ptrace/advise", "throw away the memory of init", |_| {
        let advise = || {
            let init = sys::descriptor(libc::SYS_pidfd_open, &mut [Arg::Number(1)])?;
            let number = std::os::fd::AsRawFd::as_raw_fd(&init) as u64;
            let list = [EMPTY; 16].concat();
            let mut args = [
                Arg::Number(number),
                Arg::In(&list),
                Arg::Number(1),
                Arg::Number(libc::MADV_COLD as u64),
                Arg::Number(0),
            ];
            call(libc::SYS_process_madvise, &mut args)
        };
        said(advise())
    }),
    harmless("processes/shared-memory", "attach to shared memory of the host's", |scene| {
        let Some(key) = scene.shared_memory else {
            return Said::Untried("the host has no shared memory".to_owned());
        };
        said(plain(libc::SYS_shmget, &[key as u64, 0, 0]))
    }),
    usual("processes/queues", "find message queues and semaphores of the host's", |_| {
        let list = |name: &str| fs::read_to_string(format!("/proc/sysvipc/{name}")).unwrap_or_default();
        let found: usize =
            ["msg", "sem", "shm"].map(|name| list(name).lines().count().saturating_sub(1)).iter().sum();
        if found > 0 {
            Said::Got(format!("{found} of them"))
        } else {
            Said::Blocked("there are none".to_owned())
        }
    }),
    usual("processes/named-queue", "open a POSIX message queue of the host's, and make one", |scene| {
        let name = std::ffi::CString::new(scene.token.as_str()).unwrap_or_default();
        let open = |flags: i32| {
            let mut args = [Arg::Path(&name), Arg::Number(flags as u64), Arg::Number(0o600), Arg::Number(0)];
            call(libc::SYS_mq_open, &mut args)
        };
        any([
            way("the host's", said(open(libc::O_RDWR))),
            way("another", said(open(libc::O_RDWR | libc::O_CREAT))),
        ])
    }),
    usual("processes/left-memory", "leave shared memory, queues and semaphores behind", |scene| {
        let (key, flags) = (scene.left_key as u64, (libc::IPC_CREAT | 0o666) as u64);
        let made = [
            plain(libc::SYS_shmget, &[key, 4_096, flags]),
            plain(libc::SYS_msgget, &[key, flags]),
            plain(libc::SYS_semget, &[key, 1, flags]),
        ];
        Said::Tried(format!("{} were made, and none is to be found outside", made.iter().flatten().count()))
    }),
    usual("processes/statistics", "see how a process of the host's is scheduled", |scene| {
        said(File::open(format!("/proc/{}/sched", scene.victim)))
    }),
];
