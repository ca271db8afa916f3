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
use serde::Serialize;

use super::{agent, conversation, daemon, mission, run::grants, ticket, usage};
use crate::{
    app::{App, person_home},
    exit_code,
    failure::Failure,
    form::{AgentForm, ApprovalForm, CampaignForm, ConversationForm, MessageForm, SessionForm, StatusForm},
    listing::{self, Found, List, ListArgs, Screen},
    output::{FIELD, Format, Line, Terminals},
    screen, words,
};

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A session, agent, conversation, ticket, mission, campaign, approval, message or node: id, part of an id, name or path. Inside a session: itself
    #[arg(value_name = "WHO")]
    pub(super) who: Option<String>,
    /// Draw it again whenever something changes; with -o jsonl a line whenever it did
    #[arg(short, long)]
    watch: bool,
}

pub(crate) async fn run(app: &App, args: ShowArgs) -> Result<u8, Failure> {
    let who = args.who.ok_or_else(|| {
        Refusal::invalid("show needs to know what: a session, campaign, approval or message")
            .hint("ostler ls", "lists the sessions")
    })?;
    let client = app.client().await?;
    if args.watch {
        return listing::run(
            app,
            Some(&client),
            &ListArgs::watching(),
            &Watched { app, client: &client, who: &who },
        )
        .await;
    }
    let thing = find(app, &client, &who).await?;
    if let Thing::Mission(whole) = &thing {
        mission::by_id(app, &client, whole).await?;
        return Ok(exit_code::OK);
    }
    if app.ui.is_quiet() || app.ui.format() == Some(Format::Name) {
        app.ui.data(&Line::of(thing.id()))?;
        return Ok(exit_code::OK);
    }
    let campaign = thing.campaign(app, &client).await;
    if app.ui.is_json() {
        app.ui.json(&thing.form(&campaign))?;
    } else {
        app.ui.fields(&thing.lines(app, &client, &campaign).await?)?;
    }
    Ok(exit_code::OK)
}

/// One thing that is looked at again and again: a list of one.
struct Watched<'a> {
    app: &'a App,
    client: &'a Client,
    who: &'a str,
}

impl List for Watched<'_> {
    /// With its campaign's name.
    type Row = (Thing, String);
    const ROWS: &'static str = "things";

    async fn find(&self) -> Result<Found<Self::Row>, Failure> {
        let thing = find(self.app, self.client, self.who).await?;
        let campaign = thing.campaign(self.app, self.client).await;
        Ok(Found::whole(vec![(thing, campaign)], None))
    }

    fn id(&self, (thing, _): &Self::Row) -> String {
        thing.id()
    }

    fn form(&self, (thing, campaign): &Self::Row) -> impl Serialize {
        thing.form(campaign)
    }

    async fn screen(&self, found: &Found<Self::Row>) -> Result<Screen, Failure> {
        let mut below = Vec::new();
        // Windows are drawn larger and smaller meanwhile.
        let width = Terminals::find().out.width;
        for (thing, campaign) in &found.rows {
            let lines = thing.lines(self.app, self.client, campaign).await?;
            below.extend(lines.iter().flat_map(|line| line.folded(width, FIELD)));
        }
        Ok(Screen { below, ..Screen::default() })
    }
}

