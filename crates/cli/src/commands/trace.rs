//! `ostler sandbox trace` and `suggest`: what a command wanted and the sandbox kept back, and the smallest grants that
//! would have let it through.

use std::{
    fs::{self, File},
    io::{Read, Seek, Write},
    os::{
        fd::AsRawFd,
        unix::{
            fs::{DirBuilderExt, OpenOptionsExt},
            process::ExitStatusExt,
        },
    },
    path::{Path, PathBuf},
    process::Command,
};

use clap::Args;
use ostler_client::{Campaign, Home};
use ostler_domain::{
    CampaignId, Reason, Refusal,
    trace::{Suggestion, Trace, suggestions},
};
use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};

use super::exec;
use crate::{
    app::{App, person_home},
    exit_code,
    failure::Failure,
    output::Line,
    screen::trace::{UNSEEN, report, suggested, unseen, verdict},
    signals::Signals,
};

#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// The campaign: name, id or a path in it [default: the one around this directory]
    #[arg(short = 'C', long, value_name = "CAMPAIGN")]
    campaign: Option<String>,
    /// The command and its arguments, whether it is on the list or not
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    argv: Vec<String>,
}

/// What is kept of a campaign's last trace, for `suggest`.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    command: Vec<String>,
    exit: u8,
    #[serde(flatten)]
    trace: Trace,
}

#[derive(Serialize)]
struct TraceForm<'a> {
    campaign: String,
    #[serde(flatten)]
    kept: &'a Kept,
    suggested: Vec<Suggestion>,
    unseen: [&'static str; 5],
}

fn form<'a>(campaign: &Campaign, kept: &'a Kept) -> TraceForm<'a> {
    let suggested = suggestions(&kept.trace, person_home().as_deref().map(Path::new));
    TraceForm { campaign: campaign.name.to_string(), kept, suggested, unseen: UNSEEN }
}

/// Runs a command and watches it. Its output is its own; what was seen is said on standard error behind it, or with
/// `-o json` in a line of its own.
pub(crate) async fn trace(app: &App, args: TraceArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let who = exec::campaign(app, args.campaign)?;
    let campaign = client.campaign(&who).await?;
    let document = exec::prepare(&client, who, args.argv.clone(), true).await?;
    let failed = |error: std::io::Error| {
        Failure::from(Refusal::internal(format!("the command cannot be watched: {error}")))
    };
    let order = exec::in_memory(&document).map_err(failed)?;
    let mut seen =
        File::from(memfd_create("ostler-trace", MemfdFlags::empty()).map_err(|errno| failed(errno.into()))?);
    app.ui.flush()?;
    // Meant for the command, which has them from the terminal as we have.
    let _signals = Signals::catch()?;
    let path = |file: &File| format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut running = Command::new(&app.program.path)
        .args(["internal", "command", "--observe", &path(&seen), &path(&order)])
        .spawn()
        .map_err(failed)?;
    let status = running.wait().map_err(failed)?;
    let mut json = Vec::new();
    seen.rewind().and_then(|()| seen.read_to_end(&mut json)).map_err(failed)?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    let exit = code.and_then(|code| u8::try_from(code).ok()).unwrap_or(exit_code::FAILURE);
    // Nothing was written: it was not run, and has said why.
    let Ok(trace) = serde_json::from_slice(&json) else { return Ok(exit) };
    let kept = Kept { command: args.argv, exit, trace };
    keep(&place(&app.home()?, campaign.id), &kept).map_err(failed)?;
    say(app, &campaign, &kept, |line| {
        app.ui.say(line);
        Ok(())
    })?;
    Ok(exit)
}

/// Says what would have let the campaign's last traced command through.
pub(crate) async fn suggest(app: &App, who: Option<String>) -> Result<u8, Failure> {
    let campaign = app.client().await?.campaign(&exec::campaign(app, who)?).await?;
    let found = fs::read(place(&app.home()?, campaign.id)).ok();
    let kept: Kept = found.and_then(|json| serde_json::from_slice(&json).ok()).ok_or_else(|| {
        Refusal::new(Reason::WrongState, format!("no command was traced in {} yet", campaign.name)).hint(
            format!("ostler sandbox trace -C {} -- CMD", campaign.name),
            "runs one and watches what the sandbox keeps back",
        )
    })?;
    if !app.ui.is_json() {
        let exit = format!("   exit {}", kept.exit);
        app.ui.data(&Line::of("traced   ").strong(kept.command.join(" ")).faint(exit))?;
    }
    say(app, &campaign, &kept, |line| app.ui.data(line))?;
    Ok(exit_code::OK)
}

fn say(
    app: &App,
    campaign: &Campaign,
    kept: &Kept,
    write: impl Fn(&Line) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let form = form(campaign, kept);
    if app.ui.is_json() {
        return app.ui.json(&form);
    }
    let mut lines = report(&kept.trace, person_home().as_deref(), app.ui.err_look());
    lines.push(verdict(&kept.trace));
    lines.extend(suggested(&kept.trace, &form.suggested, &campaign.name));
    lines.extend(unseen());
    lines.iter().try_for_each(write)
}

/// The last trace of a campaign; the one before is of no use to anybody.
fn place(home: &Home, campaign: CampaignId) -> PathBuf {
    home.state().join("traces").join(format!("{campaign}.json"))
}

fn keep(path: &Path, kept: &Kept) -> std::io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    // Renamed into place: a reader never sees half of it.
    let fresh = path.with_extension(std::process::id().to_string());
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    file.write_all(&serde_json::to_vec(kept)?)?;
    fs::rename(&fresh, path)
}
