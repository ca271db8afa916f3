//! What a daemon and `ostler internal command --attended` say to each other, and the lock between those that must not run
//! at the same time.
//!
//! On the command's descriptor 0 there is a socket: the length of a document, the document, then single bytes. Whoever
//! hangs up is gone, and the command ends with it.

use std::{fs::File, io, path::Path};

use rustix::fs::{FlockOperation, flock};

use crate::files;

/// Everything of the command stands still; answered with [`FROZEN`] once it does.
pub const FREEZE: u8 = b'f';
pub const FROZEN: u8 = b'F';
pub const THAW: u8 = b't';
/// Everything of the command is killed.
pub const END: u8 = b'k';

/// Held while anything of a command lives.
#[derive(Debug)]
pub struct AttendedLock {
    _file: File,
}

impl AttendedLock {
    /// Takes the lock, or answers nothing while something of another command lives.
    pub fn try_take(path: &Path) -> io::Result<Option<AttendedLock>> {
        let file = files::open_or_create(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(AttendedLock { _file: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("merge.lock");
        let first = AttendedLock::try_take(&path).unwrap().unwrap();
        assert!(AttendedLock::try_take(&path).unwrap().is_none());
        drop(first);
        assert!(AttendedLock::try_take(&path).unwrap().is_some());
    }
}
