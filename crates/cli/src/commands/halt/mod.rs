//! `ostler halt`: all agents, or those of one mission, now. Asks nothing: who types it means it.

use clap::Args;
use ostler_client::Client;
use ostler_domain::{MissionId, Reason};
use ostler_form::HaltedForm;
use serde::Serialize;

use super::{
    chosen,
    mission::{still_at_work, stood_still},
};
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    form::HaltForm,
    output::{Line, Tone},
    words,
};

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
    let client = app.client().await?;
    let ui = &app.ui;
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
    } else {
        let word = if halt.state.freeze { "frozen" } else { "killed" };
        let line = Line::toned(Tone::Bad, "halted")
            .plain(format!(": {} {word}", words::plural(halt.sessions, "session", "sessions")));
        ui.data(&line)?;
        ui.remark(
            &Line::new()
                .faint("nothing starts or is delivered until ")
                .with(Tone::Accent, "ostler halt --release"),
        );
    }
    Ok(exit_code::OK)
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
