//! `ostler internal command`: runs one command in a sandbox for whoever waits for it, and ends with it. A keeper without
//! a tape: nothing of the caller's goes in, its input and output are carried over. With `--tty` the command has a terminal
//! of its own, and what happens on one is carried to the other. With `--observe` what it wanted and was not given is
//! written down. With `--attended` its caller is a daemon.

mod attended;
mod carry;
mod observe;
mod screen;
mod terminal;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, PipeReader, Read, Seek, Write, pipe};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use ostler_domain::command::CommandDocument;
use ostler_domain::confinement::Confinement;
use ostler_sandbox::channel::{self, AgentEnds, ExecReport, InitReport, Order, Received};
use ostler_tape::launch::EXIT_REFUSED;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use rustix::process::{
    Signal, WaitOptions, getpid, set_child_subreaper, set_parent_process_death_signal, wait,
};
use rustix::time::Timespec;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};

use self::attended::Attendant;
use self::carry::Carriers;
use self::observe::Watch;
use self::screen::Screen;
use crate::log::log;
use crate::memory::{HeldBy, MemoryWatch};
use crate::process::Process;
use crate::signals;
use crate::tree::Tree;

pub(crate) use self::terminal::guard as guard_terminal;

/// Signals that are meant for the command.
const PASSED_ON: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];
/// What a shell adds to the number of a signal that ended a command.
const SIGNALLED: i32 = 128;

/// What is asked for beside the command.
#[derive(Default)]
struct Wanted {
    tty: bool,
    /// Where to write a `Trace`.
    observe: Option<OsString>,
    attendant: Option<Attendant>,
}

/// `args`: `--tty` or `--observe FILE`, and the file that holds the document, which nobody else can open; or `--attended`
/// with a lock, or `--attended-to-its-end`, and the document comes from whoever attends it.
pub(crate) fn run(args: &[OsString]) -> ExitCode {
    let ended = match args {
        [kind, lock] if kind == "--attended" => attended(lock, false),
        [kind, lock] if kind == "--attended-to-its-end" => attended(lock, true),
        [tty, path] if tty == "--tty" => from_file(path, Wanted { tty: true, ..Wanted::default() }),
        [observe, file, path] if observe == "--observe" => {
            from_file(path, Wanted { observe: Some(file.clone()), ..Wanted::default() })
        }
        [path] => from_file(path, Wanted::default()),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    };
    match ended {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "ostler: the command was not run: {error}");
            ExitCode::from(EXIT_REFUSED)
        }
    }
}

fn from_file(path: &OsString, wanted: Wanted) -> io::Result<ExitCode> {
    start(read_document(path)?, wanted)?.wait()
}

fn attended(lock: &OsString, ends_by_itself: bool) -> io::Result<ExitCode> {
    // A warden may be killed before it has said who its init is: then we are init's parent, and can wait for it.
    set_child_subreaper(Some(getpid()))?;
    let Some(attended::Begun { document, attendant, lock }) = attended::begin(lock.as_ref(), ends_by_itself)?
    else {
        return Ok(ExitCode::from(EXIT_REFUSED));
    };
    let wanted = Wanted { attendant: Some(attendant), ..Wanted::default() };
    let ended = start(document, wanted).and_then(Running::wait);
    until_nobody_is_left();
    drop(lock);
    ended
}

/// Waits for everybody who descends from here. An init closes its end of the channel, and with that it seems to be gone,
/// before the kernel ends what is inside; it is waited for only when nothing of that lives.
fn until_nobody_is_left() {
    while !matches!(wait(WaitOptions::empty()), Err(Errno::CHILD)) {}
}

fn read_document(path: &OsString) -> io::Result<CommandDocument> {
    let mut file = File::open(path)?;
    let mut json = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut json)?;
    Ok(serde_json::from_slice(&json)?)
}

/// A command that was started, and everything that is heard of it.
struct Running {
    /// The warden, or an init of our own.
    child: Child,
    channel: OwnedFd,
    exec_status: PipeReader,
    signals: Vec<(i32, UnixStream)>,
    carriers: Carriers,
    /// The command's own terminal, where it has one.
    screen: Option<Screen>,
    observe: Option<Observe>,
    attendant: Option<Attendant>,
    agent: Option<u32>,
    tree: Tree,
    memory: Option<MemoryWatch>,
    /// Names of files that make programs outside run code, and were changed.
    tampered: Vec<String>,
}

/// A command is watched: where to write what was seen, in what it runs, and by whom, once it does.
struct Observe {
    file: OsString,
    confinement: Confinement,
    watch: Option<Watch>,
}