/// A thing as programs read it.
#[derive(Serialize)]
#[serde(untagged)]
enum Form<'a> {
    Agent(AgentForm),
    Conversation(ConversationForm<'a>),
    Session(Box<SessionForm>),
    Ticket(ticket::WholeForm<'a>),
    Mission(mission::WholeForm<'a>),
    Campaign(Box<CampaignForm>),
    Approval(ApprovalForm),
    Message(MessageForm),
    Node(Box<StatusForm>),
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

    /// The name of the campaign that it belongs to, where it does.
    async fn campaign(&self, app: &App, client: &Client) -> String {
        let id = match self {
            Thing::Agent(agent) => &agent.campaign,
            Thing::Conversation(conversation) => &conversation.campaign,
            Thing::Session(session) => &session.campaign,
            Thing::Ticket(whole) => &whole.ticket.campaign,
            Thing::Mission(whole) => &whole.mission.campaign,
            Thing::Campaign(campaign) => return campaign.name.to_string(),
            Thing::Approval(_) | Thing::Message(_) | Thing::Node(_) => return String::new(),
        };
        app.campaign_name(client, id).await
    }

    fn form<'a>(&'a self, campaign: &'a str) -> Form<'a> {
        match self {
            Thing::Agent(agent) => Form::Agent(AgentForm::new(agent, campaign)),
            Thing::Conversation(found) => Form::Conversation(ConversationForm::new(found, campaign)),
            Thing::Session(session) => Form::Session(Box::new(SessionForm::new(session, campaign))),
            Thing::Ticket(whole) => Form::Ticket(ticket::WholeForm::new(whole, campaign)),
            Thing::Mission(whole) => Form::Mission(mission::WholeForm::new(whole, campaign)),
            Thing::Campaign(campaign) => Form::Campaign(Box::new(CampaignForm::new(campaign))),
            Thing::Approval(approval) => Form::Approval(ApprovalForm::new(approval)),
            Thing::Message(message) => Form::Message(MessageForm::new(message)),
            Thing::Node(status) => Form::Node(Box::new(StatusForm::new(status))),
        }
    }

    async fn lines(&self, app: &App, client: &Client, campaign: &str) -> Result<Vec<Line>, Failure> {
        let now = words::now();
        Ok(match self {
            Thing::Agent(found) => agent::lines(client, found, campaign).await?,
            Thing::Conversation(found) => conversation::lines(client, found, campaign).await?,
            Thing::Session(session) => session_lines(client, session, campaign).await?,
            Thing::Ticket(whole) => screen::ticket::lines(whole, campaign, now),
            Thing::Mission(whole) => mission::lines(app, client, whole).await?,
            Thing::Campaign(found) => campaign_lines(app, client, found).await?,
            Thing::Approval(approval) => screen::approval::lines(approval, now),
            Thing::Message(message) => screen::message::lines(message, now),
            Thing::Node(status) => daemon::lines(status, now),
        })
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

async fn session_lines(client: &Client, session: &Session, campaign: &str) -> Result<Vec<Line>, Failure> {
    let who = session.id.to_string();
    let chain = client.chain(&who).await?;
    let place = chain.iter().position(|other| other.id == session.id).map_or(1, |place| place + 1);
    let mut approvals = Vec::new();
    for id in &session.approvals_open {
        approvals.push(client.approval(&id.to_string()).await?);
    }
    let home = person_home();
    let work = client.tree(&who).await?;
    let record = client.retention_of(&who).await.ok();
    let conversation = client.conversation(&session.conversation.to_string()).await.ok();
    let counted = usage::counted(client, session).await;
    // A removed campaign allows nothing any more.
    let grants = grants(client, session).await.unwrap_or_default();
    let around = screen::session::Around {
        campaign,
        place_in_chain: Some((place, chain.len().max(place))),
        approvals: &approvals,
        counted: counted.as_ref(),
        conversation: conversation.as_ref(),
        home: home.as_deref(),
        work: Some(&work),
        record: record.as_ref(),
        grants: &grants,
    };
    Ok(screen::session::lines(session, &around, words::now()))
}

async fn campaign_lines(app: &App, client: &Client, campaign: &Campaign) -> Result<Vec<Line>, Failure> {
    let filter =
        SessionFilter { scope: Scope::NotEnded, campaigns: vec![campaign.id], ..SessionFilter::default() };
    let live = client.sessions(&filter, Page::of(PAGE_MOST, None)).await?.rows;
    Ok(screen::campaign::lines(campaign, &live, person_home().as_deref(), words::now(), app.ui.out_look()))
}
