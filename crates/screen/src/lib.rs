//! What is known, laid out for people: the same words, signs and drawings wherever people look.
//!
//! Pure: data, a moment and a look go in, [`Line`]s come out. Whatever is put into a line is made harmless as it comes in.
//! The command line prints them, the live screen draws them. Screens that only one command has are in `cli`.
#![forbid(unsafe_code)]

pub mod activity;
pub mod approval;
pub mod cost;
mod edit;
pub mod hold;
mod line;
mod look;
pub mod mission;
pub mod money;
mod osc;
pub mod retention;
pub mod row;
pub mod sessions;
mod table;
mod tell;
#[cfg(any(test, feature = "testing"))]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
pub mod testing;
pub mod tree;
pub mod words;

pub use line::{Line, Tone};
pub use look::{Letters, Look, Terminals};
pub use osc::osc9;
pub use table::{Column, Table};
pub use tell::tell;

/// Columns of the label of a field.
pub const FIELD: usize = 9;

/// A label and what belongs to it: `why      The kernel ended it.`
pub fn field(label: &str, text: Line) -> Line {
    Line::new().faint(format!("{label:<8} ")).append(text)
}

/// Commands to paste, with what they do, under one label.
pub fn next_steps(steps: &[(String, &str)]) -> Vec<Line> {
    let column = steps.iter().map(|(command, _)| Line::of(command).width()).max().unwrap_or(0);
    let step = |(n, (command, effect)): (usize, &(String, &str))| {
        let command = Line::toned(Tone::Accent, command);
        let line =
            if effect.is_empty() { command } else { command.padded(column).plain("   ").faint(effect) };
        field(if n == 0 { "next" } else { "" }, line)
    };
    steps.iter().enumerate().map(step).collect()
}
