//! `ostler conversation`: dialogues, their keys, and what is noted about them.

mod prune;

use std::{collections::HashSet, path::Path};

use clap::{Args, Subcommand};
use ostler_client::{Client, Conversation, Session};
use ostler_domain::{
    AgentId, Time,
    conversation::{CloseReason, Key},
    history::IMPORTED_DIR,
    query::{ConversationFilter, Page, SessionFilter},
    text::one_line,
};
use serde::Serialize;

use super::agent::typed;
use crate::{
    app::{App, campaign_names},
    consent::{Consent, DryRun},
    exit_code,
    failure::Failure,
    form::ConversationForm,
    listing::{self, Found, List, ListArgs, Screen},
    output::{Line, Tone},
    parse,
    screen::{self, conversation::GoesOn, sessions::CampaignNames},
    words,
};

/// Sessions of a conversation that are shown with it.
const SESSIONS_SHOWN: u32 = 8;

#[derive(Debug, Args)]
pub(crate) struct ConversationArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List conversations, the newest first
    #[command(alias = "list")]
    Ls(LsArgs),
    /// Show a conversation: its key, its sessions, what is noted about it
    #[command(alias = "get")]
    Show {
        /// Name, CAMPAIGN/NAME, id or part of one, or a session of it
        #[arg(value_name = "CONVERSATION")]
        who: String,
    },
    /// Return an agent's conversation with a key; open it if it is not
    Open {
        /// Agent: name, CAMPAIGN/NAME or id
        agent: String,
        /// Its key
        #[arg(default_value = "main")]
        key: Key,
    },
    /// Change what is noted about it: KEY VALUE, KEY=V, KEY=; also state.PATH=JSON, metadata.PATH=JSON
    Set {
        /// Name, CAMPAIGN/NAME, id or part of one, or a session of it
        #[arg(value_name = "CONVERSATION")]
        who: String,
        /// model, provider, send_policy, queue_mode, …; a wrong one names them all
        #[arg(value_name = "SETTING", required = true, allow_negative_numbers = true)]
        settings: Vec<String>,
    },
    /// Give it a label; an empty one takes it away
    Label {
        /// Name, CAMPAIGN/NAME, id or part of one, or a session of it
        #[arg(value_name = "CONVERSATION")]
        who: String,
        /// One line
        label: String,
    },
    /// Close it and open a fresh one under the same key; the old one stays readable
    Reset {
        /// Name, CAMPAIGN/NAME, id or part of one, or a session of it
        #[arg(value_name = "CONVERSATION")]
        who: String,
        /// The fresh one has the metadata and the label of the old one, beside its settings
        #[arg(long)]
        keep_metadata: bool,
        #[command(flatten)]
        dry: DryRun,
    },
    /// Begin a new conversation as a copy of it, which stays as it is
    Fork(super::fork::ForkArgs),
    /// Close it for good; all of it stays readable
    Archive {
        /// Name, CAMPAIGN/NAME, id or part of one, or a session of it
        #[arg(value_name = "CONVERSATION")]
        who: String,
        #[command(flatten)]
        dry: DryRun,
    },
    /// Open one again that was archived or removed
    Reopen {
        /// Id or part of one
        #[arg(value_name = "CONVERSATION")]
        who: String,
    },
    /// Close it, and have what was said in it deleted when the time to take that back is over
    #[command(aliases = ["delete", "remove"])]
    Rm {
        /// Name, CAMPAIGN/NAME, id or part of one, or a session of it
        #[arg(value_name = "CONVERSATION")]
        who: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Remove all open ones that nobody has used for long, after saying how many they are
    Prune(prune::PruneArgs),
}

#[derive(Debug, Args)]
struct LsArgs {
    /// In this campaign: name, id or a path in it
    #[arg(short = 'C', long, value_name = "CAMPAIGN")]
    campaign: Option<String>,
    /// Of this agent
    #[arg(long)]
    agent: Option<String>,
    /// With this key
    #[arg(long)]
    key: Option<Key>,
    /// Closed ones too
    #[arg(short, long)]
    all: bool,
    /// Active from then on: 2h (ago), today, 2026-01-31
    #[arg(long, value_parser = parse::moment, value_name = "WHEN")]
    since: Option<Time>,
    /// Not active from then on
    #[arg(long, value_parser = parse::moment, value_name = "WHEN")]
    until: Option<Time>,
    #[command(flatten)]
    list: ListArgs,
    /// Go on where the last page ended (`next_cursor`)
    #[arg(long, help_heading = "List")]
    cursor: Option<u64>,
}

