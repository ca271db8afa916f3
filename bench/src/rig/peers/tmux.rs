//! tmux with a server of its own.

use std::{path::Path, process::Command};

use crate::{Outcome, rig::timed::timed};

pub(crate) struct Tmux {
    dir: tempfile::TempDir,
}

impl Tmux {
    /// A server with this many detached sessions; the reason where there is no tmux.
    pub(crate) fn with_sessions(dir: &Path, count: u32) -> Outcome<Result<Self, String>> {
        if let Err(why) = super::version("tmux", "-V") {
            return Ok(Err(why));
        }
        let tmux = Self { dir: tempfile::Builder::new().prefix("tmux-").tempdir_in(dir)? };
        for _ in 0..count {
            timed(tmux.command().args(["new-session", "-d", "sleep", "3600"]))?;
        }
        Ok(Ok(tmux))
    }

    /// How long it takes to list them.
    pub(crate) fn list(&self) -> Outcome<f64> {
        timed(self.command().arg("ls"))
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.dir.path().join("socket")).args(["-f", "/dev/null"]).env_remove("TMUX");
        command
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = timed(self.command().arg("kill-server"));
    }
}
