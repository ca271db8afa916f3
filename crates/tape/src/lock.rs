//! Who owns a session: `keeper.lock`, held by its keeper for life, and `attempt`, which says which start of a
//! keeper is the wanted one.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::files;

pub const LOCK_FILE: &str = "keeper.lock";
pub const ATTEMPT_FILE: &str = "attempt";

/// The session's lock; held until dropped, or until the process that holds it is gone.
#[derive(Debug)]
pub struct KeeperLock {
    _file: File,
}

impl KeeperLock {
    /// Takes the lock, or answers nothing when someone else has it.
    pub fn try_take(dir: &Path) -> io::Result<Option<KeeperLock>> {
        let file = files::open_or_create(&dir.join(LOCK_FILE))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(KeeperLock { _file: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Makes `attempt` the only one whose keeper may start. Every start says which it is, so none has to be remembered for
/// longer than keepers live.
pub fn write_attempt(dir: &Path, attempt: u32) -> io::Result<()> {
    files::replace_for_now(&dir.join(ATTEMPT_FILE), format!("{attempt}\n").as_bytes())
}

/// The attempt that may start, or nothing if none was written yet.
pub fn read_attempt(dir: &Path) -> io::Result<Option<u32>> {
    let text = match std::fs::read_to_string(dir.join(ATTEMPT_FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let number = text.trim().parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(Some(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_has_one_holder() {
        let dir = tempfile::tempdir().unwrap();
        let held = KeeperLock::try_take(dir.path()).unwrap();
        assert!(held.is_some());
        assert!(KeeperLock::try_take(dir.path()).unwrap().is_none());
        drop(held);
        assert!(KeeperLock::try_take(dir.path()).unwrap().is_some());
    }

    #[test]
    fn attempts_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_attempt(dir.path()).unwrap(), None);
        write_attempt(dir.path(), 1).unwrap();
        write_attempt(dir.path(), 12).unwrap();
        assert_eq!(read_attempt(dir.path()).unwrap(), Some(12));
        std::fs::write(dir.path().join(ATTEMPT_FILE), "soon").unwrap();
        assert!(read_attempt(dir.path()).is_err());
    }
}
