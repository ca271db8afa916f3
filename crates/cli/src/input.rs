//! What a person types while something else goes on: lines of standard input, through a channel.

use std::io::{self, BufRead, IsTerminal, Read};

use tokio::sync::mpsc;

use crate::{
    failure::Failure,
    output::{Line, Ui},
};

/// Lines typed ahead; a person does not reach it.
const TYPED_AHEAD: usize = 64;

/// Lines of standard input as they come. The thread that reads ends with the program: a read cannot be called off.
#[derive(Debug, Default)]
pub(crate) struct Lines(Option<mpsc::Receiver<String>>);

impl Lines {
    /// Begins to read; until then nothing is taken from who comes after.
    pub(crate) fn open(&mut self) {
        if self.0.is_some() {
            return;
        }
        let (sender, receiver) = mpsc::channel(TYPED_AHEAD);
        std::thread::spawn(move || {
            for line in io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        self.0 = Some(receiver);
    }

    /// Waits for a line; `None` once, at the end of the input. For ever while it is not open.
    pub(crate) async fn next(&mut self) -> Option<String> {
        let Some(receiver) = &mut self.0 else { return std::future::pending().await };
        let line = receiver.recv().await;
        if line.is_none() {
            self.0 = None;
        }
        line
    }
}

/// Asks a person for a yes. No person, or an end of the input, is a no.
pub(crate) fn agrees(ui: &Ui, question: &str) -> bool {
    if !ui.has_person() {
        return false;
    }
    ui.prompt(&Line::of(question).faint(" [y/N]"));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Asks a person for leave that is usually given: an empty answer is a yes. No person is a no.
pub(crate) fn consents(ui: &Ui, question: &str) -> bool {
    if !ui.has_person() {
        return false;
    }
    ui.prompt(&Line::of(question).faint(" [Y/n]"));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok_and(|bytes| bytes > 0)
        && matches!(answer.trim().to_ascii_lowercase().as_str(), "" | "y" | "yes")
}

/// All of standard input, as text.
pub(crate) fn whole(ui: &Ui) -> Result<String, Failure> {
    if io::stdin().is_terminal() {
        ui.remark(&Line::new().faint("reading standard input, end it with Ctrl-D"));
    } else if !speaks_soon() {
        // Whoever starts programs with a pipe that nobody closes would wonder what is waited for.
        ui.remark(&Line::new().faint("waiting for the end of standard input; </dev/null gives none"));
    }
    let mut bytes = Vec::new();
    let most = ostler_domain::limits::MESSAGE_BYTES as u64 + 1;
    io::stdin()
        .lock()
        .take(most)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("standard input cannot be read: {error}")))?;
    text(bytes, "standard input")
}

/// Says whether standard input has something to say, or ends, within a moment.
fn speaks_soon() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdin = rustix::stdio::stdin();
    let moment = Timespec { tv_sec: 2, tv_nsec: 0 };
    !matches!(poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&moment)), Ok(0))
}

/// A file, as text.
pub(crate) fn file(path: &std::path::Path) -> Result<String, Failure> {
    let shown = path.display().to_string();
    let bytes =
        std::fs::read(path).map_err(|error| Failure::usage(format!("{shown} cannot be read: {error}")))?;
    text(bytes, &shown)
}

fn text(bytes: Vec<u8>, of: &str) -> Result<String, Failure> {
    String::from_utf8(bytes).map_err(|_| Failure::usage(format!("{of} is not UTF-8 text")))
}

/// Says whether something was given on standard input beside the arguments: a pipe or a file. Other descriptors
/// (sockets of services, `/dev/null`) say nothing and might never end.
pub(crate) fn is_given() -> bool {
    rustix::fs::fstat(rustix::stdio::stdin()).is_ok_and(|facts| {
        let kind = rustix::fs::FileType::from_raw_mode(facts.st_mode);
        matches!(kind, rustix::fs::FileType::Fifo | rustix::fs::FileType::RegularFile)
    })
}
