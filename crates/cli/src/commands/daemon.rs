//! `ostler daemon`: the daemon's own life.

use std::time::Duration;

use clap::{Args, Subcommand};
use ostler_client::{Client, NodeStatus};
use ostler_domain::{Reason, Refusal};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use tokio::time::{Instant, sleep, timeout};

use super::{config, daemon_logs};
use crate::{
    app::{App, daemon_file},
    consent::DryRun,
    exit_code,
    failure::Failure,
    form::StatusForm,
    output::{Line, Tone},
    words,
};

/// How long an ending daemon is waited for; with sessions to stop it takes the ladder of each.
const ENDS_WITHIN: Duration = Duration::from_secs(60);
/// How long a daemon has to say that it ends, before it is said to hang.
const HANGS: Duration = Duration::from_secs(10);
/// How often it is looked whether something has come about.
const LOOK: Duration = Duration::from_millis(5);
/// How long sessions are waited for to be adopted before a restart says how many are.
const ADOPTED_WITHIN: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(crate) struct DaemonArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Start it if it does not run
    Start,
    /// End it; agents go on
    Stop {
        /// Stop all sessions first, in an orderly way
        #[arg(long)]
        stop_sessions: bool,
        #[command(flatten)]
        dry: DryRun,
    },
    /// End it and start it anew, as the version of this program; agents go on meanwhile
    Restart {
        #[command(flatten)]
        dry: DryRun,
    },
    /// How it is; exit 7 when none runs
    Status,
    /// What it says
    Logs(daemon_logs::LogsArgs),
    /// Be the daemon, in this terminal
    Run {
        /// Write to the log instead of the terminal
        #[arg(long)]
        background: bool,
    },
}

#[derive(Serialize)]
struct StoppedForm {
    pid: Option<u32>,
    sessions_left_running: u64,
}

pub(crate) async fn run(app: &App, args: DaemonArgs) -> Result<u8, Failure> {
    match args.verb {
        Verb::Start => {
            let client = app.client().await?;
            config::remark_unknown(app);
            show(app, &client.status().await?)?;
        }
        Verb::Stop { stop_sessions, dry } if dry.is_wanted() => would(app, dry, stop_sessions, "end").await?,
        Verb::Restart { dry } if dry.is_wanted() => would(app, dry, false, "end and start anew").await?,
        Verb::Stop { stop_sessions, .. } => stop(app, stop_sessions).await?,
        Verb::Restart { .. } => restart(app).await?,
        Verb::Status => show(app, &app.running_client().await?.status().await?)?,
        Verb::Logs(args) => daemon_logs::run(app, args).await?,
        // The binary becomes the daemon before it becomes a command line, and then it is asked for nothing else.
        Verb::Run { .. } => return Err(Failure::usage("`daemon run` takes no flag but --background")),
    }
    Ok(exit_code::OK)
}

pub(super) fn show(app: &App, status: &NodeStatus) -> Result<(), Failure> {
    if app.ui.is_json() {
        return app.ui.json(&StatusForm::new(status));
    }
    app.ui.data_lines(&lines(status, words::now()))
}

