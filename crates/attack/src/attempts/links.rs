//! Links that lead out, and races against whoever follows them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, linkat, openat, renameat_with};

use super::{any, read, said, way};
use crate::attempt::{Attempt, Said, harmless, usual};

const RACE: Duration = Duration::from_millis(250);

pub(super) const ALL: &[Attempt] = &[
    harmless("links/to-file", "follow a link that leads to a file outside", |scene| {
        read(scene.in_root("link-outside"))
    }),
    harmless("links/to-directory", "make a file through a link that leads outside", |scene| {
        said(File::create_new(scene.in_root("dir-outside/new.txt")))
    }),
    harmless("links/new-to-file", "make a link to a file outside, and follow it", |scene| {
        let link = scene.scratch("link");
        let _ = symlink(scene.outside("secret.txt"), &link);
        read(link)
    }),
    harmless(
        "links/new-to-directory",
        "make a link to a directory outside, and delete through it",
        |scene| {
            let link = scene.scratch("link");
            let _ = symlink(&scene.outside, &link);
            said(fs::remove_file(link.join("doomed.txt")))
        },
    ),
    harmless("links/chain", "follow a chain of links with dots in them", |scene| {
        let at = scene.scratch("");
        let _ = symlink("../..", at.join("a"));
        let _ = symlink("a/outside", at.join("b"));
        let _ = symlink("b/secret.txt", at.join("c"));
        read(at.join("c"))
    }),
    harmless("links/hard", "link a file outside to a name inside", |scene| {
        let name = scene.scratch("hard");
        match fs::hard_link(scene.outside("notes.txt"), &name) {
            Ok(()) => said(OpenOptions::new().append(true).open(name)),
            Err(error) => Said::Blocked(error.to_string()),
        }
    }),
    usual("links/hard-system", "link a program of the system to a name inside", |scene| {
        let program = Path::new("/usr/bin/env");
        let by_descriptor = || -> io::Result<()> {
            let file = rustix::fs::open(program, OFlags::PATH, Mode::empty())?;
            let number = std::os::fd::AsRawFd::as_raw_fd(&file);
            let from = format!("/proc/self/fd/{number}");
            Ok(linkat(CWD, from, CWD, scene.scratch("b"), AtFlags::SYMLINK_FOLLOW)?)
        };
        any([
            way("link", said(fs::hard_link(program, scene.scratch("a")))),
            way("by descriptor", said(by_descriptor())),
        ])
    }),
    harmless("links/through-proc", "leave by /proc/self/root and /proc/self/cwd", |scene| {
        let below = scene.outside.strip_prefix("/").unwrap_or(&scene.outside).join("secret.txt");
        any([
            way("root", read(Path::new("/proc/self/root").join(&below))),
            way("root/..", read(Path::new("/proc/self/root/..").join(&below))),
            way("cwd", read("/proc/self/cwd/../../outside/secret.txt")),
        ])
    }),
    usual("links/race-writer", "swap a directory for a link while writing through it", |scene| {
        let (real, link, at) = (scene.scratch("real"), scene.scratch("link"), scene.scratch("at"));
        let _ = (fs::create_dir(&real), fs::create_dir(&at), symlink(&scene.outside, &link));
        let swap = || {
            let _ = renameat_with(CWD, &at, CWD, &link, RenameFlags::EXCHANGE);
        };
        race(swap, || fs::write(at.join("raced.txt"), "raced").is_ok() && scene.outside("raced.txt").exists())
    }),
    usual("links/race-hidden", "swap directories while reading the hidden file in one", |scene| {
        let other = scene.scratch("other");
        let _ = fs::create_dir(&other);
        let swap = || {
            let _ = renameat_with(CWD, scene.in_root("service"), CWD, &other, RenameFlags::EXCHANGE);
        };
        let paths = [scene.in_root("service/.env.production"), other.join(".env.production")];
        let outcome = race(swap, || paths.iter().any(|path| fs::read(path).is_ok()));
        // In its place again, for whoever is next.
        if !scene.in_root("service/deep").exists() {
            swap();
        }
        outcome
    }),
    usual("links/race-delete", "delete, link and rename a hidden file again and again", |scene| {
        let env = scene.in_root(".env");
        let disturb = || {
            let _ = fs::remove_file(&env);
            let _ = fs::rename(&env, scene.scratch("x"));
            let _ = fs::hard_link(&env, scene.scratch("y"));
        };
        race(disturb, || {
            [&env, &scene.scratch("x"), &scene.scratch("y")].iter().any(|path| fs::read(path).is_ok())
        })
    }),
    usual("links/race-dots", "climb by dots while the directory is being moved up", |scene| {
        let (deep, high) = (scene.scratch("1/2/3/4"), scene.scratch("4"));
        let _ = fs::create_dir_all(&deep);
        let Ok(inside) = File::open(&deep) else { return Said::Untried("no directory".to_owned()) };
        let there = AtomicBool::new(true);
        let swap = || {
            let was_deep = there.fetch_xor(true, Ordering::Relaxed);
            let _ = if was_deep { fs::rename(&deep, &high) } else { fs::rename(&high, &deep) };
        };
        race(swap, || {
            (2..8).any(|steps| {
                let path = format!("{}outside/secret.txt", "../".repeat(steps));
                let file = openat(&inside, path, OFlags::RDONLY, Mode::empty());
                file.is_ok_and(|file| File::from(file).read(&mut [0; 8]).is_ok())
            })
        })
    }),
];

/// Disturbs and tries at the same time, for a while.
fn race(disturb: impl Fn() + Sync, mut try_it: impl FnMut() -> bool) -> Said {
    let is_over = AtomicBool::new(false);
    let (mut tries, mut won) = (0_u64, false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                disturb();
            }
        });
        let began = Instant::now();
        while began.elapsed() < RACE && !won {
            won = try_it();
            tries += 1;
        }
        is_over.store(true, Ordering::Relaxed);
    });
    if won {
        Said::Got("the race was won".to_owned())
    } else {
        Said::Blocked(format!("{tries} tries were lost"))
    }
}
