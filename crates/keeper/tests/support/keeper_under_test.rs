//! A program with the keeper's modes and nothing else, for the tests of this crate.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<&str> = args.iter().take(2).filter_map(|word| word.to_str()).collect();
    match words[..] {
        ["internal", "keeper"] => ostler_keeper::run(),
        ["internal", "warden"] => ostler_sandbox::warden(),
        ["internal", "init"] => ostler_keeper::init(),
        ["internal", "launch"] => ostler_keeper::launch(&args[2..]),
        _ => ExitCode::from(2),
    }
}
