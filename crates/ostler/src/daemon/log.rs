//! The daemon's log: `daemon.log`, put aside when it is large; in the foreground standard error as well.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Mutex,
};

use ostler_domain::{
    Reason, Refusal,
    home::{self, Home},
    log::{Form, Level, Log},
};
use tracing_subscriber::{
    EnvFilter,
    fmt::{MakeWriter, writer::MakeWriterExt},
};

use super::Place;

pub(super) fn start(place: Place, home: &Home, log: Log) -> Result<(), Refusal> {
    let file = Rotating::open(home.daemon_log(), log);
    match (place, file) {
        (Place::Background, Ok(file)) => begin(log, Mutex::new(file)),
        (Place::Background, Err(error)) => {
            return Err(Refusal::internal("the daemon's log cannot be opened").because(error.to_string()));
        }
        (Place::Foreground, Ok(file)) => begin(log, io::stderr.and(Mutex::new(file))),
        // Whoever started it sees what it says.
        (Place::Foreground, Err(_)) => begin(log, io::stderr),
    }
    Ok(())
}

fn begin(log: Log, writer: impl for<'w> MakeWriter<'w> + Send + Sync + 'static) {
    let filter = EnvFilter::try_from_env("OSTLER_LOG").unwrap_or_else(|_| {
        // Libraries say what we do not want to read, such as every frame of HTTP, unless it is grave.
        let others = log.level.min(Level::Warn);
        EnvFilter::new(format!("{},ostler={}", others.as_str(), log.level.as_str()))
    });
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(false)
        // A line that cannot be written is lost, and nothing else: to complain about it on standard error, whose reader
        // may be long gone, would end the thread that has something to say.
        .log_internal_errors(false)
        .with_writer(writer);
    match log.form {
        Form::Text => builder.init(),
        Form::Json => {
            builder.json().flatten_event(true).with_current_span(false).with_span_list(false).init()
        }
    }
}

/// A file that is put aside when it has grown, as `daemon.log.1`, and older ones behind it; the oldest goes.
struct Rotating {
    path: PathBuf,
    file: File,
    written: u64,
    most: u64,
    files: u32,
}

impl Rotating {
    fn open(path: PathBuf, log: Log) -> io::Result<Rotating> {
        let file = open(&path)?;
        let written = file.metadata()?.len();
        Ok(Rotating { path, file, written, most: log.bytes, files: log.files })
    }

    /// A file that cannot be put aside is written on.
    fn put_aside(&mut self) {
        self.written = 0;
        for n in (1..self.files).rev() {
            let _ = fs::rename(home::old_log(&self.path, n), home::old_log(&self.path, n + 1));
        }
        let moved = match self.files {
            0 => fs::remove_file(&self.path),
            _ => fs::rename(&self.path, home::old_log(&self.path, 1)),
        };
        if let Ok(file) = moved.and_then(|()| open(&self.path)) {
            self.file = file;
        }
    }
}

impl Write for Rotating {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let length = line.len() as u64;
        if self.written > 0 && self.written + length > self.most {
            self.put_aside();
        }
        // A line is written at once, so that another program that reads along never sees half of one put aside.
        self.file.write_all(line)?;
        self.written += length;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lets go of the starter, which has heard all that it waits for: what nobody reads any more must not be written to.
pub(super) fn let_go_of_starter(place: Place) {
    if place == Place::Background
        && let Ok(null) = OpenOptions::new().write(true).open("/dev/null")
    {
        let _ = rustix::stdio::dup2_stderr(&null);
    }
}

/// Says why the daemon did not start, where somebody will look: the starter reads standard error, people the log.
pub(super) fn last_words(place: Place, refusal: &Refusal, exit: u8) {
    let line = format!("refused {}", serde_json::to_string(refusal).unwrap_or_default());
    match place {
        Place::Foreground => {
            let mut text = format!("error: {} [{}, exit {exit}]\n", refusal.message, refusal.reason);
            if let Some(why) = &refusal.why {
                text += &format!("  why: {why}\n");
            }
            for hint in &refusal.hints {
                text += &format!("  try: {}   {}\n", hint.command, hint.effect);
            }
            let _ = io::stderr().write_all(text.as_bytes());
        }
        Place::Background => {
            let _ = writeln!(io::stderr(), "{line}");
            // Whoever misses the daemon starts one, and of many that do at once one serves: nothing is wrong with that.
            if refusal.reason != Reason::DaemonRunning
                && let Ok(home) = Home::resolve(|name| std::env::var(name).ok())
                && let Ok(mut file) = open(&home.daemon_log())
            {
                let _ = writeln!(file, "{line}");
            }
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_is_put_aside_and_the_oldest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.log");
        let log = Log { level: Level::Info, form: Form::Text, bytes: 100, files: 2 };
        let mut file = Rotating::open(path.clone(), log).unwrap();
        let say = |file: &mut Rotating, line: String| file.write_all(format!("{line}\n").as_bytes()).unwrap();
        let line = |n: u32| format!("line {n:04} of a log that grows and grows");
        (0..40).for_each(|n| say(&mut file, line(n)));
        let lines = |path: &Path| fs::read_to_string(path).unwrap().lines().count();
        let old = |n| home::old_log(&path, n);
        assert_eq!((lines(&path), lines(&old(1)), lines(&old(2))), (2, 2, 2));
        assert!(!old(3).exists());
        assert!(fs::read_to_string(&path).unwrap().contains("line 0039"));
        // The next daemon goes on where this one was.
        let mut file = Rotating::open(path.clone(), log).unwrap();
        say(&mut file, line(40));
        assert_eq!((lines(&path), lines(&old(1))), (1, 2));
        let none = Log { files: 0, ..log };
        let mut file = Rotating::open(path.clone(), none).unwrap();
        say(&mut file, "x".repeat(90));
        assert_eq!(lines(&path), 1);
        assert!(fs::read_to_string(old(1)).unwrap().contains("line 0039"));
    }
}
