//! The keeper's sockets: `ctl` for the daemon, `session.sock` for the agent. A socket address holds 107 bytes of path and
//! a session directory may be longer, so they are reached through a descriptor of their directory.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

pub const CTL_SOCKET: &str = "ctl";
/// On which the agent calls.
pub const SESSION_SOCKET: &str = "session.sock";

/// A short path to a socket in `dir`, valid in this process while the descriptor is open.
fn path_via_fd(dir: &Path, name: &str) -> io::Result<(OwnedFd, PathBuf)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(dir, flags, Mode::empty())?;
    let path = PathBuf::from(format!("/proc/self/fd/{}/{name}", fd.as_raw_fd()));
    Ok((fd, path))
}

/// Binds a socket in `dir`, replacing a dead keeper's. Only the holder of the lock may call this: whatever lies there
/// is then nobody's. The mode of the socket is the umask's, which is the process's to set.
pub fn listen(dir: &Path, name: &str) -> io::Result<UnixListener> {
    let (_dir, path) = path_via_fd(dir, name)?;
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    UnixListener::bind(&path)
}

/// Connects to the keeper of `dir`, as its daemon does.
pub fn connect(dir: &Path) -> io::Result<UnixStream> {
    let (_dir, path) = path_via_fd(dir, CTL_SOCKET)?;
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
        let first = listen(&dir, CTL_SOCKET).unwrap();
        drop(first);
        let _listener = listen(&dir, CTL_SOCKET).unwrap();
        connect(&dir).unwrap();
    }
}
