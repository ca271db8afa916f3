//! Work to be done, and what came of it.

use axum::{
    Extension,
    extract::Path,
    routing::{get, post},
};
use ostler_client::{AddTicket, CreateSession, LinkTicket, Ticket};
use ostler_domain::{
    Budget,
    budget::WhenUsedUp,
    query::TicketFilter,
    session::Approve,
    ticket::{Status, Verb},
};
use ostler_form::{
    Object, SessionForm,
    ticket::{TicketForm, WholeForm},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Endpoint, Form,
    asked::{self, WorkAsked},
    names, of,
    sessions::{amount, endpoint, shown},
};
use crate::{
    guard::Visitor,
    reply::{Answer, Asked, Wanted, json},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        endpoint!("get" "/v1/tickets" "listTickets" "Lists tickets, the newest first", Some(of::<WorkAsked>), None, Form::Page("tickets", of::<TicketForm<'static>>), get(list)),
        endpoint!("get" "/v1/tickets/{who}" "getTicket" "A ticket with all that came of it", None, None, Form::One(of::<WholeForm<'static>>), get(show)),
        endpoint!("post" "/v1/tickets" "addTicket" "Writes down what is to be done", None, Some(of::<Add>), Form::One(of::<TicketForm<'static>>), post(add)),
        endpoint!("post" "/v1/tickets/{who}/start" "startTicket" "Starts a session that works on it", None, Some(of::<Start>), Form::One(of::<SessionForm>), post(start)),
        endpoint!("post" "/v1/tickets/{who}/link" "linkTicket" "Changes what it belongs to; what is not given stays", None, Some(of::<Link>), Form::One(of::<TicketForm<'static>>), post(link)),
        endpoint!("post" "/v1/tickets/{who}/move" "moveTicket" "Says how it stands", None, Some(of::<Move>), Form::One(of::<TicketForm<'static>>), post(moved)),
    ]
}

async fn list(Extension(visitor): Extension<Visitor>, Asked(wanted): Asked<WorkAsked>) -> Answer {
    let campaign = wanted.campaign(&visitor.client).await?;
    let statuses = asked::list(&wanted.status, "status", &Status::ALL, Status::as_str)?;
    let filter = TicketFilter { campaign, statuses, archived_too: wanted.all, ..TicketFilter::default() };
    let listed = visitor.client.tickets(&filter, wanted.page()?).await?;
    let campaigns = names(&visitor.client).await?.of_each(&listed.rows, |ticket| &ticket.campaign);
    let rows =
        listed.rows.iter().zip(&campaigns).map(|(ticket, name)| TicketForm::new(ticket, name)).collect();
    Ok(json(&Object { name: "tickets", rows, next_cursor: listed.next_cursor }))
}

async fn show(Extension(visitor): Extension<Visitor>, Path(who): Path<String>) -> Answer {
    let whole = visitor.client.ticket(&who).await?;
    let campaign = names(&visitor.client).await?.of(&whole.ticket.campaign);
    Ok(json(&WholeForm::new(&whole, &campaign)))
}

async fn told(visitor: &Visitor, ticket: &Ticket) -> Answer {
    let campaign = names(&visitor.client).await?.of(&ticket.campaign);
    Ok(json(&TicketForm::new(ticket, &campaign)))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Add {
    /// Name, id, or a path in it.
    campaign: String,
    /// What is to be done.
    intent: String,
    /// What sort of work it is; without one, task.
    kind: Option<String>,
    /// What it is elsewhere, such as gh:shop#412.
    external: Option<String>,
    /// Tickets that must be done before it.
    #[serde(default)]
    depends_on: Vec<String>,
}

async fn add(Extension(visitor): Extension<Visitor>, Wanted(wanted): Wanted<Add>) -> Answer {
    let own = |text: &Option<String>| asked::said(text).map(str::to_owned);
    let request = AddTicket {
        kind: own(&wanted.kind),
        external: own(&wanted.external),
        campaign: wanted.campaign,
        intent: wanted.intent,
        depends_on: wanted.depends_on,
        ..AddTicket::default()
    };
    told(&visitor, &visitor.client.add_ticket(request).await?.0).await
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Start {
    /// What the agent is told; without one, what the ticket says.
    prompt: Option<String>,
    /// The agent program; without one, the usual one.
    provider: Option<String>,
    /// A registered agent of its campaign.
    agent: Option<String>,
    /// Such as 2usd,500k.
    budget: Option<String>,
}

/// As `ostler ticket start` has it.
async fn start(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Wanted(wanted): Wanted<Start>,
) -> Answer {
    let ticket = visitor.client.ticket(&who).await?.ticket;
    let own = |text: &Option<String>| asked::said(text).map(str::to_owned);
    let budget = asked::said(&wanted.budget).map(amount).transpose()?;
    // A conversation waits for what is said to it next; work without one is over with its turn.
    let has_memory = ticket.links.conversation.is_some() || asked::said(&wanted.agent).is_some();
    let request = CreateSession {
        agent: own(&wanted.agent),
        initial_message: Some(own(&wanted.prompt).unwrap_or_else(|| ticket.about.intent.clone())),
        budget: budget.map(|amount| Budget::new(amount, WhenUsedUp::Hold)),
        approve: Approve::Policy,
        ends_with_turn: !has_memory,
        ticket: Some(ticket.id.to_string()),
        ..CreateSession::new(ticket.campaign.to_string(), own(&wanted.provider).unwrap_or_default())
    };
    shown(&visitor, &visitor.client.create_session(request).await?).await
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Link {
    /// What it is elsewhere; empty takes it away.
    external: Option<String>,
    /// In which it is worked on.
    conversation: Option<String>,
    /// Tickets that must be done before it, besides those it has.
    depends_on: Vec<String>,
    /// Tickets that need not be done before it any more.
    no_depends_on: Vec<String>,
}

async fn link(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Wanted(Link { external, conversation, depends_on, no_depends_on }): Wanted<Link>,
) -> Answer {
    let request = LinkTicket { who, external, conversation, depends_on, no_depends_on };
    told(&visitor, &visitor.client.link_ticket(request).await?).await
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Move {
    /// Queue, done, fail, cancel, reopen or archive.
    verb: String,
    /// For the record.
    #[serde(default)]
    why: String,
}

async fn moved(
    Extension(visitor): Extension<Visitor>,
    Path(who): Path<String>,
    Wanted(Move { verb, why }): Wanted<Move>,
) -> Answer {
    let known = Verb::ALL.into_iter().find(|known| known.as_str() == verb);
    let verb =
        known.ok_or_else(|| ostler_domain::Refusal::invalid(format!("verb: there is no \"{verb}\"")))?;
    told(&visitor, &visitor.client.move_ticket(&who, verb, &why).await?).await
}
