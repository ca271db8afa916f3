//! `ostler internal halt STATE kill|freeze BY`: the emergency stop where no daemon answers.
//!
//! Every keeper of a home is told at once, in the words of a daemon that comes after its own. They are found by what they
//! are and which lock they hold, so that neither a record nor a configuration is asked. One that does not listen is killed,
//! and its agent with it. What became of each is one line of JSON on standard output.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use ostler_tape::frame::{
    Decoder, FromKeeper, KeeperState, PROTOCOL, Phase, Rung, RungAction, ToKeeper, encode,
};
use ostler_tape::{lock::LOCK_FILE, socket};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, pidfd_send_signal};
use rustix::time::Timespec;
use serde::Serialize;

use crate::process::{self, Process};

/// A keeper answers at once, or it hangs.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);
/// How long one that was told has until its agent is gone, or stands still.
const DONE_WITHIN: Duration = Duration::from_secs(2);
/// What one that was killed takes along is gone a moment later.
const DEAD_WITHIN: Duration = Duration::from_secs(1);
/// All of it for one keeper, whatever it hangs in.
const LONGEST: Duration = Duration::from_secs(4);
/// How long it is waited for keepers that have only just been started, and hold no lock yet.
const SETTLES_WITHIN: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(20);
/// A keeper serves the highest epoch; whoever asks is told which that was.
const HELLOS: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Kill,
    Freeze,
}

/// Everything that became of it.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Told {
    /// Agents that are dead, or stand still.
    done: u64,
    /// Those that are neither.
    left: Vec<Left>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Left {
    session: String,
    why: String,
}

/// A keeper that lives.
#[derive(Debug)]
struct Found {
    pid: u32,
    dir: PathBuf,
    process: OwnedFd,
}

pub(crate) fn run(args: &[OsString]) -> ExitCode {
    let [state, wish, by] = args else { return ExitCode::from(2) };
    let wish = match wish.to_str() {
        Some("kill") => Wish::Kill,
        Some("freeze") => Wish::Freeze,
        _ => return ExitCode::from(2),
    };
    let told = all(&Path::new(state).join("sessions"), wish, &by.to_string_lossy());
    let line = serde_json::to_string(&told).unwrap_or_default();
    match writeln!(std::io::stdout(), "{line}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn all(sessions: &Path, wish: Wish, by: &str) -> Told {
    let mut told = Told::default();
    // No directory, no sessions.
    let Ok(sessions) = sessions.canonicalize() else { return told };
    let (mut seen, began) = (HashSet::new(), Instant::now());
    loop {
        let (mut found, is_settled) = keepers(&sessions);
        found.retain(|keeper| seen.insert(keeper.pid));
        let is_over = found.is_empty() && (is_settled || began.elapsed() > SETTLES_WITHIN);
        if is_over {
            return told;
        }
        if found.is_empty() {
            std::thread::sleep(LOOK);
        }
        tell_all(found, wish, by, &mut told);
    }
}

/// The keepers of these sessions, and whether nobody is a keeper without a lock yet.
fn keepers(sessions: &Path) -> (Vec<Found>, bool) {
    let (mut found, mut is_settled) = (Vec::new(), true);
    for keeper in process::all().filter(is_keeper) {
        // Looked up behind the descriptor: its number is nobody else's from here on.
        let Some(process) = keeper.open() else { continue };
        match lock_dir(keeper.pid) {
            Some(dir) if dir.parent() == Some(sessions) => {
                found.push(Found { pid: keeper.pid, dir, process })
            }
            Some(_) => {}
            None => is_settled = false,
        }
    }
    (found, is_settled)
}

fn is_keeper(process: &Process) -> bool {
    let line = std::fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
    let mut words = line.split(|byte| *byte == 0).skip(1);
    words.next() == Some(b"internal") && words.next() == Some(b"keeper")
}

/// The directory of the session whose lock this process has open.
fn lock_dir(pid: u32) -> Option<PathBuf> {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let mut files = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    let lock = files.find(|file| file.file_name().is_some_and(|name| name == LOCK_FILE))?;
    lock.parent().map(Path::to_owned)
}

/// Tells them all at once: one that hangs holds nobody up.
fn tell_all(found: Vec<Found>, wish: Wish, by: &str, told: &mut Told) {
    let (sender, answers) = mpsc::channel();
    let deadline = Instant::now() + LONGEST;
    for (n, keeper) in found.iter().enumerate() {
        let (dir, by, sender) = (keeper.dir.clone(), by.to_owned(), sender.clone());
        // Whoever is not heard of in time counts as silent.
        let _ = std::thread::Builder::new().spawn(move || sender.send((n, tell(&dir, wish, &by))));
    }
    drop(sender);
    let mut said: Vec<Result<Became, String>> =
        found.iter().map(|_| Err("its keeper does not answer".to_owned())).collect();
    while let Ok((n, answer)) = answers.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        said[n] = answer;
    }
    for (keeper, said) in found.iter().zip(said) {
        let became = match (said, wish) {
            (Err(why), Wish::Kill) => kill(keeper).then_some(Became::Done).ok_or(why),
            (said, _) => said,
        };
        match became {
            Ok(Became::Done) => told.done += 1,
            Ok(Became::Over) => {}
            Err(why) => {
                let session = keeper.dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
                told.left.push(Left { session, why });
            }
        }
    }
}

