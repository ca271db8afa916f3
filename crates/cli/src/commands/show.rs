//! `ostler show`: everything about one thing, whatever it is.

use clap::Args;
use ostler_client::{
    Agent, Approval, Campaign, Client, Conversation, Delivery, Session,
    reply::{NodeStatus, WholeMission},
};
use ostler_domain::{
    AgentId, ApprovalId, CampaignId, ConversationId, MessageId, MissionId, NodeId, Reason, Refusal, TicketId,
    id::Fragment,
    limits::PAGE_MOST,
    query::{Page, Scope, SessionFilter},
    text::one_line,
    ticket::{ExternalRef, Whole},
};

use super::{agent, conversation, daemon, mission, ticket, usage};
use crate::{
    app::{App, person_home},
    exit_code,
    failure::Failure,
    form::{ApprovalForm, CampaignForm, MessageForm, SessionForm},
    output::{Format, Line},
    screen, words,
};

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A session, agent, conversation, ticket, mission, campaign, approval, message or node: id, part of an id, name or path. Inside a session: itself
    #[arg(value_name = "WHO")]
    pub(super) who: Option<String>,
}

pub(crate) async fn run(app: &App, args: ShowArgs) -> Result<u8, Failure> {
    let who = args.who.ok_or_else(|| {
        Refusal::invalid("show needs to know what: a session, campaign, approval or message")
            .hint("ostler ls", "lists the sessions")
    })?;
    let client = app.client().await?;
    let thing = find(app, &client, &who).await?;
    if app.ui.is_quiet() || app.ui.format() == Some(Format::Name) {
        app.ui.data(&Line::of(thing.id()))?;
        return Ok(exit_code::OK);
    }
    match thing {
        Thing::Agent(found) => agent::show(app, &client, &found).await?,
        Thing::Conversation(found) => conversation::show(app, &client, &found).await?,
        Thing::Ticket(whole) => ticket::show(app, &client, &whole).await?,
        Thing::Mission(whole) => mission::by_id(app, &client, &whole).await?,
        Thing::Session(session) => show_session(app, &client, &session).await?,
        Thing::Campaign(campaign) => show_campaign(app, &client, &campaign).await?,
        Thing::Approval(approval) if app.ui.is_json() => app.ui.json(&ApprovalForm::new(&approval))?,
        Thing::Approval(approval) => app.ui.fields(&screen::approval::lines(&approval, words::now()))?,
        Thing::Node(status) => daemon::show(app, &status)?,
        Thing::Message(message) if app.ui.is_json() => app.ui.json(&MessageForm::new(&message))?,
        Thing::Message(message) => app.ui.fields(&screen::message::lines(&message, words::now()))?,
    }
    Ok(exit_code::OK)
}

enum Thing {
    Agent(Box<Agent>),
    Conversation(Box<Conversation>),
    Session(Box<Session>),
    Ticket(Box<Whole>),
    Mission(Box<WholeMission>),
    Campaign(Box<Campaign>),
    Approval(Approval),
    Message(Delivery),
    Node(Box<NodeStatus>),
}

impl Thing {
    fn id(&self) -> String {
        match self {
            Thing::Agent(agent) => agent.id.to_string(),
            Thing::Conversation(conversation) => conversation.id.to_string(),
            Thing::Session(session) => session.id.to_string(),
            Thing::Ticket(whole) => whole.ticket.id.to_string(),
            Thing::Mission(whole) => whole.mission.id.to_string(),
            Thing::Campaign(campaign) => campaign.id.to_string(),
            Thing::Approval(approval) => approval.id.to_string(),
            Thing::Message(delivery) => delivery.message.id.to_string(),
            Thing::Node(status) => status.node.to_string(),
        }
    }
}

