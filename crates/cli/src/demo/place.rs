//! Where the demo happens: a directory of its own with a home for the daemon and a small git repository.

use std::{
    fs::{self, DirBuilder},
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use ostler_client::{Client, Home};
use ostler_domain::{
    Reason, Refusal, SessionId,
    price::{Dollars, Price, PriceBook},
};
use tokio::time::{Instant, sleep};

use super::team::ON_TAPE;
use crate::{
    commands::is_gone,
    failure::Failure,
    output::{Line, Tone, Ui},
    words,
};

/// How long the daemon is given to end before its directory is removed under it.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

/// What is in the campaign. The hidden file is committed, as careless people do, so that every work tree has it.
const FILES: [(&str, &str); 7] = [
    ("README.md", "# Shop\n\nSells things. It has no cart yet.\n"),
    ("src/item.rs", "pub struct Item {\n    pub price: u64,\n}\n"),
    ("db/item.sql", "create table item (id integer primary key, price integer);\n"),
    ("docs/index.md", "# Manual\n\nThere are items, and they have prices.\n"),
    (".env", "TOKEN=not-for-agents\n"),
    (".gitignore", "*.tmp\n"),
    ("check.sh", CHECK),
];

const CHECK: &str = r#"# Whether all parts of the cart are there. "migrations" tries them on a large table, which takes long.
if [ "${1:-}" = migrations ]; then sleep 600; fi
for part in src/cart.rs db/cart.sql docs/cart.md; do
    [ -s "$part" ] || { echo "$part is missing"; exit 1; }
done
"#;

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

    /// What agents may never read: where their own record is.
    pub(super) fn record(&self) -> PathBuf {
        self.home.state().join("ostler.db")
    }

    /// Has this place's daemon run its agents without a sandbox.
    pub(super) fn run_unconfined(&self) -> Result<(), Failure> {
        self.configure(&self.home.config_toml(), "[sandbox]\nrun_agents_unconfined_on_this_machine = true\n")
    }

    /// Gives what scripted agents say they used a price, so that there is a cost to see.
    pub(super) fn set_prices(&self) -> Result<(), Failure> {
        let mut book = PriceBook::default();
        let price = Price {
            input: Dollars(3_000_000),
            cache_read: Dollars(300_000),
            cache_write: Dollars(3_750_000),
            output: Dollars(15_000_000),
        };
        book.own.insert("script".to_owned(), price);
        let text = serde_json::to_string(&book).map_err(|error| Refusal::internal(error.to_string()))?;
        self.configure(&self.home.config().join("prices.json"), &text)
    }

    fn configure(&self, path: &Path, text: &str) -> Result<(), Failure> {
        let write = || {
            DirBuilder::new().recursive(true).mode(0o700).create(self.home.config())?;
            let mut options = fs::OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600).open(path)?.write_all(text.as_bytes())
        };
        let written = write();
        written.map_err(|error| Refusal::internal(format!("the demo's configuration: {error}")).into())
    }

    /// Fills the campaign: a repository with a check that its parts are there.
    pub(super) fn make_repository(&self) -> Result<(), Failure> {
        let dir = self.repository();
        let filled = FILES.iter().try_for_each(|(path, text)| {
            let path = dir.join(path);
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(path, text)
        });
        filled.map_err(|error| Refusal::internal(format!("the demo's repository: {error}")))?;
        let who = "-c user.name=Ostler -c user.email=demo@example.org -c commit.gpgsign=false";
        for words in ["init -q -b main", "add -f .", "commit -q -m Begin"] {
            let mut git = Command::new("git");
            git.current_dir(&dir).args(who.split(' ')).args(words.split(' '));
            let ended = git.stdin(Stdio::null()).output();
            match ended {
                Ok(ended) if ended.status.success() => {}
                Ok(ended) => {
                    let why = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
                    return Err(Refusal::internal(format!("git {words} failed")).because(why).into());
                }
                Err(error) => return Err(without_git(&error).into()),
            }
        }
        Ok(())
    }

    /// How many numbered lines are on the tapes of these sessions: what agents said, with or without a daemon.
    pub(super) fn lines_on_tape(&self, sessions: &[SessionId]) -> u64 {
        let count = |session: &SessionId| -> u64 {
            let Ok(files) = fs::read_dir(self.home.session_dir(session)) else { return 0 };
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
                .faint("   then ostler mission show cart, ostler ls -a, …"),
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

fn without_git(error: &std::io::Error) -> Refusal {
    Refusal::new(
        Reason::InvalidArgument,
        "git cannot be run: the demo's builders have work trees of their own",
    )
    .because(error.to_string())
    .hint("apt install git", "or as your system has it")
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
