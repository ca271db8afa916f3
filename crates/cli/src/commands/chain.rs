//! `ostler chain`: the lives of one work, and what the dead ones knew.

use clap::{Args, Subcommand};
use ostler_client::{Client, Session};
use ostler_domain::query::{Page, SessionFilter};
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
    Show {
        /// A session of it: name, id, part of an id, or - for the last one of this terminal
        who: String,
    },
    /// Ask what its sessions knew; answered from the record, with citations
    Seance(seance::SeanceArgs),
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
        Verb::Show { who } => {
            let client = app.client().await?;
            let session = app.session(&client, &who).await?;
            show(app, &client, &session).await?;
            Ok(exit_code::OK)
        }
    }
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