/// What the words mean: by their prefix where they have one, else the first sort of thing that has them.
async fn find(app: &App, client: &Client, typed: &str) -> Result<Thing, Failure> {
    let has_prefix = |prefix: &str| {
        typed.to_ascii_lowercase().strip_prefix(prefix).is_some_and(|rest| rest.starts_with('_'))
    };
    if has_prefix(CampaignId::PREFIX)
        || typed == "."
        || typed.starts_with('/')
        || typed.starts_with("./")
        || typed.starts_with("../")
    {
        return Ok(Thing::Campaign(Box::new(client.campaign(&app.campaign_operand(typed)?).await?)));
    }
    if has_prefix(AgentId::PREFIX) {
        return Ok(Thing::Agent(Box::new(client.agent(typed).await?)));
    }
    if has_prefix(ConversationId::PREFIX) {
        return Ok(Thing::Conversation(Box::new(client.conversation(typed).await?)));
    }
    if has_prefix(TicketId::PREFIX) || typed.parse::<ExternalRef>().is_ok() {
        return Ok(Thing::Ticket(Box::new(client.ticket(typed).await?)));
    }
    if has_prefix(MissionId::PREFIX) {
        return Ok(Thing::Mission(Box::new(client.mission(typed).await?)));
    }
    if has_prefix(ApprovalId::PREFIX) {
        return Ok(Thing::Approval(client.approval(typed).await?));
    }
    if has_prefix(NodeId::PREFIX) {
        let status = client.status().await?;
        let is_meant = Fragment::parse(typed, NodeId::PREFIX)
            .is_some_and(|fragment| fragment.fits(&status.node.to_string()));
        return if is_meant { Ok(Thing::Node(Box::new(status))) } else { Err(other_node(typed, &status)) };
    }
    if has_prefix(MessageId::PREFIX) {
        return Ok(Thing::Message(client.message(typed).await?));
    }
    let unknown = match app.session(client, typed).await {
        Ok(session) => return Ok(Thing::Session(Box::new(session))),
        Err(failure) if is_unknown(&failure) => failure,
        Err(failure) => return Err(failure),
    };
    if let Ok(agent) = client.agent(typed).await {
        return Ok(Thing::Agent(Box::new(agent)));
    }
    if let Ok(conversation) = client.conversation(typed).await {
        return Ok(Thing::Conversation(Box::new(conversation)));
    }
    if let Ok(campaign) = client.campaign(typed).await {
        return Ok(Thing::Campaign(Box::new(campaign)));
    }
    if let Ok(approval) = client.approval(typed).await {
        return Ok(Thing::Approval(approval));
    }
    if let Ok(message) = client.message(typed).await {
        return Ok(Thing::Message(message));
    }
    if let Ok(whole) = client.mission(typed).await {
        return Ok(Thing::Mission(Box::new(whole)));
    }
    match client.ticket(typed).await {
        Ok(whole) => Ok(Thing::Ticket(Box::new(whole))),
        Err(_) => Err(unknown),
    }
}

fn other_node(typed: &str, status: &NodeStatus) -> Failure {
    Refusal::invalid(format!("\"{}\" is another machine's daemon", one_line(typed, 64)))
        .because(format!("this one is {}", status.node))
        .hint("ostler daemon status", "shows this one")
        .into()
}

fn is_unknown(failure: &Failure) -> bool {
    matches!(failure.reason(), Some(Reason::SessionUnknown | Reason::CampaignUnknown))
}

async fn show_session(app: &App, client: &Client, session: &Session) -> Result<(), Failure> {
    let campaign = app.campaign_name(client, &session.campaign).await;
    if app.ui.is_json() {
        return app.ui.json(&SessionForm::new(session, &campaign));
    }
    let chain = client.chain(&session.id.to_string()).await?;
    let place = chain.iter().position(|other| other.id == session.id).map_or(1, |place| place + 1);
    let mut approvals = Vec::new();
    for id in &session.approvals_open {
        approvals.push(client.approval(&id.to_string()).await?);
    }
    let home = person_home();
    let work = client.tree(&session.id.to_string()).await?;
    let record = client.retention_of(&session.id.to_string()).await.ok();
    let around = screen::session::Around {
        campaign: &campaign,
        place_in_chain: (place, chain.len().max(place)),
        approvals: &approvals,
        cut_calls: usage::cut_calls(client, session).await,
        home: home.as_deref(),
        work: Some(&work),
        record: record.as_ref(),
    };
    app.ui.fields(&screen::session::lines(session, &around, words::now()))
}

async fn show_campaign(app: &App, client: &Client, campaign: &Campaign) -> Result<(), Failure> {
    if app.ui.is_json() {
        return app.ui.json(&CampaignForm::new(campaign));
    }
    let filter =
        SessionFilter { scope: Scope::NotEnded, campaign: Some(campaign.id), ..SessionFilter::default() };
    let live = client.sessions(&filter, Page::of(PAGE_MOST, None)).await?.rows;
    app.ui.fields(&screen::campaign::lines(
        campaign,
        &live,
        person_home().as_deref(),
        words::now(),
        app.ui.out_look(),
    ))
}
