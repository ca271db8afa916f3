//! `ostler campaign`: directories that agents may work in.

use clap::{Args, Subcommand};
use ostler_client::AddCampaign;
use ostler_domain::{
    Name,
    limits::PAGE_MOST,
    policy::Setting,
    query::{Page, Scope, SessionFilter},
};
use serde::Serialize;

use crate::{
    app::{App, absolute, campaign_operand, person_home},
    exit_code,
    failure::Failure,
    form::CampaignForm,
    output::{Format, Line, Tone},
    screen, words,
};

#[derive(Debug, Args)]
pub(crate) struct CampaignArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Register a directory; agents may then read and write in it
    #[command(alias = "create")]
    Add {
        /// The directory
        #[arg(default_value = ".")]
        path: String,
        /// Its name [default: the directory's]
        #[arg(long)]
        name: Option<Name>,
    },
    /// List campaigns
    #[command(alias = "list")]
    Ls {
        /// Leave the heads of the columns out
        #[arg(long)]
        no_headers: bool,
        /// At most this many; 0 means all
        #[arg(long, default_value_t = 0, value_name = "N")]
        limit: u32,
    },
    /// Show a campaign
    #[command(alias = "get")]
    Show {
        /// Name, id or a path in it
        #[arg(value_name = "CAMPAIGN", default_value = ".")]
        who: String,
    },
    /// Change what a campaign's agents may do: KEY VALUE, KEY=V, KEY+=V, KEY-=V, KEY= for the default
    Set {
        /// Name, id or a path in it
        #[arg(value_name = "CAMPAIGN")]
        who: String,
        /// What to change; `ostler campaign show` lists the keys
        #[arg(value_name = "SETTING", required = true, allow_hyphen_values = true)]
        settings: Vec<String>,
    },
    /// Forget a campaign; its directory and its record stay
    #[command(aliases = ["delete", "remove"])]
    Rm {
        /// Name, id or a path in it
        #[arg(value_name = "CAMPAIGN")]
        who: String,
    },
}

#[derive(Serialize)]
struct CampaignsForm {
    campaigns: Vec<CampaignForm>,
    next_cursor: Option<String>,
}

pub(crate) async fn run(app: &App, args: CampaignArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let ui = &app.ui;
    match args.verb {
        Verb::Add { path, name } => {
            let campaign = client.add_campaign(AddCampaign { path: absolute(&path)?, name }).await?;
            if ui.is_json() {
                ui.json(&CampaignForm::new(&campaign))?;
            } else if ui.is_quiet() {
                ui.data(&Line::of(campaign.id.to_string()))?;
            } else {
                let path = words::path(&campaign.root.path, person_home().as_deref());
                ui.data(&Line::of("campaign ").strong(campaign.name.as_str()).plain(format!("  {path}")))?;
                if let Some(warning) = screen::campaign::tracked(&campaign) {
                    ui.remark(&Line::new().with(Tone::Warn, format!("  {warning}")));
                }
                ui.remark(
                    &Line::of("  ")
                        .with(Tone::Accent, format!("ostler run -C {} \"…\"", campaign.name))
                        .faint("   starts a session in it"),
                );
            }
        }
        Verb::Ls { no_headers, limit } => list(app, &client, !no_headers, limit).await?,
        Verb::Show { who } => {
            let campaign = client.campaign(&campaign_operand(&who)?).await?;
            if ui.is_json() {
                ui.json(&CampaignForm::new(&campaign))?;
            } else {
                let filter = SessionFilter {
                    scope: Scope::NotEnded,
                    campaign: Some(campaign.id),
                    ..SessionFilter::default()
                };
                let live = client.sessions(&filter, Page::of(PAGE_MOST, None)).await?.rows;
                ui.data_lines(&screen::campaign::lines(
                    &campaign,
                    &live,
                    person_home().as_deref(),
                    words::now(),
                    ui.out_look(),
                ))?;
                let all = client.campaigns(Page::of(PAGE_MOST, None)).await?.rows;
                for warning in screen::campaign::nested(&campaign, &all) {
                    ui.remark(&Line::new().with(Tone::Warn, warning));
                }
            }
        }
        Verb::Set { who, settings } => {
            let settings = typed(settings)?;
            let are_rules = settings.iter().all(|setting| setting.starts_with("approve.rule"));
            let campaign = client.set_campaign(&campaign_operand(&who)?, settings).await?;
            if ui.is_json() {
                ui.json(&CampaignForm::new(&campaign))?;
            } else {
                ui.data_lines(&screen::campaign::policy(&campaign.policy, ui.out_look()))?;
                ui.remark(&Line::new().faint(if are_rules {
                    "from now on, also for sessions that run"
                } else {
                    "for sessions started from now on"
                }));
            }
        }
        Verb::Rm { who } => {
            let campaign = client.remove_campaign(&campaign_operand(&who)?).await?;
            if ui.is_json() {
                ui.json(&CampaignForm::new(&campaign))?;
            } else {
                let line = Line::of("forgotten: ")
                    .strong(campaign.name.as_str())
                    .plain("; its directory and its record stay");
                ui.data(&line)?;
            }
        }
    }
    Ok(exit_code::OK)
}

/// `KEY VALUE` in the form of all others.
fn typed(settings: Vec<String>) -> Result<Vec<String>, Failure> {
    match <[String; 2]>::try_from(settings) {
        Ok([key, value]) if !key.contains('=') => {
            let setting = Setting::set(&key, &value).map_err(|fault| Failure::usage(fault.to_string()))?;
            Ok(vec![setting.text()])
        }
        Ok(two) => Ok(two.into()),
        Err(others) => Ok(others),
    }
}

async fn list(app: &App, client: &ostler_client::Client, heads: bool, limit: u32) -> Result<(), Failure> {
    let ui = &app.ui;
    let most = if limit == 0 { usize::MAX } else { limit as usize };
    let mut campaigns = Vec::new();
    let mut cursor = None;
    loop {
        let room = u32::try_from(most - campaigns.len()).unwrap_or(PAGE_MOST).min(PAGE_MOST);
        let listed = client.campaigns(Page { limit: room, cursor }).await?;
        campaigns.extend(listed.rows);
        cursor = listed.next_cursor;
        if cursor.is_none() || campaigns.len() >= most {
            break;
        }
    }
    match ui.format() {
        Some(Format::Json) => ui.json(&CampaignsForm {
            campaigns: campaigns.iter().map(CampaignForm::new).collect(),
            next_cursor: cursor.map(|cursor| cursor.to_string()),
        }),
        Some(Format::Jsonl) => {
            campaigns.iter().try_for_each(|campaign| ui.json(&CampaignForm::new(campaign)))
        }
        Some(Format::Name) => {
            campaigns.iter().try_for_each(|campaign| ui.data(&Line::of(campaign.name.as_str())))
        }
        _ if ui.is_quiet() => {
            campaigns.iter().try_for_each(|campaign| ui.data(&Line::of(campaign.id.to_string())))
        }
        _ if campaigns.is_empty() => {
            screen::campaign::empty().iter().for_each(|line| ui.remark(line));
            Ok(())
        }
        _ => ui.data_lines(&screen::campaign::table(
            &campaigns,
            heads,
            person_home().as_deref(),
            words::now(),
            ui.out_look(),
        )),
    }
}
