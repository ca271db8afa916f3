//! The daemon's own files: private from the first byte, and whole or not there.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use ostler_domain::{
    Reason, Refusal,
    home::{DaemonFile, Home},
    time::BootId,
};
use ostler_engine::VERSION;

/// Makes a directory that only its owner may enter.
pub(super) fn make_private(dir: &Path) -> Result<(), Refusal> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|error| refusal(dir, "made", &error))
}

/// A directory as it was when it was first looked at: the same path may name another one later.
pub(super) struct Identity {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Identity {
    pub(super) fn of(path: &Path) -> Result<Self, Refusal> {
        let found = fs::metadata(path).map_err(|error| refusal(path, "looked at", &error))?;
        Ok(Self { path: path.to_owned(), device: found.dev(), inode: found.ino() })
    }

    /// Whether it is still there. What cannot be told counts as there.
    pub(super) fn is_there(&self) -> bool {
        match fs::metadata(&self.path) {
            Ok(found) => (found.dev(), found.ino()) == (self.device, self.inode),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }
}

/// What `daemon.json` says of this daemon.
pub(super) struct Announced {
    pub(super) program: PathBuf,
    pub(super) socket: PathBuf,
    pub(super) is_service: bool,
    pub(super) boot: BootId,
}

/// Says in `daemon.json` who serves and where: clients and keepers read it.
pub(super) fn announce(home: &Home, announced: &Announced) -> Result<(), Refusal> {
    let path = home.daemon_json();
    let Announced { program, socket, is_service, boot } = announced;
    let file = DaemonFile {
        pid: std::process::id(),
        start_time: own_start_time(),
        version: VERSION.to_owned(),
        program: program.to_owned(),
        socket: socket.to_owned(),
        state: home.state().to_owned(),
        is_service: *is_service,
        boot: Some(boot.clone()),
    };
    let text = serde_json::to_vec(&file).map_err(|error| Refusal::internal(error.to_string()))?;
    replace(&path, &text).map_err(|error| refusal(&path, "written", &error))
}

/// Whether `daemon.json` speaks of this daemon.
pub(super) fn is_announced(home: &Home) -> bool {
    let text = fs::read(home.daemon_json()).unwrap_or_default();
    serde_json::from_slice::<DaemonFile>(&text).is_ok_and(|file| file.pid == std::process::id())
}

/// Nobody ever reads half of it.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("json.new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&fresh, path)
}

fn own_start_time() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Field 22; the name, field 2, may hold spaces and parentheses.
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(19)?.parse().ok()).unwrap_or(0)
}

fn refusal(path: &Path, done: &str, error: &io::Error) -> Refusal {
    let reason = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Reason::DiskFull,
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Reason::StoreReadOnly,
        // There is no such place, or a file is in it.
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            Reason::InvalidArgument
        }
        _ => Reason::Internal,
    };
    Refusal::new(reason, format!("{} cannot be {done}", path.display()))
        .because(error.to_string())
        .hint("export OSTLER_HOME=DIR", "has its files elsewhere: in a directory that you may write to")
}
