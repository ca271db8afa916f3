//! Running git: always inside a sandbox, never on the host. What a campaign's repository is configured to run, it can
//! run nowhere else.

use std::{
    fs::File,
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use ostler_domain::{
    command::CommandDocument,
    confinement::{CampaignRoot, Confinement, HomeDirectory, Protect, Tooling},
    limits::SNAPSHOT_FILE_BYTES,
    text::one_line,
};
use rustix::fs::{MemfdFlags, memfd_create};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::Command,
    time::timeout,
};

use crate::keeper::Program;

/// Where Ostler's own repository is inside.
const REPOSITORY: &str = "/home/agent";

/// Why git did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotDone {
    #[error("it took longer than {} s", .0.as_secs())]
    TooLong(Duration),
    #[error("{0}")]
    Failed(String),
}

impl NotDone {
    pub(crate) fn because(error: impl std::fmt::Display) -> Self {
        NotDone::Failed(error.to_string())
    }
}

/// What git said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) bytes: Vec<u8>,
    /// There was more than was asked for.
    pub(crate) is_cut: bool,
}

impl Said {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// Whether the tree that is looked at can be changed from inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    ReadOnly,
    Writable,
}

/// A sandbox around a tree, with Ostler's own repository in it, and nothing else.
pub(crate) fn around(
    tree: &Path,
    access: Access,
    hidden: &[String],
    repository: Option<&Path>,
) -> io::Result<Confinement> {
    let found = std::fs::symlink_metadata(tree)?;
    if !found.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let mut confinement = Confinement::new(CampaignRoot {
        path: tree.to_owned(),
        device: found.dev(),
        inode: found.ino(),
        read_only: access == Access::ReadOnly,
        leased: Vec::new(),
    });
    confinement.home = HomeDirectory { inside: REPOSITORY.into(), source: repository.map(Path::to_owned) };
    confinement.hidden = hidden.to_vec();
    // No program of the campaign's runs inside, and nothing is to be left behind in it.
    confinement.tooling = Tooling { protect: Protect::Off, except: Vec::new() };
    confinement.limits.file_bytes = SNAPSHOT_FILE_BYTES;
    Ok(confinement)
}

/// A script of ours, or git itself, in such a sandbox.
pub(crate) fn document(confinement: Confinement, program: &str, args: Vec<String>) -> CommandDocument {
    let fixed = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", "/tmp"),
        ("LC_ALL", "C"),
        ("OSTLER_SNAPSHOTS", REPOSITORY),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_NO_REPLACE_OBJECTS", "1"),
        ("GIT_PAGER", "cat"),
        ("GIT_AUTHOR_NAME", "Ostler"),
        ("GIT_AUTHOR_EMAIL", "ostler@localhost"),
        ("GIT_COMMITTER_NAME", "Ostler"),
        ("GIT_COMMITTER_EMAIL", "ostler@localhost"),
    ];
    CommandDocument {
        program: PathBuf::from(program),
        args,
        env: fixed.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        cwd: confinement.root.path.clone(),
        confinement: Some(confinement),
    }
}

pub(crate) fn script(confinement: Confinement, text: &str, args: &[&str]) -> CommandDocument {
    let args = ["-c", text, "ostler"].into_iter().chain(args.iter().copied());
    document(confinement, "/bin/sh", args.map(str::to_owned).collect())
}

/// Runs a command to its end, bounded in time and in what it may say.
pub(crate) async fn run(
    program: &Program,
    document: &CommandDocument,
    limit: Duration,
    most: usize,
) -> Result<Said, NotDone> {
    let ended = run_whatever(program, document, limit, most).await?;
    if ended.status.success() || ended.said.is_cut {
        return Ok(ended.said);
    }
    Err(NotDone::Failed(ended.last_words()))
}

/// A command that has ended, well or not.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) said: Said,
    pub(crate) why: Said,
}

impl Ended {
    /// The last thing that it complained of.
    pub(crate) fn last_words(&self) -> String {
        let why = self.why.text();
        let last = why.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("git did not say why");
        one_line(last, 300)
    }
}

/// The same, however it ends.
pub(crate) async fn run_whatever(
    program: &Program,
    document: &CommandDocument,
    limit: Duration,
    most: usize,
) -> Result<Ended, NotDone> {
    let mut child = Command::new(program.path())
        .args(["internal", "command", "/proc/self/fd/0"])
        .stdin(Stdio::from(in_memory(document).map_err(NotDone::because)?))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .current_dir("/")
        .kill_on_drop(true)
        .spawn()
        .map_err(NotDone::because)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let all = async {
        let (said, why) = tokio::try_join!(read(stdout, most), read(stderr, MOST_WHY))?;
        io::Result::Ok(Ended { status: child.wait().await?, said, why })
    };
    timeout(limit, all).await.map_err(|_| NotDone::TooLong(limit))?.map_err(NotDone::because)
}

/// How much of a complaint is read.
pub(crate) const MOST_WHY: usize = 64 * 1024;

/// Reads up to so much, and lets the rest pass by.
pub(crate) async fn read(from: Option<impl AsyncRead + Unpin>, most: usize) -> io::Result<Said> {
    let mut bytes = Vec::new();
    let Some(mut from) = from else { return Ok(Said { bytes, is_cut: false }) };
    (&mut from).take(most as u64).read_to_end(&mut bytes).await?;
    let passed = tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
    Ok(Said { bytes, is_cut: passed > 0 })
}

/// The document, opened by its name; whoever reads on where it stands finds the end.
fn in_memory(document: &CommandDocument) -> io::Result<File> {
    let mut file = File::from(memfd_create("ostler-git", MemfdFlags::CLOEXEC)?);
    file.write_all(&serde_json::to_vec(document)?)?;
    Ok(file)
}
