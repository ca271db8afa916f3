//! `/proc`: other processes, init, and the kernel's switches.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::{any, read, said, way};
use crate::attempt::{Attempt, Said, harmless, usual};

pub(super) const ALL: &[Attempt] = &[
    harmless("proc/environment", "read the environment of a process of the host's", |scene| {
        read(format!("/proc/{}/environ", scene.victim))
    }),
    harmless("proc/memory", "open the memory of a process of the host's", |scene| {
        said(File::open(format!("/proc/{}/mem", scene.victim)))
    }),
    harmless("proc/root", "read a file through the root of a process of the host's", |scene| {
        read(format!("/proc/{}/root{}", scene.victim, scene.outside("secret.txt").display()))
    }),
    harmless("proc/working-directory", "enter the working directory of a process of the host's", |scene| {
        said(fs::read_dir(format!("/proc/{}/cwd", scene.victim)))
    }),
    harmless("proc/list", "find a process that does not belong to the sandbox", |scene| {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let numbers: Vec<i32> = names.filter_map(|name| name.parse().ok()).collect();
        // Init, and this process.
        if numbers.contains(&scene.victim) || numbers.len() > 2 {
            Said::Got(format!("{} processes", numbers.len()))
        } else {
            Said::Blocked(format!("only {numbers:?} are there"))
        }
    }),
    usual("proc/every-root", "read a file through the root of anybody who is to be seen", |scene| {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok());
        let secret = scene.outside("secret.txt");
        any(numbers.flat_map(|entry| {
            let through =
                |way: &str| entry.path().join(way).join(secret.strip_prefix("/").unwrap_or(&secret));
            ["root", "cwd/../../../../../../.."].map(|name| way(name, read(through(name))))
        }))
    }),
    usual("proc/init-environment", "read init's environment and memory", |_| {
        any(["environ", "mem", "maps", "auxv", "stack", "syscall", "pagemap"].map(|name| {
            let mut byte = [0];
            let found =
                File::open(format!("/proc/1/{name}")).and_then(|mut file| match file.read(&mut byte) {
                    // Nothing in it is nothing got.
                    Ok(0) => Err(io::Error::other("it is empty")),
                    other => other,
                });
            way(name, said(found))
        }))
    }),
    usual("proc/init-root", "read a file through init's root and working directory", |scene| {
        let path = scene.outside("secret.txt");
        let below = path.strip_prefix("/").unwrap_or(&path);
        any(["root", "cwd", "root/..", "task/1/root"]
            .map(|at| way(at, read(Path::new("/proc/1").join(at).join(below)))))
    }),
    usual("proc/init-descriptors", "list and open init's descriptors", |_| {
        any([
            way("list", said(fs::read_dir("/proc/1/fd"))),
            way("0", said(File::open("/proc/1/fd/0"))),
            way("3", said(File::open("/proc/1/fd/3"))),
            way("fdinfo", said(fs::read_dir("/proc/1/fdinfo"))),
        ])
    }),
    usual("proc/namespaces", "open init's namespaces", |_| {
        let names = ["mnt", "user", "pid", "net", "ipc", "uts", "cgroup", "time"];
        any(names.map(|name| way(name, said(File::open(format!("/proc/1/ns/{name}"))))))
    }),
    usual("proc/core-pattern", "open the switch for what the kernel runs on a crash", |_| {
        writable(&[
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/kernel/modprobe",
            "/proc/sys/fs/binfmt_misc/register",
        ])
    }),
    usual("proc/sysrq", "open the switch that restarts the machine", |_| writable(&["/proc/sysrq-trigger"])),
    usual("proc/all-switches", "open any switch of the kernel for writing", |_| {
        let mut found = Vec::new();
        for top in ["/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs"] {
            collect(Path::new(top), 0, &mut found);
        }
        let open = found.iter().find(|path| OpenOptions::new().write(true).open(path).is_ok());
        match open {
            Some(path) => Said::Got(path.display().to_string()),
            None => Said::Blocked(format!("none of {} can be opened", found.len())),
        }
    }),
    usual("proc/kernel-memory", "read the kernel's memory, symbols, keys and log", |_| {
        let names = [
            "kcore",
            "kallsyms",
            "kmsg",
            "keys",
            "key-users",
            "timer_list",
            "sched_debug",
            "vmallocinfo",
            "slabinfo",
            "kpagecount",
        ];
        any(names.map(|name| {
            let mut byte = [0];
            let found =
                File::open(Path::new("/proc").join(name)).and_then(|mut file| match file.read(&mut byte) {
                    Ok(0) => Err(io::Error::other("it is empty")),
                    other => other,
                });
            way(name, said(found))
        }))
    }),
    usual("proc/oom-score", "be the last one that is killed for its memory", |_| {
        said(
            OpenOptions::new()
                .write(true)
                .open("/proc/self/oom_score_adj")
                .and_then(|mut file| file.write_all(b"-1000")),
        )
    }),
    usual("proc/own-maps", "write one's own map of users", |_| {
        any(["uid_map", "gid_map", "setgroups", "projid_map"].map(|name| {
            let file = OpenOptions::new().write(true).open(Path::new("/proc/self").join(name));
            way(name, said(file.and_then(|mut file| file.write_all(b"0 0 1\n"))))
        }))
    }),
    usual("proc/attributes", "change one's own security attributes", |_| {
        any(["current", "exec", "fscreate", "keycreate", "sockcreate"].map(|name| {
            let file = OpenOptions::new().write(true).open(Path::new("/proc/self/attr").join(name));
            way(name, said(file.and_then(|mut file| file.write_all(b"unconfined"))))
        }))
    }),
    usual("proc/cgroup", "leave one's group by the files of cgroups", |_| {
        any(["/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory/tasks", "/sys/fs/cgroup/release_agent"]
            .map(|path| way(path, said(OpenOptions::new().write(true).open(path)))))
    }),
];

/// Whether one can be opened; nothing is written.
fn writable(paths: &[&str]) -> Said {
    any(paths.iter().map(|path| way(path, said(OpenOptions::new().write(true).open(path)))))
}

fn collect(at: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    const DEEPEST: usize = 6;
    for entry in fs::read_dir(at).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < DEEPEST => collect(&entry.path(), depth + 1, found),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
}
