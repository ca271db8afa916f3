//! Starting a daemon when none is there, and waiting until it answers.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use ostler_domain::{Reason, Refusal, home::Home};
use tokio::time::Instant;

use crate::{Client, Error};

/// A daemon is ready in a tenth of a second; a machine under load or a first migration may need more.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// Waits between tries to connect: from the first, doubled, to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(1);
const LONGEST_WAIT: Duration = Duration::from_millis(50);
/// When a start is tried again that another one was first to: whoever holds the lock may die before it answers.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
/// How much of the log is worth showing.
const LOG_TAIL_BYTES: u64 = 2 * 1024;

/// Says whether a daemon may be started, given the value of `OSTLER_NO_AUTOSTART`.
pub(crate) fn is_allowed(no: Option<&OsStr>) -> bool {
    no.is_none_or(|value| value.is_empty() || value == "0")
}

pub(crate) async fn start(home: &Home, program: &Path) -> Result<Client, Error> {
    let not_started = |why: String, log| Error::NotStarted { program: program.to_owned(), why, log };
    let log = Log::here(home);
    let mut child = spawn(home, program).map_err(|error| not_started(error.to_string(), String::new()))?;

    let deadline = Instant::now() + READY_WITHIN;
    let mut wait = FIRST_WAIT;
    let mut lost_at: Option<(Instant, Refusal)> = None;
    loop {
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
        // Looked at before the connection is tried: who ends after having lost the race for the daemon's lock
        // leaves a daemon behind that answers.
        let ended = ended(&mut child);
        match Client::connect(home).await {
            Ok(client) => return Ok(client),
            Err(_) if Instant::now() >= deadline => {
                let why = format!("it did not answer within {} s", READY_WITHIN.as_secs());
                return Err(
                    lost_at.map_or_else(|| not_started(why, log.tail()), |(_, held)| Error::Refused(held))
                );
            }
            // Somebody else was first and answers in a moment; or has died, and leaves the place to us.
            Err(_) if let Some((at, _)) = &lost_at => {
                if at.elapsed() >= AGAIN_AFTER {
                    lost_at = None;
                    child = spawn(home, program)
                        .map_err(|error| not_started(error.to_string(), String::new()))?;
                }
            }
            Err(_) if ended.is_some_and(|status| !status.success()) => {
                let why = ended.map(|status| format!("it ended with {status}")).unwrap_or_default();
                // What it said to us, and where that could not be written or read, to its log.
                let tail = format!("{}\n{}", log.tail(), said(&mut child)).trim().to_owned();
                match refusal(&tail) {
                    Some(held) if held.reason == Reason::DaemonRunning => {
                        lost_at = Some((Instant::now(), held))
                    }
                    refused => return Err(refused.map_or_else(|| not_started(why, tail), Error::Refused)),
                }
            }
            Err(_) => {}
        }
    }
}

/// What a daemon that ended has said on its standard error.
fn said(child: &mut Child) -> String {
    let mut text = Vec::new();
    if let Some(pipe) = child.stderr.take() {
        // Bounded: it has ended, so this ends too.
        let _ = pipe.take(LOG_TAIL_BYTES).read_to_end(&mut text);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The daemon's own words about why it does not start, the last thing that it writes.
fn refusal(log: &str) -> Option<Refusal> {
    serde_json::from_str(log.lines().rev().find_map(|line| line.strip_prefix("refused "))?).ok()
}

/// Starts it so that nothing of this process's end or terminal reaches it. Nobody waits for its end: it is meant to
/// outlive us.
fn spawn(home: &Home, program: &Path) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.args(["daemon", "run", "--background"]).env_remove("OSTLER_HOME").envs(home.variables());
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.process_group(0).spawn()
}

fn ended(child: &mut Child) -> Option<ExitStatus> {
    child.try_wait().ok().flatten()
}

/// The daemon's log, from where it ended before this start.
struct Log {
    path: PathBuf,
    from: u64,
}

impl Log {
    fn here(home: &Home) -> Log {
        let path = home.daemon_log();
        let from = path.metadata().map_or(0, |log| log.len());
        Log { path, from }
    }

    /// What was written since, or the end of it.
    fn tail(&self) -> String {
        let read = || -> io::Result<String> {
            let mut file = File::open(&self.path)?;
            let end = file.metadata()?.len();
            file.seek(SeekFrom::Start(self.from.max(end.saturating_sub(LOG_TAIL_BYTES)).min(end)))?;
            let mut bytes = Vec::new();
            file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
        };
        // A log that cannot be read says nothing; the failure to start is what matters.
        read().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_refuses_to_start_says_why() {
        let log = "2026 INFO ready\nrefused {\"reason\":\"STORE_NEWER\",\"message\":\"too new\"}";
        assert_eq!(refusal(log).map(|refusal| refusal.message), Some("too new".to_owned()));
        assert_eq!(refusal("nothing of the kind"), None);
    }

    #[test]
    fn a_variable_forbids_it() {
        let allowed = |value: &str| is_allowed(Some(OsStr::new(value)));
        assert!(is_allowed(None) && allowed("") && allowed("0"));
        assert!(!allowed("1") && !allowed("yes"));
    }
}
