//! A terminal of the host's, which is what standard error is here.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use super::{answer, any, refused, said, way};
use crate::attempt::{Attempt, Said, Setting, within};
use crate::sys::{Arg, call, plain, request};

const TERMINAL: u64 = 2;
const TIOCLINUX: u64 = 0x541C;
const TIOCSETD: u64 = 0x5423;
const TIOCCONS: u64 = 0x541D;
const TIOCVHANGUP: u64 = 0x5437;

const fn on_terminal(
    name: &'static str,
    tries: &'static str,
    run: fn(&crate::scene::Scene) -> Said,
) -> Attempt {
    within(Setting::Terminal, name, tries, run)
}

fn type_a_letter(request: u64) -> std::io::Result<i64> {
    call(libc::SYS_ioctl, &mut [Arg::Number(TERMINAL), Arg::Number(request), Arg::In(b"x")])
}

pub(super) const ALL: &[Attempt] = &[
    on_terminal("terminals/type", "type into the host's terminal", |_| {
        said(type_a_letter(request(libc::TIOCSTI)))
    }),
    on_terminal("terminals/type-high-bits", "type, with bits set that the kernel ignores", |_| {
        said(type_a_letter(request(libc::TIOCSTI) | 1 << 32))
    }),
    on_terminal("terminals/type-as-owner", "take the terminal, then type", |_| {
        let _ = plain(libc::SYS_setsid, &[]);
        let _ = plain(libc::SYS_ioctl, &[TERMINAL, request(libc::TIOCSCTTY), 0]);
        said(type_a_letter(request(libc::TIOCSTI)))
    }),
    on_terminal("terminals/steal", "take the terminal away from its session", |_| {
        any([
            way("1", answer(plain(libc::SYS_ioctl, &[TERMINAL, request(libc::TIOCSCTTY), 1]))),
            way(
                "high bits",
                answer(plain(libc::SYS_ioctl, &[TERMINAL, request(libc::TIOCSCTTY) | 1 << 32, 1])),
            ),
        ])
    }),
    on_terminal("terminals/paste", "paste from the console's selection", |_| {
        any([
            way("TIOCLINUX", answer(type_a_letter(TIOCLINUX))),
            way("high bits", answer(type_a_letter(TIOCLINUX | 1 << 40))),
        ])
    }),
    on_terminal("terminals/discipline", "have the kernel load a line discipline", |_| {
        // The number of none that exists: what counts is whether the kernel looks for it.
        let number = 29_i32.to_ne_bytes();
        answer(call(libc::SYS_ioctl, &mut [Arg::Number(TERMINAL), Arg::Number(TIOCSETD), Arg::In(&number)]))
    }),
    on_terminal("terminals/console", "have the console's output sent to the terminal", |_| {
        said(plain(libc::SYS_ioctl, &[TERMINAL, TIOCCONS, 0]))
    }),
    on_terminal("terminals/hang-up", "hang the terminal up", |_| {
        any([
            way("TIOCVHANGUP", said(plain(libc::SYS_ioctl, &[TERMINAL, TIOCVHANGUP, 0]))),
            way("vhangup", refused(libc::SYS_vhangup, &[])),
        ])
    }),
    on_terminal("terminals/other-side", "open the other side of the host's terminal", |_| {
        let path = std::fs::read_link("/proc/self/fd/2");
        let by_name = path.and_then(|path| OpenOptions::new().read(true).write(true).open(path));
        let ours = std::fs::read_dir("/dev/pts")
            .map_or(0, |entries| entries.flatten().filter(|entry| entry.file_name() != "ptmx").count());
        any([
            way("by its name", said(by_name)),
            way(
                "in /dev/pts",
                if ours > 0 {
                    Said::Got(format!("{ours} terminals"))
                } else {
                    Said::Blocked("none".to_owned())
                },
            ),
        ])
    }),
    on_terminal("terminals/controlling", "read from the user's terminal by /dev/tty", |_| {
        said(File::open("/dev/tty").and_then(|mut file| file.read(&mut [0])))
    }),
    on_terminal("terminals/own", "type into a terminal of one's own", |_| {
        let open = || -> std::io::Result<File> {
            let ours =
                OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open("/dev/ptmx")?;
            let number = ours.as_raw_fd() as u64;
            call(
                libc::SYS_ioctl,
                &mut [Arg::Number(number), Arg::Number(request(libc::TIOCSTI)), Arg::In(b"x")],
            )?;
            Ok(ours)
        };
        said(open())
    }),
];
