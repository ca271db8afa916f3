//! `ostler mission rm`.

use clap::Args;

use super::{Who, told};
use crate::{app::App, exit_code, failure::Failure};

#[derive(Debug, Args)]
pub(super) struct RmArgs {
    #[command(flatten)]
    who: Who,
    /// Assignments that have not begun
    #[arg(value_name = "NAME", required = true)]
    which: Vec<String>,
}

pub(super) async fn run(app: &App, args: RmArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let mission = client.remove_assignments(&args.who.who, &args.which).await?;
    told(app, &client, &mission, &format!("removed {}", args.which.join(", "))).await?;
    Ok(exit_code::OK)
}
