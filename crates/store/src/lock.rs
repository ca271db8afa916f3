//! `daemon.lock`: one daemon per state directory. The kernel lets go of the lock when its holder dies, however
//! it dies; the text in the file only says who to look for.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use ostler_domain::Time;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::{convert::wall_clock, error::LockError};

const FILE: &str = "daemon.lock";

/// The right to serve a state directory; lasts as long as the value.
#[derive(Debug)]
pub struct DirLock {
    _file: File,
}

#[derive(Serialize, Deserialize)]
struct Holder {
    pid: u32,
    version: String,
    since: Time,
}

impl DirLock {
    /// Takes the lock of a state directory, which must exist.
    pub fn take(state_dir: &Path, version: &str) -> Result<DirLock, LockError> {
        let path = state_dir.join(FILE);
        let io_error = |source| LockError::Io { path: path.clone(), source };
        // Close-on-exec as all files of std: a child that kept the descriptor would keep the lock.
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(io_error)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(held_by(&mut file)),
            Err(errno) => return Err(io_error(errno.into())),
        }
        let holder = Holder { pid: std::process::id(), version: version.to_owned(), since: wall_clock() };
        // The lock is what counts: on a full disk there is one all the same, without a name in it.
        let _ = write_holder(&mut file, &holder);
        Ok(DirLock { _file: file })
    }
}

fn write_holder(file: &mut File, holder: &Holder) -> io::Result<()> {
    let mut text = serde_json::to_vec(holder)?;
    text.push(b'\n');
    // Over the last holder's name, not after cutting it off: a full disk might not give the room back.
    file.write_all(&text)?;
    file.set_len(text.len() as u64)
}

/// The holder may be between taking the lock and writing its name, so nothing here is certain.
fn held_by(file: &mut File) -> LockError {
    let mut text = String::new();
    let holder = file.read_to_string(&mut text).ok().and_then(|_| serde_json::from_str::<Holder>(&text).ok());
    match holder {
        Some(Holder { pid, version, since }) => {
            LockError::Held { pid: Some(pid), version: Some(version), since: Some(since) }
        }
        None => LockError::Held { pid: None, version: None, since: None },
    }
}
