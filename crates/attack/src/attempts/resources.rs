//! More than its share, with a bound of the attempt's own.

use std::fs::File;
use std::io::Write;
use std::thread;
use std::time::Duration;

use super::program;
use crate::attempt::{Attempt, Said, harmless, usual};

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
    usual("resources/home", "fill a home in memory beyond its limit", |_| fill("/home/agent/much", 40)),
    usual("resources/file-size", "make a file larger than the limit", |scene| {
        // It is all hole, and takes no room on the disk.
        program("truncate", &["-s", "9G", "large"], &scene.scratch(""))
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
