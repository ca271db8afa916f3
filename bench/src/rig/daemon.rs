//! A real daemon in a home, ended with its value.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use ostler_client::Client;
use ostler_domain::home::Home;
use tokio::time::sleep;

use crate::Outcome;

/// How long a daemon may take to answer before the benchmark gives up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two tries to reach it: far below what is measured.
const TRY_AGAIN: Duration = Duration::from_micros(100);

pub(crate) struct Daemon {
    child: Child,
    pub(crate) home: Home,
}

impl Daemon {
    /// Starts a daemon; it does not answer yet.
    pub(crate) fn spawn(ostler: &Path, home: &Home) -> Outcome<Self> {
        let mut command = Command::new(ostler);
        command.args(["daemon", "run"]).env_remove("OSTLER_HOME").envs(home.variables());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
        Ok(Self { child: command.spawn()?, home: home.clone() })
    }

    /// Starts a daemon and waits until it answers a question of this kind.
    pub(crate) async fn answering<T, F: Future<Output = Result<T, ostler_client::Error>>>(
        ostler: &Path,
        home: &Home,
        ask: impl Fn(Client) -> F,
    ) -> Outcome<(Self, T)> {
        let mut daemon = Self::spawn(ostler, home)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = match Client::connect(home).await {
                Ok(client) => ask(client).await,
                Err(error) => Err(error),
            };
            match answer {
                Ok(answer) => return Ok((daemon, answer)),
                Err(error) if Instant::now() > deadline => return Err(error.into()),
                Err(_) => {
                    if let Some(status) = daemon.child.try_wait()? {
                        return Err(format!("the daemon ended with {status}").into());
                    }
                    sleep(TRY_AGAIN).await;
                }
            }
        }
    }

    pub(crate) async fn client(&self) -> Outcome<Client> {
        Ok(Client::connect(&self.home).await?)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as a power cut would, but for what the kernel has.
    pub(crate) fn kill(mut self) -> Outcome<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Ends it in an orderly way.
    pub(crate) async fn stop(mut self) -> Outcome<()> {
        self.client().await?.stop_daemon(false).await?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
