//! A program with the warden's mode and nothing else, for the tests of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["internal", "warden"] => ostler_sandbox::warden(),
        ["check", scratch] => check(scratch.as_ref()),
        _ => ExitCode::from(2),
    }
}

fn check(scratch: &std::path::Path) -> ExitCode {
    match ostler_sandbox::check(scratch) {
        Ok(Ok(_)) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
