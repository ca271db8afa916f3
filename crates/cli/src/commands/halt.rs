//! `ostler halt`: all agents, now. Asks nothing: who types it means it.

use clap::Args;
use serde::Serialize;

use super::chosen;
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

#[derive(Serialize)]
struct HaltedForm {
    halt: Option<HaltForm>,
    sessions: u64,
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
