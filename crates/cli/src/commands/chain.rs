//! `ostler chain`: the lives of one work, and what the dead ones knew.

use clap::{Args, Subcommand};
use ostler_client::{Client, Session};
use ostler_domain::{
    Reason, Refusal,
    limits::PAGE_MOST,
    query::{Page, SessionFilter},
};
use ostler_form::ChainForm;

use super::seance;
use crate::{app::App, exit_code, failure::Failure, output::Line, screen, words};

/// Chains of one ticket that are shown.
const CHAINS: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct ChainArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Sessions joined by handoff, crash and restart, and all their helpers, with time, tokens and cost
    #[command(alias = "get")]
    Show(ChainShowArgs),
    /// Ask what its sessions knew; answered from the record, with citations
    Seance(seance::SeanceArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ChainShowArgs {
    /// A session of it: name, id, part of an id, or - for the last one of this terminal; or a ticket
    #[arg(value_name = "WHO")]
    who: String,
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
    let chains = match app.session(&client, &args.who).await {
        Ok(session) => vec![session],
        Err(unknown) => of_ticket(&client, &args.who).await?.ok_or(unknown)?,
    };
    show(app, &client, &chains).await?;
    Ok(exit_code::OK)
}

/// The newest session of each chain that worked on a ticket, the newest first; none where there is no such ticket.
async fn of_ticket(client: &Client, who: &str) -> Result<Option<Vec<Session>>, Failure> {
    let Ok(whole) = client.ticket(who).await else { return Ok(None) };
    let filter = SessionFilter { tickets: vec![whole.ticket.id.to_string()], ..SessionFilter::default() };
    let mut chains: Vec<Session> = Vec::new();
    for session in client.sessions(&filter, Page::of(PAGE_MOST, None)).await?.rows {
        // Helpers are shown below whom they help.
        if session.spawned_by.is_none() && chains.iter().all(|known| known.chain != session.chain) {
            chains.push(session);
        }
    }
    match chains.is_empty() {
        false => Ok(Some(chains)),
        true => Err(Refusal::new(
            Reason::SessionUnknown,
            format!("nobody has worked on ticket {} yet", whole.ticket.shown()),
        )
        .hint(format!("ostler ticket start {}", whole.ticket.id.short()), "has somebody begin")
        .into()),
    }
}

async fn show(app: &App, client: &Client, sessions: &[Session]) -> Result<(), Failure> {
    let names = app.campaign_names(client).await?;
    let mut forms = Vec::new();
    for (n, session) in sessions.iter().take(CHAINS).enumerate() {
        let chain = client.whole_chain(&session.id.to_string()).await?;
        if app.ui.is_json() {
            forms.push(ChainForm::new(session, &chain, |one| names.of(&one.campaign)));
            continue;
        }
        if n > 0 {
            app.ui.data(&Line::new())?;
        }
        app.ui.data_lines(&screen::chain::lines(&chain, session.id, words::now(), app.ui.out_look()))?;
    }
    match forms.pop() {
        None => {}
        Some(only) if sessions.len() == 1 => app.ui.json(&only)?,
        Some(last) => {
            forms.push(last);
            app.ui.json(&forms)?;
        }
    }
    if sessions.len() > CHAINS {
        let more = format!("and {} more chains: ostler ls -a --ticket says which", sessions.len() - CHAINS);
        app.ui.remark(&Line::new().faint(more));
    }
    Ok(())
}
