//! Programs as people start them: how long from their start to their end.

use std::{
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use crate::Outcome;

/// Milliseconds, as rows have them.
pub(crate) fn milliseconds(span: Duration) -> f64 {
    span.as_secs_f64() * 1_000.0
}

/// Runs a program to its end, which must be a good one, and says how many milliseconds that took.
pub(crate) fn timed(command: &mut Command) -> Outcome<f64> {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let began = Instant::now();
    let status = quiet.status().map_err(|error| cannot(quiet, &error))?;
    let took = milliseconds(began.elapsed());
    if !status.success() {
        return Err(format!("{quiet:?} ended with {status}").into());
    }
    Ok(took)
}

/// The same, with what it printed.
pub(crate) fn timed_output(command: &mut Command) -> Outcome<(f64, String)> {
    let quiet = command.stdin(Stdio::null());
    let began = Instant::now();
    let output = quiet.output().map_err(|error| cannot(quiet, &error))?;
    let took = milliseconds(began.elapsed());
    let Output { status, stdout, stderr } = output;
    if !status.success() {
        let said = String::from_utf8_lossy(&stderr);
        return Err(format!("{quiet:?} ended with {status}: {}", said.trim()).into());
    }
    Ok((took, String::from_utf8_lossy(&stdout).trim().to_owned()))
}

fn cannot(command: &Command, error: &std::io::Error) -> String {
    format!("{} cannot be run: {error}", command.get_program().display())
}
