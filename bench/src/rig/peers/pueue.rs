//! pueue with a daemon and a history of its own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    Outcome,
    rig::timed::{timed, timed_output},
};

/// How long its daemon may take to answer, and to have run a task that does nothing.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

pub(crate) struct Pueue {
    pub(crate) version: String,
    dir: tempfile::TempDir,
    daemon: Option<Child>,
}

impl Pueue {
    /// A daemon with this many finished tasks; the reason where there is no pueue.
    pub(crate) fn with_finished(dir: &Path, count: u64) -> Outcome<Result<Self, String>> {
        let version = match super::version("pueue", "--version").and(super::version("pueued", "--version")) {
            Ok(version) => version,
            Err(why) => return Ok(Err(why)),
        };
        let dir = tempfile::Builder::new().prefix("pueue-").tempdir_in(dir)?;
        let mut pueue = Self { version, dir, daemon: None };
        fs::write(pueue.path("pueue.yml"), pueue.settings())?;
        pueue.start()?;
        pueue.add()?;
        let waiting = Instant::now();
        while !fs::read_to_string(pueue.path("state.json"))?.contains("Success") {
            if waiting.elapsed() > PATIENCE {
                return Err("pueue does not finish a task that does nothing".into());
            }
            thread::sleep(LOOK);
        }
        pueue.stop();
        pueue.multiply(count)?;
        pueue.start()?;
        Ok(Ok(pueue))
    }

    /// How long it takes to ask for a task.
    pub(crate) fn add(&self) -> Outcome<f64> {
        timed(self.command().args(["add", "--", "true"]))
    }

    /// How long it takes to list them.
    pub(crate) fn status(&self) -> Outcome<f64> {
        timed(self.command().arg("status"))
    }

    fn command(&self) -> Command {
        let mut command = Command::new("pueue");
        command.arg("--config").arg(self.path("pueue.yml"));
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn settings(&self) -> String {
        let dir = self.dir.path().display();
        format!(
            "shared:\n  pueue_directory: {dir}\n  runtime_directory: {dir}\n  use_unix_socket: true\n  \
             unix_socket_path: {dir}/pueue.socket\nclient: {{}}\ndaemon: {{}}\n"
        )
    }

    fn start(&mut self) -> Outcome<()> {
        let mut daemon = Command::new("pueued");
        daemon.arg("--config").arg(self.path("pueue.yml"));
        daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.daemon = Some(daemon.spawn()?);
        let began = Instant::now();
        loop {
            match timed_output(self.command().arg("status")) {
                Ok(_) => return Ok(()),
                Err(why) if began.elapsed() > PATIENCE => return Err(why),
                Err(_) => thread::sleep(LOOK),
            }
        }
    }

    /// Repeats the one finished task in its state.
    fn multiply(&self, count: u64) -> Outcome<()> {
        let path = self.path("state.json");
        let mut state: Value = serde_json::from_slice(&fs::read(&path)?)?;
        let tasks = state.get_mut("tasks").and_then(Value::as_object_mut).ok_or("pueue's state has tasks")?;
        let task = tasks.values().next().cloned().ok_or("pueue's state has a task")?;
        for id in 0..count {
            let mut copy = task.clone();
            copy["id"] = id.into();
            tasks.insert(id.to_string(), copy);
        }
        Ok(fs::write(path, serde_json::to_vec(&state)?)?)
    }

    fn stop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = timed(self.command().arg("shutdown"));
            let began = Instant::now();
            while matches!(daemon.try_wait(), Ok(None)) && began.elapsed() < PATIENCE {
                thread::sleep(LOOK);
            }
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

impl Drop for Pueue {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}
