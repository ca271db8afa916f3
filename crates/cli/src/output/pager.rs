//! What is longer than the screen goes to the person's pager; what fits is printed as if there were none.

use std::{
    env,
    io::{self, Write},
    process::{Child, Command, Stdio},
};

use tokio::signal::unix::{SignalKind, signal};

/// The screen that something has to fit on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

/// Output that may become longer than the screen.
#[derive(Debug)]
pub(crate) struct Pager {
    command: String,
    room: Room,
    state: State,
}

#[derive(Debug)]
enum State {
    /// So far it fits.
    Held(Vec<u8>),
    Paged(Child),
    /// There is no such program.
    Printed,
}

impl Pager {
    /// The pager that the person wants, if any.
    pub(crate) fn find(room: Room) -> Option<Self> {
        let command = wanted(env::var("PAGER").ok())?;
        Some(Self { command, room, state: State::Held(Vec::new()) })
    }

    fn begin(&mut self) -> io::Result<()> {
        let State::Held(held) = &mut self.state else { return Ok(()) };
        let held = std::mem::take(held);
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(&self.command).stdin(Stdio::piped());
        // F: what fits is only printed. R: colours. X: it stays on the screen.
        if env::var_os("LESS").is_none() {
            shell.env("LESS", "FRX");
        }
        leave_interrupts_to_it();
        match shell.spawn() {
            Ok(child) => self.state = State::Paged(child),
            Err(_) => self.state = State::Printed,
        }
        self.write_all(&held)
    }

    /// Shows the rest and waits until it was read.
    pub(crate) fn end(mut self) -> io::Result<()> {
        match &mut self.state {
            State::Held(held) => io::stdout().write_all(held)?,
            State::Paged(child) => {
                drop(child.stdin.take());
                child.wait()?;
            }
            State::Printed => {}
        }
        io::stdout().flush()
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Held(held) => {
                held.extend_from_slice(bytes);
                // The prompt of the shell needs a row too.
                if height(held, self.room.columns) >= self.room.rows {
                    self.begin()?;
                }
                Ok(bytes.len())
            }
            State::Paged(child) => match &mut child.stdin {
                Some(stdin) => stdin.write(bytes),
                None => Err(io::ErrorKind::BrokenPipe.into()),
            },
            State::Printed => io::stdout().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::Held(_) => Ok(()),
            State::Paged(child) => child.stdin.as_mut().map_or(Ok(()), Write::flush),
            State::Printed => io::stdout().flush(),
        }
    }
}

fn wanted(said: Option<String>) -> Option<String> {
    let command = said.unwrap_or_else(|| "less".to_owned());
    let command = command.trim();
    (!command.is_empty() && command != "cat").then(|| command.to_owned())
}

/// Rows that a text takes on a screen; colours take none.
fn height(text: &[u8], columns: usize) -> usize {
    let text = String::from_utf8_lossy(text);
    let rows = |line: &str| {
        let mut width = 0;
        let mut in_escape = false;
        for c in line.chars() {
            match (in_escape, c) {
                (false, '\u{1b}') => in_escape = true,
                (true, 'a'..='z' | 'A'..='Z') => in_escape = false,
                (true, _) => {}
                (false, c) => width += unicode_width::UnicodeWidthChar::width(c).unwrap_or(0),
            }
        }
        width.div_ceil(columns.max(1)).max(1)
    };
    text.lines().map(rows).sum()
}

/// Ctrl-C is the pager's while it shows something: it stops a search and ends nothing. Once caught, the signal does
/// nothing here, also when the runtime that caught it is gone.
fn leave_interrupts_to_it() {
    let catch = || drop(signal(SignalKind::interrupt()));
    if tokio::runtime::Handle::try_current().is_ok() {
        catch();
    } else if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() {
        let _inside = runtime.enter();
        catch();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_is_used_where_nothing_is_said_and_nothing_where_nothing_is_wanted() {
        let wanted = |said: Option<&str>| wanted(said.map(str::to_owned));
        assert_eq!(wanted(None).as_deref(), Some("less"));
        assert_eq!(wanted(Some("most -w")).as_deref(), Some("most -w"));
        assert_eq!(wanted(Some(" ")), None);
        assert_eq!(wanted(Some("cat")), None);
    }

    #[test]
    fn a_long_line_takes_many_rows_and_a_colour_none() {
        assert_eq!(height(b"one\ntwo\n", 10), 2);
        assert_eq!(height(b"0123456789abc\n\n", 10), 3);
        assert_eq!(height("\u{1b}[1;31m0123456789\u{1b}[0m\n".as_bytes(), 10), 1);
        assert_eq!(height("日本語日本語\n".as_bytes(), 10), 2);
    }

    #[test]
    fn what_is_too_long_is_read_by_the_pager_whole() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("read");
        let pager = |rows| Pager {
            command: format!("cat > {}", file.display()),
            room: Room { rows, columns: 80 },
            state: State::Held(Vec::new()),
        };
        let mut long = pager(3);
        for n in 0..5 {
            writeln!(long, "line {n}").unwrap();
        }
        assert!(matches!(long.state, State::Paged(_)));
        long.end().unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "line 0\nline 1\nline 2\nline 3\nline 4\n");
        let mut short = pager(8);
        writeln!(short).unwrap();
        assert!(matches!(short.state, State::Held(_)));
    }
}