pub(crate) async fn run(app: &App, args: ConversationArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let (conversation, told) = match args.verb {
        Verb::Ls(args) => return list(app, &client, args).await,
        Verb::Fork(args) => return super::fork::run(app, args).await,
        Verb::Prune(args) => return prune::run(app, &client, args).await,
        Verb::Show { who } => {
            let conversation = client.conversation(&app.addressee(&client, &who).await?).await?;
            show(app, &client, &conversation).await?;
            return Ok(exit_code::OK);
        }
        Verb::Open { agent, key } => {
            let meant = app.agent(&client, &agent).await?.id.to_string();
            let (conversation, is_new) = client.open_conversation(&meant, &key).await?;
            let told = if is_new { "opened" } else { "is open" };
            (conversation, told.to_owned())
        }
        Verb::Set { who, settings } => {
            let conversation =
                client.set_conversation(&app.addressee(&client, &who).await?, typed(settings)).await?;
            (conversation, "set; what its sessions are started with holds from the next one on".to_owned())
        }
        Verb::Label { who, label } => return label_it(app, &client, &who, &label).await,
        Verb::Reset { who, keep_metadata, dry } => {
            let (old, campaign) = described(app, &client, &who).await?;
            let deed =
                format!("close conversation {} and open a fresh one under the key {}", old.name, old.key);
            if dry.said(&app.ui, &deed, &ConversationForm::new(&old, &campaign))? {
                return Ok(exit_code::OK);
            }
            let fresh = client.reset_conversation(&old.id.to_string(), keep_metadata).await?;
            let stays = stays(&old.notes.not_kept_by_reset(keep_metadata));
            let old = fresh.replaces.map(|id| id.short()).unwrap_or_default();
            let told = format!("begins anew under the key {}; what was said is in {old}{stays}", fresh.key);
            (fresh, told)
        }
        Verb::Archive { who, dry } => {
            let (open, campaign) = described(app, &client, &who).await?;
            let deed = format!("close conversation {} for good; all of it stays readable", open.name);
            if dry.said(&app.ui, &deed, &ConversationForm::new(&open, &campaign))? {
                return Ok(exit_code::OK);
            }
            let closed = client.close_conversation(&open.id.to_string(), CloseReason::Archived).await?;
            (closed, "is archived; all of it stays readable".to_owned())
        }
        Verb::Rm { who, consent } => {
            let (open, campaign) = described(app, &client, &who).await?;
            let deed = format!("close conversation {} and have what was said in it deleted", open.name);
            if !consent.given(&app.ui, &deed, &ConversationForm::new(&open, &campaign))? {
                return Ok(exit_code::OK);
            }
            let closed = client.close_conversation(&open.id.to_string(), CloseReason::Removed).await?;
            let told = "is removed; what was said in it is announced to be deleted, and then is: ostler retention plan";
            (closed, told.to_owned())
        }
        Verb::Reopen { who } => (client.reopen_conversation(&who).await?, "is open again".to_owned()),
    };
    tell(app, &client, &conversation, &told).await
}

/// What was noted about the old conversation and is not about the fresh one.
fn stays(names: &[String]) -> String {
    const NAMED: usize = 5;
    if names.is_empty() {
        return String::new();
    }
    let more = if names.len() > NAMED { ", …" } else { "" };
    let shown = names.iter().take(NAMED).map(|name| one_line(name, 64)).collect::<Vec<_>>().join(", ");
    format!(", with {shown}{more}")
}

/// The conversation that is meant, and its campaign's name.
async fn described(app: &App, client: &Client, who: &str) -> Result<(Conversation, String), Failure> {
    let conversation = client.conversation(&app.addressee(client, who).await?).await?;
    let campaign = app.campaign_name(client, &conversation.campaign).await;
    Ok((conversation, campaign))
}

/// `ostler label`, which is the same without the noun.
pub(super) async fn label(app: &App, who: &str, label: &str) -> Result<u8, Failure> {
    label_it(app, &app.client().await?, who, label).await
}

async fn label_it(app: &App, client: &Client, who: &str, label: &str) -> Result<u8, Failure> {
    let settings = vec![format!("label={label}")];
    let conversation = client.set_conversation(&app.addressee(client, who).await?, settings).await?;
    let told =
        if label.is_empty() { "has no label".to_owned() } else { format!("is labelled “{label}”") };
    tell(app, client, &conversation, &told).await
}

/// Says in one line what became of a conversation.
async fn tell(app: &App, client: &Client, conversation: &Conversation, told: &str) -> Result<u8, Failure> {
    let names = campaign_names(client).await?;
    let ui = &app.ui;
    if ui.is_json() {
        ui.json(&ConversationForm::new(conversation, &names.of(&conversation.campaign)))?;
    } else if ui.is_quiet() {
        ui.data(&Line::of(conversation.id.to_string()))?;
    } else {
        let line = Line::of("conversation ").strong(conversation.name.as_str());
        ui.data(&line.faint(format!(" {}", conversation.id.short())).plain(format!("  {told}")))?;
        if conversation.closed.is_some_and(|closed| closed.why == CloseReason::Removed) {
            let undo = format!("ostler conversation reopen {}", conversation.id.short());
            ui.remark(&Line::of("  ").with(Tone::Accent, undo).faint("   takes that back"));
        }
    }
    Ok(exit_code::OK)
}

