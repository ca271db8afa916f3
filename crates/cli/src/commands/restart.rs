//! `ostler restart`: replaces processes; the conversations go on.

use clap::Args;

use super::many::{self, Operands};
use crate::{app::App, failure::Failure};

#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    #[command(flatten)]
    operands: Operands,
    /// Go on with this model
    #[arg(short, long)]
    model: Option<String>,
}

pub(crate) async fn run(app: &App, args: RestartArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let act = async |client: &ostler_client::Client, who: &str| {
        let fresh = client.restart_with_model(who, args.model.as_deref()).await?;
        Ok(("is the new session of this conversation".to_owned(), fresh))
    };
    many::each(app, &client, &args.operands, act).await
}