pub(super) fn lines(status: &NodeStatus, now: ostler_domain::Time) -> Vec<Line> {
    let store = &status.store;
    let disk = store.database_bytes + store.search_bytes;
    let detached = match status.detached_sessions {
        0 => Line::new(),
        n => Line::toned(Tone::Warn, format!("{n} not adopted yet")),
    };
    let mut lines = vec![
        Line::toned(Tone::Good, "●").plain(" ").append(Line::joined([
            Line::of(format!("daemon {}", status.version)),
            Line::of(format!("pid {}", status.pid)),
            Line::of(format!("up {}", words::span(now.since(status.started)))),
            Line::of(words::plural(status.live_sessions, "live session", "live sessions")),
            detached,
        ])),
        Line::of("  ").append(Line::joined([
            Line::of(&status.state_dir),
            Line::of(words::bytes(disk)),
            Line::of(words::plural(status.last_seq, "event", "events")),
            Line::of(format!("schema {}", status.schema_version)),
            Line::of(format!("epoch {}", status.epoch)),
        ])),
    ];
    if let Some(halt) = &status.halt {
        let word = if halt.freeze { "all agents frozen" } else { "all agents halted" };
        let why = if halt.why.is_empty() { String::new() } else { format!(": {}", halt.why) };
        let line = Line::toned(Tone::Bad, format!("! {word}")).plain(format!(
            " by {} {} ago{why}",
            halt.by.0,
            words::age(now.since(halt.since))
        ));
        lines.push(line.faint("   ostler halt --release"));
    }
    if let Some(drain) = &status.drain {
        let line = Line::toned(Tone::Warn, format!("! {}", words::drained(drain)));
        lines.push(line.faint("   ostler node drain --end"));
    }
    lines
}

/// What would become of the daemon, and of whom it looks after.
async fn would(app: &App, dry: DryRun, stop_sessions: bool, what: &str) -> Result<(), Failure> {
    let status = app.running_client().await?.status().await?;
    let sessions = words::plural(status.live_sessions, "session", "sessions");
    let then = match stop_sessions {
        true => format!("and stop {sessions} first"),
        false => format!("{sessions} go on meanwhile"),
    };
    dry.said(&app.ui, &format!("{what} the daemon (pid {}); {then}", status.pid), &StatusForm::new(&status))?;
    Ok(())
}

async fn stop(app: &App, stop_sessions: bool) -> Result<(), Failure> {
    let client = match app.running_client().await {
        Err(failure) if failure.reason() == Some(Reason::DaemonUnreachable) => {
            if app.ui.is_json() {
                return app.ui.json(&StoppedForm { pid: None, sessions_left_running: 0 });
            }
            // Asking for what already holds is no failure: scripts ask twice.
            return app.ui.data(&Line::of("no daemon runs"));
        }
        client => client?,
    };
    let stopping = client.stop_daemon(stop_sessions).await?;
    app.ui.show_meanwhile(Line::new().faint("the daemon ends …"));
    wait_until_gone(stopping.pid).await?;
    if app.ui.is_json() {
        let sessions_left_running = stopping.sessions_left_running;
        return app.ui.json(&StoppedForm { pid: Some(stopping.pid), sessions_left_running });
    }
    let left = match stopping.sessions_left_running {
        0 => String::new(),
        n => format!("; {} without it", words::plural(n, "session goes on", "sessions go on")),
    };
    app.ui.data(&Line::of(format!("daemon {} stopped{left}", stopping.pid)))
}

pub(crate) async fn wait_until_gone(pid: u32) -> Result<(), Failure> {
    let deadline = Instant::now() + ENDS_WITHIN;
    while !is_gone(pid) {
        if Instant::now() >= deadline {
            let message = format!("the daemon (pid {pid}) has not ended within {}", words::span(ENDS_WITHIN));
            return Err(Refusal::new(Reason::TimedOut, message)
                .hint("ostler daemon logs", "shows what it is doing")
                .into());
        }
        sleep(LOOK).await;
    }
    Ok(())
}

/// Says whether a process has ended. One that waits to be collected by its parent has.
pub(crate) fn is_gone(pid: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X'])),
        Err(_) => true,
    }
}

/// Field 22 of `/proc/<pid>/stat`; the second may have anything in it, but ends at the last bracket.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(19)?.parse().ok()
}

