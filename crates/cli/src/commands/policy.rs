//! `ostler policy`: what is in force, and why a decision falls. Changes nothing and asks no agent.

use clap::{Args, Subcommand, ValueEnum};
use ostler_domain::{
    approval::{Applied, Place, Verdict, judge},
    event::Action,
};
use serde::Serialize;

use crate::{
    app::{App, campaign_operand},
    exit_code,
    failure::Failure,
    output::{Line, Tone},
};

#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Say what would be decided, and by which rule
    Test {
        #[command(subcommand)]
        about: About,
    },
}

#[derive(Debug, Subcommand)]
enum About {
    /// What the rules answer an agent that asks for leave
    Approval(ApprovalArgs),
}

#[derive(Debug, Args)]
struct ApprovalArgs {
    /// What it wants to do
    #[arg(value_enum)]
    wish: Wish,
    /// The command line, path, address or tool
    #[arg(value_name = "WHAT")]
    what: String,
    /// Campaign: name, id or a path in it [default: the one around this directory]
    #[arg(short = 'C', long, value_name = "CAMPAIGN", env = "OSTLER_CAMPAIGN", hide_env_values = true)]
    campaign: Option<String>,
    /// As for an agent without a sandbox
    #[arg(long)]
    unconfined: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Wish {
    /// A shell's command line
    Run,
    /// A file
    Read,
    /// A file
    Write,
    /// An address
    Fetch,
    /// Another tool, by its name
    Tool,
}

#[derive(Serialize)]
struct JudgementForm {
    campaign: String,
    verdict: &'static str,
    why: String,
    rules: Vec<Applied>,
}

pub(crate) async fn run(app: &App, args: PolicyArgs) -> Result<u8, Failure> {
    let Verb::Test { about: About::Approval(args) } = args.verb;
    let client = app.client().await?;
    let who = args.campaign.as_deref().filter(|who| !who.is_empty()).unwrap_or(".");
    let campaign = client.campaign(&campaign_operand(who)?).await?;
    let place = Place { root: &campaign.root.path, is_confined: !args.unconfined };
    let (tool, action) = wanted(args.wish, args.what);
    let judgement = judge(&campaign.policy, &place, &tool, &action);
    if app.ui.is_json() {
        app.ui.json(&JudgementForm {
            campaign: campaign.name.to_string(),
            verdict: judgement.verdict.as_str(),
            why: judgement.why,
            rules: judgement.rules,
        })?;
        return Ok(exit_code::OK);
    }
    let (tone, word) = match judgement.verdict {
        Verdict::Allow => (Tone::Good, "allowed"),
        Verdict::Deny => (Tone::Bad, "denied"),
        Verdict::Ask => (Tone::Warn, "asks a person"),
    };
    app.ui.data(&Line::toned(tone, word).plain(format!("  {}", judgement.why)))?;
    Ok(exit_code::OK)
}

fn wanted(wish: Wish, what: String) -> (String, Action) {
    match wish {
        Wish::Run => ("run".to_owned(), Action::Run { command: what }),
        Wish::Read => ("read".to_owned(), Action::Read { paths: vec![what] }),
        Wish::Write => ("write".to_owned(), Action::Write { paths: vec![what] }),
        Wish::Fetch => ("fetch".to_owned(), Action::Fetch { url: what }),
        Wish::Tool => (what, Action::Other),
    }
}
