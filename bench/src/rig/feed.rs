//! Keepers that are not there: one loop holds the locks of many sessions, answers on their sockets and appends to
//! their tapes, as that many keepers with busy agents would. What a daemon has to do is the same; what the keepers and
//! the agents themselves cost is not on the machine, so the daemon's part can be measured alone.

use std::{
    collections::BTreeMap,
    fs, io,
    io::{BufRead, BufReader, Read, Write as _},
    os::{
        fd::OwnedFd,
        unix::net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use ostler_domain::{home::Home, limits::SEGMENT_BYTES};
use ostler_tape::{
    Decoder, FromKeeper, KeeperLock, Record, Stream, ToKeeper, Writer,
    frame::{Intake, KeeperState, PROTOCOL, Phase, encode},
    socket,
};
use rustix::{
    buffer::spare_capacity,
    event::epoll::{self, CreateFlags, Event, EventData, EventFlags},
    time::Timespec,
};

use super::{line, wall_us};
use crate::{Outcome, report::print};

/// How long the loop waits when nothing is due.
const IDLE: Duration = Duration::from_millis(5);
/// The same before the agents have begun: somebody may have them speak at any moment.
const AT_ONCE: Duration = Duration::from_micros(500);
const EVENTS: usize = 64;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The home whose sessions are kept
    home: PathBuf,
    /// Lines that each agent prints in a second, once the daemon has found all of them
    #[arg(long)]
    per_second: f64,
}

/// `internal feed`: keeps all sessions of a home until standard input ends. `say N` has every agent print N lines at
/// once; with `begin` they print at their rate.
pub(crate) fn run(args: &Args) -> Outcome<()> {
    let sessions = fs::read_dir(Home::at(&args.home).sessions())?;
    let dirs = sessions.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    let mut keepers = Keepers::open(dirs)?;
    let signs = Signs::default();
    let given = signs.clone();
    thread::spawn(move || {
        for word in io::stdin().lines().map_while(Result::ok) {
            match word.strip_prefix("say ").and_then(|lines| lines.parse().ok()) {
                Some(lines) => drop(given.said.fetch_add(lines, Ordering::AcqRel)),
                None => given.begin.store(true, Ordering::Release),
            }
        }
        given.stop.store(true, Ordering::Release);
    });
    print("ready");
    keepers.serve(&signs, args.per_second)?;
    Ok(())
}

/// What the keepers' loop is told by others.
#[derive(Clone, Default)]
struct Signs {
    begin: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    /// Lines that every agent is to have printed at once.
    said: Arc<AtomicU64>,
}

/// The process that feeds, from outside.
pub(crate) struct Feeder {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Feeder {
    /// Starts to keep the sessions of a home.
    pub(crate) fn spawn(home: &Home, per_second: f64) -> Outcome<Self> {
        let root = home.state().parent().ok_or("a home has a root")?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["internal", "feed", "--per-second", &per_second.to_string()]).arg(root);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let mut word = String::new();
        BufReader::new(stdout.ok_or("the feeder has an output")?).read_line(&mut word)?;
        if word.trim() != "ready" {
            return Err("the feeder is not ready".into());
        }
        Ok(Self { child, stdin })
    }

    /// Lets the agents begin.
    pub(crate) fn begin(&mut self) -> Outcome<()> {
        self.tell("begin")
    }

    /// Has every agent print so many lines at once.
    pub(crate) fn say(&mut self, lines: u64) -> Outcome<()> {
        self.tell(&format!("say {lines}"))
    }

    fn tell(&mut self, word: &str) -> Outcome<()> {
        let stdin = self.stdin.as_mut().ok_or("the feeder has an input")?;
        Ok(stdin.write_all(format!("{word}\n").as_bytes())?)
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.wait();
    }
}

/// Keepers of many sessions.
pub(crate) struct Keepers {
    kept: Vec<Kept>,
    epoll: OwnedFd,
}

/// One session's keeper.
struct Kept {
    tape: Writer,
    listener: UnixListener,
    daemon: Option<Connection>,
    said: u64,
    _lock: KeeperLock,
}

struct Connection {
    stream: UnixStream,
    decoder: Decoder<ToKeeper>,
}

/// Keepers on a thread of their own, until dropped.
pub(crate) struct Background {
    signs: Signs,
    thread: Option<JoinHandle<()>>,
}

impl Keepers {
    /// Takes the sessions of these directories.
    pub(crate) fn open(dirs: impl IntoIterator<Item = PathBuf>) -> Outcome<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let kept = dirs.into_iter().map(|dir| Kept::open(&dir)).collect::<Outcome<Vec<_>>>()?;
        for (n, kept) in kept.iter().enumerate() {
            epoll::add(&epoll, &kept.listener, EventData::new_u64(n as u64), EventFlags::IN)?;
        }
        Ok(Self { kept, epoll })
    }

    /// Keeps them, quietly, until the returned value is dropped.
    pub(crate) fn in_background(mut self) -> Background {
        let signs = Signs::default();
        let given = signs.clone();
        let thread = thread::spawn(move || {
            let _ = self.serve(&given, 1.0);
        });
        Background { signs, thread: Some(thread) }
    }

    /// Answers until told to stop; told to begin, each session says so many lines a second.
    fn serve(&mut self, Signs { begin, stop, said }: &Signs, per_second: f64) -> io::Result<()> {
        while !stop.load(Ordering::Acquire) && !begin.load(Ordering::Acquire) {
            match said.swap(0, Ordering::AcqRel) {
                0 => self.answer(AT_ONCE)?,
                lines => self.kept.iter_mut().try_for_each(|kept| kept.speak(lines))?,
            }
        }
        let every = Duration::from_secs_f64(1.0 / per_second);
        let began = Instant::now();
        let count = u32::try_from(self.kept.len()).unwrap_or(u32::MAX).max(1);
        // Sessions speak one after the other, evenly, as that many independent ones would on average.
        let mut due: BTreeMap<(Instant, usize), ()> =
            (0..count).map(|n| ((began + every * n / count, n as usize), ())).collect();
        while !stop.load(Ordering::Acquire) {
            let now = Instant::now();
            while let Some((&(at, n), ())) = due.first_key_value() {
                if at > now {
                    break;
                }
                due.remove(&(at, n));
                due.insert((at + every, n), ());
                self.kept[n].speak(1)?;
            }
            let next = due.first_key_value().map_or(now + IDLE, |((at, _), ())| *at);
            self.answer(next.saturating_duration_since(Instant::now()).min(IDLE))?;
        }
        Ok(())
    }

    /// Waits for a daemon to say something, and answers.
    fn answer(&mut self, wait: Duration) -> io::Result<()> {
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        for event in events {
            let token = event.data.u64();
            let count = self.kept.len() as u64;
            let n = usize::try_from(token % count).unwrap_or(0);
            let kept = &mut self.kept[n];
            if token < count {
                let (stream, _) = kept.listener.accept()?;
                stream.set_nonblocking(true)?;
                epoll::add(&self.epoll, &stream, EventData::new_u64(token + count), EventFlags::IN)?;
                kept.daemon = Some(Connection { stream, decoder: Decoder::new() });
            } else {
                kept.hear()?;
            }
        }
        Ok(())
    }
}

