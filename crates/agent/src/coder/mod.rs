//! `ostler internal agent`: a small coding agent for any OpenAI-compatible model.
//!
//! It runs inside the sandbox like everybody else's agent and speaks the Agent Client Protocol on its standard
//! streams. The key and TLS are the gateway's, outside: this program knows plain HTTP only.
//!
//! `turn` decides and `conversation` remembers, both without doing anything; `serve` is the shell around them,
//! with `http` and `tools` for hands. `docs/agent.md` describes settings, tools and files.

mod acp;
mod calling;
mod conversation;
mod fault;
mod http;
mod journal;
mod serve;
mod settings;
mod sse;
mod think;
mod tools;
mod turn;
mod wire;

use std::{
    ffi::OsString,
    io::{self, Write},
    process::ExitCode,
};

use settings::Settings;

/// Serves the protocol on standard input and output until input ends. The arguments are settings, `key=value` each.
pub fn run(args: &[OsString]) -> ExitCode {
    let settings = match Settings::parse(args) {
        Ok(settings) => settings,
        Err(error) => {
            let _ = writeln!(io::stderr(), "ostler internal agent: {error}");
            return ExitCode::from(2);
        }
    };
    match serve::serve(settings) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of our output is gone: nobody is left to tell.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "ostler internal agent: {error}");
            ExitCode::FAILURE
        }
    }
}
