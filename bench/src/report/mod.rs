//! What is said: progress on standard error, results on standard output and into the results' page.

mod machine;
mod page;
mod sample;
mod table;

pub(crate) use machine::Machine;
pub(crate) use page::Page;
pub(crate) use sample::{Sample, Unit, percentile};
pub(crate) use table::{Goal, Row, Section};

/// A result.
#[expect(clippy::print_stdout, reason = "printing is the purpose of this program")]
pub(crate) fn print(text: &str) {
    println!("{text}");
}

/// Progress.
#[expect(clippy::print_stderr, reason = "progress is not a result")]
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

/// Why the program ends.
#[expect(clippy::print_stderr, reason = "the last words of a program that failed")]
pub(crate) fn complain(error: &dyn std::error::Error) {
    eprintln!("ostler-bench: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        eprintln!("  because {cause}");
        source = cause.source();
    }
}
