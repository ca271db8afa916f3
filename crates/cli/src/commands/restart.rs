//! `ostler restart`: replaces processes; the conversations go on.

use clap::Args;

use super::{
    chosen,
    many::{self, Operands},
};
use crate::{app::App, consent::DryRun, exit_code, failure::Failure};

#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    #[command(flatten)]
    operands: Operands,
    /// Go on with this model
    #[arg(short, long)]
    model: Option<String>,
    #[command(flatten)]
    dry: DryRun,
}

pub(crate) async fn run(app: &App, args: RestartArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    if args.dry.is_wanted() {
        let meant = chosen::named(app, &client, &args.operands.who).await?;
        chosen::would_be(app, &client, &meant, "restarted").await?;
        return Ok(exit_code::OK);
    }
    let act = async |client: &ostler_client::Client, who: &str| {
        let fresh = client.restart_with_model(who, args.model.as_deref()).await?;
        Ok(("is the new session of this conversation".to_owned(), fresh))
    };
    many::each(app, &client, &args.operands, act).await
}
