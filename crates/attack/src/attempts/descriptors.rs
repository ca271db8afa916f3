//! Descriptors that somebody might have forgotten to close.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;

use super::{any, read, said, way};
use crate::attempt::{Attempt, Said, harmless, usual};
use crate::sys::plain;

pub(super) const ALL: &[Attempt] = &[
    usual("descriptors/inherited", "find a descriptor beyond the three standard ones", |_| {
        // Asked of the kernel: a listing would have one of its own.
        let open = (3..4_096).find(|&number| plain(libc::SYS_fcntl, &[number, libc::F_GETFD as u64]).is_ok());
        match open {
            Some(number) => Said::Got(format!("descriptor {number} is open")),
            None => Said::Blocked("there is none".to_owned()),
        }
    }),
    usual("descriptors/climb", "climb out through a standard descriptor", |scene| {
        any((0..3)
            .map(|number| {
                let at = format!("/proc/self/fd/{number}/../../outside/secret.txt");
                way(number, read(at))
            })
            .chain([way("list", said(fs::read_dir(format!("/proc/self/fd/0{}", scene.outside.display()))))]))
    }),
    usual("descriptors/reopen-output", "open the pipe to the keeper for reading", |_| {
        // What others write into it, init or warden, would be there to be read: it is nobody's but ours.
        let target = fs::read_link("/proc/self/fd/1").map(|link| link.display().to_string());
        let shared =
            any(["/proc/1/fd/0", "/proc/1/fd/1", "/proc/1/fd/2"]
                .map(|path| way(path, said(File::open(path)))));
        match (shared, target) {
            (Said::Blocked(why), Ok(target)) => Said::Blocked(format!("{why}; own output is {target}")),
            (other, _) => other,
        }
    }),
    usual("descriptors/forge-report", "speak to the keeper in init's place", |_| {
        let mut forged = false;
        for number in 0..3_u64 {
            let kind = fs::read_link(format!("/proc/self/fd/{number}")).unwrap_or_default();
            forged |= kind.display().to_string().starts_with("socket:");
        }
        if forged {
            Said::Got("one of its descriptors is a socket of the keeper's".to_owned())
        } else {
            Said::Blocked("none of its descriptors is a socket".to_owned())
        }
    }),
    usual("descriptors/own-program-on-host", "write the host's program through what executes it", |_| {
        let file = || {
            let exe = File::open("/proc/self/exe")?;
            let path = format!("/proc/self/fd/{}", exe.as_raw_fd());
            fs::OpenOptions::new().write(true).open(path)?.write_all(b"")
        };
        said(file())
    }),
    harmless("descriptors/fchdir", "leave by a directory that was open before a change of root", |_| {
        let climb = || -> std::io::Result<Vec<u8>> {
            let here = File::open(".")?;
            rustix::process::fchdir(&here)?;
            for _ in 0..40 {
                std::env::set_current_dir("..")?;
            }
            fs::read("var/tmp/../../proc/sys/kernel/ostype").and(fs::read("etc/hostname"))
        };
        match climb() {
            Ok(name) if String::from_utf8_lossy(&name).trim() == "sandbox" => {
                Said::Blocked("the top is the sandbox's own".to_owned())
            }
            Ok(_) => Said::Got("the top is the host's".to_owned()),
            Err(error) => Said::Blocked(error.to_string()),
        }
    }),
];
