//! `ostler diff`: what a session changed, from its snapshots.

use clap::Args;
use ostler_client::domain::snapshot::{Difference, readable};

use ostler_form::tree::DifferenceForm;

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Line, Tone},
    screen,
};

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// Session: name, id, part of an id, or - for the last one of this terminal
    who: String,
    /// A turn (3), from one to another (1..3, 1.., ..3), or the name of a snapshot [default: since the session began]
    #[arg(value_name = "TURN[..TURN]")]
    span: Option<String>,
    /// How many lines of which files
    #[arg(long, conflicts_with = "name_only")]
    stat: bool,
    /// Names of files, and nothing else
    #[arg(long)]
    name_only: bool,
}

pub(crate) async fn run(app: &App, args: DiffArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let who = app.session(&client, &args.who).await?.id.to_string();
    let with_patch = !(args.stat || args.name_only);
    let difference = client.difference(&who, args.span.as_deref().unwrap_or_default(), with_patch).await?;
    let ui = &app.ui;
    if ui.is_json() {
        ui.json(&DifferenceForm::new(&difference, with_patch))?;
    } else if args.name_only {
        let names = difference.files.iter().map(|file| Line::of(&file.path));
        ui.data_lines(&names.collect::<Vec<_>>())?;
    } else if args.stat {
        ui.data_lines(&screen::tree::files(&difference.files))?;
        ui.remark(&screen::tree::count(&difference.files));
    } else if ui.terminals().stdout_is_terminal {
        ui.page();
        if !difference.patch.is_empty() {
            ui.text(&readable(&difference.patch))?;
        }
    } else {
        // For `git apply` and the like, byte for byte.
        ui.bytes(&difference.patch)?;
    }
    say_what_is_missing(app, &difference);
    Ok(exit_code::OK)
}

fn say_what_is_missing(app: &App, difference: &Difference) {
    if difference.is_cut {
        app.ui.insist(
            &Line::toned(Tone::Warn, "! there is more than is shown").faint("   ask for fewer turns"),
        );
    }
    if difference.files.is_empty() {
        app.ui.remark(&Line::of("nothing differs"));
    }
}
