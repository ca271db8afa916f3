//! Programs of the workspace that a verb builds and starts.

use std::{path::PathBuf, process::Command};

use crate::{
    Failure,
    cargo::{cargo, root, target_dir},
};

/// How a program is built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    Debug,
    Release,
}

/// Builds packages, and says where their programs are.
pub(crate) fn build(profile: Profile, packages: &[&str]) -> Result<PathBuf, Failure> {
    let mut command = cargo(&["build"]);
    if profile == Profile::Release {
        command.arg("--release");
    }
    for package in packages {
        command.args(["--package", package]);
    }
    succeed(&mut command)?;
    Ok(target_dir().join(match profile {
        Profile::Debug => "debug",
        Profile::Release => "release",
    }))
}

/// A program that was built, to be started in the workspace.
pub(crate) fn command(program: PathBuf) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// Runs a command to its end, which must be a good one.
pub(crate) fn succeed(command: &mut Command) -> Result<(), Failure> {
    let program = command.get_program().display().to_string();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::Failed(format!("{program}: {status}"))),
        Err(error) => Err(Failure::Failed(format!("{program}: {error}"))),
    }
}

/// What a command says, if it ends well.
pub(crate) fn answer(command: &mut Command) -> Result<String, Failure> {
    let program = command.get_program().display().to_string();
    let failed = |why: String| Failure::Failed(format!("{program}: {why}"));
    let said = command.output().map_err(|error| failed(error.to_string()))?;
    match said.status.success() {
        true => Ok(String::from_utf8_lossy(&said.stdout).into_owned()),
        false => Err(failed(String::from_utf8_lossy(&said.stderr).trim().to_owned())),
    }
}
