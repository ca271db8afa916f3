//! `ostler pause`: freezes agents where they stand.

use clap::Args;

use super::{
    chosen::{Chosen, Deed},
    many,
};
use crate::{app::App, exit_code, failure::Failure};

#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    chosen: Chosen,
}

pub(crate) async fn run(app: &App, args: PauseArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let deed = Deed { verb: "pause", done: "paused", of_the_ended: false };
    let Some(operands) = args.chosen.sessions(app, &client, &deed).await? else { return Ok(exit_code::OK) };
    many::each(app, &client, &operands, async |client, who| {
        Ok(("paused".to_owned(), client.pause_session(who).await?))
    })
    .await
}
