//! From a launch document to a keeper that owns its session; or to a refusal that says why and what helps.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;

use ostler_domain::limits::PIECE_BYTES;
use ostler_tape::launch::LAUNCH_VERSION;
use ostler_tape::{ExitFile, ExitRecord, KeeperLock, LaunchDocument, StatusLine, read_attempt, socket};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{setsid, umask};
use rustix::stdio::{dup2_stdin, dup2_stdout};

use crate::log::log;
use crate::process::Process;
use crate::recorder::Recorder;

/// Everything a keeper owns before its agent runs.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) document: LaunchDocument,
    pub(crate) lock: KeeperLock,
    pub(crate) exit_file: ExitFile,
    pub(crate) recorder: Recorder,
    pub(crate) listener: UnixListener,
    /// Where the agent calls; absent without a token.
    pub(crate) call_listener: Option<UnixListener>,
}

/// Why a keeper does not start.
#[derive(Debug)]
pub(crate) struct Refusal {
    stage: &'static str,
    errno: Option<i32>,
    message: String,
    hint: &'static str,
}

impl Refusal {
    fn new(stage: &'static str, message: impl Into<String>, hint: &'static str) -> Refusal {
        Refusal { stage, errno: None, message: message.into(), hint }
    }

    fn io(stage: &'static str, hint: &'static str) -> impl FnOnce(io::Error) -> Refusal {
        move |error| Refusal { stage, errno: error.raw_os_error(), message: error.to_string(), hint }
    }
}

/// Owns the session, or explains itself; says which on the status pipe.
pub(crate) fn start() -> Result<Ready, Refusal> {
    let result = prepare();
    let line = match &result {
        Ok(ready) => StatusLine::Ready {
            keeper_pid: std::process::id(),
            start_time: own_start_time(),
            tape_end: ready.recorder.end(),
            last_input_no: ready.recorder.last_input_no(),
        },
        Err(refusal) => StatusLine::Refused {
            stage: refusal.stage.to_owned(),
            errno: refusal.errno,
            message: refusal.message.clone(),
            hint: refusal.hint.to_owned(),
        },
    };
    // Whoever started us may be gone already; the session goes on without it.
    if let Err(error) = say(&line) {
        log!("the status line could not be written: {error}");
    }
    result
}

fn prepare() -> Result<Ready, Refusal> {
    umask(Mode::RWXG | Mode::RWXO);
    let document = read_document()?;
    lead_a_session().map_err(Refusal::io("setsid", "start the keeper without a process group of its own"))?;
    std::env::set_current_dir("/").map_err(Refusal::io("cwd", ""))?;
    report_foreign_descriptors();
    if let Some(group) = &document.keepers_cgroup
        && let Err(error) = std::fs::write(group.join("cgroup.procs"), "0")
    {
        log!("the keeper stays in the daemon's group: {error}");
    }

    let dir = document.dir.as_path();
    let lock = KeeperLock::try_take(dir)
        .map_err(Refusal::io("lock", "check that the session directory exists and is writable"))?
        .ok_or_else(|| Refusal::new("lock", "another keeper owns this session", "adopt that one instead"))?;
    check_attempt(dir, document.attempt)?;
    check_not_ended(dir)?;
    let disk_hint = "free some space on the disk of the state directory";
    let exit_file = ExitFile::prepare(dir).map_err(Refusal::io("exit_record", disk_hint))?;
    let recorder = Recorder::open(dir, document.segment_bytes, document.piece_bytes)
        .map_err(|error| Refusal::new("tape", chain(&error), disk_hint))?;
    let bind = |name| bind(dir, name).map_err(Refusal::io("socket", "check the session directory"));
    let listener = bind(socket::CTL_SOCKET)?;
    let call_listener = document.token.as_ref().map(|_| bind(socket::SESSION_SOCKET)).transpose()?;
    Ok(Ready { document, lock, exit_file, recorder, listener, call_listener })
}

fn read_document() -> Result<LaunchDocument, Refusal> {
    const HINT: &str = "daemon and keeper must be the same program";
    let mut json = Vec::new();
    io::stdin().read_to_end(&mut json).map_err(Refusal::io("document", HINT))?;
    let document: LaunchDocument =
        serde_json::from_slice(&json).map_err(|error| Refusal::new("document", error.to_string(), HINT))?;
    if document.version != LAUNCH_VERSION {
        let message = format!("launch document has version {}", document.version);
        return Err(Refusal::new("document", message, HINT));
    }
    if let Some(path) =
        [&document.dir, &document.cwd, &document.daemon_json].into_iter().find(|path| !path.is_absolute())
    {
        return Err(Refusal::new("document", format!("{} is not absolute", path.display()), HINT));
    }
    if !(1..=PIECE_BYTES).contains(&document.piece_bytes) {
        return Err(Refusal::new("document", format!("pieces have 1 to {PIECE_BYTES} bytes"), HINT));
    }
    dev_null().and_then(|null| Ok(dup2_stdin(&null)?)).map_err(Refusal::io("document", HINT))?;
    Ok(document)
}

/// A terminal or a service manager that ends its session must not end ours.
///
/// `getsid` cannot be asked whether we lead one already: in a container whose session leader is outside, it answers 0.
fn lead_a_session() -> io::Result<()> {
    let own_pid = std::process::id();
    match setsid() {
        Err(Errno::PERM) if Process::find(own_pid).is_some_and(|own| own.session == own_pid) => Ok(()),
        led => Ok(led.map(drop)?),
    }
}

/// Every descriptor of ours is closed on exec, so one that came with us was leaked by whoever started us, and the
/// agent will have it too. It cannot be closed from here in safe Rust (nothing owns it), but it can be named.
fn report_foreign_descriptors() {
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    for entry in entries {
        let number = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        // The listing itself is one, and sees itself.
        if number.is_some_and(|number| number > 2) && !target.starts_with("/proc") {
            log!("descriptor {} ({}) was leaked to this keeper", entry.path().display(), target.display());
        }
    }
}

fn check_attempt(dir: &Path, attempt: u32) -> Result<(), Refusal> {
    match read_attempt(dir).map_err(Refusal::io("attempt", "write the attempt before starting a keeper"))? {
        Some(wanted) if wanted == attempt => Ok(()),
        wanted => {
            let wanted = wanted.map_or_else(|| "none".to_owned(), |wanted| wanted.to_string());
            let message = format!("this is attempt {attempt}, wanted is {wanted}");
            Err(Refusal::new("attempt", message, "a later start has taken over; nothing is to be done"))
        }
    }
}

fn check_not_ended(dir: &Path) -> Result<(), Refusal> {
    const HINT: &str = "a session lives once; start a new one that continues it";
    match ExitRecord::read(dir) {
        Ok(None) => Ok(()),
        Ok(Some(_)) => Err(Refusal::new("exit_record", "this session has already ended", HINT)),
        Err(error) => Err(Refusal::new("exit_record", chain(&error), HINT)),
    }
}

fn bind(dir: &Path, name: &str) -> io::Result<UnixListener> {
    let usual = umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
    let listener = socket::listen(dir, name).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    umask(usual);
    listener
}

fn say(line: &StatusLine) -> io::Result<()> {
    let mut json = serde_json::to_vec(line)?;
    json.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&json)?;
    stdout.flush()?;
    // Closes the pipe: its reader need not trust the newline.
    Ok(dup2_stdout(&dev_null()?)?)
}

fn dev_null() -> io::Result<rustix::fd::OwnedFd> {
    Ok(rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

fn own_start_time() -> u64 {
    Process::find(std::process::id()).map_or(0, |process| process.start_time)
}

fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
