//! `ostler agent`: named identities in campaigns.

use std::fs;

use clap::{Args, Subcommand};
use ostler_client::{Agent, Client};
use ostler_domain::{
    Name, Refusal,
    agent::SYSTEM_PROMPT_BYTES,
    limits::PAGE_MOST,
    query::{ConversationFilter, Page, SessionFilter},
    setting::Assignment,
};
use serde::Serialize;

use crate::{
    app::{App, campaign_names},
    consent::Consent,
    exit_code,
    failure::Failure,
    form::AgentForm,
    listing::{self, Found, List, ListArgs, Screen},
    output::{Line, Tone},
    screen, words,
};

#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Register an agent in a campaign
    #[command(alias = "create")]
    Add(AddArgs),
    /// List agents
    #[command(alias = "list")]
    Ls {
        /// In this campaign: name, id or a path in it
        #[arg(short = 'C', long, value_name = "CAMPAIGN")]
        campaign: Option<String>,
        #[command(flatten)]
        list: ListArgs,
    },
    /// Show an agent, its conversations and what it does
    #[command(alias = "get")]
    Show {
        /// Name, CAMPAIGN/NAME, CAMPAIGN/ROLE/NAME or id
        #[arg(value_name = "AGENT")]
        who: String,
    },
    /// Change what its sessions are started with, from the next one on: KEY VALUE, KEY=V, KEY= for the default
    Set {
        /// Name, CAMPAIGN/NAME, CAMPAIGN/ROLE/NAME or id
        #[arg(value_name = "AGENT")]
        who: String,
        /// role, provider, model, auth_profile, system_prompt (@FILE reads one), budget
        #[arg(value_name = "SETTING", required = true, allow_negative_numbers = true)]
        settings: Vec<String>,
    },
    /// Forget an agent; its conversations and their record stay
    #[command(aliases = ["delete", "remove"])]
    Rm {
        /// Name, CAMPAIGN/NAME, CAMPAIGN/ROLE/NAME or id
        #[arg(value_name = "AGENT")]
        who: String,
        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Debug, Args)]
struct AddArgs {
    /// Its name, unique in its campaign
    name: Name,
    /// Campaign: name, id or a path in it [default: the one around this directory]
    #[arg(short = 'C', long, value_name = "CAMPAIGN", env = "OSTLER_CAMPAIGN", hide_env_values = true)]
    campaign: Option<String>,
    /// What it is there for: reviewer [default: agent]
    #[arg(long)]
    role: Option<Name>,
    /// Agent program of its sessions
    #[arg(short, long)]
    provider: Option<String>,
    /// Model of its sessions
    #[arg(short, long)]
    model: Option<String>,
    /// Which of the provider's accounts pays: a profile of config.toml
    #[arg(long, value_name = "PROFILE")]
    auth_profile: Option<Name>,
    /// What it is told of itself before anything else; @FILE reads it
    #[arg(long, value_name = "TEXT")]
    system_prompt: Option<String>,
    /// What each of its sessions may use: 2usd, 500k, or both; with a period, all of them: 10usd/day
    #[arg(long, value_name = "AMOUNT")]
    budget: Option<String>,
}

impl AddArgs {
    fn settings(&self) -> Result<Vec<String>, Failure> {
        let text = |value: &Option<Name>| value.as_ref().map(ToString::to_string);
        let said = [
            ("role", text(&self.role)),
            ("provider", self.provider.clone()),
            ("model", self.model.clone()),
            ("auth_profile", text(&self.auth_profile)),
            ("system_prompt", self.system_prompt.clone()),
            ("budget", self.budget.clone()),
        ];
        let said = said.into_iter().filter_map(|(key, value)| value.map(|value| format!("{key}={value}")));
        read_files(said.collect())
    }
}

