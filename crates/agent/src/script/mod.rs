//! `ostler internal script`: the scripted agent.
//!
//! It reads prompts as JSON lines and plays scenarios: a prompt that is itself a scenario is played, any other is
//! answered by a short default one. Tool steps really run. `docs/script.md` describes scenarios and lines.

mod play;
mod protocol;
mod scenario;
mod tool;

use std::{io, process::ExitCode};

pub use scenario::{Scenario, ScenarioError};

/// Serves prompts on standard input until it ends.
pub fn run() -> ExitCode {
    match play::serve() {
        Ok(code) => ExitCode::from(code),
        // The reader of our output is gone: nobody is left to tell.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
