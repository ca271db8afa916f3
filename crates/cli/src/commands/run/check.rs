//! `--check`: a command that says whether the agent's work is any good, run in the campaign's sandbox with the home of the
//! session, so that it finds what the agent has fetched.

use std::{
    os::fd::AsRawFd,
    process::Stdio,
    time::{Duration, Instant},
};

use ostler_client::{Client, PrepareCommand, Session};
use ostler_domain::{
    command::shell_line,
    text::{one_line, visible},
};
use serde::Serialize;
use tokio::{io::AsyncReadExt, process::Command, time::timeout};

use super::super::exec::in_memory;
use crate::{app::App, failure::Failure};

/// How much of a check's output its agent is told: the end, where errors are summed up.
const TOLD_BYTES: usize = 16 * 1024;
/// How much of it is kept while it runs.
const KEPT_BYTES: usize = 256 * 1024;

/// What is to be checked, and how often the agent is told that it failed.
#[derive(Debug, Clone)]
pub(super) struct Check {
    pub(super) command: String,
    pub(super) retries: u32,
    /// When the time of the whole run is over.
    pub(super) until: Option<Instant>,
}

impl Check {
    /// How long a try that begins now may take.
    pub(super) fn time_left(&self) -> Option<Duration> {
        self.until.map(|until| until.saturating_duration_since(Instant::now()))
    }
}

/// How a try ended.
#[derive(Debug)]
pub(super) struct Checked {
    /// None where it was ended because it took too long.
    pub(super) exit: Option<i32>,
    pub(super) output: String,
    pub(super) took: Duration,
}

impl Checked {
    /// A try that was ended before it had one of its own.
    pub(super) fn cut_off(took: Duration) -> Self {
        Self { exit: None, output: String::new(), took }
    }

    pub(super) fn passed(&self) -> bool {
        self.exit == Some(0)
    }
}

/// `{"command":"cargo test","exit":0,"tries":1}`
#[derive(Debug, Clone, Serialize)]
pub(super) struct CheckForm {
    command: String,
    /// None where the last try took too long, or there was none.
    exit: Option<i32>,
    tries: u32,
}

/// The checks of a run so far.
#[derive(Debug)]
pub(super) struct Checks {
    pub(super) wanted: Check,
    tries: u32,
    last: Option<Checked>,
}

impl Checks {
    pub(super) fn new(wanted: Check) -> Self {
        Self { wanted, tries: 0, last: None }
    }

    /// Takes in how a try ended. Says what the agent is told, if it is to try again.
    pub(super) fn take(&mut self, checked: Checked) -> Option<String> {
        self.tries += 1;
        let again = !checked.passed() && self.tries <= self.wanted.retries;
        let told = again.then(|| told(&self.wanted.command, &checked));
        self.last = Some(checked);
        told
    }

    /// Whether the work was checked and found good.
    pub(super) fn passed(&self) -> bool {
        self.last.as_ref().is_some_and(Checked::passed)
    }

    pub(super) fn form(&self) -> CheckForm {
        let exit = self.last.as_ref().and_then(|last| last.exit);
        CheckForm { command: self.wanted.command.clone(), exit, tries: self.tries }
    }
}

/// What an agent is told of a check that failed.
fn told(command: &str, checked: &Checked) -> String {
    let how = match checked.exit {
        Some(code) => format!("failed with exit code {code}"),
        None => format!("was ended after {} s", checked.took.as_secs()),
    };
    let output = tail(&checked.output, TOLD_BYTES);
    let cut = if output.len() < checked.output.len() { "The end of its output" } else { "Its output" };
    format!("The check `{}` {how}. {cut}:\n\n{output}\n\nCorrect this.", one_line(command, 400))
}

/// The longest end of a text that has at most so many bytes and begins between characters.
fn tail(text: &str, most: usize) -> &str {
    let from = text.len().saturating_sub(most);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    &text[from..]
}

/// Runs a shell command line in the sandbox of a session's campaign. Ends with this process, or when it is dropped.
pub(super) async fn run(
    app: &App,
    client: &Client,
    session: &Session,
    line: &str,
    limit: Option<Duration>,
) -> Result<Checked, Failure> {
    let wanted = PrepareCommand {
        campaign: session.campaign.to_string(),
        argv: shell_line(line),
        unlisted: true,
        directory: None,
        session: Some(session.id.to_string()),
    };
    in_sandbox(app, client, wanted, limit).await
}

/// Runs a command in a sandbox to its end and keeps what it prints.
pub(super) async fn in_sandbox(
    app: &App,
    client: &Client,
    wanted: PrepareCommand,
    limit: Option<Duration>,
) -> Result<Checked, Failure> {
    let document = client.prepare_command(wanted).await?;
    let file = in_memory(&document)?;
    let began = Instant::now();
    // Inherited: the file stays open over the exec.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut child = Command::new(&app.program.path)
        .args(["internal", "command", &path])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let ended = async {
        let mut output = Vec::new();
        if let Some(mut stdout) = child.stdout.take() {
            let mut buffer = vec![0; 16 * 1024];
            while let Ok(read @ 1..) = stdout.read(&mut buffer).await {
                output.extend_from_slice(&buffer[..read]);
                if output.len() > KEPT_BYTES * 2 {
                    output.drain(..output.len() - KEPT_BYTES);
                }
            }
        }
        (output, child.wait().await)
    };
    let ended = match limit {
        Some(limit) => timeout(limit, ended).await.ok(),
        None => Some(ended.await),
    };
    let took = began.elapsed();
    let Some((output, status)) = ended else {
        let _ = child.kill().await;
        return Ok(Checked::cut_off(took));
    };
    let output = visible(&String::from_utf8_lossy(&output));
    Ok(Checked { exit: status?.code(), output, took })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(exit: Option<i32>, output: &str) -> Checked {
        Checked { exit, output: output.to_owned(), took: Duration::from_secs(3) }
    }

    #[test]
    fn a_failure_goes_back_so_often_and_no_more() {
        let wanted = Check { command: "cargo test".to_owned(), retries: 2, until: None };
        let mut checks = Checks::new(wanted);
        assert!(!checks.passed());
        let told = checks.take(checked(Some(101), "1 failed\n")).unwrap();
        assert!(
            told.contains("`cargo test` failed with exit code 101") && told.contains("1 failed"),
            "{told}"
        );
        assert!(checks.take(checked(None, "")).unwrap().contains("was ended after 3 s"));
        assert!(checks.take(checked(Some(1), "")).is_none(), "the agent was told twice");
        assert!(!checks.passed());
        insta::assert_snapshot!(
            crate::output::to_json(&checks.form()),
            @r#"{"command":"cargo test","exit":1,"tries":3}"#
        );
        assert!(checks.take(checked(Some(0), "ok")).is_none() && checks.passed());
    }

    #[test]
    fn only_the_end_of_much_output_is_told() {
        assert_eq!(tail("aé", 1), "");
        assert_eq!(tail("aé", 2), "é");
        let long = format!("begin{}end", "x".repeat(TOLD_BYTES));
        let told = told("make", &checked(Some(2), &long));
        assert!(told.contains("The end of its output") && told.contains("end\n\nCorrect this."), "{told}");
        assert!(!told.contains("begin"));
    }
}
