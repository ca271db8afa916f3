//! A program with the modes that the suite needs, for the tests of this crate.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<&str> = args.iter().map_while(|arg| arg.to_str()).collect();
    match words[..] {
        ["internal", "warden"] => ostler_sandbox::warden(),
        ["internal", "attack", name] => ostler_attack::inside(name),
        ["internal", "attack-suite", ..] => ostler_attack::suite(&args[2..]),
        _ => ExitCode::from(2),
    }
}
