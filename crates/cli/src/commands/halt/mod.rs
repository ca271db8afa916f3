//! `ostler halt`: all agents, or those of one mission, now. Asks nothing: who types it means it. It needs no daemon, nor
//! anything that a daemon needs to start.

mod directly;

use std::time::Duration;

use clap::Args;
use ostler_client::{Client, reply::Halt};
use ostler_domain::{MissionId, Reason, Refusal};
use ostler_form::HaltedForm;
use serde::Serialize;
use tokio::time::timeout;

use self::directly::Without;
use super::{
    chosen,
    mission::{still_at_work, stood_still},
};
use crate::{
    app::{App, daemon_file},
    exit_code,
    failure::Failure,
    form::HaltForm,
    output::{Line, Tone},
    words,
};

/// A daemon that works answers within this time, however much it has to do.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);
/// And has halted everything within this: it waits a moment to see its agents dead.
const HALTED_WITHIN: Duration = Duration::from_secs(6);
/// Where nothing burns it is given more time.
const CALM_ANSWERS_WITHIN: Duration = Duration::from_secs(8);

#[derive(Debug, Args)]
pub(crate) struct HaltArgs {
    /// Only the agents of this mission, which is cancelled; with --freeze, paused
    #[arg(long, value_name = "MISSION", conflicts_with = "release")]
    mission: Option<String>,
    /// Freeze the agents where they stand instead of killing them
    #[arg(long)]
    freeze: bool,
    /// End the halt: frozen agents go on, killed ones stay ended, new ones may start
    #[arg(long, conflicts_with_all = ["freeze", "message"])]
    release: bool,
    /// Show which sessions it would end or freeze, and do nothing
    #[arg(long, conflicts_with = "release")]
    dry_run: bool,
    /// Do not ask: it never does
    #[arg(short, long, hide = true)]
    yes: bool,
    /// Why; shown to everyone who asks for a session meanwhile
    #[arg(short, long, value_name = "WHY", default_value = "", hide_default_value = true)]
    message: String,
}

pub(crate) async fn run(app: &App, args: HaltArgs) -> Result<u8, Failure> {
    if args.release || args.dry_run || args.mission.is_some() || app.node().is_some() {
        return by_daemon(app, args).await;
    }
    let without = match asked(app, &args).await? {
        Ok(halt) => {
            if app.ui.is_json() {
                app.ui
                    .json(&HaltedForm { halt: Some(HaltForm::new(&halt.state)), sessions: halt.sessions })?;
            } else {
                say_halted(app, halt.state.freeze, halt.sessions)?;
                say_next(app);
            }
            return Ok(exit_code::OK);
        }
        Err(without) => without,
    };
    directly::halt(app, args.freeze, &args.message, without).await
}

/// Asks the daemon that runs, and no other: to start one may fail, or take its time.
async fn asked(app: &App, args: &HaltArgs) -> Result<Result<Halt, Without>, Failure> {
    let Ok(client) = Client::connect(&app.home()?).await else { return Ok(Err(Without::None)) };
    let halt = client.halt(args.freeze, &args.message);
    tokio::pin!(halt);
    let first = async {
        tokio::select! {
            halted = &mut halt => Some(halted),
            Ok(_) = client.status() => None,
        }
    };
    let halted = match timeout(ANSWERS_WITHIN, first).await {
        Ok(Some(halted)) => Ok(halted),
        Ok(None) => timeout(HALTED_WITHIN, halt).await,
        Err(late) => Err(late),
    };
    let Ok(halted) = halted else { return Ok(Err(Without::Silent)) };
    let refusal = match halted {
        Ok(halt) => return Ok(Ok(halt)),
        Err(error) => error.to_refusal(),
    };
    match refusal.reason {
        // Who may not ask may not do it in another way either.
        Reason::PermissionDenied | Reason::InvalidArgument => Err(refusal.into()),
        Reason::DaemonUnreachable => Ok(Err(Without::None)),
        _ => Ok(Err(Without::Refused(refusal))),
    }
}

fn say_halted(app: &App, freeze: bool, sessions: u64) -> Result<(), Failure> {
    let word = if freeze { "frozen" } else { "killed" };
    let count = words::plural(sessions, "session", "sessions");
    app.ui.data(&Line::toned(Tone::Bad, "halted").plain(format!(": {count} {word}")))
}

fn say_next(app: &App) {
    app.ui.remark(
        &Line::new()
            .faint("nothing starts or is delivered until ")
            .with(Tone::Accent, "ostler halt --release"),
    );
}

