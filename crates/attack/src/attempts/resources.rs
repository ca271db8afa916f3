//! More than its share, with a bound of the attempt's own.

use std::fs::File;
use std::io::Write;
use std::thread;
use std::time::Duration;

use super::{any, program, said, way};
use crate::attempt::{Attempt, Said, harmless, usual};
use crate::sys::plain;

const MIB: usize = 1 << 20;

/// Writes until it is refused, or until there is more than there may be.
fn fill(path: &str, too_much: usize) -> Said {
    let Ok(mut file) = File::create(path) else { return Said::Untried(format!("{path} cannot be made")) };
    let block = vec![1; MIB];
    for _ in 0..too_much {
        if let Err(error) = file.write_all(&block) {
            return Said::Blocked(error.to_string());
        }
    }
    Said::Got(format!("{too_much} MiB"))
}

fn is_before(release: &str, wanted: (u32, u32)) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < wanted
}

pub(super) const ALL: &[Attempt] = &[
    usual("resources/tasks", "have more tasks than the limit", |_| {
        const TOO_MANY: usize = 600;
        let task = || {
            thread::Builder::new().stack_size(64 << 10).spawn(|| thread::sleep(Duration::from_millis(300)))
        };
        let mut tasks = Vec::new();
        while tasks.len() < TOO_MANY {
            match task() {
                Ok(task) => tasks.push(task),
                Err(error) => return Said::Blocked(format!("{error} after {}", tasks.len())),
            }
        }
        Said::Got(format!("{TOO_MANY} tasks"))
    }),
    usual("resources/tmp", "fill /tmp beyond its limit", |_| fill("/tmp/much", 40)),
    usual("resources/var-tmp", "fill /var/tmp beyond its limit", |_| fill("/var/tmp/much", 40)),
    usual("resources/shared-memory", "fill /dev/shm beyond its limit", |_| fill("/dev/shm/much", 12)),
    usual("resources/system-v-memory", "keep memory that belongs to no process", |_| {
        let flags = u64::from((libc::IPC_CREAT | 0o600) as u32);
        let key = libc::IPC_PRIVATE as u64;
        for segments in 0..12 {
            if let Err(error) = plain(libc::SYS_shmget, &[key, MIB as u64, flags]) {
                return Said::Blocked(format!("{error} after {segments} MiB"));
            }
        }
        match std::fs::read_to_string("/proc/sys/kernel/osrelease") {
            Ok(release) if is_before(&release, (6, 9)) => {
                Said::Untried("this kernel lets only the host's root limit it".to_owned())
            }
            _ => Said::Got("12 MiB".to_owned()),
        }
    }),
    usual("resources/home", "fill a home in memory beyond its limit", |_| fill("/home/agent/much", 40)),
    usual("resources/file-size", "make a file larger than the limit", |scene| {
        // It is all hole, and takes no room on the disk.
        program("truncate", &["-s", "9G", "large"], &scene.scratch(""))
    }),
    usual("resources/real-time", "run before everybody else on the machine", |_| {
        use crate::sys::{Arg, call};
        let schedule = |policy: i32| {
            let priority = 1_i32.to_ne_bytes();
            let mut args = [Arg::Number(0), Arg::Number(policy as u64), Arg::In(&priority)];
            call(libc::SYS_sched_setscheduler, &mut args)
        };
        let raise = |resource: u64| {
            let limits: Vec<u8> = [40_u64, 40].iter().flat_map(|value| value.to_ne_bytes()).collect();
            let mut args = [Arg::Number(0), Arg::Number(resource), Arg::In(&limits), Arg::Number(0)];
            call(libc::SYS_prlimit64, &mut args)
        };
        any([
            way("fifo", said(schedule(libc::SCHED_FIFO))),
            way("round robin", said(schedule(libc::SCHED_RR))),
            way("nice", said(plain(libc::SYS_setpriority, &[libc::PRIO_PROCESS as u64, 0, -20_i64 as u64]))),
            way("its limit", said(raise(libc::RLIMIT_RTPRIO as u64))),
            way("nice's limit", said(raise(libc::RLIMIT_NICE as u64))),
        ])
    }),
    usual("resources/watchers", "use up the user's inotify instances", |_| {
        let most = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_instances");
        let Some(most) = most.ok().and_then(|text| text.trim().parse::<usize>().ok()) else {
            return Said::Untried("it is not known how many there are".to_owned());
        };
        let mut watchers = Vec::new();
        while watchers.len() < most {
            match rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::CLOEXEC) {
                Ok(watcher) => watchers.push(watcher),
                Err(errno) if watchers.len() <= most / 2 => {
                    return Said::Blocked(format!("{errno} after {} of {most}", watchers.len()));
                }
                Err(_) => break,
            }
        }
        Said::Got(format!("{} of {most}", watchers.len()))
    }),
    harmless("resources/descriptors", "have more open files than the limit", |_| {
        let mut files = Vec::new();
        while files.len() < 5_000 {
            match File::open("/dev/null") {
                Ok(file) => files.push(file),
                Err(error) => return Said::Blocked(error.to_string()),
            }
        }
        Said::Got("5000 open files".to_owned())
    }),
];
