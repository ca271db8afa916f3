//! The keeper's control socket, `ctl`. A socket address holds 107 bytes of path and a session directory may be
//! longer, so it is reached through a descriptor of its directory.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

pub const CTL_SOCKET: &str = "ctl";

/// A short path to `dir/ctl`, valid in this process while the descriptor is open.
pub fn ctl_path_via_fd(dir: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(dir, flags, Mode::empty())?;
    let path = PathBuf::from(format!("/proc/self/fd/{}/{CTL_SOCKET}", fd.as_raw_fd()));
    Ok((fd, path))
}

/// Binds `dir/ctl`, replacing a dead keeper's. Only the holder of the lock may call this: whatever lies there
/// is then nobody's. The mode of the socket is the umask's, which is the process's to set.
pub fn listen(dir: &Path) -> io::Result<UnixListener> {
    let (_dir, path) = ctl_path_via_fd(dir)?;
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    UnixListener::bind(&path)
}

/// Connects to the keeper of `dir`.
pub fn connect(dir: &Path) -> io::Result<UnixStream> {
    let (_dir, path) = ctl_path_via_fd(dir)?;
    UnixStream::connect(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_longer_than_a_socket_address_work() {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("d".repeat(200));
        std::fs::create_dir(&dir).unwrap();
        assert!(connect(&dir).is_err());
        let first = listen(&dir).unwrap();
        drop(first);
        let _listener = listen(&dir).unwrap();
        connect(&dir).unwrap();
    }
}
