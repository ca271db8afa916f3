//! `ostler campaign`: directories that agents may work in.

mod apply;

use clap::{Args, Subcommand};
use ostler_client::{AddCampaign, Campaign, Client};
use ostler_domain::{
    Name,
    limits::PAGE_MOST,
    policy::Setting,
    query::{Page, Scope, SessionFilter},
};
use serde::Serialize;

use crate::{
    app::{App, absolute, person_home},
    commands::config,
    consent::Consent,
    exit_code,
    failure::Failure,
    form::CampaignForm,
    listing::{self, Found, List, ListArgs, Screen},
    output::{Line, Tone},
    screen, words,
};

/// Presets that are allowed, and of which nobody has said which hosts they are.
fn unnamed(allowed: &[String], is_named: impl Fn(&str) -> bool) -> Vec<&str> {
    allowed.iter().filter_map(|item| item.strip_prefix('@')).filter(|name| !is_named(name)).collect()
}

/// Settings that are asked about whenever they matter, and not when a session starts; those that end in a dot with all
/// that begin so.
const HOLD_AT_ONCE: [&str; 9] = [
    "approve.rule",
    "budget",
    "limits.sessions",
    "mirror",
    "peers",
    "readers",
    "reset.",
    "retention.",
    "send.",
];

/// From when on a change holds.
fn from_when(settings: &[String]) -> String {
    let key = |setting: &String| -> String {
        let key = setting.split('=').next().unwrap_or_default();
        key.trim_end_matches(['+', '-']).trim().to_owned()
    };
    let holds_at_once = |key: &String| {
        HOLD_AT_ONCE.iter().any(|one| key == one || (one.ends_with('.') && key.starts_with(one)))
    };
    let mut at_once: Vec<String> = settings.iter().map(key).filter(holds_at_once).collect();
    match at_once.len() {
        0 => "for sessions started from now on".to_owned(),
        all if all == settings.len() => "from now on, also for sessions that there are".to_owned(),
        _ => {
            at_once.dedup();
            format!("{} from now on, the rest for sessions started from now on", at_once.join(", "))
        }
    }
}

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
    Ls(ListArgs),
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
        #[arg(value_name = "SETTING", required = true, allow_negative_numbers = true)]
        settings: Vec<String>,
    },
    /// Say where a campaign's directory is now: it was moved there, or replaced where it was
    Relink {
        /// Name or id
        #[arg(value_name = "CAMPAIGN")]
        who: String,
        /// The directory [default: the path that the campaign has]
        path: Option<String>,
    },
    /// Make campaigns as a file declares them: adds those that are missing, changes what differs, shows it first
    Apply(apply::ApplyArgs),
    /// Forget a campaign; its directory and its record stay
    #[command(aliases = ["delete", "remove"])]
    Rm {
        /// Name, id or a path in it
        #[arg(value_name = "CAMPAIGN")]
        who: String,
        #[command(flatten)]
        consent: Consent,
    },
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
        Verb::Ls(args) => {
            let list = Campaigns { client: &client, most: args.most(None) };
            return listing::run(app, Some(&client), &args, &list).await;
        }
        Verb::Show { who } => {
            let campaign = client.campaign(&app.campaign_operand(&who)?).await?;
            if ui.is_json() {
                ui.json(&CampaignForm::new(&campaign))?;
            } else {
                let filter = SessionFilter {
                    scope: Scope::NotEnded,
                    campaigns: vec![campaign.id],
                    ..SessionFilter::default()
                };
                let live = client.sessions(&filter, Page::of(PAGE_MOST, None)).await?.rows;
                ui.fields(&screen::campaign::lines(
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
            let campaign = client.set_campaign(&app.campaign_operand(&who)?, settings.clone()).await?;
            if ui.is_json() {
                ui.json(&CampaignForm::new(&campaign))?;
            } else {
                ui.data_lines(&screen::campaign::changed(&campaign.policy, &settings, ui.out_look()))?;
                ui.remark(&Line::new().faint(from_when(&settings)));
                let named = config::current(app)?.network_presets();
                for preset in unnamed(&campaign.policy.net_allow, |name| named.contains_key(name)) {
                    let cure = format!("ostler config set network.presets.{preset} '[\"HOST\"]'");
                    let missing =
                        format!("no host is named for @{preset} on this machine, and nothing starts so: ");
                    ui.remark(&Line::toned(Tone::Warn, missing).with(Tone::Accent, cure));
                }
            }
        }
        Verb::Apply(args) => return apply::run(app, &client, args).await,
        Verb::Relink { who, path } => {
            let path = path.as_deref().map(absolute).transpose()?;
            let campaign = client.relink_campaign(&app.campaign_operand(&who)?, path).await?;
            if ui.is_json() {
                ui.json(&CampaignForm::new(&campaign))?;
            } else {
                let path = words::path(&campaign.root.path, person_home().as_deref());
                let line = Line::of("campaign ").strong(campaign.name.as_str());
                ui.data(&line.plain(format!("  is at {path}; its policy is as it was")))?;
            }
        }
        Verb::Rm { who, consent } => {
            let campaign = client.campaign(&app.campaign_operand(&who)?).await?;
            let deed = format!("forget campaign {}; its directory and its record stay", campaign.name);
            if !consent.given(ui, &deed, &CampaignForm::new(&campaign))? {
                return Ok(exit_code::OK);
            }
            let campaign = client.remove_campaign(&campaign.id.to_string()).await?;
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

struct Campaigns<'a> {
    client: &'a Client,
    most: Option<u32>,
}

impl List for Campaigns<'_> {
    type Row = Campaign;
    const ROWS: &'static str = "campaigns";

    async fn find(&self) -> Result<Found<Campaign>, Failure> {
        Found::paged(self.most, None, async |page| self.client.campaigns(page).await).await
    }

    fn id(&self, campaign: &Campaign) -> String {
        campaign.id.to_string()
    }

    fn name(&self, campaign: &Campaign) -> String {
        campaign.name.to_string()
    }

    fn form(&self, campaign: &Campaign) -> impl Serialize {
        CampaignForm::new(campaign)
    }

    async fn screen(&self, found: &Found<Campaign>) -> Result<Screen, Failure> {
        if found.rows.is_empty() {
            return Ok(Screen { remarks: screen::campaign::empty(), ..Screen::default() });
        }
        let table = screen::campaign::table(&found.rows, person_home().as_deref(), words::now());
        Ok(Screen { table: Some(table), ..Screen::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_at_once_is_told_so() {
        let told =
            |settings: &[&str]| from_when(&settings.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
        let allowed = ["@rust", "@go", "files.example"].map(str::to_owned);
        assert_eq!(unnamed(&allowed, |name| name == "rust"), ["go"]);
        for at_once in [
            "budget=5usd/day",
            "limits.sessions=2",
            "mirror=",
            "peers+=reviewer",
            "readers-=auditor",
            "reset.idle=1h",
            "retention.delete_after=40d",
            "send.rule+=deny",
        ] {
            assert_eq!(told(&[at_once]), "from now on, also for sessions that there are", "{at_once}");
        }
        assert_eq!(told(&["approve.rule-=2", "budget="]), "from now on, also for sessions that there are");
        assert_eq!(told(&["net.mode=none"]), "for sessions started from now on");
        assert!(told(&["net.mode=none", "budget=5usd"]).starts_with("budget from now on, the rest"));
    }
}
