//! OpenClaw's store of files: `agents/<agent>/sessions/sessions.json`, and a transcript for each row.

use std::collections::{BTreeMap, HashMap, HashSet};

use ostler_client::{Client, Conversation, ListEvents, Place, Received};
use ostler_domain::{
    AgentId, ConversationId, Event, Kind, Name, Refusal, SessionId,
    event::StopReason,
    exchange::{
        openclaw::{self, Said},
        openclaw_index::{self, OwnRow, Written},
    },
    limits::PAGE_MOST,
    query::{EventFilter, Page, SessionFilter},
};

use super::{
    Chosen, Count,
    target::{Target, Writing},
};
use crate::{app::App, failure::Failure, listing::Found, output::Line};

const INDEX: &str = "sessions.json";

pub(super) async fn write(
    app: &App,
    client: &Client,
    chosen: &Chosen,
    target: &mut Target,
) -> Result<Count, Failure> {
    let mut conversations = chosen.conversations(client).await?;
    let campaigns = app.campaign_names(client).await?;
    let Agents { names: agents, removed } = agents(client, &conversations).await?;
    let agent = |conversation: &Conversation| conversation.agent.and_then(|id| agents.get(&id));
    let is_of_removed =
        |conversation: &Conversation| conversation.agent.is_some_and(|id| removed.contains(&id));
    // Whoever has a name now has its keys.
    conversations.sort_by_key(is_of_removed);
    let mut stores: BTreeMap<String, Store<'_>> = BTreeMap::new();
    for (n, conversation) in conversations.iter().enumerate() {
        app.ui.show_meanwhile(Line::new().faint(format!("{} of {}", n + 1, conversations.len())));
        let name = agent(conversation);
        let id = openclaw::agent_of(conversation, name);
        let store = stores.entry(id.clone()).or_default();
        let came = write_imported(client, conversation, &id, store, target).await?;
        if !came.has_transcript {
            write_transcript(client, conversation, &id, target).await?;
        }
        // What was closed has no row; its transcript is put aside.
        if conversation.closed.is_some() {
            continue;
        }
        let key = openclaw::key(conversation, name);
        let last = last_session(client, conversation.id).await?;
        let parent = match conversation.spawned_by {
            Some(parent) => parent_key(client, &parent.to_string(), &agents).await,
            None => None,
        };
        let campaign = campaigns.of(&conversation.campaign);
        let (compactions, last_turn) = match &last {
            Some(last) => (compactions(client, conversation.id).await?, last_turn(client, last.id).await?),
            None => (0, None),
        };
        let said = Said {
            conversation,
            campaign: &campaign,
            last: last.as_ref(),
            last_turn,
            compactions,
            spawned_by: parent.as_deref(),
        };
        if !store.keys.insert(key.clone()) {
            if is_of_removed(conversation) {
                continue;
            }
            return Err(same_key(&key, conversation, &store.rows).into());
        }
        let is_as_it_came = last.is_none() && (came.has_files || conversation.notes.entry.is_imported());
        store.rows.push(OwnRow { conversation, key, row: openclaw::row(&said), is_as_it_came });
    }
    for (agent, store) in stores {
        let Written { text, aside } = openclaw_index::written(store.index.as_deref(), &store.rows);
        let dir = format!("agents/{agent}/sessions");
        target.write(&format!("{dir}/sessions.json"), &text)?;
        if let Some(aside) = aside {
            target.write(&format!("{dir}/sessions.json.damaged"), &aside)?;
        }
    }
    Ok(Count { conversations: conversations.len() as u64, sessions: 0 })
}

/// Who else has the key: somebody of another campaign, or of this one.
fn same_key(key: &str, conversation: &Conversation, rows: &[OwnRow<'_>]) -> Refusal {
    let refusal = Refusal::invalid(format!("two conversations would have the key {key}"));
    let other = rows.iter().find(|row| row.key == key).map(|row| row.conversation);
    match other.filter(|other| other.campaign == conversation.campaign) {
        None => refusal
            .because("agents of several campaigns have the same name")
            .hint("ostler export -C CAMPAIGN …", "exports one campaign at a time"),
        Some(other) => refusal
            .because(format!(
                "names of agents differ in case alone: {} and {}",
                other.name, conversation.name
            ))
            .hint("ostler export WHO …", "exports one conversation at a time"),
    }
}

/// What is written of one agent.
#[derive(Default)]
struct Store<'a> {
    rows: Vec<OwnRow<'a>>,
    keys: HashSet<String>,
    /// The index that conversations of it came with.
    index: Option<Vec<u8>>,
}

/// What a conversation came with.
#[derive(Default)]
struct Came {
    has_files: bool,
    has_transcript: bool,
}