pub(crate) async fn run(app: &App, args: AgentArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let ui = &app.ui;
    match args.verb {
        Verb::Add(args) => {
            let campaign = app.campaign_operand(args.campaign.as_deref().unwrap_or("."))?;
            let agent = client.add_agent(&campaign, &args.name, args.settings()?).await?;
            let name = app.campaign_name(&client, &agent.campaign).await;
            if ui.is_json() {
                ui.json(&AgentForm::new(&agent, &name))?;
            } else if ui.is_quiet() {
                ui.data(&Line::of(agent.id.to_string()))?;
            } else {
                ui.data(&Line::of("agent ").strong(agent.address(&name)))?;
                let of = args.campaign.map(|_| format!("-C {name} ")).unwrap_or_default();
                ui.remark(
                    &Line::of("  ")
                        .with(Tone::Accent, format!("ostler run {of}--agent {} \"…\"", agent.name))
                        .faint("   starts a session of it"),
                );
            }
        }
        Verb::Ls { campaign, list } => {
            let campaign = campaign.as_deref().map(|who| app.campaign_operand(who)).transpose()?;
            let agents = Agents { client: &client, campaign, most: list.most(None) };
            return listing::run(app, Some(&client), &list, &agents).await;
        }
        Verb::Show { who } => {
            let agent = app.agent(&client, &who).await?;
            show(app, &client, &agent).await?;
        }
        Verb::Set { who, settings } => {
            let meant = app.agent(&client, &who).await?.id.to_string();
            let agent = client.set_agent(&meant, read_files(typed(settings))?).await?;
            let name = app.campaign_name(&client, &agent.campaign).await;
            if ui.is_json() {
                ui.json(&AgentForm::new(&agent, &name))?;
            } else {
                ui.fields(&screen::agent::profile(&agent, &name))?;
                ui.remark(&Line::new().faint("for its sessions started from now on"));
            }
        }
        Verb::Rm { who, consent } => {
            let agent = app.agent(&client, &who).await?;
            let name = app.campaign_name(&client, &agent.campaign).await;
            let deed =
                format!("forget agent {}; its conversations and their record stay", agent.address(&name));
            if !consent.given(ui, &deed, &AgentForm::new(&agent, &name))? {
                return Ok(exit_code::OK);
            }
            let agent = client.remove_agent(&agent.id.to_string()).await?;
            if ui.is_json() {
                ui.json(&AgentForm::new(&agent, &name))?;
            } else {
                let line = Line::of("forgotten: ").strong(agent.address(&name));
                ui.data(&line.plain("; its conversations and their record stay"))?;
            }
        }
    }
    Ok(exit_code::OK)
}

pub(crate) async fn show(app: &App, client: &Client, agent: &Agent) -> Result<(), Failure> {
    let name = app.campaign_name(client, &agent.campaign).await;
    if app.ui.is_json() {
        return app.ui.json(&AgentForm::new(agent, &name));
    }
    app.ui.fields(&lines(client, agent, &name).await?)
}

pub(super) async fn lines(client: &Client, agent: &Agent, campaign: &str) -> Result<Vec<Line>, Failure> {
    let filter = ConversationFilter { agent: Some(agent.id), ..ConversationFilter::default() };
    let conversations = client.conversations(&filter, Page::of(PAGE_MOST, None)).await?.rows;
    let filter = SessionFilter {
        campaigns: vec![agent.campaign],
        agents: vec![agent.name.to_string()],
        ..SessionFilter::default()
    };
    let sessions = client.sessions(&filter, Page::of(1, None)).await?.rows;
    let (_, used) = client.agent_with_use(&agent.id.to_string()).await?;
    Ok(screen::agent::lines(agent, campaign, &conversations, sessions.first(), used.as_ref(), words::now()))
}

/// `KEY VALUE` in the form of all others.
pub(super) fn typed(settings: Vec<String>) -> Vec<String> {
    match <[String; 2]>::try_from(settings) {
        Ok([key, value]) if !key.contains('=') => vec![Assignment::set(&key, &value).text()],
        Ok(two) => two.into(),
        Err(others) => others,
    }
}

/// `system_prompt=@FILE`, read where it was typed.
pub(super) fn read_files(settings: Vec<String>) -> Result<Vec<String>, Failure> {
    settings
        .into_iter()
        .map(|setting| {
            let Some(path) = setting.strip_prefix("system_prompt=@") else { return Ok(setting) };
            let text = fs::read_to_string(path)
                .map_err(|error| Refusal::invalid(format!("{path} cannot be read: {error}")))?;
            if text.len() > SYSTEM_PROMPT_BYTES {
                return Err(Failure::usage(format!(
                    "{path} has more than 64 KiB, and a system prompt has not"
                )));
            }
            Ok(format!("system_prompt={}", text.trim_end()))
        })
        .collect()
}

struct Agents<'a> {
    client: &'a Client,
    campaign: Option<String>,
    most: Option<u32>,
}

impl List for Agents<'_> {
    type Row = (Agent, String);
    const ROWS: &'static str = "agents";

    async fn find(&self) -> Result<Found<(Agent, String)>, Failure> {
        let names = campaign_names(self.client).await?;
        let campaign = self.campaign.as_deref();
        let found =
            Found::paged(self.most, None, async |page| self.client.agents(campaign, page).await).await?;
        let named = |agent: Agent| {
            let name = names.of(&agent.campaign);
            (agent, name)
        };
        Ok(Found { rows: found.rows.into_iter().map(named).collect(), next_cursor: found.next_cursor })
    }

    fn id(&self, (agent, _): &(Agent, String)) -> String {
        agent.id.to_string()
    }

    fn name(&self, (agent, campaign): &(Agent, String)) -> String {
        agent.address(campaign)
    }

    fn form(&self, (agent, campaign): &(Agent, String)) -> impl Serialize {
        AgentForm::new(agent, campaign)
    }

    async fn screen(&self, found: &Found<(Agent, String)>) -> Result<Screen, Failure> {
        if found.rows.is_empty() {
            return Ok(Screen { remarks: screen::agent::empty(), ..Screen::default() });
        }
        Ok(Screen { table: Some(screen::agent::table(&found.rows, words::now())), ..Screen::default() })
    }
}
