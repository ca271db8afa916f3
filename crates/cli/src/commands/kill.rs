//! `ostler kill`: ends sessions at once.

use clap::Args;

use super::{many::Operands, stop};
use crate::{app::App, failure::Failure};

#[derive(Debug, Args)]
pub(crate) struct KillArgs {
    #[command(flatten)]
    operands: Operands,
}

pub(crate) async fn run(app: &App, args: KillArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    stop::stop(app, &client, &args.operands, true).await
}
