//! `ostler chain`: the lives of one work, and what the dead ones knew.

use clap::{Args, Subcommand};
use ostler_client::{Client, Session};
use ostler_domain::{
    Reason,
    query::{Page, SessionFilter},
};
use serde::Serialize;

use super::seance;
use crate::{
    app::App,
    exit_code,
    failure::Failure,
    form::SessionForm,
    screen::{self, money::CostForm},
    words,
};

/// Helpers of one session that are shown with it.
const HELPERS: u32 = 20;

#[derive(Debug, Args)]
pub(crate) struct ChainArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Sessions joined by handoff, crash and restart, with time, tokens and cost
    #[command(alias = "get")]
    Show(ChainShowArgs),
    /// Ask what its sessions knew; answered from the record, with citations
    Seance(seance::SeanceArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ChainShowArgs {
    /// A session of it: name, id, part of an id, or - for the last one of this terminal. Or a ticket
    #[arg(value_name = "WHO")]
    who: String,
}

/// A chain for programs.
#[derive(Serialize)]
struct ChainForm {
    chain: String,
    sessions: Vec<SessionForm>,
    helpers: Vec<SessionForm>,
    tokens: u64,
    cost: CostForm,
    seconds: u64,
}

pub(crate) async fn run(app: &App, args: ChainArgs) -> Result<u8, Failure> {
    match args.verb {
        Verb::Seance(args) => seance::run(app, args).await,
        Verb::Show(args) => of(app, args).await,
    }
}

/// `ostler chain show`, and `ostler sessions chain`, which is the same.
pub(super) async fn of(app: &App, args: ChainShowArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let session = match app.session(&client, &args.who).await {
        Err(failure) if failure.reason() == Some(Reason::SessionUnknown) => {
            last_of_ticket(&client, &args.who).await?.ok_or(failure)?
        }
        found => found?,
    };
    show(app, &client, &session).await?;
    Ok(exit_code::OK)
}

/// Who worked on a ticket last, if it is one.
async fn last_of_ticket(client: &Client, who: &str) -> Result<Option<Session>, Failure> {
    let Ok(whole) = client.ticket(who).await else { return Ok(None) };
    let filter = SessionFilter { ticket: Some(whole.ticket.id.to_string()), ..SessionFilter::default() };
    Ok(client.sessions(&filter, Page::of(1, None)).await?.rows.pop())
}

async fn show(app: &App, client: &Client, session: &Session) -> Result<(), Failure> {
    let sessions = client.chain(&session.id.to_string()).await?;
    let mut helpers = Vec::new();
    for one in &sessions {
        let filter = SessionFilter { spawned_by: Some(one.id), ..SessionFilter::default() };
        helpers.extend(client.sessions(&filter, Page::of(HELPERS, None)).await?.rows);
    }
    let names = app.campaign_names(client).await?;
    let sum = screen::chain::Sum::of(sessions.iter().chain(&helpers), words::now());
    if app.ui.is_json() {
        let form = |one: &Session| SessionForm::new(one, &names.of(&one.campaign));
        return app.ui.json(&ChainForm {
            chain: session.chain.to_string(),
            sessions: sessions.iter().map(form).collect(),
            helpers: helpers.iter().map(form).collect(),
            tokens: sum.tokens,
            cost: CostForm::new(&sum.cost),
            seconds: sum.time.as_secs(),
        });
    }
    app.ui.data_lines(&screen::chain::lines(
        &sessions,
        &helpers,
        session,
        &sum,
        words::now(),
        app.ui.out_look(),
    ))
}