impl Kept {
    fn open(dir: &Path) -> Outcome<Self> {
        let lock = KeeperLock::try_take(dir)?.ok_or("somebody keeps this session already")?;
        let tape = Writer::open(dir, SEGMENT_BYTES)?;
        let listener = socket::listen(dir, socket::CTL_SOCKET)?;
        Ok(Self { tape, listener, daemon: None, said: 0, _lock: lock })
    }

    fn state(&self) -> KeeperState {
        KeeperState {
            keeper_pid: std::process::id(),
            tape_end: self.tape.end(),
            last_input_no: 0,
            phase: Phase::Running,
            agent: None,
            frozen: None,
            intake: Intake::Open,
            gone: false,
            spent: None,
        }
    }

    /// Reads what the daemon says; only a hello is answered, as nothing else needs an answer.
    fn hear(&mut self) -> io::Result<()> {
        let state = self.state();
        let Some(daemon) = &mut self.daemon else { return Ok(()) };
        let mut buffer = [0; 4096];
        match daemon.stream.read(&mut buffer) {
            Ok(0) => {
                self.daemon = None;
                return Ok(());
            }
            Ok(count) => daemon.decoder.push(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(_) => {
                self.daemon = None;
                return Ok(());
            }
        }
        while let Ok(Some(frame)) = daemon.decoder.next_frame() {
            if let ToKeeper::Hello { epoch, .. } = frame.verb {
                let keeper_version = env!("CARGO_PKG_VERSION").to_owned();
                let hello = FromKeeper::Hello {
                    protocol: PROTOCOL,
                    keeper_version,
                    epoch,
                    accepted: true,
                    state: state.clone(),
                };
                daemon.send(&hello)?;
            }
        }
        Ok(())
    }

    /// Tapes some lines and tells the daemon.
    fn speak(&mut self, lines: u64) -> io::Result<()> {
        let texts: Vec<String> = (self.said + 1..=self.said + lines).map(line).collect();
        self.said += lines;
        let now = wall_us();
        let records: Vec<Record<'_>> =
            texts.iter().map(|text| Record::line(Stream::Out, now, text.as_bytes())).collect();
        self.tape.append(&records).map_err(|error| error.source)?;
        let state = self.state();
        if let Some(daemon) = &mut self.daemon
            && daemon.send(&FromKeeper::State(state)).is_err()
        {
            self.daemon = None;
        }
        Ok(())
    }
}

impl Connection {
    /// A daemon that does not read will be told the newest state later.
    fn send(&mut self, verb: &FromKeeper) -> io::Result<()> {
        let bytes = encode(verb, b"").map_err(io::Error::other)?;
        match self.stream.write_all(&bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            other => other,
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.signs.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
