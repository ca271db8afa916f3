//! `ostler mission cancel`.

use clap::Args;

use super::{Who, told};
use crate::{app::App, exit_code, failure::Failure, output::Line};

#[derive(Debug, Args)]
pub(super) struct CancelArgs {
    #[command(flatten)]
    who: Who,
    /// Why, in words
    #[arg(short = 'm', long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    message: String,
}

pub(super) async fn run(app: &App, args: CancelArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let mission = client.cancel_mission(&args.who.who, &args.message).await?;
    let word = if mission.status.is_over() { "cancelled" } else { "ends" };
    told(app, &client, &mission, word).await?;
    let retry = format!("ostler mission retry {}", mission.name);
    app.ui.remark(&Line::of("  ").plain(retry).faint("   does what was not done; what was completed stays"));
    Ok(exit_code::OK)
}