/// Those of a campaign and an agent, where any is named.
async fn filter(
    app: &App,
    client: &Client,
    campaign: Option<&str>,
    agent: Option<&str>,
) -> Result<ConversationFilter, Failure> {
    let campaign = match campaign {
        Some(who) => Some(client.campaign(&app.campaign_operand(who)?).await?.id),
        None => None,
    };
    let agent = match agent {
        Some(who) => Some(app.agent(client, who).await?.id),
        None => None,
    };
    Ok(ConversationFilter { campaign, agent, ..ConversationFilter::default() })
}

pub(crate) async fn show(app: &App, client: &Client, conversation: &Conversation) -> Result<(), Failure> {
    let campaign = app.campaign_name(client, &conversation.campaign).await;
    if app.ui.is_json() {
        return app.ui.json(&ConversationForm::new(conversation, &campaign));
    }
    app.ui.fields(&lines(client, conversation, &campaign).await?)
}

pub(super) async fn lines(
    client: &Client,
    conversation: &Conversation,
    campaign: &str,
) -> Result<Vec<Line>, Failure> {
    let agent = match conversation.agent {
        Some(agent) => client.agent(&agent.to_string()).await.ok(),
        None => None,
    };
    let filter = SessionFilter { conversation: Some(conversation.id), ..SessionFilter::default() };
    let sessions = client.sessions(&filter, Page::of(SESSIONS_SHOWN, None)).await?;
    let goes_on = goes_on(client, &sessions.rows).await;
    let agent = agent.as_ref();
    Ok(screen::conversation::lines(conversation, campaign, agent, &sessions.rows, &goes_on, words::now()))
}

/// Where an imported conversation is gone on with: in the campaign around its directory. One that only lists what was imported
/// stands where nobody knows the directory.
async fn goes_on(client: &Client, sessions: &[Session]) -> GoesOn {
    let Some(last) = sessions.first().filter(|last| last.imported.is_some()) else { return GoesOn::Nowhere };
    let Ok(around) = client.campaign(&last.working_dir).await else { return GoesOn::Unregistered };
    let lists_only = around.root.path == last.working_dir
        && Path::new(&around.root.path).file_name().is_some_and(|name| name == IMPORTED_DIR);
    if lists_only { GoesOn::Nowhere } else { GoesOn::In(around.name.to_string()) }
}

async fn list(app: &App, client: &Client, args: LsArgs) -> Result<u8, Failure> {
    let named = filter(app, client, args.campaign.as_deref(), args.agent.as_deref()).await?;
    let (key, since, until) = (args.key, args.since, args.until);
    let filter = ConversationFilter { key, closed_too: args.all, since, until, ..named };
    let cursor = args.cursor;
    let most = args.list.most(Some(50));
    let names = campaign_names(client).await?;
    listing::run(app, Some(client), &args.list, &Conversations { client, filter, names, most, cursor }).await
}

struct Conversations<'a> {
    client: &'a Client,
    filter: ConversationFilter,
    names: CampaignNames,
    most: Option<u32>,
    cursor: Option<u64>,
}

impl List for Conversations<'_> {
    type Row = Conversation;
    const ROWS: &'static str = "conversations";

    async fn find(&self) -> Result<Found<Conversation>, Failure> {
        let ask = async |page| self.client.conversations(&self.filter, page).await;
        Found::paged(self.most, self.cursor, ask).await
    }

    fn id(&self, conversation: &Conversation) -> String {
        conversation.id.to_string()
    }

    fn name(&self, conversation: &Conversation) -> String {
        conversation.name.to_string()
    }

    fn form(&self, conversation: &Conversation) -> impl Serialize {
        ConversationForm::new(conversation, &self.names.of(&conversation.campaign))
    }

    async fn screen(&self, found: &Found<Conversation>) -> Result<Screen, Failure> {
        if found.rows.is_empty() {
            return Ok(Screen { remarks: screen::conversation::empty(), ..Screen::default() });
        }
        let registered = self.registered(&found.rows).await?;
        let is_removed = |agent: &AgentId| !registered.contains(agent);
        let shown = found.rows.iter().map(|conversation| screen::conversation::Shown {
            conversation,
            is_agent_removed: conversation.agent.as_ref().is_some_and(is_removed),
        });
        let table = screen::conversation::table(&shown.collect::<Vec<_>>(), &self.names, words::now());
        let more =
            found.next_cursor.map(|next| Line::new().faint(format!("older: the same with --cursor {next}")));
        Ok(Screen { table: Some(table), remarks: more.into_iter().collect(), ..Screen::default() })
    }
}

impl Conversations<'_> {
    /// The agents that there are, where any of these is an agent's.
    async fn registered(&self, rows: &[Conversation]) -> Result<HashSet<AgentId>, Failure> {
        if rows.iter().all(|conversation| conversation.agent.is_none()) {
            return Ok(HashSet::new());
        }
        let agents = Found::paged(None, None, async |page| self.client.agents(None, page).await).await?;
        Ok(agents.rows.into_iter().map(|agent| agent.id).collect())
    }
}
