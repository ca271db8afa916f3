//! `ostler interrupt`: ends turns, not sessions.

use clap::Args;

use super::many::{self, Operands};
use crate::{app::App, failure::Failure};

#[derive(Debug, Args)]
pub(crate) struct InterruptArgs {
    #[command(flatten)]
    operands: Operands,
}

pub(crate) async fn run(app: &App, args: InterruptArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    interrupt(app, &client, &args.operands).await
}

pub(super) async fn interrupt(
    app: &App,
    client: &ostler_client::Client,
    operands: &Operands,
) -> Result<u8, Failure> {
    let act = async |client: &ostler_client::Client, who: &str| Ok(client.interrupt_session(who).await?);
    many::each(app, client, operands, "turn interrupted", act).await
}
