//! Programs that do a part of what Ostler does, measured beside it. `cargo xtask bench` installs what the machine does not
//! have; one that cannot be had is named in its row, and nothing is judged by it.

pub(crate) mod nats;
pub(crate) mod pueue;
pub(crate) mod tmux;

use std::process::{Command, Stdio};

/// What a program says of its version; the reason for a row where it is not there.
pub(crate) fn version(program: &str, option: &str) -> Result<String, String> {
    let asked = Command::new(program).arg(option).stdin(Stdio::null()).output();
    match asked {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(output) => Err(format!("`{program}` does not work ({})", output.status)),
        Err(_) => Err(format!("`{program}` is not installed")),
    }
}
