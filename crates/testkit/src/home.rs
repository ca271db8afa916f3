//! A private home with a daemon of its own.

use std::{
    fs::{self, DirBuilder},
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Duration,
};

use ostler_client::{Client, CreateSession, ListEvents, Place, Received, query::EventFilter};
use ostler_domain::{
    Event, Recorded, SessionId,
    home::{DaemonFile, Home},
    session::View,
};
use tempfile::TempDir;

use crate::{
    process::{self, Proc},
    wait,
};

/// A temporary `OSTLER_HOME`, a campaign in it, and the program under test.
pub struct TestHome {
    dir: TempDir,
    program: PathBuf,
    pub home: Home,
}

impl TestHome {
    /// A home without a daemon. `program` is the `ostler` binary.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        let dir = tempfile::Builder::new().prefix("ostler-test-").tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("home");
        let home = Self { program: program.into(), home: Home::at(root), dir };
        home.configure("");
        home
    }

    /// Says `more` in `config.toml`. Whoever names no provider means the scripted one, whatever else is on this machine.
    pub fn configure(&self, more: &str) {
        DirBuilder::new().recursive(true).mode(0o700).create(self.home.config()).unwrap();
        let mut file = fs::OpenOptions::new();
        let mut file =
            file.write(true).create(true).truncate(true).mode(0o600).open(self.home.config_toml()).unwrap();
        file.write_all(format!("provider = \"script\"\n{more}").as_bytes()).unwrap();
    }

    /// [`TestHome::started`] with agents outside of any sandbox, where they can do what a test must have done.
    pub async fn started_unconfined(program: impl Into<PathBuf>) -> Self {
        let home = Self::new(program);
        home.configure("[sandbox]\nrun_agents_unconfined_on_this_machine = true\n");
        home.begin().await;
        home
    }

    /// A home with a running daemon and a campaign `shop`.
    pub async fn started(program: impl Into<PathBuf>) -> Self {
        let home = Self::new(program);
        home.begin().await;
        home
    }

    /// Starts the daemon and registers the campaign `shop`.
    pub async fn begin(&self) {
        let client = self.start().await;
        client
            .add_campaign(ostler_client::AddCampaign {
                path: self.campaign_dir().display().to_string(),
                name: Some("shop".parse().unwrap()),
            })
            .await
            .unwrap();
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The directory of the campaign `shop`; made when it is asked for.
    pub fn campaign_dir(&self) -> PathBuf {
        let dir = self.dir.path().canonicalize().unwrap().join("shop");
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    /// Starts a daemon if none runs, and connects.
    pub async fn start(&self) -> Client {
        let client = Client::connect_or_start(&self.home, &self.program).await.unwrap();
        // A daemon listens before it has written down who it is, and whoever kills it asks that.
        let deadline = tokio::time::Instant::now() + crate::wait::PATIENCE;
        while self.daemon().is_none() && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        client
    }

    /// Connects to the daemon that runs.
    pub async fn client(&self) -> Client {
        Client::connect(&self.home).await.unwrap()
    }

    /// A command of the program in this home.
    pub fn command(&self, args: &[&str]) -> Command {
        self.command_of(&self.program, args)
    }

    /// A command of another program in this home.
    pub fn command_of(&self, program: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .env("OSTLER_HOME", self.dir.path().canonicalize().unwrap().join("home"))
            .stdin(Stdio::null());
        command.env_remove("OSTLER_CAMPAIGN").env_remove("NO_COLOR").current_dir(self.campaign_dir());
        command
    }

    /// Runs a command of the program to its end.
    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// What `daemon.json` says.
    pub fn daemon_file(&self) -> Option<DaemonFile> {
        serde_json::from_slice(&fs::read(self.home.daemon_json()).ok()?).ok()
    }

    /// The daemon's process, if it lives.
    pub fn daemon(&self) -> Option<Proc> {
        let file = self.daemon_file()?;
        let found = Proc { pid: file.pid, start_time: file.start_time };
        found.is_alive().then_some(found)
    }

    /// Kills the daemon with SIGKILL and waits until it is gone.
    pub fn kill_daemon(&self) {
        if let Some(daemon) = self.daemon() {
            daemon.kill_and_wait();
        }
    }

    /// Starts a session with this scenario or prompt.
    pub async fn session(&self, client: &Client, prompt: &str) -> View {
        let mut wanted = CreateSession::new("shop", "script");
        wanted.initial_message = Some(prompt.to_owned());
        client.create_session(wanted).await.unwrap()
    }

    /// All events of a session.
    pub async fn events(&self, client: &Client, session: SessionId) -> Vec<Recorded> {
        let mut events = Vec::new();
        let mut after = 0;
        loop {
            let filter = EventFilter { session: Some(session), ..EventFilter::default() };
            let page =
                client.events(&ListEvents { filter, from: Place::After(after), limit: 1000 }).await.unwrap();
            events.extend(page.events.into_iter().filter_map(|received| match received {
                Received::Known(recorded) => Some(*recorded),
                Received::Unknown(_) => None,
            }));
            match page.next {
                Some(next) => after = next,
                None => return events,
            }
        }
    }

    /// Waits until a session has ended, over daemons that come and go, and gives its last row.
    pub async fn ended(&self, who: &str) -> View {
        self.reaches(who, "the session to end", |view| view.outcome.is_some()).await
    }

    /// Waits until a session's row looks like this.
    pub async fn reaches(&self, who: &str, what: &str, looks: impl Fn(&View) -> bool) -> View {
        let deadline = tokio::time::Instant::now() + wait::PATIENCE * 2;
        let mut last = None;
        loop {
            if let Ok(client) = Client::connect(&self.home).await
                && let Ok(view) = client.session(who).await
            {
                if looks(&view) {
                    return view;
                }
                last = Some(view);
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "waited too long for {what}; last seen: {last:#?}"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The processes of a session: its agent and what that started.
    pub fn session_processes(&self, session: SessionId) -> Vec<Proc> {
        process::with_variable("OSTLER_SESSION_ID", &session.to_string())
    }

    /// Everything that is left of a session: processes that carry its name in their environment or are in a cgroup of
    /// its name, and its keeper.
    pub fn census(&self, session: SessionId) -> Vec<String> {
        let name = session.to_string();
        let mut left = self.session_processes(session);
        left.extend(process::in_cgroup(&name));
        left.extend(self.keeper(session));
        left.iter().map(|one| format!("{} {}", one.pid, process::command_line(one.pid).join(" "))).collect()
    }

    /// The keeper of a session.
    pub fn keeper(&self, session: SessionId) -> Option<Proc> {
        self.keepers()
            .into_iter()
            .find(|(_, dir)| dir.ends_with(session.to_string()))
            .map(|(keeper, _)| keeper)
    }

    /// The processes that this one started and that still are its own.
    pub fn children_of(&self, parent: &Proc) -> Vec<Proc> {
        let listed =
            fs::read_to_string(format!("/proc/{0}/task/{0}/children", parent.pid)).unwrap_or_default();
        listed.split_whitespace().filter_map(|pid| Proc::of(pid.parse().ok()?)).collect()
    }

    /// The keepers of this home, each with its session's directory.
    pub fn keepers(&self) -> Vec<(Proc, PathBuf)> {
        let sessions = self.home.sessions();
        let own = process::with_variable(
            "OSTLER_HOME",
            &sessions.parent().unwrap().parent().unwrap().display().to_string(),
        );
        own.into_iter()
            .filter(|process| {
                process::command_line(process.pid).get(1..3)
                    == Some(&["internal".to_owned(), "keeper".to_owned()])
            })
            .filter_map(|process| Some((process.clone(), lock_dir(process.pid, &sessions)?)))
            .collect()
    }
}

/// The session directory whose lock a keeper holds open.
fn lock_dir(pid: u32, sessions: &Path) -> Option<PathBuf> {
    fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten().find_map(|entry| {
        let target = fs::read_link(entry.path()).ok()?;
        (target.file_name()? == "keeper.lock" && target.starts_with(sessions))
            .then(|| target.parent().map(Path::to_owned))?
    })
}

impl Drop for TestHome {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = fs::read_to_string(self.home.daemon_log()).unwrap_or_default();
            let tail: Vec<&str> = log.lines().rev().take(40).collect();
            #[allow(clippy::print_stderr, reason = "what the daemon said is what one needs after a failure")]
            for line in tail.iter().rev() {
                eprintln!("daemon.log: {line}");
            }
        }
        // Keepers first would only start daemons anew; a daemon first leaves keepers to find.
        for _ in 0..20 {
            if let Some(daemon) = self.daemon() {
                daemon.kill();
            }
            let root = self.home.sessions();
            let root = root
                .parent()
                .and_then(Path::parent)
                .map(|root| root.display().to_string())
                .unwrap_or_default();
            let own = process::with_variable("OSTLER_HOME", &root);
            for process in &own {
                process.kill();
            }
            if own.is_empty() && self.daemon().is_none() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Says whether an event is the end of a session.
pub fn is_end(event: &Event) -> bool {
    matches!(event, Event::SessionStopped(_) | Event::SessionFailed(_))
}
