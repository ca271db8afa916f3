//! What is typed goes to the command's terminal, what it shows comes back, and its size is that of the caller's.

use std::io::{self, Write};
use std::os::fd::OwnedFd;

use ostler_sandbox::channel::TerminalSize;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::terminal::{self, RawTerminal};

/// More than anybody types while a command does not read.
const TYPED_AHEAD: usize = 64 * 1024;
const READ_BYTES: usize = 16 * 1024;

/// The near side of the command's terminal, once there is one.
pub(super) struct Screen {
    ours: Option<OwnedFd>,
    /// Typed, and not yet taken by the command's terminal.
    typed: Vec<u8>,
    input_ended: bool,
    _caller: RawTerminal,
}

impl Screen {
    pub(super) fn open() -> io::Result<Screen> {
        Ok(Screen { ours: None, typed: Vec::new(), input_ended: false, _caller: RawTerminal::enter()? })
    }

    /// The warden has made the command's terminal.
    pub(super) fn connect(&mut self, ours: OwnedFd) -> io::Result<()> {
        rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK)?;
        self.ours = Some(ours);
        self.resize();
        Ok(())
    }

    /// Takes over the size of the caller's terminal.
    pub(super) fn resize(&self) {
        if let Some(ours) = &self.ours {
            let TerminalSize { rows, columns } = terminal::size();
            let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
            let _ = tcsetwinsize(ours, size);
        }
    }

    /// A terminal of the host's, for a command that is not confined.
    pub(super) fn far_side(&mut self) -> io::Result<[OwnedFd; 3]> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let near = openpt(flags)?;
        grantpt(&near)?;
        unlockpt(&near)?;
        let far = ioctl_tiocgptpeer(&near, flags)?;
        self.connect(near)?;
        Ok([far.try_clone()?, far.try_clone()?, far])
    }

    pub(super) fn wants_keys(&self) -> bool {
        !self.input_ended && self.typed.len() < TYPED_AHEAD
    }

    /// What to wait for: the caller's keys first if they are wanted, and the command's terminal.
    pub(super) fn poll_fds<'a>(&'a self, stdin: &'a io::Stdin) -> Vec<PollFd<'a>> {
        let mut fds = Vec::new();
        if self.wants_keys() {
            fds.push(PollFd::new(stdin, PollFlags::IN));
        }
        if let Some(ours) = &self.ours {
            let waits = if self.typed.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
            fds.push(PollFd::new(ours, waits));
        }
        fds
    }

    /// Carries what there is in both directions, without waiting.
    pub(super) fn carry(&mut self, keys_are_waiting: bool) -> io::Result<()> {
        if keys_are_waiting {
            let mut bytes = [0; READ_BYTES];
            // Not through a buffer of the library's: what is in one is not polled for.
            match rustix::io::read(io::stdin(), &mut bytes) {
                Ok(0) => self.input_ended = true,
                Ok(len) => self.typed.extend_from_slice(&bytes[..len]),
                Err(Errno::INTR | Errno::AGAIN) => {}
                // The terminal was hung up.
                Err(_) => self.input_ended = true,
            }
        }
        if let Some(ours) = self.ours.as_ref().filter(|_| !self.typed.is_empty()) {
            match rustix::io::write(ours, &self.typed) {
                Ok(len) => drop(self.typed.drain(..len)),
                Err(Errno::AGAIN | Errno::INTR) => {}
                // Nobody is left to read it.
                Err(_) => self.typed.clear(),
            }
        }
        self.show().map(drop)
    }

    /// Shows what the command has said; false when its terminal has been closed.
    fn show(&mut self) -> io::Result<bool> {
        let Some(ours) = &self.ours else { return Ok(false) };
        let mut bytes = [0; READ_BYTES];
        match rustix::io::read(ours, &mut bytes) {
            Ok(0) => {}
            Ok(len) => {
                let mut out = io::stdout().lock();
                out.write_all(&bytes[..len])?;
                out.flush()?;
                return Ok(true);
            }
            Err(Errno::AGAIN | Errno::INTR) => return Ok(true),
            // Everybody has closed the far side.
            Err(_) => {}
        }
        self.ours = None;
        Ok(false)
    }

    /// Shows the rest. Nobody has the far side any more, or will soon not have.
    pub(super) fn drain(mut self) -> io::Result<()> {
        while let Some(ours) = &self.ours {
            rustix::fs::fcntl_setfl(ours, OFlags::empty())?;
            self.show()?;
        }
        Ok(())
    }
}
