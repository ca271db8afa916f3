//! `ostler mission pause`.

use clap::Args;

use ostler_client::reply::PausedMission;

use super::{Who, form::PausedForm, told};
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Line, Tone},
    words,
};

#[derive(Debug, Args)]
pub(super) struct PauseArgs {
    #[command(flatten)]
    who: Who,
    /// Why, in words
    #[arg(short = 'm', long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    message: String,
}

pub(super) async fn run(app: &App, args: PauseArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let paused = client.pause_mission(&args.who.who, &args.message).await?;
    let mission = &paused.mission;
    if app.ui.is_json() {
        let name = app.campaign_name(&client, &mission.campaign).await;
        app.ui.json(&PausedForm::new(&paused, &name))?;
        return Ok(exit_code::OK);
    }
    told(app, &client, mission, "paused").await?;
    stood_still(app, &paused);
    let resume = format!("ostler mission resume {}", mission.name);
    app.ui.remark(&Line::of("  ").plain(resume).faint("   lets it go on"));
    Ok(exit_code::OK)
}

/// How agents were made to stand still, and who does not yet.
pub(crate) fn stood_still(app: &App, paused: &PausedMission) {
    let sessions = |count: u32| words::plural(u64::from(count), "session", "sessions");
    let by_freezer =
        (paused.by_freezer > 0).then(|| format!("{} by the freezer", sessions(paused.by_freezer)));
    let by_signals = (paused.by_signals > 0)
        .then(|| format!("{} by signals (there is no freezer here)", sessions(paused.by_signals)));
    let how: Vec<String> = by_freezer.into_iter().chain(by_signals).collect();
    if !how.is_empty() {
        app.ui.remark(&Line::of("  ").faint(format!("frozen: {}", how.join(", "))));
    }
    if !paused.not_yet.is_empty() {
        let names: Vec<String> = paused.not_yet.iter().map(|id| id.short()).collect();
        let still = format!("not frozen yet: {}", names.join(" "));
        let line =
            Line::of("  ").with(Tone::Warn, still).faint("   told again until they are: ostler show ID");
        app.ui.remark(&line);
    }
}
