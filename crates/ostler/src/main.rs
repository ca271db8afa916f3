//! `ostler`: one binary, several programs. Which one is decided before any runtime or thread exists, because a
//! keeper must stay small and a listing must be quick.
#![forbid(unsafe_code)]

mod daemon;

use std::{env, ffi::OsString, path::Path, process::ExitCode};

fn main() -> ExitCode {
    let args: Vec<OsString> = env::args_os().collect();
    let words: Vec<&str> = args.iter().skip(1).map_while(|arg| arg.to_str()).collect();
    match words.as_slice() {
        ["internal", "keeper"] => ostler_keeper::run(),
        ["internal", "halt", ..] => ostler_keeper::halt(&args[3..]),
        ["internal", "check"] => ostler_sandbox::report(),
        ["internal", "attack", name] => ostler_attack::inside(name),
        ["internal", "attack-suite", ..] => ostler_attack::suite(&args[3..]),
        ["internal", "warden"] => ostler_sandbox::warden(),
        ["internal", "gateway"] => ostler_gateway::run(),
        ["internal", "init"] => ostler_keeper::init(),
        ["internal", "command", ..] => ostler_keeper::command(&args[3..]),
        ["internal", "terminal-guard"] => ostler_keeper::guard_terminal(),
        ["internal", "lookout", ..] => ostler_keeper::look_out(&args[3..]),
        ["internal", "launch", ..] => ostler_keeper::launch(&args[3..]),
        ["internal", "agent", ..] => ostler_agent::coder::run(&args[3..]),
        ["internal", "bridge", ..] => ostler_agent::bridge::run(&args[3..]),
        // Outside of a session the command line says that it has no place there.
        ["mcp"] if ostler_mcp::has_place() => ostler_mcp::run(env!("CARGO_PKG_VERSION")),
        ["internal", "script"] => ostler_agent::script::run(),
        ["internal", "package", root] => ostler_cli::package(&program(), Path::new(root)),
        ["internal", "relay"] => ostler_cli::relay(&program(), None),
        ["internal", "relay", person] => ostler_cli::relay(&program(), Some(person)),
        ["daemon", "run"] => daemon::main(daemon::Place::Foreground),
        ["daemon", "run", "--background"] => daemon::main(daemon::Place::Background),
        _ => ostler_cli::main(args.into_iter(), program()),
    }
}

fn program() -> ostler_cli::Program {
    ostler_cli::Program {
        version: env!("CARGO_PKG_VERSION"),
        commit: option_env!("OSTLER_BUILT_FROM"),
        path: env::current_exe().unwrap_or_else(|_| "ostler".into()),
    }
}
