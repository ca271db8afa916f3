//! `ostler worktree`: the git work trees that sessions have of their own.

mod gc;
mod ls;

use clap::{Args, Subcommand};

use crate::{app::App, failure::Failure, listing::ListArgs};

#[derive(Debug, Args)]
pub(crate) struct WorktreeArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List work trees: whose they are, and what keeps them
    #[command(alias = "list")]
    Ls {
        #[command(flatten)]
        of: Of,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Remove those whose session has ended, with nothing uncommitted and nothing unmerged; a snapshot is taken first
    Gc(gc::GcArgs),
}

#[derive(Debug, Args)]
struct Of {
    /// Only of this campaign: name, id or a path in it
    #[arg(short = 'C', long, value_name = "CAMPAIGN")]
    campaign: Option<String>,
}

impl Of {
    fn campaign(&self, app: &App) -> Result<Option<String>, Failure> {
        self.campaign.as_deref().map(|typed| app.campaign_operand(typed)).transpose()
    }
}

pub(crate) async fn run(app: &App, args: WorktreeArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    match args.verb {
        Verb::Ls { of, list } => ls::run(app, &client, of.campaign(app)?, &list).await,
        Verb::Gc(args) => gc::run(app, &client, args).await,
    }
}
