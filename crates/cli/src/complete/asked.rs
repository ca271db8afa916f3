//! What the daemon is asked for: names and ids that a line may go on with.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    time::Duration,
};

use clap_complete::engine::CompletionCandidate;
use ostler_client::{
    Agent, Approval, Client, Conversation, Delivery, Mission, Session,
    reply::{HttpToken, Share},
};
use ostler_domain::{
    ConversationId, Receipt,
    limits::PAGE_DEFAULT,
    mission::Filter,
    node::Node,
    provider,
    query::{ConversationFilter, Page, Scope, SessionFilter, TicketFilter},
    text::one_line,
    ticket::Ticket,
};

use crate::{commands, failure::Failure, listing::Found, nodes, screen, words};

/// Whoever pressed the key waits: what takes longer is not offered.
const ANSWER_WITHIN: Duration = Duration::from_millis(150);

/// Names first, as they are what people type; with their campaign where that is typed already, and an id where a name is
/// not alone.
pub(super) fn sessions(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy().into_owned();
    let campaign = typed.split_once('/').map(|(campaign, _)| campaign.to_owned());
    let begun = typed.rsplit('/').next().unwrap_or_default();
    let mut agents = Vec::new();
    let asked = ask(async |client| {
        // One that has no session yet is spoken to all the same.
        agents = client
            .agents(campaign.as_deref(), Page::of(PAGE_DEFAULT, None))
            .await
            .map_or_else(|_| Vec::new(), |listed| listed.rows);
        let campaigns = client.campaigns(Page::of(PAGE_DEFAULT, None)).await?.rows;
        let named = campaigns.iter().find(|known| campaign.as_deref() == Some(known.name.as_str()));
        let filter = SessionFilter {
            scope: Scope::All,
            campaigns: named.map(|campaign| campaign.id).into_iter().collect(),
            ..SessionFilter::default()
        };
        let named = SessionFilter { name_begins: Some(begun.to_owned()), ..filter.clone() };
        let ask = async |page| client.sessions(&named, page).await;
        let mut rows = Found::paged(Some(PAGE_DEFAULT), None, ask).await?.rows;
        if rows.is_empty() {
            // What is typed may be the beginning of an id.
            rows = client.sessions(&filter, Page::of(PAGE_DEFAULT, None)).await?.rows;
        }
        Ok(rows)
    });
    beginning_with(&typed, with_agents(candidates(&asked, campaign.as_deref()), &agents, campaign.as_deref()))
}

/// Agents too, unless a session of theirs has their name already.
pub(super) fn with_agents(
    mut all: Vec<CompletionCandidate>,
    agents: &[Agent],
    campaign: Option<&str>,
) -> Vec<CompletionCandidate> {
    for agent in agents {
        let typed = match campaign {
            Some(campaign) => format!("{campaign}/{}", agent.name),
            None => agent.name.to_string(),
        };
        if all.iter().all(|one| one.get_value() != OsStr::new(&typed)) {
            all.push(
                CompletionCandidate::new(typed).help(Some(format!("agent, {}", agent.profile.role).into())),
            );
        }
    }
    all
}

pub(super) fn beginning_with(typed: &str, all: Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    all.into_iter().filter(|one| one.get_value().to_string_lossy().starts_with(typed)).collect()
}

pub(super) fn candidates(sessions: &[Session], campaign: Option<&str>) -> Vec<CompletionCandidate> {
    // A name means its conversation, by the session that goes on there.
    let mut alike: BTreeMap<&str, BTreeSet<ConversationId>> = BTreeMap::new();
    for session in sessions {
        alike.entry(session.name.as_str()).or_default().insert(session.conversation);
    }
    let mut offered = BTreeSet::new();
    let candidate = |session: &Session| {
        let name = session.name.as_str();
        let typed = match campaign {
            Some(campaign) => format!("{campaign}/{name}"),
            None if alike[name].len() == 1 => name.to_owned(),
            None => session.id.short(),
        };
        let told = match session.outcome {
            Some(outcome) => outcome.as_str(),
            None => session.status.as_str(),
        };
        let age = words::span(words::now().since(session.created_at));
        CompletionCandidate::new(typed).help(Some(format!("{told}, {} ago", age).into()))
    };
    let all = sessions.iter().map(candidate);
    all.filter(|one| offered.insert(one.get_value().to_owned())).collect()
}

pub(super) fn campaigns() -> Vec<CompletionCandidate> {
    let asked = ask(async |client| Ok(client.campaigns(Page::of(PAGE_DEFAULT, None)).await?.rows));
    asked
        .into_iter()
        .map(|campaign| {
            CompletionCandidate::new(campaign.name.as_str()).help(Some(campaign.root.path.into()))
        })
        .collect()
}

pub(super) fn missions() -> Vec<CompletionCandidate> {
    let all = Filter { over_too: true, ..Filter::default() };
    let asked = ask(async |client| Ok(client.missions(&all, Page::of(PAGE_DEFAULT, None)).await?.rows));
    let candidate = |mission: Mission| {
        let about = format!("{} {}", mission.status.as_str(), one_line(&mission.objective, 50));
        CompletionCandidate::new(mission.name.as_str()).help(Some(about.into()))
    };
    asked.into_iter().map(candidate).collect()
}

