//! The agent dies with init, whatever becomes of init.

use std::ffi::OsString;
use std::io;

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

const PARENT: &str = "--parent";

/// The arguments that tell a child who its parent is.
pub(crate) fn parent_args() -> [String; 2] {
    [PARENT.to_owned(), getpid().to_string()]
}

/// Has the kernel kill this process when its parent ends.
pub(crate) fn die_with_parent(args: &[OsString]) -> io::Result<()> {
    let expected = match args {
        [flag, pid] if flag == PARENT => pid.to_str().and_then(|pid| pid.parse().ok()),
        _ => None,
    };
    let expected: i32 =
        expected.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "only init may start this"))?;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // It may have ended before the kernel knew of our wish; then someone else is our parent by now.
    match getppid() {
        Some(parent) if parent.as_raw_pid() == expected => Ok(()),
        _ => Err(io::Error::other("the parent is gone")),
    }
}
