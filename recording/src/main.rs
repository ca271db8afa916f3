//! `ostler-recording PROGRAM LINES SVG`: types the lines of a file into a shell in a terminal of its own, and draws what is
//! seen there as a moving SVG. Started by `cargo xtask recording`. `ostler-recording --top PROGRAM HOME SVG`: draws the live
//! screen of a home. Started by `cargo xtask pictures`.
//!
//! Nothing in the picture is written by hand: what does not work any more is not in the next one.
#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, reason = "it talks to whoever started it in a terminal")]

mod film;
mod play;
mod svg;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Whatever went wrong: it is shown and ends the program.
type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The terminal: wide enough for a list, as high as a picture on a page may be.
pub(crate) const COLUMNS: u16 = 110;
pub(crate) const ROWS: u16 = 30;

fn main() -> ExitCode {
    let words: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let recorded = match words.as_slice() {
        [still, program, home, picture] if still == Path::new("--top") => top(program, home, picture),
        [program, lines, picture] => record(program, lines, picture),
        _ => {
            eprintln!("ostler-recording PROGRAM LINES SVG\nostler-recording --top PROGRAM HOME SVG");
            return ExitCode::from(2);
        }
    };
    match recorded {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ostler-recording: {error}");
            ExitCode::FAILURE
        }
    }
}

fn record(program: &Path, lines: &Path, picture: &Path) -> Outcome<()> {
    let lines = play::lines(&fs::read_to_string(lines)?)?;
    let taken = play::play(program, &lines)?;
    let frames = film::frames(&taken, COLUMNS, ROWS);
    let title = "A terminal: ostler demo, a list of sessions, an approval, and why a session ended";
    let drawn = svg::draw(&frames, COLUMNS, ROWS, title);
    fs::write(picture, &drawn)?;
    eprintln!("{} frames, {} KB: {}", frames.len(), drawn.len() / 1024, picture.display());
    Ok(())
}

/// The live screen of a home, as it stands when it has drawn everything.
fn top(program: &Path, home: &Path, picture: &Path) -> Outcome<()> {
    let taken = play::screen(program, home)?;
    let frames = film::frames(&taken, COLUMNS, ROWS);
    let last = frames.last().filter(|frame| frame.rows.iter().any(|row| !row.is_empty()));
    let last = last.ok_or("nothing was drawn")?;
    let drawn = svg::draw(std::slice::from_ref(last), COLUMNS, ROWS, "A terminal: ostler top");
    fs::write(picture, &drawn)?;
    eprintln!("{} KB: {}", drawn.len() / 1024, picture.display());
    Ok(())
}
