//! The agent and nothing else, for the tests of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    ostler_agent::coder::run(&std::env::args_os().skip(1).collect::<Vec<_>>())
}
