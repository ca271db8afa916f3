//! Where the demo happens: a directory of its own with a home for the daemon and a small git repository.

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use ostler_client::{Client, Home, Session};
use ostler_domain::{Reason, Refusal};
use tokio::time::{Instant, sleep};

use super::agents::ON_TAPE;
use crate::{
    commands::is_gone,
    failure::Failure,
    output::{Line, Tone, Ui},
    words,
};

/// How long the daemon is given to end before its directory is removed under it.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

pub(super) struct Place {
    root: PathBuf,
    home: Home,
}

impl Place {
    pub(super) fn make() -> Result<Self, Failure> {
        let root = std::env::temp_dir().join(format!(
            "ostler-demo-{}-{}",
            std::process::id(),
            words::now().micros() % 1_000_000
        ));
        // Created, not found: a directory that someone else put there is refused.
        let repository = root.join("shop");
        let made = DirBuilder::new().mode(0o700).create(&root).and_then(|()| fs::create_dir(&repository));
        made.map_err(|error| {
            Refusal::new(Reason::DiskFull, format!("{} cannot be made: {error}", root.display()))
        })?;
        Ok(Self { home: Home::at(root.join("home")), root })
    }

    pub(super) fn home(&self) -> &Home {
        &self.home
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn repository(&self) -> PathBuf {
        self.root.join("shop")
    }

    /// Has this place's daemon run its agents without a sandbox.
    pub(super) fn run_unconfined(&self) -> Result<(), Failure> {
        let write = || {
            fs::create_dir_all(self.home.config())?;
            let text = "[sandbox]\nrun_agents_unconfined_on_this_machine = true\n";
            fs::write(self.home.config_toml(), text)
        };
        write().map_err(|error| Refusal::internal(format!("the demo's configuration: {error}")).into())
    }

    /// Fills the campaign. Without git it is a plain directory, and agents that call git see it fail.
    pub(super) fn make_repository(&self) {
        let dir = self.repository();
        let _ = fs::write(dir.join("README.md"), "# Shop\n\nSells things. Its login has no limit yet.\n");
        let _ = fs::write(dir.join(".env"), "TOKEN=not-for-agents\n");
        let _ = fs::write(dir.join(".gitignore"), ".env\n");
        for sub in ["src", "migrations", "docs"] {
            let _ = fs::create_dir(dir.join(sub));
        }
        let who = [
            "-c",
            "user.name=Ostler demo",
            "-c",
            "user.email=demo@example.org",
            "-c",
            "commit.gpgsign=false",
        ];
        for words in [&["init", "-q", "-b", "main"][..], &["add", "."], &["commit", "-q", "-m", "A shop"]] {
            let mut git = Command::new("git");
            git.current_dir(&dir)
                .args(who)
                .args(words)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let _ = git.status();
        }
    }

    /// How many numbered lines are on the tapes of these sessions: what agents said, with or without a daemon.
    pub(super) fn lines_on_tape(&self, sessions: &[Session]) -> u64 {
        let count = |session: &Session| -> u64 {
            let Ok(files) = fs::read_dir(self.home.session_dir(&session.id)) else { return 0 };
            let tapes =
                files.flatten().filter(|file| file.file_name().to_string_lossy().starts_with("tape."));
            tapes
                .map(|file| fs::read(file.path()).map_or(0, |bytes| occurrences(&bytes, ON_TAPE.as_bytes())))
                .sum()
        };
        sessions.iter().map(count).sum()
    }

    pub(super) fn say_kept(&self, ui: &Ui) -> Result<(), Failure> {
        if ui.is_json() {
            return Ok(());
        }
        let home = self.root.join("home");
        ui.data(&Line::new())?;
        ui.data(
            &Line::of("Kept: ")
                .with(Tone::Accent, format!("export OSTLER_HOME={}", home.display()))
                .faint("   then ostler ls -a, ostler logs api, …"),
        )?;
        ui.data(
            &Line::of("      ")
                .with(Tone::Accent, "ostler daemon stop --stop-sessions")
                .faint(format!("   ends it; then remove {}", self.root.display())),
        )
    }

    /// Ends everything that runs here and removes it. What cannot be ended ends by itself: a keeper whose directory
    /// is gone stops its agent.
    pub(super) async fn clean(&self, program: &Path) {
        if self.home.state().exists()
            && let Ok(client) = Client::connect_or_start(&self.home, program).await
            && let Ok(stopping) = client.stop_daemon(true).await
        {
            let deadline = Instant::now() + ENDS_WITHIN;
            while !is_gone(stopping.pid) && Instant::now() < deadline {
                sleep(Duration::from_millis(5)).await;
            }
        }
        for _ in 0..20 {
            if fs::remove_dir_all(&self.root).is_ok() || !self.root.exists() {
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

fn occurrences(bytes: &[u8], of: &[u8]) -> u64 {
    bytes.windows(of.len()).filter(|window| *window == of).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_is_on_a_tape() {
        assert_eq!(
            occurrences(b"\x01{\"text\":\"line 1.1\"}\x02{\"text\":\"line 1.2\"}", ON_TAPE.as_bytes()),
            2
        );
        assert_eq!(occurrences(b"", ON_TAPE.as_bytes()), 0);
    }
}
