//! Starting keepers: the daemon's own binary, by the posix_spawn path, with the launch document on descriptor 0.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Seek, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use ostler_domain::{Hint, Refusal};
use ostler_tape::{LaunchDocument, StatusLine};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    time::timeout,
};

/// How long a keeper may take to say that it is ready: it has opened a few files by then.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// This program, held open: an upgrade on disk must not start keepers of another version.
#[derive(Debug)]
pub struct Program {
    /// Kept for its descriptor.
    _file: File,
    path: PathBuf,
    on_disk: PathBuf,
}

impl Program {
    pub fn current() -> io::Result<Self> {
        use std::os::fd::AsRawFd;
        let on_disk = std::env::current_exe()?;
        let file = File::open("/proc/self/exe")?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        Ok(Self { _file: file, path, on_disk })
    }

    /// The very image that runs, whatever has become of its file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the program lies, for others to start it by.
    pub fn on_disk(&self) -> &Path {
        &self.on_disk
    }
}

/// Why no keeper came to life.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub(crate) struct NotStarted {
    pub(crate) stage: String,
    pub(crate) message: String,
    /// What would let it.
    pub(crate) cures: Vec<Hint>,
}

impl NotStarted {
    pub(crate) fn at(stage: &str, message: impl Into<String>) -> Self {
        Self { stage: stage.to_owned(), message: message.into(), cures: Vec::new() }
    }

    /// What was refused, with what the refusal advises.
    pub(crate) fn refused(stage: &str, refusal: Refusal) -> Self {
        let why = refusal.why.map(|why| format!(": {why}")).unwrap_or_default();
        Self { cures: refusal.hints, ..Self::at(stage, format!("{}{why}", refusal.message)) }
    }
}

/// Makes the session's directory, private from its first moment.
pub(crate) fn make_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Starts a keeper and waits until it holds its lock and listens.
pub(crate) async fn spawn(program: &Program, document: &LaunchDocument) -> Result<(), NotStarted> {
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(document.dir.join("keeper.log"))
        .map_err(|error| NotStarted::at("log", format!("its log cannot be opened: {error}")))?;
    let document = sealed(document).map_err(|error| NotStarted::at("document", error.to_string()))?;
    let mut child = Command::new(&program.path)
        .args(["internal", "keeper"])
        .stdin(Stdio::from(document))
        .stdout(Stdio::piped())
        .stderr(Stdio::from(log))
        .current_dir("/")
        .spawn()
        .map_err(|error| NotStarted::at("spawn", format!("the keeper cannot be started: {error}")))?;
    let status = child.stdout.take();
    // Reaps it whenever it ends; the lock, not this child, says whether it lives.
    tokio::spawn(async move { child.wait().await });
    let mut line = String::new();
    if let Some(status) = status {
        // No line within the time, or an end of file, leaves the line empty.
        let _ = timeout(READY_WITHIN, BufReader::new(status).read_line(&mut line)).await;
    }
    match serde_json::from_str(line.trim()) {
        Ok(StatusLine::Ready { .. }) => Ok(()),
        Ok(StatusLine::Refused { stage, message, hint, .. }) => {
            let hint = if hint.is_empty() { String::new() } else { format!(" ({hint})") };
            Err(NotStarted::at(&stage, format!("{message}{hint}")))
        }
        Err(_) => Err(NotStarted::at(
            "keeper",
            "the keeper ended before it was ready; its log is keeper.log in the session's directory",
        )),
    }
}

/// The document in memory that nobody can change any more: never in arguments or environment, which others read.
fn sealed(document: &LaunchDocument) -> io::Result<File> {
    let memory = memfd_create("ostler-launch", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = File::from(memory);
    file.write_all(&serde_json::to_vec(document)?)?;
    file.rewind()?;
    fcntl_add_seals(&file, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE)?;
    Ok(file)
}

/// Kills the keeper that listens in this directory, whoever it is: known by its socket, not by a number.
pub(crate) fn kill(dir: &Path) -> io::Result<()> {
    let stream = ostler_tape::socket::connect(dir)?;
    let listener = rustix::net::sockopt::socket_peercred(&stream)?.pid;
    let process = rustix::process::pidfd_open(listener, rustix::process::PidfdFlags::empty())?;
    rustix::process::pidfd_send_signal(&process, rustix::process::Signal::KILL)?;
    Ok(())
}
