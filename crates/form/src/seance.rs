//! What those who are gone can still tell: where the record of a chain speaks of a question.

use ostler_client::{Client, Error, Received, Session, query::EventFilter, reply::Hit};
use ostler_domain::{
    Event, Kind,
    limits::PAGE_MOST,
    query::{Page, SessionFilter},
    seance::{fit, keywords, stem},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::rfc3339;

/// What is cited at most.
const CITED: usize = 6;
/// What is looked at for it.
const LOOKED_AT: usize = 40;
/// Pages of hits that are looked through for that.
const PAGES: usize = 20;

/// What sessions say and do, as far as it answers questions.
const TELLING: &[Kind] = &[
    Kind::AgentCompletion,
    Kind::AgentThinking,
    Kind::AgentToolCall,
    Kind::AgentToolResult,
    Kind::MessageAccepted,
    Kind::AgentStatus,
];

/// What the record says to a question.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Seance")]
pub struct SeanceForm {
    question: String,
    /// Of the question, those that were looked for.
    words: Vec<String>,
    citations: Vec<CitationForm>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Citation")]
pub struct CitationForm {
    session: String,
    agent: String,
    seq: u64,
    time: String,
    kind: String,
    text: String,
}

/// What the record has.
pub struct Citations {
    pub words: Vec<String>,
    pub hits: Vec<Hit>,
    /// The lives of the chain.
    pub lives: Vec<Session>,
}

impl Citations {
    /// Whose words a hit is.
    pub fn name(&self, hit: &Hit) -> String {
        let of = hit.event.session().and_then(|id| self.lives.iter().find(|one| one.id == id));
        of.map_or_else(|| "–".to_owned(), |one| one.name.to_string())
    }

    pub fn form(&self, question: &str) -> SeanceForm {
        let citation = |hit: &Hit| CitationForm {
            session: hit.event.session().map(|id| id.to_string()).unwrap_or_default(),
            agent: self.name(hit),
            seq: hit.event.seq(),
            time: rfc3339(hit.event.time()),
            kind: hit.event.kind().to_owned(),
            text: hit.snippet.clone(),
        };
        SeanceForm {
            question: question.to_owned(),
            words: self.words.clone(),
            citations: self.hits.iter().map(citation).collect(),
        }
    }
}

/// Looks through the chain of a session. A question without a word that could be looked for finds nothing.
pub async fn cite(client: &Client, session: &Session, question: &str) -> Result<Citations, Error> {
    let words = keywords(question);
    let lives = client.chain(&session.id.to_string()).await?;
    let hits = if words.is_empty() { Vec::new() } else { find(client, session, &words).await? };
    Ok(Citations { words, hits, lives })
}

/// What in the chain fits best: events with all the words before those with some, the newest first among equals.
async fn find(client: &Client, session: &Session, wanted: &[String]) -> Result<Vec<Hit>, Error> {
    let sessions = SessionFilter { chains: vec![session.chain], ..SessionFilter::default() };
    let filter =
        EventFilter { kinds: TELLING.to_vec(), sessions: Some(Box::new(sessions)), ..EventFilter::default() };
    let begin = |word: &String| format!("{}*", stem(word));
    let all = wanted.iter().map(begin).collect::<Vec<_>>().join(" ");
    let mut hits = search(client, &all, &filter).await?;
    if hits.len() < CITED && wanted.len() > 1 {
        for word in wanted {
            hits.extend(search(client, &begin(word), &filter).await?);
        }
    }
    hits.sort_by_key(|hit| {
        let text = whole(&hit.event).unwrap_or(&hit.snippet);
        std::cmp::Reverse((fit(text, wanted), weight(&hit.event), hit.event.seq()))
    });
    let mut seen = std::collections::HashSet::new();
    hits.retain(|hit| seen.insert(hit.event.seq()));
    hits.truncate(CITED);
    Ok(hits)
}

/// Goes through hits of others too, and passes them over: it is not to take for ever.
async fn search(client: &Client, text: &str, filter: &EventFilter) -> Result<Vec<Hit>, Error> {
    let mut hits = Vec::new();
    let mut page = Page::of(PAGE_MOST, None);
    for _ in 0..PAGES {
        let found = client.search(text, filter, page).await?;
        hits.extend(found.rows);
        match found.next_cursor {
            Some(next) if hits.len() < LOOKED_AT => page.cursor = Some(next),
            _ => break,
        }
    }
    Ok(hits)
}

fn whole(event: &Received) -> Option<&str> {
    let Received::Known(recorded) = event else { return None };
    match &recorded.event {
        Event::AgentCompletion(text) | Event::AgentThinking(text) | Event::AgentStatus(text) => {
            Some(&text.text)
        }
        Event::MessageAccepted(accepted) => Some(&accepted.message.text),
        Event::AgentToolCall(call) => Some(&call.summary),
        Event::AgentToolResult(result) => Some(&result.output),
        _ => None,
    }
}

/// What was said answers more than what a tool printed.
fn weight(event: &Received) -> u8 {
    match event.kind() {
        "AGENT_COMPLETION" | "MESSAGE_ACCEPTED" => 3,
        "AGENT_STATUS" | "AGENT_THINKING" => 2,
        "AGENT_TOOL_CALL" => 1,
        _ => 0,
    }
}

/// How it came to be known.
pub fn speaker(event: &Received) -> &'static str {
    match event.kind() {
        "AGENT_COMPLETION" => "said",
        "AGENT_THINKING" => "thought",
        "AGENT_STATUS" => "noted",
        "AGENT_TOOL_CALL" => "did",
        "AGENT_TOOL_RESULT" => "saw",
        "MESSAGE_ACCEPTED" => "was told",
        _ => "recorded",
    }
}
