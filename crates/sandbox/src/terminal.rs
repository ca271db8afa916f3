//! A terminal for one command: made inside, among the terminals that are there, with its near side in the keeper's
//! hands. The terminal of whoever asked for it never comes in, so nobody can type into it.

use std::os::fd::AsFd;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::agent::Stdio;
use crate::channel::{TerminalSize, send_terminal};
use crate::refusal::{OrRefuse, Refusal, Stage};

/// Hands the near side to the keeper and gives the far side, three times.
pub(crate) fn open(size: TerminalSize, channel: impl AsFd) -> Result<Stdio, Refusal> {
    let make = || -> std::io::Result<Stdio> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let near = openpt(flags)?;
        grantpt(&near)?;
        unlockpt(&near)?;
        let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&near, size)?;
        let stdin = ioctl_tiocgptpeer(&near, flags)?;
        let (stdout, stderr) = (stdin.try_clone()?, stdin.try_clone()?);
        send_terminal(channel, near.as_fd())?;
        Ok(Stdio { stdin, stdout, stderr })
    };
    make().or_refuse(Stage::Init, "making a terminal")
}
