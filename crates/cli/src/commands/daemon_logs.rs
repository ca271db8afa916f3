//! `ostler daemon logs`: what the daemon says, whichever form it writes, over the files that were put aside.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, BufRead, BufReader},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use ostler_domain::{
    Reason, Refusal,
    home::old_log,
    log::{self, Level},
};
use tokio::time::sleep;

use crate::{
    app::App,
    failure::Failure,
    output::{Format, Line, Rows, Tone},
};

/// How often a log that is followed is looked at: the file is local, and a line more or less is late by a fifth of a second.
const LOOK: Duration = Duration::from_millis(200);
/// Bytes of one line that are read as one.
const LINE_BYTES: u64 = 1024 * 1024;

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Go on with what it says from now on
    #[arg(short, long)]
    follow: bool,
    /// The last N lines; 0 means all
    #[arg(long, default_value_t = 50, value_name = "N")]
    tail: usize,
    /// Only what is at least this grave: error, warn, info, debug, trace
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    level: Option<Level>,
}

fn level(text: &str) -> Result<Level, String> {
    let known = || Level::ALL.iter().map(|level| level.as_str()).collect::<Vec<_>>().join(", ");
    Level::parse(text).ok_or_else(|| format!("a level is one of {}", known()))
}

pub(crate) async fn run(app: &App, args: LogsArgs) -> Result<(), Failure> {
    if args.follow && app.ui.format() == Some(Format::Json) {
        return Err(Refusal::invalid("what is followed has no end, so it is no single object")
            .hint("ostler daemon logs -f -o jsonl", "prints an object a line")
            .into());
    }
    let path = app.home()?.daemon_log();
    let mut newest = Reader::open(&path).map_err(|error| none_yet(&error))?;
    let mut last = Last { lines: VecDeque::new(), most: args.tail };
    let mut sieve = Sieve { least: args.level, level: None };
    for path in put_aside(&path).iter().rev() {
        // It may be put aside once more while it is read.
        if let Ok(mut old) = Reader::open(path) {
            old.read(|line| last.take(&mut sieve, line)).map_err(unreadable)?;
        }
    }
    newest.read(|line| last.take(&mut sieve, line)).map_err(unreadable)?;
    if app.ui.is_json() {
        let rows = Rows::new(&app.ui, "lines");
        last.lines.iter().try_for_each(|line| rows.row(line))?;
        rows.end()?;
    } else {
        last.lines.iter().try_for_each(|line| say(app, line))?;
    }
    if args.follow { follow(app, newest, &path, sieve).await } else { Ok(()) }
}

/// Goes on until somebody interrupts it.
async fn follow(app: &App, mut newest: Reader, path: &Path, mut sieve: Sieve) -> Result<(), Failure> {
    loop {
        app.ui.flush()?;
        sleep(LOOK).await;
        let mut more = Vec::new();
        newest.read(|line| more.push(line)).map_err(unreadable)?;
        // Read to its end first: what was written before it was put aside is still there.
        if newest.was_put_aside(path)
            && let Ok(next) = Reader::open(path)
        {
            newest = next;
            newest.read(|line| more.push(line)).map_err(unreadable)?;
        }
        for line in more.into_iter().filter_map(|line| sieve.pass(line)) {
            say(app, &line)?;
        }
    }
}

fn none_yet(error: &io::Error) -> Failure {
    let refusal = Refusal::new(Reason::WrongState, "the daemon has written no log yet");
    refusal.because(error.to_string()).hint("ostler daemon start", "starts one in the background").into()
}

fn unreadable(error: io::Error) -> Failure {
    Refusal::internal(format!("the log cannot be read: {error}")).into()
}

/// The files that were put aside, the latest first.
fn put_aside(log: &Path) -> Vec<PathBuf> {
    (1..).map(|n| old_log(log, n)).take_while(|path| path.exists()).collect()
}

fn say(app: &App, line: &log::Line) -> Result<(), Failure> {
    if app.ui.is_json() { app.ui.json(line) } else { app.ui.data(&shown(line)) }
}

