//! `ostler ticket start`: a session that works on a ticket.

use clap::Args;
use ostler_client::{Client, CreateSession};
use ostler_domain::{
    Budget,
    budget::{Amount, WhenUsedUp},
    session::Approve,
};

use super::Who;
use crate::{app::App, commands::run::detached, exit_code, failure::Failure, parse};

#[derive(Debug, Args)]
pub(super) struct StartArgs {
    #[command(flatten)]
    ticket: Who,
    /// What the agent is told [default: what the ticket says]
    prompt: Option<String>,
    /// Agent program [default: the agent's, the campaign's, the machine's]
    #[arg(short, long)]
    provider: Option<String>,
    /// Model
    #[arg(short, long)]
    model: Option<String>,
    /// A registered agent of its campaign
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// What the session may use: 2usd, 500k, or both
    #[arg(long, value_parser = parse::budget, value_name = "AMOUNT")]
    budget: Option<Amount>,
    /// Leave the session open for messages when its turn is over
    #[arg(long)]
    keep: bool,
}

pub(super) async fn run(app: &App, client: &Client, args: StartArgs) -> Result<u8, Failure> {
    let ticket = client.ticket(&args.ticket.who).await?.ticket;
    let campaign = client.campaign(&ticket.campaign.to_string()).await?;
    // A conversation waits for what is said to it next; work without one is over with its turn.
    let has_memory = ticket.links.conversation.is_some() || args.agent.is_some();
    let request = CreateSession {
        model: args.model,
        agent: args.agent,
        initial_message: Some(args.prompt.unwrap_or_else(|| ticket.about.intent.clone())),
        budget: args.budget.map(|amount| Budget::new(amount, WhenUsedUp::Hold)),
        approve: Approve::Policy,
        ends_with_turn: !args.keep && !has_memory,
        ticket: Some(ticket.id.to_string()),
        ..CreateSession::new(campaign.id.to_string(), args.provider.as_deref().unwrap_or_default())
    };
    let session = client.create_session(request).await?;
    app.touched(&session.id);
    detached(app, &campaign, &session)?;
    Ok(exit_code::OK)
}
