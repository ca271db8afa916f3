//! The emergency stop where no daemon answers: every agent's keeper is told by this machine itself, and what was asked for is
//! written down for the next daemon, which holds to it before it does anything else.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    process::{Command, Stdio},
    time::Duration,
};

use ostler_client::{Client, Home, reply::HaltState};
use ostler_domain::{
    Refusal,
    event::{By, PERSON_VARIABLE},
    home::{DaemonFile, HaltFile},
};
use ostler_form::HaltedForm;
use rustix::process::{Pid, PidfdFlags, Signal, geteuid, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    app::{App, daemon_file},
    commands::daemon::{is_gone, start_time},
    exit_code,
    failure::{Failure, in_a_line},
    form::HaltForm,
    held_file::make_dir,
    output::{Line, Tone},
    words,
};

/// How long a daemon has to start and to record the halt, which holds without it.
const RECORDED_WITHIN: Duration = Duration::from_secs(10);
/// How long one that was killed may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(5);

/// Why the daemon is not asked, or no more.
pub(super) enum Without {
    /// None runs.
    None,
    /// It takes connections, which the kernel does, and no requests.
    Silent,
    /// It has refused.
    Refused(Refusal),
}

/// What the keepers were told, and what came of it.
#[derive(Debug, Default, Deserialize)]
struct Told {
    done: u64,
    left: Vec<Left>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Left {
    session: String,
    why: String,
}

#[derive(Serialize)]
struct DirectForm {
    #[serde(flatten)]
    halted: HaltedForm,
    without_daemon: WithoutForm,
}

#[derive(Serialize)]
struct WithoutForm {
    why: String,
    /// Whether a daemon has recorded it by now.
    recorded: bool,
    /// Agents that were not stopped.
    left: Vec<Left>,
    /// What could not be done.
    failed: Vec<String>,
}

pub(super) async fn halt(app: &App, freeze: bool, why: &str, without: Without) -> Result<u8, Failure> {
    let home = app.home()?;
    let asked = HaltFile { freeze, by: by(), why: why.to_owned(), since: words::now() };
    let mut failed = Vec::new();
    if let Err(error) = write(&home, &asked) {
        let path = home.halt_json();
        failed.push(format!(
            "{} cannot be written ({error}): a daemon that starts will not know",
            path.display()
        ));
    }
    let (because, is_there) = match &without {
        Without::None => ("no daemon runs".to_owned(), false),
        Without::Silent => match end_silent(&home).await {
            Ok(ended) => (ended, false),
            Err(why) => (why, true),
        },
        Without::Refused(refusal) => {
            let why = refusal.why.as_deref().map(|why| format!(": {}", in_a_line(why))).unwrap_or_default();
            (format!("the daemon could not: {}{why}", refusal.message), true)
        }
    };
    let told = tell(app, &home, &asked).await.unwrap_or_else(|why| {
        failed.push(why);
        Told::default()
    });
    let recorded = match is_there {
        true => false,
        false => match timeout(RECORDED_WITHIN, record(app, &home, &asked)).await {
            Ok(Ok(())) => true,
            Ok(Err(failure)) => {
                let refusal = failure.to_refusal();
                let why = refusal.why.map(|why| format!(": {}", in_a_line(&why))).unwrap_or_default();
                failed.push(format!("no daemon has recorded it: {}{why}", refusal.message));
                false
            }
            Err(_) => {
                let within = words::span(RECORDED_WITHIN);
                failed.push(format!("no daemon has recorded it within {within}"));
                false
            }
        },
    };
    let is_left = !told.left.is_empty();
    let is_written = home.halt_json().exists();
    say(app, &asked, told, &because, (recorded, is_written), failed)?;
    Ok(if (recorded || is_written) && !is_left { exit_code::OK } else { exit_code::PARTLY })
}

fn by() -> By {
    let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let login = By::login(&accounts, geteuid().as_raw());
    By::claimed(&login, std::env::var(PERSON_VARIABLE).ok().as_deref())
}

/// Whole or not at all, and there after a loss of power.
fn write(home: &Home, asked: &HaltFile) -> io::Result<()> {
    let path = home.halt_json();
    make_dir(&path)?;
    let half = path.with_extension("json.new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&half)?;
    file.write_all(&serde_json::to_vec(asked)?)?;
    file.sync_all()?;
    fs::rename(half, &path)?;
    fs::File::open(home.state())?.sync_all()
}

/// Kills a daemon that does not answer: agents outlive it, and it would not know of the halt when it went on. Says what was
/// done, or why it was not.
async fn end_silent(home: &Home) -> Result<String, String> {
    let silent = "the daemon does not answer".to_owned();
    let Some(daemon) = daemon_file(home).filter(|daemon| is_of(daemon, home)) else {
        return Err(format!("{silent}, and it is not known which process it is"));
    };
    let pid = daemon.pid;
    if start_time(pid) != Some(daemon.start_time) || is_gone(pid) {
        // Its service's socket is there, and takes connections for the next one.
        return Ok("no daemon answers".to_owned());
    }
    let silent = format!("the daemon (pid {pid}) does not answer");
    let kill = || {
        let process = pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()?;
        // Looked up again behind the descriptor: what it names now, it names for ever.
        (start_time(pid)? == daemon.start_time).then_some(())?;
        pidfd_send_signal(&process, Signal::KILL).ok()
    };
    if kill().is_none() {
        return Err(format!("{silent}, and cannot be killed"));
    }
    let deadline = Instant::now() + GONE_WITHIN;
    while !is_gone(pid) {
        if Instant::now() >= deadline {
            return Err(format!("{silent}, and is not gone though it was killed"));
        }
        sleep(LOOK).await;
    }
    Ok(format!("{silent}; it was killed"))
}

/// A home that was copied has the file of the other one's daemon.
fn is_of(daemon: &DaemonFile, home: &Home) -> bool {
    let canonical = |path: &std::path::Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    canonical(&daemon.state) == canonical(home.state())
}

/// Has the program tell every keeper, which it ends by itself in a few seconds, whatever those do.
async fn tell(app: &App, home: &Home, asked: &HaltFile) -> Result<Told, String> {
    let mut command = Command::new(&app.program.path);
    let wish = if asked.freeze { "freeze" } else { "kill" };
    command.args(["internal", "halt"]).arg(home.state()).args([wish, &asked.by.0]);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let not_told = |why: String| format!("the keepers were not told: {why}");
    let ran = tokio::task::spawn_blocking(move || command.output()).await;
    let ran = ran.map_err(|error| not_told(error.to_string()))?;
    let output = ran.map_err(|error| not_told(error.to_string()))?;
    serde_json::from_slice(&output.stdout).map_err(|error| not_told(error.to_string()))
}

/// Has a daemon record what was asked for: it does so before it answers anybody, unless it was there before.
async fn record(app: &App, home: &Home, asked: &HaltFile) -> Result<(), Failure> {
    let client = Client::connect_or_start(home, &app.program.path).await?;
    let status = client.status().await?;
    if status.halt.is_none_or(|halt| halt.since != asked.since) {
        client.halt(asked.freeze, &asked.why).await?;
    }
    Ok(())
}

fn say(
    app: &App,
    asked: &HaltFile,
    told: Told,
    because: &str,
    (recorded, is_written): (bool, bool),
    failed: Vec<String>,
) -> Result<(), Failure> {
    let ui = &app.ui;
    let Told { done, left } = told;
    if ui.is_json() {
        let HaltFile { freeze, by, why, since } = asked.clone();
        let halt = HaltForm::new(&HaltState { freeze, by, why, since });
        return ui.json(&DirectForm {
            halted: HaltedForm { halt: Some(halt), sessions: done },
            without_daemon: WithoutForm { why: because.to_owned(), recorded, left, failed },
        });
    }
    super::say_halted(app, asked.freeze, done)?;
    ui.insist(&Line::of(because).faint("   each agent's keeper was told directly"));
    for Left { session, why } in &left {
        let id = session.parse().map_or_else(|_| session.clone(), |id: ostler_domain::SessionId| id.short());
        ui.insist(&Line::toned(Tone::Bad, "not stopped: ").plain(format!("{id}: {why}")));
    }
    for what in &failed {
        ui.insist(&Line::toned(Tone::Warn, "note: ").plain(what.as_str()));
    }
    if !recorded && is_written {
        let holds = "the halt is written down and holds when a daemon comes back   ";
        ui.insist(&Line::of(holds).with(Tone::Accent, "ostler doctor").faint("   may say why none does"));
    }
    super::say_next(app);
    Ok(())
}
