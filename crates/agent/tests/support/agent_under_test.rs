//! The agent and the bridge and nothing else, for the tests of this crate.

use std::{ffi::OsString, process::ExitCode};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    match words.split_first() {
        Some((first, rest)) if first == "bridge" => ostler_agent::bridge::run(rest),
        _ => ostler_agent::coder::run(&words),
    }
}
