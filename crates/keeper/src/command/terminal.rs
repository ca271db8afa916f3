//! The caller's terminal while a command has a terminal of its own: raw, so that every key reaches the command, and as
//! it was when that is over, however it comes to be over.
//!
//! A process that is killed restores nothing. So another one stands by (`ostler internal terminal-guard`), in a session
//! of its own, where neither a signal to the group nor the end of the terminal's session reaches it. It does nothing
//! unless the first one ends without a word.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};

use ostler_sandbox::channel::TerminalSize;
use rustix::process::setsid;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// What the guard says when it knows how the terminal was, and what it is told when it is not needed any more.
const READY: [u8; 1] = *b"r";
const RELIEVED: [u8; 1] = *b"q";

/// The caller's terminal, raw until this is dropped.
pub(super) struct RawTerminal {
    before: Termios,
    guard: Child,
    to_guard: UnixStream,
}

impl RawTerminal {
    /// Standard input must be a terminal.
    pub(super) fn enter() -> io::Result<RawTerminal> {
        let before = tcgetattr(io::stdin())?;
        let (mut to_guard, theirs) = UnixStream::pair()?;
        let guard = Command::new("/proc/self/exe")
            .arg0("ostler")
            .args(["internal", "terminal-guard"])
            .env_clear()
            .stdin(Stdio::inherit())
            .stdout(Stdio::from(OwnedFd::from(theirs)))
            .stderr(Stdio::null())
            .spawn()?;
        let mut raw = RawTerminal { before, guard, to_guard: to_guard.try_clone()? };
        to_guard.read_exact(&mut [0])?;
        raw.set()?;
        Ok(raw)
    }

    fn set(&mut self) -> io::Result<()> {
        Ok(tcsetattr(io::stdin(), OptionalActions::Flush, &raw_of(&self.before))?)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // A terminal that is gone wants nothing any more.
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.before);
        let _ = self.to_guard.write_all(&RELIEVED);
        let _ = self.to_guard.shutdown(Shutdown::Both);
        let _ = self.guard.wait();
    }
}

fn raw_of(before: &Termios) -> Termios {
    let mut raw = before.clone();
    raw.make_raw();
    raw
}

/// How large the caller's terminal is; what a terminal is without saying so, if it does not say.
pub(super) fn size() -> TerminalSize {
    let said = tcgetwinsize(io::stdin()).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0);
    said.map_or(TerminalSize { rows: 24, columns: 80 }, |size| TerminalSize {
        rows: size.ws_row,
        columns: size.ws_col,
    })
}

/// What kind of terminal it is, for programs that look it up.
pub(super) fn kind() -> String {
    const LONGEST: usize = 64;
    let is_name = |name: &String| {
        (1..=LONGEST).contains(&name.len())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "+-._".contains(c))
    };
    std::env::var("TERM").ok().filter(is_name).unwrap_or_else(|| "dumb".to_owned())
}

/// `ostler internal terminal-guard`: standard input is the terminal, standard output the one who is guarded.
pub(crate) fn guard() -> ExitCode {
    match stand_by() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn stand_by() -> io::Result<()> {
    // In no session with a terminal: so it may set one from wherever it is, and is not hung up with it.
    setsid()?;
    let terminal = io::stdin();
    let before = tcgetattr(&terminal)?;
    let mut guarded = UnixStream::from(io::stdout().as_fd().try_clone_to_owned()?);
    guarded.write_all(&READY)?;
    let mut word = [0];
    if guarded.read(&mut word)? > 0 {
        return Ok(());
    }
    // A shell that was quicker has set it up for itself by now, and is to keep that.
    let now = tcgetattr(&terminal)?;
    if is_same(&now, &raw_of(&before)) {
        tcsetattr(&terminal, OptionalActions::Now, &before)?;
    }
    Ok(())
}

fn is_same(one: &Termios, other: &Termios) -> bool {
    one.input_modes == other.input_modes
        && one.output_modes == other.output_modes
        && one.control_modes == other.control_modes
        && one.local_modes == other.local_modes
}
