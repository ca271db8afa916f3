//! `ostler export`: what is recorded, as files of other programs.

mod gastown;
mod openclaw;
mod target;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ostler_client::{Client, Conversation, Session};
use ostler_domain::{
    CampaignId, ConversationId, Refusal,
    query::{ConversationFilter, SessionFilter},
};
use serde::Serialize;

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    listing::Found,
    output::{Line, Tone},
    words,
};
use target::Target;

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Conversation or session: name, id or part of one; - for the last of this terminal
    #[arg(required_unless_present_any = ["campaign", "all"])]
    who: Option<String>,
    /// All of this campaign: name, id or a path in it
    #[arg(short = 'C', long, value_name = "CAMPAIGN", conflicts_with = "who")]
    campaign: Option<String>,
    /// All there is
    #[arg(long, conflicts_with_all = ["who", "campaign"])]
    all: bool,
    /// gastown (index.jsonl, a file for each session, events), openclaw (sessions.json and transcripts)
    #[arg(long, value_name = "FORM", hide_possible_values = true)]
    format: Form,
    /// Into this directory: a new one, or one that an export has made and nobody has changed since
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Gastown,
    Openclaw,
}

impl Form {
    const fn as_str(self) -> &'static str {
        match self {
            Form::Gastown => "gastown",
            Form::Openclaw => "openclaw",
        }
    }
}

/// What is exported.
struct Chosen {
    campaign: Option<CampaignId>,
    conversation: Option<ConversationId>,
}

#[derive(Serialize)]
struct Exported {
    dir: String,
    format: &'static str,
    conversations: u64,
    sessions: u64,
    files: u64,
}

/// What was written.
#[derive(Default)]
struct Count {
    conversations: u64,
    sessions: u64,
}

pub(crate) async fn run(app: &App, args: ExportArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let chosen = chosen(app, &client, &args).await?;
    let mut target = Target::begin(&args.dir, args.format.as_str())?;
    let count = match args.format {
        Form::Gastown => gastown::write(app, &client, &chosen, &mut target).await?,
        Form::Openclaw => openclaw::write(app, &client, &chosen, &mut target).await?,
    };
    if count.conversations + count.sessions == 0 {
        return Err(Refusal::invalid("there is nothing to export")
            .hint("ostler ls -a", "lists all sessions")
            .into());
    }
    let files = target.finish()?;
    let dir = args.dir.display().to_string();
    if app.ui.is_json() {
        let Count { conversations, sessions } = count;
        app.ui.json(&Exported { dir, format: args.format.as_str(), conversations, sessions, files })?;
    } else if app.ui.is_quiet() {
        app.ui.data(&Line::of(dir))?;
    } else {
        let what = match args.format {
            Form::Gastown => words::plural(count.sessions, "session", "sessions"),
            Form::Openclaw => words::plural(count.conversations, "conversation", "conversations"),
        };
        let files = words::plural(files, "file", "files");
        app.ui.data(&Line::toned(Tone::Good, "✓ ").plain(format!("{what} in {files}  ")).strong(dir))?;
    }
    Ok(exit_code::OK)
}

async fn chosen(app: &App, client: &Client, args: &ExportArgs) -> Result<Chosen, Failure> {
    let campaign = match &args.campaign {
        Some(typed) => Some(client.campaign(&app.campaign_operand(typed)?).await?.id),
        None => None,
    };
    let conversation = match &args.who {
        Some(who) => Some(client.conversation(&app.addressee(client, who).await?).await?.id),
        None => None,
    };
    Ok(Chosen { campaign, conversation })
}

impl Chosen {
    /// The sessions that are meant, oldest first.
    async fn sessions(&self, client: &Client) -> Result<Vec<Session>, Failure> {
        let filter = SessionFilter {
            campaigns: self.campaign.into_iter().collect(),
            conversation: self.conversation,
            ..SessionFilter::default()
        };
        let ask = async |page| client.sessions(&filter, page).await;
        let mut rows = Found::paged(None, None, ask).await?.rows;
        rows.reverse();
        Ok(rows)
    }

    /// The conversations that are meant, closed ones too.
    async fn conversations(&self, client: &Client) -> Result<Vec<Conversation>, Failure> {
        if let Some(id) = self.conversation {
            return Ok(vec![client.conversation(&id.to_string()).await?]);
        }
        let filter =
            ConversationFilter { campaign: self.campaign, closed_too: true, ..ConversationFilter::default() };
        let ask = async |page| client.conversations(&filter, page).await;
        Ok(Found::paged(None, None, ask).await?.rows)
    }
}
