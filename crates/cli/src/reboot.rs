//! Which boot of the machine a person has been told of: the first command after a restart says so, and no other.

use std::{
    fs,
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::PathBuf,
    time::Duration,
};

use ostler_client::{Client, Home, NodeStatus};
use ostler_domain::time::BootId;
use tokio::time::{Instant, sleep};

use crate::failure::Failure;

/// How long the first command waits for the daemon to know who was lost.
const KNOWN_WITHIN: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(20);

/// A small file in the run directory.
pub(crate) struct ToldBoot {
    file: PathBuf,
}

impl ToldBoot {
    pub(crate) fn of(home: &Home) -> Self {
        Self { file: home.run().join("told-boot") }
    }

    pub(crate) fn is(&self, boot: &BootId) -> bool {
        fs::read_to_string(&self.file).is_ok_and(|told| told.trim() == boot.0)
    }

    /// Remembers. Where it cannot, the next command says it again.
    pub(crate) fn write(&self, boot: &BootId) {
        let _ = self.try_write(boot);
    }

    fn try_write(&self, boot: &BootId) -> std::io::Result<()> {
        if let Some(dir) = self.file.parent().filter(|dir| !dir.exists()) {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&self.file)?;
        writeln!(file, "{boot}")
    }
}

/// How the daemon is once it has looked for all sessions, or after a moment.
pub(crate) async fn settled(client: &Client) -> Result<NodeStatus, Failure> {
    let deadline = Instant::now() + KNOWN_WITHIN;
    loop {
        let status = client.status().await?;
        if status.detached_sessions == 0 || Instant::now() >= deadline {
            return Ok(status);
        }
        sleep(LOOK).await;
    }
}
