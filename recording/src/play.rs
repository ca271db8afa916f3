//! Playing: a shell in a terminal that `script` gives it, and what it printed when.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use crate::{COLUMNS, Outcome, ROWS};

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Typed, seen and run.
    Shown(String),
    /// Run before anything is seen, or between.
    Hidden(String),
}

/// What was printed, and how long after what came before.
pub(crate) struct Piece {
    pub(crate) after: Duration,
    pub(crate) bytes: Vec<u8>,
}

/// Reads a file of lines: `$ typed and seen`, `: only done`, `# a remark`.
pub(crate) fn lines(text: &str) -> Outcome<Vec<Line>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let read = |line: &str| match line.split_at_checked(2) {
        Some(("$ ", rest)) => Ok(Line::Shown(rest.to_owned())),
        Some((": ", rest)) => Ok(Line::Hidden(rest.to_owned())),
        _ => Err(format!("\"{line}\" begins with neither \"$ \" nor \": \"").into()),
    };
    lines.map(read).collect()
}

/// What the shell has before the lines: a way to type, and an end that leaves nothing running.
const BEGIN: &str = r#"
trap 'ostler daemon stop --stop-sessions >/dev/null 2>&1' EXIT
hidden() { eval "$1" </dev/null >/dev/null 2>&1 || { echo "failed: $1"; exit 1; }; }
shown() {
  line=${1//\$ID/$ID}
  printf '\033[1;32m$\033[0m '
  sleep 0.4
  for ((n = 0; n < ${#line}; n++)); do printf '%s' "${line:n:1}"; sleep 0.03; done
  sleep 0.3
  printf '\n'
  eval "$line"
  sleep 2
  printf '\n'
}
"#;

fn script(lines: &[Line]) -> String {
    let mut text = format!("stty cols {COLUMNS} rows {ROWS}\n{BEGIN}");
    for line in lines {
        let (verb, words) = match line {
            Line::Shown(words) => ("shown", words),
            Line::Hidden(words) => ("hidden", words),
        };
        text.push_str(&format!("{verb} {}\n", quoted(words)));
    }
    text
}

fn quoted(words: &str) -> String {
    format!("'{}'", words.replace('\'', r"'\''"))
}

/// How long the live screen is given to draw everything. It is killed then: who ends in an orderly way wipes its screen.
const DRAWN_WITHIN: &str = "6";

/// The live screen of a home.
pub(crate) fn screen(program: &Path, home: &Path) -> Outcome<Vec<Piece>> {
    let place = tempfile::Builder::new().prefix("ostler-recording-").tempdir()?;
    let [printed, times] = ["printed", "times"].map(|name| place.path().join(name));
    let program = program.canonicalize()?;
    // In the terminal's foreground: who draws from its background is stopped by the kernel. And nobody is left to tell how it
    // ended on top of what was drawn.
    let line = format!(
        "stty cols {COLUMNS} rows {ROWS}; exec timeout --foreground -s KILL {DRAWN_WITHIN} {} top",
        quoted(&program.display().to_string())
    );
    let mut terminal = Command::new("script");
    terminal.args(["--quiet", "--return", "--command", &line]);
    terminal.arg("--log-out").arg(&printed).arg("--log-timing").arg(&times);
    terminal.args(["--logging-format", "classic"]).env("OSTLER_HOME", home).env("TERM", "xterm-256color");
    terminal.env_remove("NO_COLOR").stdin(Stdio::null()).stdout(Stdio::null());
    terminal.status().map_err(|error| format!("script cannot be run (util-linux): {error}"))?;
    pieces(&fs::read(&printed)?, &fs::read_to_string(&times)?)
}

/// Plays the lines in a home and a directory of their own.
pub(crate) fn play(program: &Path, lines: &[Line]) -> Outcome<Vec<Piece>> {
    let place = tempfile::Builder::new().prefix("ostler-recording-").tempdir()?;
    let (bin, shop) = (place.path().join("bin"), place.path().join("shop"));
    fs::create_dir(&bin)?;
    fs::create_dir(&shop)?;
    std::os::unix::fs::symlink(program.canonicalize()?, bin.join("ostler"))?;
    let [played, printed, times] = ["play.sh", "printed", "times"].map(|name| place.path().join(name));
    fs::write(&played, script(lines))?;
    let path = env_path(&bin)?;
    let mut terminal = Command::new("script");
    terminal.args(["--quiet", "--return", "--command", &format!("bash {}", played.display())]);
    terminal.arg("--log-out").arg(&printed).arg("--log-timing").arg(&times);
    terminal.args(["--logging-format", "classic"]).current_dir(&shop);
    terminal.env("PATH", path).env("OSTLER_HOME", place.path().join("home")).env("TERM", "xterm-256color");
    terminal.env_remove("NO_COLOR").stdin(Stdio::null()).stdout(Stdio::null());
    let status = terminal.status().map_err(|error| format!("script cannot be run (util-linux): {error}"))?;
    let bytes = fs::read(&printed)?;
    if !status.success() {
        return Err(format!("the lines ended with {status}: {}", String::from_utf8_lossy(&bytes)).into());
    }
    pieces(&bytes, &fs::read_to_string(&times)?)
}

fn env_path(first: &Path) -> Outcome<std::ffi::OsString> {
    let usual = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::iter::once(first.to_owned()).chain(std::env::split_paths(&usual));
    Ok(std::env::join_paths(dirs)?)
}

/// What `script` wrote: its first line and its last are its own, and the times say how many bytes came when.
fn pieces(bytes: &[u8], times: &str) -> Outcome<Vec<Piece>> {
    let begin = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut rest = &bytes[begin..];
    let mut pieces = Vec::new();
    for line in times.lines() {
        let (after, count) = line.split_once(' ').ok_or("a time without bytes")?;
        let count: usize = count.trim().parse()?;
        let (piece, others) = rest.split_at_checked(count).ok_or("fewer bytes than times")?;
        rest = others;
        pieces.push(Piece { after: Duration::from_secs_f64(after.parse()?), bytes: piece.to_owned() });
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_shown_hidden_or_remarks() {
        let read = lines("# about\n: git init\n\n$ ostler ls\n").unwrap();
        assert_eq!(read, [Line::Hidden("git init".to_owned()), Line::Shown("ostler ls".to_owned())]);
        assert!(lines("ostler ls\n").is_err());
        assert!(script(&[Line::Shown("say 'it'".to_owned())]).ends_with("shown 'say '\\''it'\\'''\n"));
    }

    #[test]
    fn what_script_wrote_is_taken_apart() {
        let pieces = pieces(b"Script started\nabcde\nScript done\n", "0.5 2\n0.25 3\n").unwrap();
        assert_eq!(pieces[0].bytes, b"ab");
        assert_eq!((pieces[1].bytes.as_slice(), pieces[1].after), (&b"cde"[..], Duration::from_millis(250)));
    }
}
