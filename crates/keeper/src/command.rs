//! `ostler internal command`: runs one command in a sandbox for whoever waits for it, and ends with it. A keeper without
//! a tape: the caller's descriptors are the command's, but never the caller's terminal, into which it could type.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, PipeReader, Read, Seek, Write, pipe};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread;

use ostler_domain::command::CommandDocument;
use ostler_sandbox::channel::{self, AgentEnds, ExecReport, InitReport, Order, Received};
use ostler_tape::launch::EXIT_REFUSED;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::process::Process;
use crate::signals;

/// Signals that are meant for the command.
const PASSED_ON: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];
/// What a shell adds to the number of a signal that ended a command.
const SIGNALLED: i32 = 128;

/// `args`: the file that holds the document, which nobody else can open.
pub(crate) fn run(args: &[OsString]) -> ExitCode {
    let ended = args
        .first()
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
        .and_then(read_document)
        .and_then(start)
        .and_then(Running::wait);
    match ended {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "ostler: the command was not run: {error}");
            ExitCode::from(EXIT_REFUSED)
        }
    }
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
    /// What carries the command's output to a terminal.
    carriers: Vec<thread::JoinHandle<()>>,
    agent: Option<u32>,
}

fn start(document: CommandDocument) -> io::Result<Running> {
    // Before anything runs that one of them could be meant for.
    let signals = PASSED_ON.map(|signal| Ok((signal, signals::pipe(signal)?)));
    let signals = signals.into_iter().collect::<io::Result<Vec<_>>>()?;
    let mut carriers = Vec::new();
    let stdin = input()?;
    let stdout = output(io::stdout(), &mut carriers)?;
    let stderr = output(io::stderr(), &mut carriers)?;
    let (exec_status, exec_write) = pipe()?;
    let mode = if document.confinement.is_some() { "warden" } else { "init" };
    let CommandDocument { program, args, env, cwd, confinement } = document;
    let order = Order { program, args, env, cwd, cgroup_procs: None, confinement };
    let ends = AgentEnds { stdin, stdout, stderr, exec_status: exec_write.into() };
    let (channel, theirs) = channel::pair()?;
    channel::send_agent(&channel, &order, &ends)?;
    drop(ends);
    let child = Command::new("/proc/self/exe")
        .arg0("ostler")
        .args(["internal", mode])
        .env_clear()
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(Running { child, channel, exec_status, signals, carriers, agent: None })
}

/// The caller's input; what is typed is carried over.
fn input() -> io::Result<OwnedFd> {
    if !io::stdin().is_terminal() {
        return io::stdin().as_fd().try_clone_to_owned();
    }
    let (read, mut write) = pipe()?;
    // Ends with this process: nobody else waits for what is typed.
    thread::spawn(move || io::copy(&mut io::stdin().lock(), &mut write));
    Ok(read.into())
}

/// The caller's output; what goes to a terminal is carried over.
fn output(
    ours: impl AsFd + IsTerminal + Write + Send + 'static,
    carriers: &mut Vec<thread::JoinHandle<()>>,
) -> io::Result<OwnedFd> {
    if !ours.is_terminal() {
        return ours.as_fd().try_clone_to_owned();
    }
    let (mut read, write) = pipe()?;
    let mut ours = ours;
    carriers.push(thread::spawn(move || {
        let _ = io::copy(&mut read, &mut ours);
    }));
    Ok(write.into())
}

impl Running {
    fn wait(mut self) -> io::Result<ExitCode> {
        let status = loop {
            match channel::receive_report(&self.channel)? {
                Received::Message(InitReport::Started { pid, .. }) => self.agent = Some(pid),
                Received::Message(InitReport::Ended { status }) => break Some(ExitStatus::from_raw(status)),
                Received::Message(InitReport::NotStarted { message, .. }) => {
                    return Err(io::Error::other(message));
                }
                Received::Message(_) | Received::Listener(_) => {}
                Received::Closed => break None,
                Received::NotYet => self.listen()?,
            }
        };
        // The warden ends with us and takes along what the command has left.
        drop(self.channel);
        let _ = self.child.wait();
        for carrier in self.carriers {
            let _ = carrier.join();
        }
        let mut said = Vec::new();
        self.exec_status.read_to_end(&mut said)?;
        let reports = said.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        if let Some(ExecReport::Failed { stage, message, hint, .. }) =
            reports.into_iter().find(|report| matches!(report, ExecReport::Failed { .. }))
        {
            let hint = if hint.is_empty() { hint } else { format!("; {hint}") };
            return Err(io::Error::other(format!("{stage}: {message}{hint}")));
        }
        let status = status.ok_or_else(|| io::Error::other("its sandbox ended without a word"))?;
        let code = status.code().or_else(|| status.signal().map(|signal| SIGNALLED + signal));
        Ok(ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(EXIT_REFUSED)))
    }

    /// Waits for a report or a signal; hands signals on.
    fn listen(&mut self) -> io::Result<()> {
        let mut fds = vec![PollFd::new(&self.channel, PollFlags::IN)];
        fds.extend(self.signals.iter().map(|(_, pipe)| PollFd::new(pipe, PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let arrived: Vec<bool> = fds[1..].iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        for ((signal, pipe), _) in self.signals.iter_mut().zip(arrived).filter(|(_, arrived)| *arrived) {
            signals::drain(pipe);
            let known = Signal::from_named_raw(*signal);
            if let (Some(process), Some(signal)) = (self.agent.and_then(Process::find), known) {
                process.signal(signal);
            }
        }
        Ok(())
    }
}