fn start(document: CommandDocument, Wanted { tty, observe, attendant }: Wanted) -> io::Result<Running> {
    if observe.is_some() {
        // Whoever wants to know is another process, and the command ends with it.
        set_parent_process_death_signal(Some(Signal::TERM))?;
    }
    // Before anything runs that one of them could be meant for.
    let signals = PASSED_ON.iter().chain(tty.then_some(&SIGWINCH));
    let signals = signals.map(|&signal| Ok((signal, signals::pipe(signal)?)));
    let signals = signals.collect::<io::Result<Vec<_>>>()?;
    let mut screen = tty.then(Screen::open).transpose()?;
    let mode = if document.confinement.is_some() { "warden" } else { "init" };
    let CommandDocument { program, args, mut env, cwd, confinement } = document;
    let ([stdin, stdout, stderr], carriers) = match &mut screen {
        // A warden makes a terminal where the command finds it; without one it is made here.
        Some(screen) if confinement.is_none() => (screen.far_side()?, Carriers::none()?),
        Some(_) => (nothing()?, Carriers::none()?),
        None => carry::begin(attendant.is_none())?,
    };
    if tty {
        env.retain(|(name, _)| name != "TERM");
        env.push(("TERM".to_owned(), terminal::kind()));
    }
    let (exec_status, exec_write) = pipe()?;
    let terminal = tty.then(terminal::size);
    let observe = observe
        .map(|file| {
            let confinement =
                confinement.clone().ok_or_else(|| io::Error::other("there is no sandbox to watch"))?;
            io::Result::Ok(Observe { file, confinement, watch: None })
        })
        .transpose()?;
    let is_observed = observe.is_some();
    let confined = confinement.is_some();
    let limit_bytes = confinement.as_ref().and_then(|confinement| confinement.limits.memory_bytes);
    let memory = limit_bytes.map(|bytes| MemoryWatch::new(bytes, HeldBy::Keeper, Instant::now()));
    let order = Order {
        program,
        args,
        env,
        cwd,
        cgroup_procs: Vec::new(),
        confinement,
        terminal,
        observe: is_observed,
    };
    let ends = AgentEnds { stdin, stdout, stderr, exec_status: exec_write.into() };
    let (channel, child) = channel::start(mode, &order, ends)?;
    let tree = Tree::new(child.id(), confined, None);
    Ok(Running {
        child,
        channel,
        exec_status,
        signals,
        carriers,
        screen,
        observe,
        attendant,
        agent: None,
        tree,
        memory,
        tampered: Vec::new(),
    })
}

fn nothing() -> io::Result<[OwnedFd; 3]> {
    let null = || File::options().read(true).write(true).open("/dev/null").map(OwnedFd::from);
    Ok([null()?, null()?, null()?])
}

impl Running {
    fn wait(mut self) -> io::Result<ExitCode> {
        let mut status = None;
        loop {
            match channel::receive_report(&self.channel)? {
                Received::Message(InitReport::Housed { init_pid }) => self.tree.set_pid_one(init_pid),
                Received::Message(InitReport::Started { pid, .. }) => {
                    self.agent = Some(pid);
                    self.heed()?;
                }
                Received::Message(InitReport::Tampered { names }) => self.tampered.extend(names),
                Received::Message(InitReport::Ended { status: ended }) if status.is_none() => {
                    status = Some(ExitStatus::from_raw(ended));
                    // The warden ends what the command has left, and has a last word.
                    self.memory = None;
                    shutdown(&self.channel, Shutdown::Write)?;
                }
                Received::Message(InitReport::NotStarted { message, .. }) => {
                    return Err(io::Error::other(message));
                }
                Received::Terminal(near) => {
                    self.screen.as_mut().map(|screen| screen.connect(near)).transpose()?;
                }
                Received::Observer(listener) => {
                    if let Some(observe) = &mut self.observe {
                        observe.watch = Some(Watch::new(listener, observe.confinement.clone()));
                    }
                }
                Received::Message(InitReport::Breached { why }) => log!("the command is ended: {why}"),
                Received::Message(_) | Received::Listener(_) => {}
                Received::Closed => break,
                Received::NotYet => self.listen()?,
            }
        }
        // Whoever is still there ends with us.
        drop(self.channel);
        let _ = self.child.wait();
        if let Some(signal) = until_carried(&self.carriers, &self.signals)? {
            return Ok(exit_code(SIGNALLED + signal));
        }
        let carried = self.carriers.finish();
        // Behind this the caller's terminal is as it was, and can be spoken to.
        self.screen.map(Screen::drain).transpose()?;
        if !self.tampered.is_empty() {
            let names = self.tampered.join(", ");
            let _ =
                writeln!(io::stderr(), "ostler: changed, and may make programs outside run code: {names}");
        }
        let mut said = Vec::new();
        self.exec_status.read_to_end(&mut said)?;
        if let Some(ExecReport::Failed { stage, message, hint, .. }) = channel::failed(&said) {
            let hint = if hint.is_empty() { hint } else { format!("; {hint}") };
            return Err(io::Error::other(format!("{stage}: {message}{hint}")));
        }
        let status = status.ok_or_else(|| io::Error::other("its sandbox ended without a word"))?;
        if let Some(Observe { file, watch: Some(watch), .. }) = self.observe {
            fs::write(file, serde_json::to_vec(&watch.into_trace())?)?;
        }
        if let Err(error) = carried {
            let _ = writeln!(io::stderr(), "ostler: the command's output could not be written: {error}");
            return Ok(ExitCode::FAILURE);
        }
        let code = status.code().or_else(|| status.signal().map(|signal| SIGNALLED + signal));
        Ok(code.map_or(ExitCode::from(EXIT_REFUSED), exit_code))
    }

