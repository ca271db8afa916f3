//! `ostler policy`: what is in force, and why a decision falls. Changes nothing and asks no agent.

mod show;

pub(super) use show::empty_table;
mod test;
mod test_send;

pub(crate) use self::test::parts as preset_parts;

use clap::{Args, Subcommand};
use ostler_client::{Campaign, Client};

use crate::{app::App, failure::Failure, listing::ListArgs};

#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// What holds for a campaign's agents, and who says so: the campaign, the machine, or nobody
    #[command(alias = "get")]
    Show {
        /// Name, id or a path in it
        #[arg(value_name = "CAMPAIGN", default_value = ".")]
        who: String,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Say what would be decided, and by which rule
    Test {
        #[command(subcommand)]
        about: test::About,
    },
}

/// The campaign that is asked about.
#[derive(Debug, Args)]
struct Where {
    /// Campaign: name, id or a path in it [default: the one around this directory]
    #[arg(short = 'C', long, value_name = "CAMPAIGN", env = "OSTLER_CAMPAIGN", hide_env_values = true)]
    campaign: Option<String>,
}

impl Where {
    async fn campaign(&self, app: &App, client: &Client) -> Result<Campaign, Failure> {
        let who = self.campaign.as_deref().filter(|who| !who.is_empty()).unwrap_or(".");
        Ok(client.campaign(&app.campaign_operand(who)?).await?)
    }
}

pub(crate) async fn run(app: &App, args: PolicyArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    match args.verb {
        Verb::Show { who, list } => {
            let campaign = client.campaign(&app.campaign_operand(&who)?).await?;
            show::run(app, &client, &campaign, &list).await
        }
        Verb::Test { about } => test::run(app, &client, about).await,
    }
}
