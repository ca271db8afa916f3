//! OpenClaw's store of files: `agents/<agent>/sessions/sessions.json`, and a transcript for each row.

use std::collections::{BTreeMap, HashMap};

use ostler_client::{Client, Conversation};
use ostler_domain::{
    AgentId, ConversationId, Name, Refusal,
    exchange::openclaw::{self, Said},
    query::{Page, SessionFilter},
};
use serde_json::{Map, Value};

use super::{Chosen, Count, target::Target};
use crate::{app::App, failure::Failure, listing::Found, output::Line};

pub(super) async fn write(
    app: &App,
    client: &Client,
    chosen: &Chosen,
    target: &mut Target,
) -> Result<Count, Failure> {
    let conversations = chosen.conversations(client).await?;
    let campaigns = app.campaign_names(client).await?;
    let agents = agents(client).await?;
    let agent = |conversation: &Conversation| conversation.agent.and_then(|id| agents.get(&id));
    let mut stores: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for (n, conversation) in conversations.iter().enumerate() {
        app.ui.show_meanwhile(Line::new().faint(format!("{} of {}", n + 1, conversations.len())));
        let name = agent(conversation);
        let id = openclaw::agent_of(conversation, name);
        write_transcript(client, conversation, &id, target).await?;
        // What was closed has no row; its transcript is put aside.
        let store = stores.entry(id).or_default();
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
        let said =
            Said { conversation, campaign: &campaign, last: last.as_ref(), spawned_by: parent.as_deref() };
        if store.insert(key.clone(), Value::Object(openclaw::row(&said))).is_some() {
            return Err(Refusal::invalid(format!("two conversations would have the key {key}"))
                .because("agents of several campaigns have the same name")
                .hint("ostler export -C CAMPAIGN …", "exports one campaign at a time")
                .into());
        }
    }
    for (agent, store) in stores {
        let text = serde_json::to_string_pretty(&store).unwrap_or_default();
        target.write(&format!("agents/{agent}/sessions/sessions.json"), &format!("{text}\n"))?;
    }
    Ok(Count { conversations: conversations.len() as u64, sessions: 0 })
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

async fn agents(client: &Client) -> Result<HashMap<AgentId, Name>, Failure> {
    let found = Found::paged(None, None, async |page| client.agents(None, page).await).await?;
    Ok(found.rows.into_iter().map(|agent| (agent.id, agent.name)).collect())
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

async fn parent_key(client: &Client, session: &str, agents: &HashMap<AgentId, Name>) -> Option<String> {
    let parent = client.conversation(session).await.ok()?;
    let agent = parent.agent.and_then(|id| agents.get(&id));
    Some(openclaw::key(&parent, agent))
}
