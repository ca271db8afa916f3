//! What a person types while something else goes on, and what comes on standard input.

use std::{
    io::{self, BufRead, IsTerminal, Read},
    time::{Duration, Instant},
};

use ostler_domain::{Reason, Refusal};
use tokio::sync::mpsc;

use crate::{
    failure::Failure,
    output::{Line, Ui},
    terminal::{self, OneKey},
    typing::{Pressed, Typing},
    words,
};

/// Lines or keys typed ahead; a person does not reach it.
const TYPED_AHEAD: usize = 64;

/// Whoever has something to say on standard input usually begins within this time.
const SOON: Duration = Duration::from_secs(2);

/// What a person types while other things are said: at a terminal key by key into a line at the bottom, which stays
/// there; else line by line. The thread that reads ends with the program: a read cannot be called off.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    source: Source,
    typing: Typing,
    label: String,
    /// While it is shown.
    terminal: Option<OneKey>,
}

#[derive(Debug, Default)]
enum Source {
    #[default]
    NotOpen,
    Lines(mpsc::Receiver<String>),
    Keys(mpsc::Receiver<u8>),
}

impl Lines {
    /// Asks for a line: what is typed stands behind the label. Keys of `at_once` need no Enter. Until the first time
    /// nothing is taken from who comes after.
    pub(crate) fn ask(&mut self, ui: &Ui, label: &str, at_once: &'static str) {
        self.typing.appears(at_once, Instant::now());
        self.show(ui, label);
    }

    /// The same for a menu that was called up.
    pub(crate) fn ask_whoever_called(&mut self, ui: &Ui, label: &str, at_once: &'static str) {
        self.typing.called_up(at_once);
        self.show(ui, label);
    }

    /// What was asked is answered: whatever is asked next appears anew, also with the same keys.
    pub(crate) fn answered(&mut self) {
        self.typing.is_over();
    }

    fn show(&mut self, ui: &Ui, label: &str) {
        if matches!(self.source, Source::NotOpen) {
            self.source = if ui.has_person() && ui.err_look().in_place {
                Source::Keys(read(|| terminal::byte().ok().flatten()))
            } else {
                Source::Lines(read(|| {
                    let mut line = String::new();
                    let read = io::stdin().read_line(&mut line).ok()?;
                    (read > 0).then(|| line.trim_end_matches(['\n', '\r']).to_owned())
                }))
            };
        }
        let has_new_label = self.label != label;
        label.clone_into(&mut self.label);
        match self.source {
            Source::Keys(_) => {
                if self.terminal.is_none() {
                    self.terminal = OneKey::begin_beside_signals().ok();
                }
                ui.show_input(label, self.typing.text());
            }
            _ if has_new_label && !label.is_empty() => ui.prompt(&Line::new().strong(label)),
            _ => {}
        }
    }

    /// Takes the line at the bottom away and gives the terminal back.
    pub(crate) fn rest(&mut self, ui: &Ui) {
        self.terminal = None;
        self.typing.is_over();
        ui.hide_input();
    }

    /// Waits for a line; `None` once, at the end of the input. For ever while nothing was asked.
    pub(crate) async fn next(&mut self, ui: &Ui) -> Option<String> {
        loop {
            let byte = match &mut self.source {
                Source::NotOpen => return std::future::pending().await,
                Source::Lines(lines) => {
                    let line = lines.recv().await;
                    if line.is_none() {
                        self.source = Source::NotOpen;
                    }
                    return line;
                }
                Source::Keys(bytes) => match bytes.recv().await {
                    Some(byte) => byte,
                    None => {
                        self.source = Source::NotOpen;
                        return None;
                    }
                },
            };
            // What is typed while nothing is asked waits for nobody.
            if self.terminal.is_none() {
                self.typing.ignore(byte);
                continue;
            }
            let Some(pressed) = self.typing.feed(byte, Instant::now()) else { continue };
            match pressed {
                Pressed::Changed => ui.show_input(&self.label, self.typing.text()),
                Pressed::Line(line) => {
                    ui.show_input(&self.label, "");
                    if !line.is_empty() {
                        ui.say(&Line::new().strong(&self.label).plain(" ").plain(&line));
                    }
                    return Some(line);
                }
                Pressed::End => {
                    self.source = Source::NotOpen;
                    return None;
                }
            }
        }
    }
}

/// Reads on a thread of its own, until there is no more.
fn read<T: Send + 'static>(mut next: impl FnMut() -> Option<T> + Send + 'static) -> mpsc::Receiver<T> {
    let (sender, receiver) = mpsc::channel(TYPED_AHEAD);
    std::thread::spawn(move || {
        while let Some(item) = next() {
            if sender.blocking_send(item).is_err() {
                return;
            }
        }
    });
    receiver
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

/// All of standard input, as text, if it ends in time.
pub(crate) fn whole_within(ui: &Ui, limit: Option<Duration>) -> Result<String, Failure> {
    let Some(limit) = limit else { return whole(ui) };
    remark_wait(ui, limit);
    let (sender, receiver) = std::sync::mpsc::channel();
    // Ends with the program: a read cannot be called off.
    std::thread::spawn(move || {
        // Nobody listens once the limit has passed.
        let _ = sender.send(bytes());
    });
    match receiver.recv_timeout(limit) {
        Ok(read) => text(read?, "standard input"),
        Err(_) => {
            let message = format!("standard input did not end within {}", words::took(limit));
            Err(Refusal::new(Reason::TimedOut, message)
                .because("nothing was started: what comes on standard input is a part of the prompt")
                .hint("ostler run \"…\" </dev/null", "gives none")
                .into())
        }
    }
}

/// All of standard input, as text.
pub(crate) fn whole(ui: &Ui) -> Result<String, Failure> {
    remark_wait(ui, Duration::MAX);
    text(bytes()?, "standard input")
}

/// Says what is waited for, where somebody may wonder.
fn remark_wait(ui: &Ui, limit: Duration) {
    if io::stdin().is_terminal() {
        ui.remark(&Line::new().faint("reading standard input, end it with Ctrl-D"));
    } else if limit > SOON && !speaks_soon() {
        // Whoever starts programs with a pipe that nobody closes would wonder what is waited for.
        ui.remark(&Line::new().faint("waiting for the end of standard input; </dev/null gives none"));
    }
}

fn bytes() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let most = ostler_domain::limits::MESSAGE_BYTES as u64 + 1;
    io::stdin()
        .lock()
        .take(most)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("standard input cannot be read: {error}")))?;
    if bytes.len() as u64 == most {
        let message = format!("standard input has more than {} bytes", ostler_domain::limits::MESSAGE_BYTES);
        return Err(Refusal::new(Reason::TooLarge, message)
            .because("no message is longer, and nothing was sent")
            .into());
    }
    Ok(bytes)
}

/// Says whether standard input has something to say, or ends, within a moment.
fn speaks_soon() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let stdin = rustix::stdio::stdin();
    let moment = Timespec { tv_sec: SOON.as_secs().cast_signed(), tv_nsec: 0 };
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
