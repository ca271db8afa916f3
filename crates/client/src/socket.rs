//! Reaching the daemon's socket: where it is, and how to connect when its path is longer than a socket address.

use std::{
    io,
    os::{fd::AsRawFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    time::Duration,
};

use ostler_domain::home::{DaemonFile, Home};
use rustix::fs::{Mode, OFlags};
use tokio::net::UnixStream;

/// `sun_path` has 108 bytes, the last of which is zero.
pub(crate) const ADDRESS_BYTES: usize = 107;
/// How often a full queue of connections is tried again, a millisecond apart: a daemon accepts far faster.
const FULL_QUEUE_TRIES: u32 = 200;

/// Where the daemon listens: where it says, else where it would by default.
pub(crate) fn path(home: &Home) -> PathBuf {
    std::fs::read(home.daemon_json())
        .ok()
        .and_then(|text| serde_json::from_slice::<DaemonFile>(&text).ok())
        .filter(|daemon| serves(daemon, home))
        .map_or_else(|| home.control_socket(), |daemon| daemon.socket)
}

/// Whether this daemon is the one of a home, and not of another that the home is a copy of.
fn serves(daemon: &DaemonFile, home: &Home) -> bool {
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    daemon.state.as_os_str().is_empty() || canonical(&daemon.state) == canonical(home.state())
}

pub(crate) async fn connect(path: &Path) -> io::Result<UnixStream> {
    let mut tries = 0;
    loop {
        match connect_once(path).await {
            // A Unix socket whose queue is full answers EAGAIN at once instead of making the caller wait.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && tries < FULL_QUEUE_TRIES => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            outcome => return outcome,
        }
    }
}

async fn connect_once(path: &Path) -> io::Result<UnixStream> {
    if path.as_os_str().as_bytes().len() <= ADDRESS_BYTES {
        return UnixStream::connect(path).await;
    }
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let dir = rustix::fs::open(dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let short = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name);
    // The descriptor stays open until the connection stands.
    let stream = UnixStream::connect(short).await;
    drop(dir);
    stream
}
