//! `ostler kill`: ends sessions at once.

use clap::Args;

use super::{
    chosen::{Chosen, Deed},
    stop,
};
use crate::{app::App, exit_code, failure::Failure};

#[derive(Debug, Args)]
pub(crate) struct KillArgs {
    #[command(flatten)]
    chosen: Chosen,
}

pub(crate) async fn run(app: &App, args: KillArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let deed = Deed { verb: "kill", done: "killed", of_the_ended: false };
    let Some(operands) = args.chosen.sessions(app, &client, &deed).await? else { return Ok(exit_code::OK) };
    stop::stop(app, &client, &operands, true).await
}