async fn restart(app: &App) -> Result<(), Failure> {
    // One that would not start does not take the place of one that runs.
    config::check(app)?;
    config::remark_unknown(app);
    match app.running_client().await {
        Ok(client) => match timeout(HANGS, client.stop_daemon(false)).await {
            Ok(stopping) => wait_until_gone(stopping?.pid).await?,
            Err(_) => kill_the_silent(app).await?,
        },
        Err(failure) if failure.reason() == Some(Reason::DaemonUnreachable) => {}
        Err(failure) => return Err(failure),
    }
    let started = Instant::now();
    let client = app.client().await?;
    // Where systemd holds the socket, one is connected before there is a daemon.
    client.status().await?;
    let ready = started.elapsed();
    let status = adopted(&client).await?;
    if app.ui.is_json() {
        return app.ui.json(&StatusForm::new(&status));
    }
    // Those that wait to start have nobody to be found again.
    let running = status.live_sessions.saturating_sub(status.waiting_sessions);
    let attached = running.saturating_sub(status.detached_sessions);
    app.ui.data(&Line::joined([
        Line::of(format!("{} ready in {}", status.version, words::took(ready))),
        Line::of(format!("pid {}", status.pid)),
        Line::of(format!("{attached} of {} re-adopted", words::plural(running, "session", "sessions"))),
    ]))
}

/// Ends a daemon that takes connections and no requests. It may die at any moment, and takes no agent along.
async fn kill_the_silent(app: &App) -> Result<(), Failure> {
    let silent = daemon_file(&app.home()?).filter(|daemon| start_time(daemon.pid) == Some(daemon.start_time));
    let Some(daemon) = silent else {
        return Err(Refusal::new(
            Reason::TimedOut,
            "the daemon does not answer, and nobody knows which process it is",
        )
        .hint("ostler daemon logs", "may say why")
        .into());
    };
    let process = i32::try_from(daemon.pid).ok().and_then(Pid::from_raw);
    if process.is_none_or(|process| kill_process(process, Signal::KILL).is_err()) {
        return Err(Refusal::internal(format!("the daemon (pid {}) cannot be ended", daemon.pid)).into());
    }
    app.ui.remark(&Line::of(format!("the daemon (pid {}) did not answer and was killed", daemon.pid)));
    wait_until_gone(daemon.pid).await
}

/// The daemon's status, once all sessions are adopted or time is up.
async fn adopted(client: &Client) -> Result<NodeStatus, Failure> {
    let deadline = Instant::now() + ADOPTED_WITHIN;
    loop {
        let status = client.status().await?;
        if status.detached_sessions == 0 || Instant::now() >= deadline {
            return Ok(status);
        }
        sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use ostler_client::reply::{HaltState, StoreSizes};
    use ostler_domain::{NodeId, event::By};

    use super::*;
    use crate::{
        output::Look,
        testing::{NOW, ago},
    };

    fn status() -> NodeStatus {
        NodeStatus {
            pid: 4121,
            version: "0.1.0".to_owned(),
            node: NodeId::new(NOW, 1),
            epoch: 3,
            started: ago(7_300),
            state_dir: "/home/ann/.local/state/ostler".to_owned(),
            live_sessions: 5,
            detached_sessions: 1,
            halt: Some(HaltState {
                freeze: true,
                by: By("ann".to_owned()),
                why: "fire drill".to_owned(),
                since: ago(60),
            }),
            store: StoreSizes {
                database_bytes: 1 << 30,
                search_bytes: 1 << 20,
                sessions: 9,
                unsearched_events: 0,
            },
            last_seq: 12_345,
            schema_version: 1,
            memory_held_by: "cgroup v2".to_owned(),
            waiting_sessions: 0,
            disk: None,
            machine_restart: None,
            keeper_versions: Default::default(),
            drain: None,
        }
    }

    #[test]
    fn says_how_it_is() {
        let look = Look::plain(None);
        let text: Vec<_> = lines(&status(), NOW).iter().map(|line| line.show(&look)).collect();
        insta::assert_snapshot!(text.join("\n"));
        insta::assert_snapshot!(crate::output::to_json(&StatusForm::new(&status())));
    }

    #[test]
    fn knows_who_is_gone() {
        assert!(!is_gone(std::process::id()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert!(is_gone(pid));
    }
}