fn shown(line: &log::Line) -> Line {
    let level = line.level.map_or(Line::new(), |level| {
        let word = format!("{:>5} ", level.as_str().to_uppercase());
        match level {
            Level::Error => Line::toned(Tone::Bad, word),
            Level::Warn => Line::toned(Tone::Warn, word),
            Level::Info | Level::Debug | Level::Trace => Line::of(word),
        }
    });
    let time = line.time.as_ref().map_or(Line::new(), |time| Line::new().faint(format!("{time} ")));
    time.append(level).append(Line::of(line.sentence()))
}

/// Lets through what is grave enough. A line without a level belongs to the one before it.
struct Sieve {
    least: Option<Level>,
    level: Option<Level>,
}

impl Sieve {
    fn pass(&mut self, text: String) -> Option<log::Line> {
        let line = log::Line::read(&text);
        self.level = line.level.or(self.level);
        let fits = self.least.is_none_or(|least| self.level.is_some_and(|level| level <= least));
        fits.then_some(line)
    }
}

/// The last lines, or all.
struct Last {
    lines: VecDeque<log::Line>,
    most: usize,
}

impl Last {
    fn take(&mut self, sieve: &mut Sieve, text: String) {
        let Some(line) = sieve.pass(text) else { return };
        if self.most > 0 && self.lines.len() == self.most {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }
}

/// A file and how far it was read.
struct Reader {
    file: BufReader<File>,
    inode: u64,
    /// The beginning of a line whose end is not written yet.
    half: Vec<u8>,
}

impl Reader {
    fn open(path: &Path) -> io::Result<Reader> {
        let file = File::open(path)?;
        let inode = file.metadata()?.ino();
        Ok(Reader { file: BufReader::new(file), inode, half: Vec::new() })
    }

    /// Hands on all whole lines that there are.
    fn read(&mut self, mut take: impl FnMut(String)) -> io::Result<()> {
        loop {
            let room = LINE_BYTES.saturating_sub(self.half.len() as u64).max(1);
            let read = io::Read::take(&mut self.file, room).read_until(b'\n', &mut self.half)?;
            if read == 0 {
                return Ok(());
            }
            if self.half.ends_with(b"\n") || self.half.len() as u64 >= LINE_BYTES {
                take(String::from_utf8_lossy(&self.half).trim_end().to_owned());
                self.half.clear();
            }
        }
    }

    fn was_put_aside(&self, path: &Path) -> bool {
        path.metadata().is_ok_and(|now| now.ino() != self.inode)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use super::*;
    use crate::output::Look;

    #[test]
    fn grave_lines_pass_with_what_belongs_to_them() {
        let mut last = Last { lines: VecDeque::new(), most: 3 };
        let mut sieve = Sieve { least: Some(Level::Warn), level: None };
        for text in [
            "2026-11-16T11:57:29Z  INFO ready pid=1",
            "  something behind it",
            "2026-11-16T11:57:30Z  WARN a hook failed why=\"x\"",
            "  and more of it",
            r#"{"timestamp":"2026-11-16T11:57:31Z","level":"ERROR","message":"no room","bytes":0}"#,
            "refused {\"reason\":\"STORE_NEWER\"}",
        ] {
            last.take(&mut sieve, text.to_owned());
        }
        let look = Look::plain(None);
        let lines: Vec<_> = last.lines.iter().map(|line| shown(line).show(&look)).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn a_log_is_read_over_its_being_put_aside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.log");
        fs::write(&path, "one\ntw").unwrap();
        let mut reader = Reader::open(&path).unwrap();
        let mut lines = Vec::new();
        reader.read(|line| lines.push(line)).unwrap();
        assert_eq!(lines, ["one"]);
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"o\n").unwrap();
        fs::rename(&path, old_log(&path, 1)).unwrap();
        fs::write(&path, "three\n").unwrap();
        reader.read(|line| lines.push(line)).unwrap();
        assert!(reader.was_put_aside(&path));
        assert_eq!(lines, ["one", "two"]);
        assert_eq!(put_aside(&path), [dir.path().join("daemon.log.1")]);
    }
}
