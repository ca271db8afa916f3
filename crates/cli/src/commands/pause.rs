//! `ostler pause`: freezes agents where they stand.

use clap::Args;

use super::many::{self, Operands};
use crate::{app::App, failure::Failure};

#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    operands: Operands,
}

pub(crate) async fn run(app: &App, args: PauseArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    many::each(app, &client, &args.operands, async |client, who| {
        Ok(("paused".to_owned(), client.pause_session(who).await?))
    })
    .await
}
