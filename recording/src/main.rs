//! `ostler-recording PROGRAM LINES SVG`: types the lines of a file into a shell in a terminal of its own, and draws what is
//! seen there as a moving SVG. Started by `cargo xtask recording`.
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
    let [program, lines, picture] = words.as_slice() else {
        eprintln!("ostler-recording PROGRAM LINES SVG");
        return ExitCode::from(2);
    };
    match record(program, lines, picture) {
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
    let drawn = svg::draw(&frames, COLUMNS, ROWS);
    fs::write(picture, &drawn)?;
    eprintln!("{} frames, {} KB: {}", frames.len(), drawn.len() / 1024, picture.display());
    Ok(())
}
