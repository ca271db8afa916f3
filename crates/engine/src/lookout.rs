//! The lookout: a small process beside a daemon on which something waits that no keeper stands for. A mission between two
//! tries of its last member has nobody else who would start another daemon when this one dies.

use std::{
    io,
    os::fd::OwnedFd,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
};

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::process::Command;

use crate::shared::Shared;

/// What the lookout hears of a daemon that goes on purpose; of one that dies it hears nothing but the end.
const BYE: &[u8] = b"b";

#[derive(Default)]
pub(crate) struct Lookout {
    relied_on: Mutex<Relied>,
}

#[derive(Default)]
struct Relied {
    /// How many rely on there being a daemon.
    count: usize,
    /// What the lookout hears from, while there is one.
    line: Option<OwnedFd>,
}

/// Somebody relies on there being a daemon, until this is dropped.
pub(crate) struct Reliance(Arc<Shared>);

impl Shared {
    pub(crate) fn relied_on(self: &Arc<Self>) -> Reliance {
        let mut relied = self.lookout.relied_on.lock().unwrap_or_else(PoisonError::into_inner);
        relied.count += 1;
        if relied.line.is_none() && !self.shutdown.is_cancelled() {
            match self.post() {
                Ok(line) => relied.line = Some(line),
                Err(error) => {
                    tracing::warn!(%error, "no lookout; if the daemon dies, the next command starts it")
                }
            }
        }
        Reliance(self.clone())
    }

    /// Starts a lookout. It ends when it hears a bye, and starts a daemon when it hears the end without one.
    fn post(&self) -> io::Result<OwnedFd> {
        let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut lookout = Command::new(self.program.path())
            .args(["internal", "lookout"])
            .arg(&self.options.daemon_json)
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            .spawn()?;
        tokio::spawn(async move { lookout.wait().await });
        Ok(ours)
    }
}

impl Lookout {
    /// The daemon goes because somebody wants it to: nobody is to start another.
    pub(crate) fn dismiss(&self) {
        self.relied_on.lock().unwrap_or_else(PoisonError::into_inner).dismiss();
    }
}

impl Relied {
    fn dismiss(&mut self) {
        if let Some(line) = self.line.take() {
            // One that is gone needs no word.
            let _ = rustix::io::write(&line, BYE);
        }
    }
}

impl Drop for Reliance {
    fn drop(&mut self) {
        let mut relied = self.0.lookout.relied_on.lock().unwrap_or_else(PoisonError::into_inner);
        relied.count = relied.count.saturating_sub(1);
        if relied.count == 0 {
            relied.dismiss();
        }
    }
}