/// What is none of an emergency, or another machine's.
async fn by_daemon(app: &App, args: HaltArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let ui = &app.ui;
    // The way to another machine takes its time, and SSH says so.
    if app.node().is_none() && timeout(CALM_ANSWERS_WITHIN, client.status()).await.is_err() {
        return Err(silent(app)?.into());
    }
    if args.release {
        let sessions = client.release_halt().await?;
        if ui.is_json() {
            ui.json(&HaltedForm { halt: None, sessions })?;
        } else {
            let go_on = words::plural(sessions, "session goes on", "sessions go on");
            ui.data(&Line::toned(Tone::Good, "released").plain(format!(": {go_on}, new ones may start")))?;
        }
        return Ok(exit_code::OK);
    }
    if let Some(mission) = &args.mission {
        return one_mission(app, &client, mission, &args).await;
    }
    if args.dry_run {
        let done = if args.freeze { "frozen" } else { "killed" };
        chosen::would_be(app, &client, &chosen::all_that_live(&client).await?, done).await?;
        return Ok(exit_code::OK);
    }
    let halt = client.halt(args.freeze, &args.message).await?;
    if ui.is_json() {
        ui.json(&HaltedForm { halt: Some(HaltForm::new(&halt.state)), sessions: halt.sessions })?;
        return Ok(exit_code::OK);
    }
    say_halted(app, halt.state.freeze, halt.sessions)?;
    say_next(app);
    Ok(exit_code::OK)
}

/// A daemon that takes connections, which the kernel does, and no requests.
fn silent(app: &App) -> Result<Refusal, Failure> {
    let late = words::span(CALM_ANSWERS_WITHIN);
    let pid = daemon_file(&app.home()?).map_or_else(|| "PID".to_owned(), |daemon| daemon.pid.to_string());
    let message = format!("the daemon (pid {pid}) has not answered within {late}");
    Ok(Refusal::new(Reason::TimedOut, message)
        .because("nothing was changed; a daemon that is ended takes no agent along")
        .hint("ostler halt", "kills all agents without it")
        .hint(format!("kill -9 {pid}"), "ends it; the next command starts another"))
}

#[derive(Serialize)]
struct MissionHaltedForm {
    mission: MissionId,
    status: &'static str,
    sessions: u64,
}

/// Nothing of it starts any more, which is durable first; then its agents are killed without the time to end in an orderly
/// way that `mission cancel` leaves them.
async fn one_mission(app: &App, client: &Client, who: &str, args: &HaltArgs) -> Result<u8, Failure> {
    let mission = client.mission(who).await?.mission;
    let id = mission.id.to_string();
    if args.dry_run {
        let done = if args.freeze { "frozen" } else { "killed" };
        chosen::would_be(app, client, &still_at_work(client, mission.id).await?, done).await?;
        return Ok(exit_code::OK);
    }
    let why = if args.message.is_empty() { "halted" } else { &args.message };
    let (halted, paused) = match args.freeze {
        true => {
            let paused = client.pause_mission(&id, why).await?;
            (paused.mission.clone(), Some(paused))
        }
        false => (client.cancel_mission(&id, why).await?, None),
    };
    let sessions = still_at_work(client, mission.id).await?;
    if !args.freeze {
        for session in &sessions {
            match client.stop_session(&session.id.to_string(), true).await.map_err(Failure::from) {
                // It has ended by itself meanwhile.
                Err(failure) if failure.reason() == Some(Reason::WrongState) => {}
                killed => drop(killed?),
            }
        }
    }
    let (ui, name, count) = (&app.ui, mission.name, sessions.len() as u64);
    if ui.is_json() {
        let status = halted.status.as_str();
        ui.json(&MissionHaltedForm { mission: mission.id, status, sessions: count })?;
        return Ok(exit_code::OK);
    }
    let (word, next) = match args.freeze {
        true => ("frozen", format!("ostler mission resume {name}")),
        false => ("killed", format!("ostler mission retry {name}")),
    };
    let count = words::plural(count, "session", "sessions");
    ui.data(&Line::toned(Tone::Bad, "halted").plain(format!(": {count} of {name} {word}")))?;
    if let Some(paused) = &paused {
        stood_still(app, paused);
    }
    let effect = if args.freeze { "   lets it go on" } else { "   does what was not completed" };
    ui.remark(&Line::of("  ").with(Tone::Accent, next).faint(effect));
    Ok(exit_code::OK)
}
