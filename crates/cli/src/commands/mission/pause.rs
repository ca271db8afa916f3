//! `ostler mission pause`.

use clap::Args;

use super::{Who, told};
use crate::{app::App, exit_code, failure::Failure, output::Line};

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
    let mission = client.pause_mission(&args.who.who, &args.message).await?;
    told(app, &client, &mission, "paused").await?;
    let resume = format!("ostler mission resume {}", mission.name);
    app.ui.remark(&Line::of("  ").plain(resume).faint("   lets it go on"));
    Ok(exit_code::OK)
}
