//! What `ostler doctor` and `ostler node ls` say, for the dashboard: the program itself is asked, so that there is one
//! doctor. It tries things and calls other machines, so it is asked once in a while, however many look.

use std::{
    io::Read,
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde::{Deserialize, de::DeserializeOwned};
use tokio::sync::Mutex;

/// How long an answer is good for.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// How long one is waited for: machines that do not answer take their time.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of an answer that are read.
const ANSWER_BYTES: u64 = 1 << 20;

/// What one thing on this machine is like, and what helps.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Finding {
    pub(crate) verdict: String,
    pub(crate) about: String,
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) fix: Option<String>,
}

/// A machine that is reached by SSH.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) state: String,
    pub(crate) version: Option<String>,
    pub(crate) sessions: Option<u64>,
    pub(crate) error: Option<String>,
}

/// What was found; none where the program did not say.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    pub(crate) findings: Option<Vec<Finding>>,
    pub(crate) nodes: Option<Vec<Node>>,
}

#[derive(Debug)]
pub(crate) struct Checkup {
    program: PathBuf,
    kept: Mutex<Option<(Instant, Found)>>,
}

impl Checkup {
    pub(crate) fn new(program: PathBuf) -> Checkup {
        Checkup { program, kept: Mutex::default() }
    }

    pub(crate) async fn found(&self) -> Found {
        // Whoever comes meanwhile waits for the same answer.
        let mut kept = self.kept.lock().await;
        if let Some((at, found)) = &*kept
            && at.elapsed() < GOOD_FOR
        {
            return found.clone();
        }
        let program = self.program.clone();
        let asked = tokio::task::spawn_blocking(move || {
            #[derive(Deserialize)]
            struct Doctor {
                findings: Vec<Finding>,
            }
            #[derive(Deserialize)]
            struct Nodes {
                nodes: Vec<Node>,
            }
            Found {
                // Agent programs have a table of their own.
                findings: said(&program, &["doctor", "--quick", "-o", "json"])
                    .map(|Doctor { findings }| findings),
                nodes: said(&program, &["node", "ls", "-o", "json"]).map(|Nodes { nodes }| nodes),
            }
        });
        let found = asked.await.unwrap_or_default();
        *kept = Some((Instant::now(), found.clone()));
        found
    }
}

/// What the program prints, whatever it exits with: one that finds something wrong fails.
fn said<T: DeserializeOwned>(program: &PathBuf, words: &[&str]) -> Option<T> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let out = child.stdout.take()?;
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        out.take(ANSWER_BYTES).read_to_end(&mut text).map(|_| text)
    });
    let end = Instant::now() + PATIENCE;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    serde_json::from_slice(&reader.join().ok()?.ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[tokio::test]
    async fn the_doctor_is_asked_once_and_may_find_something_wrong() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("ostler");
        let count = dir.path().join("count");
        let script = format!(
            "#!/bin/sh\necho x >> {}\n[ \"$1\" = node ] && {{ echo not json; exit 0; }}\necho '{{\"ok\":false,\"findings\":[{{\"verdict\":\"fail\",\"about\":\"disk\",\"text\":\"full\",\"fix\":\"ostler du\"}}]}}'\nexit 1\n",
            count.display()
        );
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        let checkup = Checkup::new(program);
        for _ in 0..3 {
            let found = checkup.found().await;
            let findings = found.findings.unwrap();
            assert_eq!((findings[0].about.as_str(), findings[0].fix.as_deref()), ("disk", Some("ostler du")));
            assert!(found.nodes.is_none(), "what makes no sense is not there");
        }
        assert_eq!(fs::read_to_string(count).unwrap().lines().count(), 2, "once each");
    }
}