    /// Waits for a report, a signal or a key; hands signals and keys on.
    fn listen(&mut self) -> io::Result<()> {
        let stdin = io::stdin();
        let mut fds = vec![PollFd::new(&self.channel, PollFlags::IN)];
        fds.extend(self.signals.iter().map(|(_, pipe)| PollFd::new(pipe, PollFlags::IN)));
        let signals_end = fds.len();
        let keys = self.screen.as_ref().and_then(|screen| screen.wants_keys().then_some(fds.len()));
        fds.extend(self.screen.iter().flat_map(|screen| screen.poll_fds(&stdin)));
        let watch = self.observe.as_ref().and_then(|observe| observe.watch.as_ref());
        let observer = watch.and_then(Watch::observer);
        let told = observer.map(|_| fds.len());
        fds.extend(observer.map(|observer| PollFd::new(observer, PollFlags::IN)));
        let attended = self.attendant.as_ref().and_then(Attendant::listens_on);
        fds.extend(attended.map(|stream| PollFd::from_borrowed_fd(stream, PollFlags::IN)));
        let until = match &self.attendant {
            Some(attendant) if attendant.is_to_end() => Some(attended::LOOK),
            _ => self.memory.as_ref().map(|memory| remaining(memory.wake_at())),
        };
        match poll(&mut fds, until.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let is_ready = |place: usize| !fds[place].revents().is_empty();
        let arrived: Vec<bool> = (1..signals_end).map(is_ready).collect();
        let keys_are_waiting = keys.is_some_and(is_ready);
        // When nobody is left who could be watched, it hangs up.
        let is_told = told.is_some_and(|place| fds[place].revents().contains(PollFlags::IN));
        let is_over = told.is_some_and(|place| !is_told && is_ready(place));
        drop(fds);
        if let Some(observe) = &mut self.observe
            && let Some(watch) = &mut observe.watch
        {
            if is_told {
                watch.hear()?;
            } else if is_over {
                watch.close();
            }
        }
        for ((signal, pipe), _) in self.signals.iter_mut().zip(arrived).filter(|(_, arrived)| *arrived) {
            signals::drain(pipe);
            if *signal == SIGWINCH {
                self.screen.iter().for_each(Screen::resize);
                continue;
            }
            let known = Signal::from_named_raw(*signal);
            if let (Some(process), Some(signal)) = (self.agent.and_then(Process::find), known) {
                process.signal(signal);
                // Who is stopped hears nothing else.
                process.signal(Signal::CONT);
            }
        }
        self.check_memory();
        self.heed()?;
        self.screen.as_mut().map_or(Ok(()), |screen| screen.carry(keys_are_waiting))
    }
}

impl Running {
    /// Does what whoever attends the command says.
    fn heed(&mut self) -> io::Result<()> {
        let has_started = self.agent.is_some();
        self.attendant.as_mut().map_or(Ok(()), |attendant| attendant.heed(&mut self.tree, has_started))
    }

    /// A command that has taken more than it may is ended with all that it has started.
    fn check_memory(&mut self) {
        let Some(watch) = &mut self.memory else { return };
        let Some(bytes) = watch.excess(&self.tree, Instant::now()) else { return };
        let limit = watch.limit_bytes();
        let _ = writeln!(
            io::stderr(),
            "ostler: the command is ended: its processes have {bytes} bytes of memory, the limit is {limit}"
        );
        self.memory = None;
        self.tree.kill_round();
    }
}

fn remaining(until: Instant) -> Timespec {
    let left = until.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
    Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) }
}

fn exit_code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(EXIT_REFUSED))
}

/// Waits until the caller has everything that an ended command has said, or has sent us away with a signal.
fn until_carried(carriers: &Carriers, signals: &[(i32, UnixStream)]) -> io::Result<Option<i32>> {
    loop {
        let mut fds = vec![PollFd::new(carriers.over(), PollFlags::IN)];
        fds.extend(signals.iter().map(|(_, pipe)| PollFd::new(pipe, PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        }
        if !fds[0].revents().is_empty() {
            return Ok(None);
        }
        let arrived = fds[1..].iter().position(|fd| !fd.revents().is_empty());
        if let Some((signal, _)) = arrived.map(|place| &signals[place]) {
            return Ok(Some(*signal));
        }
    }
}
