//! `ostler mission cancel`.

use clap::Args;

use super::{Who, form::MissionForm, told};
use crate::{app::App, consent::DryRun, exit_code, failure::Failure, output::Line};

#[derive(Debug, Args)]
pub(super) struct CancelArgs {
    #[command(flatten)]
    who: Who,
    /// Why, in words
    #[arg(short = 'm', long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    message: String,
    #[command(flatten)]
    dry: DryRun,
}

pub(super) async fn run(app: &App, args: CancelArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let meant = client.mission(&args.who.who).await?.mission;
    let campaign = app.campaign_name(&client, &meant.campaign).await;
    let deed = format!("end mission {} and whoever works for it", meant.name);
    if args.dry.said(&app.ui, &deed, &MissionForm::new(&meant, &campaign))? {
        return Ok(exit_code::OK);
    }
    let mission = client.cancel_mission(&meant.id.to_string(), &args.message).await?;
    let word = if mission.status.is_over() { "cancelled" } else { "ends" };
    told(app, &client, &mission, word).await?;
    let retry = format!("ostler mission retry {}", mission.name);
    app.ui.remark(&Line::of("  ").plain(retry).faint("   does what was not done; what was completed stays"));
    Ok(exit_code::OK)
}
