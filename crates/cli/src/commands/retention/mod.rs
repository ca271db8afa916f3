//! `ostler retention`: how long what was said is kept.

mod form;
mod ls;
mod plan;
mod run;

use std::collections::HashSet;

use clap::{Args, Subcommand};
use ostler_client::Client;
use ostler_domain::retention::{Stage, Standing};

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    listing::{Found, ListArgs},
    output::{Line, Tone},
    screen::{self, retention::Entry},
    words,
};
use form::StandingForm;

pub(super) use form::MissionStepForm;

#[derive(Debug, Args)]
pub(crate) struct RetentionArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Show what the rules come to now, and who is spared; changes nothing
    Plan {
        #[command(flatten)]
        of: Of,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Do what the rules say now; the daemon does it by itself every hour
    Run(run::RunArgs),
    /// Keep all rules from a session
    Hold(HoldArgs),
    /// Keep a session as it was: not compressed, not to be deleted; rules count from now on
    Restore {
        /// Session: name, id, part of an id, or - for the last of this terminal
        who: String,
    },
    /// List sessions that are archived, to be deleted, deleted or held
    #[command(alias = "list")]
    Ls {
        #[command(flatten)]
        list: ListArgs,
    },
}

#[derive(Debug, Args)]
struct Of {
    /// Only in this campaign: name, id or a path in it
    #[arg(short = 'C', long, value_name = "CAMPAIGN")]
    campaign: Option<String>,
}

impl Of {
    fn campaign(&self, app: &App) -> Result<Option<String>, Failure> {
        self.campaign.as_deref().map(|typed| app.campaign_operand(typed)).transpose()
    }
}

#[derive(Debug, Args)]
struct HoldArgs {
    /// Session: name, id, part of an id, or - for the last of this terminal
    who: String,
    /// Why, for whoever asks later
    #[arg(short, long, value_name = "WHY", default_value = "", hide_default_value = true)]
    message: String,
    /// Let rules at it again
    #[arg(long, conflicts_with = "message")]
    off: bool,
}

pub(crate) async fn run(app: &App, args: RetentionArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    match args.verb {
        Verb::Plan { of, list } => plan::run(app, &client, of.campaign(app)?, &list).await,
        Verb::Run(args) => run::run(app, &client, args).await,
        Verb::Hold(args) => {
            let who = app.who(&client, &args.who).await?;
            show(app, &client.hold_retention(&who, !args.off, &args.message).await?)
        }
        Verb::Restore { who } => {
            let who = app.who(&client, &who).await?;
            show(app, &client.restore_retention(&who).await?)
        }
        Verb::Ls { list } => ls::run(app, &client, &list).await,
    }
}

fn show(app: &App, standing: &Standing) -> Result<u8, Failure> {
    if app.ui.is_json() {
        app.ui.json(&StandingForm::new(standing))?;
    } else if app.ui.is_quiet() {
        app.ui.data(&Line::of(standing.session.to_string()))?;
    } else {
        let record = screen::retention::record(standing, words::now());
        // A name may be that of several sessions.
        let of = Line::toned(Tone::Accent, standing.session.short()).plain(" ");
        app.ui.data(&of.strong(standing.name.as_str()).plain("  ").append(record))?;
    }
    Ok(exit_code::OK)
}

/// What the rules come to.
struct Planning {
    steps: Vec<Entry>,
    /// Sessions that are marked, and whose time has not come.
    waiting: Vec<Standing>,
}

async fn planned(client: &Client, campaign: Option<&str>) -> Result<Planning, Failure> {
    let mut answers = client.plan_retention(campaign).await?;
    let (mut steps, mut with_step) = (Vec::new(), HashSet::new());
    while let Some(planned) = answers.next().await {
        let planned = planned?;
        with_step.insert(planned.standing.session);
        steps.push(Entry::Session(planned));
    }
    let only = match campaign {
        Some(campaign) => Some(client.campaign(campaign).await?.id),
        None => None,
    };
    let touched = Found::paged(None, None, async |page| client.retention(page).await).await?.rows;
    let waiting = touched.into_iter().filter(|standing| {
        standing.kept.stage() == Stage::Marked
            && only.is_none_or(|only| standing.campaign == only)
            && !with_step.contains(&standing.session)
    });
    let waiting = waiting.collect();
    steps.extend(client.plan_missions(campaign).await?.into_iter().map(Entry::Mission));
    Ok(Planning { steps, waiting })
}