pub(super) fn approvals() -> Vec<CompletionCandidate> {
    let asked = ask(async |client| Ok(client.approvals(true, Page::of(PAGE_DEFAULT, None)).await?.rows));
    let candidate = |approval: Approval| {
        CompletionCandidate::new(approval.id.short()).help(Some(one_line(&approval.asks, 60).into()))
    };
    asked.into_iter().map(candidate).collect()
}

/// Those that wait, of all that live.
pub(super) fn messages() -> Vec<CompletionCandidate> {
    let asked = ask(async |client| {
        let filter = SessionFilter { scope: Scope::NotEnded, ..SessionFilter::default() };
        let live = client.sessions(&filter, Page::of(PAGE_DEFAULT, None)).await?.rows;
        let mut messages = Vec::new();
        for session in live.into_iter().filter(|session| session.messages_waiting > 0) {
            messages.extend(client.messages(&session.id.to_string(), Page::of(0, None)).await?.rows);
        }
        Ok(messages)
    });
    let waits = asked.into_iter().filter(|delivery| delivery.receipt == Receipt::Accepted);
    let candidate = |delivery: Delivery| {
        let text = one_line(&delivery.message.text, 60);
        CompletionCandidate::new(delivery.message.id.short()).help(Some(text.into()))
    };
    waits.map(candidate).collect()
}

pub(super) fn providers() -> Vec<CompletionCandidate> {
    let asked = ask(async |client| Ok(client.providers().await?));
    let candidate = |status: provider::Status| {
        let told = status.problem.or(status.version).unwrap_or_default();
        CompletionCandidate::new(status.name).help(Some(one_line(&told, 60).into()))
    };
    asked.into_iter().map(candidate).collect()
}

pub(super) fn agents() -> Vec<CompletionCandidate> {
    let asked = ask(async |client| Ok(client.agents(None, Page::of(PAGE_DEFAULT, None)).await?.rows));
    let candidate = |agent: Agent| {
        CompletionCandidate::new(agent.name.as_str()).help(Some(agent.profile.role.to_string().into()))
    };
    asked.into_iter().map(candidate).collect()
}

pub(super) fn conversations() -> Vec<CompletionCandidate> {
    let filter = ConversationFilter { closed_too: true, ..ConversationFilter::default() };
    let asked =
        ask(async |client| Ok(client.conversations(&filter, Page::of(PAGE_DEFAULT, None)).await?.rows));
    let candidate = |conversation: Conversation| {
        let state = conversation.closed.map_or("open", |closed| closed.why.as_str());
        CompletionCandidate::new(conversation.name.as_str()).help(Some(state.into()))
    };
    asked.into_iter().map(candidate).collect()
}

pub(super) fn tickets() -> Vec<CompletionCandidate> {
    let asked = ask(async |client| {
        Ok(client.tickets(&TicketFilter::default(), Page::of(PAGE_DEFAULT, None)).await?.rows)
    });
    let candidate = |ticket: Ticket| {
        let intent = one_line(&ticket.about.intent, 60);
        CompletionCandidate::new(screen::ticket::name(&ticket)).help(Some(intent.into()))
    };
    asked.into_iter().map(candidate).collect()
}

/// Who may come in by HTTP: programs by their names, browsers by their ids.
pub(super) fn tokens() -> Vec<CompletionCandidate> {
    let asked = ask(async |client| Ok(client.tokens().await?));
    let candidate = |token: HttpToken| {
        let (typed, about) =
            if token.is_browser { (token.id, token.name) } else { (token.name, "a token".to_owned()) };
        CompletionCandidate::new(typed).help(Some(about.into()))
    };
    asked.into_iter().map(candidate).collect()
}

/// What is shared, by its name.
pub(super) fn shares() -> Vec<CompletionCandidate> {
    let shared = ask(async |client| Ok(client.shares().await?));
    shared.into_iter().map(|share: Share| CompletionCandidate::new(share.name)).collect()
}

/// Machines with a name, which this one knows without asking anybody.
pub(super) fn nodes() -> Vec<CompletionCandidate> {
    let home = ostler_client::home().ok();
    let known = home.and_then(|home| nodes::named(&home).ok()).unwrap_or_default();
    let all = known.into_keys().chain([Node::HERE.to_owned(), Node::ALL.to_owned()]);
    all.map(CompletionCandidate::new).collect()
}

/// Asks a daemon that runs, and takes no answer for nothing: a key must never start one, wait for one, or complain.
fn ask<T>(question: impl AsyncFnOnce(Client) -> Result<Vec<T>, Failure>) -> Vec<T> {
    let answered = commands::with_runtime(async {
        let asked = async { question(Client::connect(&ostler_client::home()?).await?).await };
        tokio::time::timeout(ANSWER_WITHIN, asked).await.unwrap_or_else(|_| Ok(Vec::new()))
    });
    answered.unwrap_or_default()
}