/// Writes the files that a conversation came with, as they were.
async fn write_imported(
    client: &Client,
    conversation: &Conversation,
    agent: &str,
    store: &mut Store<'_>,
    target: &mut Target,
) -> Result<Came, Failure> {
    let mut pieces = client.imported_files(&conversation.id.to_string()).await?;
    let mut came = Came::default();
    let mut open: Option<Writing> = None;
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        if let Some(name) = piece.begins {
            if let Some(done) = open.take() {
                target.close(done)?;
            }
            came.has_files = true;
            came.has_transcript |= piece.is_transcript;
            // The index is written when all rows are known.
            if name == INDEX {
                store.index = Some(Vec::new());
            } else {
                open = Some(target.file(&format!("agents/{agent}/sessions/{name}"))?);
            }
        }
        match (&mut open, &mut store.index) {
            (Some(file), _) => file.write(&piece.bytes)?,
            (None, Some(index)) => index.extend_from_slice(&piece.bytes),
            (None, None) => {}
        }
    }
    open.map_or(Ok(()), |file| target.close(file))?;
    Ok(came)
}

async fn write_transcript(
    client: &Client,
    conversation: &Conversation,
    agent: &str,
    target: &mut Target,
) -> Result<(), Failure> {
    let name = openclaw::transcript_name(conversation);
    let id = openclaw::session_id(conversation);
    let mut lines = client.transcript_as_it_came(&conversation.id.to_string()).await?;
    let mut file = None;
    while let Some(line) = lines.next().await {
        let line = openclaw::transcript_line(&line?, &id);
        let to = match &mut file {
            Some(file) => file,
            none => none.insert(target.file(&format!("agents/{agent}/sessions/{name}"))?),
        };
        to.write(&line)?;
        to.write(b"\n")?;
    }
    // A conversation in which nothing was said yet has a row and no transcript.
    file.map_or(Ok(()), |file| target.close(file))
}

/// The agents whose conversations are written.
struct Agents {
    names: HashMap<AgentId, Name>,
    /// Those of them that are no longer registered.
    removed: HashSet<AgentId>,
}

async fn agents(client: &Client, conversations: &[Conversation]) -> Result<Agents, Failure> {
    let found = Found::paged(None, None, async |page| client.agents(None, page).await).await?;
    let mut names: HashMap<AgentId, Name> =
        found.rows.into_iter().map(|agent| (agent.id, agent.name)).collect();
    let mut removed = HashSet::new();
    for conversation in conversations {
        let Some(id) = conversation.agent.filter(|id| !names.contains_key(id)) else { continue };
        // What it was called is written down with its sessions.
        let filter = SessionFilter { conversation: Some(conversation.id), ..SessionFilter::default() };
        let last = client.sessions(&filter, Page::of(1, None)).await?.rows.pop();
        let name =
            last.and_then(|last| last.agent).map_or_else(|| conversation.name.clone(), |agent| agent.name);
        names.insert(id, name);
        removed.insert(id);
    }
    Ok(Agents { names, removed })
}

/// How often the context of a conversation was compacted, in all its sessions that were run here.
async fn compactions(client: &Client, conversation: ConversationId) -> Result<u64, Failure> {
    let filter = SessionFilter { conversation: Some(conversation), ..SessionFilter::default() };
    let (mut page, mut sum) = (Page::of(PAGE_MOST, None), 0);
    loop {
        let listed = client.sessions(&filter, page).await?;
        let own = listed.rows.iter().filter(|session| session.imported.is_none());
        sum += own.map(|session| u64::from(session.compactions)).sum::<u64>();
        match listed.next_cursor {
            Some(next) => page = Page::of(PAGE_MOST, Some(next)),
            None => return Ok(sum),
        }
    }
}

async fn last_session(
    client: &Client,
    id: ConversationId,
) -> Result<Option<ostler_client::Session>, Failure> {
    let filter = SessionFilter { conversation: Some(id), ..SessionFilter::default() };
    let last = client.sessions(&filter, Page::of(1, None)).await?.rows.pop();
    // What was run elsewhere is said by the row that it came with.
    Ok(last.filter(|last| last.imported.is_none()))
}

/// How the last turn of a session ended.
async fn last_turn(client: &Client, session: SessionId) -> Result<Option<StopReason>, Failure> {
    let filter =
        EventFilter { session: Some(session), kinds: vec![Kind::TurnEnded], ..EventFilter::default() };
    let last = client.events(&ListEvents { filter, from: Place::End, limit: 1 }).await?.events.pop();
    let Some(Received::Known(last)) = last else { return Ok(None) };
    Ok(match last.event {
        Event::TurnEnded(ended) => Some(ended.stop_reason),
        _ => None,
    })
}

async fn parent_key(client: &Client, session: &str, agents: &HashMap<AgentId, Name>) -> Option<String> {
    let parent = client.conversation(session).await.ok()?;
    let agent = parent.agent.and_then(|id| agents.get(&id));
    Some(openclaw::key(&parent, agent))
}
