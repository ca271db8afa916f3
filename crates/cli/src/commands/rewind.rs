//! `ostler rewind`: files as they were when a turn had ended.

use clap::Args;
use ostler_domain::Refusal;

use ostler_form::tree::RewindForm;

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    input,
    output::{Line, Tone},
    screen, words,
};

#[derive(Debug, Args)]
pub(crate) struct RewindArgs {
    /// Session: name, id, part of an id, or - for the last one of this terminal
    who: String,
    /// The turn after which files were as they are to be; 0 is the session's beginning. Or the name of a
    /// snapshot, or of a checkpoint of the session's ticket
    #[arg(value_name = "TURN")]
    turn: String,
    /// Put the files back. What the agent remembers stays as it is
    #[arg(long, required = true)]
    files: bool,
    /// Say what would be changed, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

pub(crate) async fn run(app: &App, args: RewindArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let session = app.session(&client, &args.who).await?;
    let who = session.id.to_string();
    let ui = &app.ui;
    let asks = !(args.dry_run || args.yes);
    if asks && !ui.has_person() {
        return Err(Refusal::invalid("files would be changed, and there is nobody to ask")
            .hint(
                format!("ostler rewind {} {} --files -y", session.id.short(), args.turn),
                "does it without asking",
            )
            .hint(
                format!("ostler rewind {} {} --files --dry-run", session.id.short(), args.turn),
                "says what it changes",
            )
            .into());
    }
    let mut rewinding = client.rewind(&who, &args.turn, args.dry_run || asks).await?;
    if asks && !rewinding.files.is_empty() {
        ui.data_lines(&screen::tree::files(&rewinding.files))?;
        let count = words::plural(rewinding.files.len() as u64, "file", "files");
        if !input::agrees(ui, &format!("change {count} in {}?", session.working_dir)) {
            ui.remark(&Line::of("nothing was changed"));
            return Ok(exit_code::OK);
        }
        rewinding = client.rewind(&who, &args.turn, false).await?;
    }
    if ui.is_json() {
        ui.json(&RewindForm::new(&rewinding))?;
        return Ok(exit_code::OK);
    }
    if rewinding.files.is_empty() {
        ui.remark(&Line::of(format!("files are as they were after turn {}", rewinding.to.turn)));
        return Ok(exit_code::OK);
    }
    if !asks {
        ui.data_lines(&screen::tree::files(&rewinding.files))?;
    }
    let count = screen::tree::count(&rewinding.files);
    if !rewinding.is_done {
        ui.remark(&count.plain(" would be changed"));
        return Ok(exit_code::OK);
    }
    ui.remark(&count.plain(format!(" · as after turn {}", rewinding.to.turn)));
    let back = format!("ostler rewind {} {} --files", session.id.short(), short(&rewinding.before));
    ui.remark(&Line::of("  ").with(Tone::Accent, back).faint("   brings back what was there"));
    Ok(exit_code::OK)
}

/// Enough of a snapshot's name to mean it.
fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}