/// Kills a keeper, whose agent does not outlive it.
fn kill(keeper: &Found) -> bool {
    // An error means that it ended just now.
    let _ = pidfd_send_signal(&keeper.process, Signal::KILL);
    let within = Timespec { tv_sec: DEAD_WITHIN.as_secs() as i64, tv_nsec: 0 };
    let mut ends = [PollFd::new(&keeper.process, PollFlags::IN)];
    matches!(poll(&mut ends, Some(&within)), Ok(1..))
}

enum Became {
    Done,
    /// It had ended before.
    Over,
}

fn tell(dir: &Path, wish: Wish, by: &str) -> Result<Became, String> {
    let mut line = Connection::open(dir).map_err(|error| error.to_string())?;
    let state = line.be_its_daemon()?;
    if state.phase == Phase::Exited {
        return Ok(Became::Over);
    }
    line.say(&match wish {
        Wish::Kill => ToKeeper::Stop {
            by: by.to_owned(),
            rule: "halt".to_owned(),
            ladder: vec![Rung { action: RungAction::Kill, wait_ms: 0 }],
        },
        Wish::Freeze => ToKeeper::Freeze { on: true },
    })?;
    let deadline = Instant::now() + DONE_WITHIN;
    loop {
        let state = match line.next(deadline)? {
            Some(FromKeeper::State(state)) => state,
            Some(FromKeeper::Refused { refused, message, .. }) if refused == "freeze" => return Err(message),
            Some(_) => continue,
            // A keeper leaves when all is said, and takes care that nothing of its agent is left.
            None => return Ok(Became::Done),
        };
        let is_done = match wish {
            Wish::Kill => state.gone || state.phase == Phase::Exited,
            Wish::Freeze => state.frozen.is_some() || state.phase == Phase::Exited,
        };
        if is_done {
            return Ok(Became::Done);
        }
    }
}

struct Connection {
    stream: UnixStream,
    decoder: Decoder<FromKeeper>,
}

impl Connection {
    fn open(dir: &Path) -> std::io::Result<Self> {
        let stream = socket::connect(dir)?;
        stream.set_write_timeout(Some(ANSWERS_WITHIN))?;
        Ok(Self { stream, decoder: Decoder::new() })
    }

    /// Takes the place of its daemon, and hears how it is.
    fn be_its_daemon(&mut self) -> Result<KeeperState, String> {
        let deadline = Instant::now() + ANSWERS_WITHIN;
        let mut epoch = 0;
        for _ in 0..HELLOS {
            let daemon_version = env!("CARGO_PKG_VERSION").to_owned();
            self.say(&ToKeeper::Hello { protocol: PROTOCOL, epoch, daemon_version })?;
            loop {
                match self.next(deadline)? {
                    Some(FromKeeper::Hello { accepted: true, state, .. }) => return Ok(state),
                    Some(FromKeeper::Hello { epoch: highest, .. }) => {
                        epoch = highest.saturating_add(1);
                        break;
                    }
                    Some(_) => {}
                    None => return Err("its keeper hung up".to_owned()),
                }
            }
        }
        Err("its keeper serves somebody else".to_owned())
    }

    fn say(&mut self, verb: &ToKeeper) -> Result<(), String> {
        let bytes = encode(verb, b"").map_err(|error| error.to_string())?;
        self.stream.write_all(&bytes).map_err(|error| format!("its keeper cannot be told: {error}"))
    }

    /// What it says next; none when it hung up.
    fn next(&mut self, deadline: Instant) -> Result<Option<FromKeeper>, String> {
        let mut buffer = [0; 4 * 1024];
        loop {
            let frame = self.decoder.next_frame().map_err(|error| error.to_string())?;
            if let Some(frame) = frame {
                return Ok(Some(frame.verb));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err("its keeper does not answer".to_owned());
            }
            self.stream.set_read_timeout(Some(left)).map_err(|error| error.to_string())?;
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(None),
                Ok(bytes) => self.decoder.push(&buffer[..bytes]),
                // The deadline is looked at above.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) => {}
                Err(error) => return Err(format!("its keeper cannot be heard: {error}")),
            }
        }
    }
}
