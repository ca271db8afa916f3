//! Full text over what was said and done.

use askama::Template;
use ostler_domain::{SessionId, query::Page, text::visible};
use ostler_form::{
    seance::{cite, speaker},
    ticket_of, words,
};
use serde::Deserialize;
use serde_json::json;
use std::collections::{HashMap, hash_map::Entry};

use super::{View, encoded, sessions::Chip, tables::Button};
use crate::{
    api::{SearchAsked, names},
    clock,
    guard::Visitor,
    reply::Failure,
};

struct HitRow {
    seq: u64,
    href: String,
    /// Where its session is asked about it; empty where it has none.
    ask: String,
    name: String,
    kind: String,
    when: String,
    snippet: String,
}

#[derive(Template)]
#[template(path = "search.html")]
struct Search {
    text: String,
    hits: Vec<HitRow>,
    sessions: u64,
    next: String,
    cli: String,
    chips: Vec<Vec<Chip>>,
    is_filtered: bool,
    seance: Option<Seance>,
}

/// Somebody who is asked, and where the record of their chain speaks of it.
struct Seance {
    id: String,
    name: String,
    lives: String,
    everywhere: String,
    /// Of the question.
    words: String,
    ask: Option<Button>,
}

/// Who is asked, in place of everybody.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Whom {
    whom: Option<String>,
}

/// Kinds that people look for, and the words for them.
const KINDS: &[(&str, &str)] = &[
    ("anything", ""),
    ("said by agents", "AGENT_COMPLETION,AGENT_THINKING"),
    ("tools", "AGENT_TOOL_CALL,AGENT_TOOL_RESULT"),
    ("said to agents", "MESSAGE_ACCEPTED"),
];
const SINCE: &[(&str, &str)] = &[("ever", ""), ("a day", "1d"), ("a week", "7d"), ("a month", "30d")];
/// Campaigns that are offered.
const CAMPAIGNS: usize = 12;

/// What was asked for, as an address says it.
fn address(asked: &SearchAsked, cursor: Option<u64>) -> String {
    let part = |name: &str, value: &Option<String>| {
        let value = value.as_deref().filter(|value| !value.is_empty())?;
        Some(format!("&{name}={}", encoded(value)))
    };
    let parts = [
        part("session", &asked.session),
        part("campaign", &asked.campaign),
        part("kind", &asked.kind),
        part("since", &asked.since),
        cursor.map(|cursor| format!("&cursor={cursor}")),
    ];
    format!("/search?text={}{}", encoded(asked.text.trim()), parts.into_iter().flatten().collect::<String>())
}

/// Links and no fields: they work without a script, and a page may not send forms.
fn chips(asked: &SearchAsked, campaigns: &[String]) -> Vec<Vec<Chip>> {
    let owned = |value: &str| Some(value.to_owned()).filter(|value| !value.is_empty());
    let chip = |word: &str, wanted: SearchAsked| {
        let wanted = SearchAsked { cursor: None, ..wanted };
        Chip {
            href: address(&wanted, None),
            word: word.to_owned(),
            here: address(&wanted, None) == address(asked, None),
        }
    };
    let kinds =
        KINDS.iter().map(|(word, kind)| chip(word, SearchAsked { kind: owned(kind), ..asked.clone() }));
    let since =
        SINCE.iter().map(|(word, since)| chip(word, SearchAsked { since: owned(since), ..asked.clone() }));
    let everywhere = [("every campaign", "")];
    let named = campaigns.iter().take(CAMPAIGNS).map(|name| (name.as_str(), name.as_str()));
    let campaigns = everywhere
        .into_iter()
        .chain(named)
        .map(|(word, name)| chip(word, SearchAsked { campaign: owned(name), ..asked.clone() }));
    vec![kinds.collect(), since.collect(), campaigns.collect()]
}

pub(super) async fn view(visitor: &Visitor, asked: &SearchAsked, whom: &Whom) -> Result<View, Failure> {
    if let Some(who) = whom.whom.as_deref().filter(|who| !who.is_empty()) {
        return seance(visitor, asked.text.trim(), who).await;
    }
    let text = asked.text.trim().to_owned();
    let mut page = Search {
        text: text.clone(),
        hits: Vec::new(),
        sessions: visitor.client.status().await?.store.sessions,
        next: String::new(),
        cli: String::new(),
        chips: if text.is_empty() { Vec::new() } else { chips(asked, &names(&visitor.client).await?.all()) },
        is_filtered: address(asked, None)
            != address(&SearchAsked { text: text.clone(), ..SearchAsked::default() }, None),
        seance: None,
    };
    if !text.is_empty() {
        page.cli = format!("ostler search {}", ostler_domain::text::shell_word(&text));
        let cursor = asked.cursor.as_deref().and_then(|cursor| cursor.parse().ok());
        let found = visitor.client.search(&text, &asked.filter(visitor).await?, Page::of(50, cursor)).await?;
        page.next = found.next_cursor.map(|cursor| address(asked, Some(cursor))).unwrap_or_default();
        let (now, mut known) = (clock::now(), HashMap::new());
        for hit in &found.rows {
            let (name, href) = match (hit.event.session(), ticket_of(hit)) {
                (Some(id), _) => {
                    let name = match known.entry(id) {
                        Entry::Occupied(there) => there.into_mut(),
                        Entry::Vacant(place) => {
                            let session = visitor.client.session(&id.to_string()).await;
                            place.insert(
                                session.map_or_else(|_| id.short(), |session| session.name.to_string()),
                            )
                        }
                    };
                    (name.clone(), place(id, hit.event.seq()))
                }
                (None, Some(ticket)) => (ticket.short(), format!("/tickets/{ticket}")),
                (None, None) => ("–".to_owned(), "/machine".to_owned()),
            };
            let ask = hit.event.session().map(|id| format!("/search?text={}&whom={id}", encoded(&text)));
            page.hits.push(HitRow {
                seq: hit.event.seq(),
                href,
                ask: ask.unwrap_or_default(),
                name,
                kind: hit.event.kind().to_lowercase().replace('_', " "),
                when: format!("{} ago", words::age(now.since(hit.event.time()))),
                snippet: visible(&hit.snippet),
            });
        }
    }
    View::new("Search", &page)
}

/// The turn that an event is in, and what came before.
fn place(session: SessionId, seq: u64) -> String {
    format!("/sessions/{session}?before={}#e{seq}", seq + 20)
}

/// Asks those who are gone: what they said and did is in the record, and a copy of them may answer too.
async fn seance(visitor: &Visitor, question: &str, who: &str) -> Result<View, Failure> {
    let session = visitor.client.session(who).await?;
    let found = cite(&visitor.client, &session, question).await?;
    let (now, short) = (clock::now(), session.id.short());
    let hits = found.hits.iter().map(|hit| HitRow {
        seq: hit.event.seq(),
        href: hit.event.session().map(|id| place(id, hit.event.seq())).unwrap_or_default(),
        ask: String::new(),
        name: found.name(hit),
        kind: speaker(&hit.event).to_owned(),
        when: format!("{} ago", words::age(now.since(hit.event.time()))),
        snippet: visible(&hit.snippet),
    });
    let cli = format!("ostler seance {short} {}", ostler_domain::text::shell_word(question));
    let ask = Button::new(
        "Ask a copy of it…",
        format!("/v1/sessions/{}/seance", session.id),
        format!("{cli} --ask"),
    )
    .body(&json!({ "question": question }))
    .confirm(format!("Have a copy of {} answer? It has no tools, and costs tokens.", session.name));
    let page = Search {
        text: question.to_owned(),
        hits: hits.collect(),
        sessions: visitor.client.status().await?.store.sessions,
        next: String::new(),
        cli,
        chips: Vec::new(),
        is_filtered: false,
        seance: Some(Seance {
            id: session.id.to_string(),
            name: session.name.to_string(),
            lives: words::plural(found.lives.len() as u64, "session", "sessions"),
            everywhere: format!("/search?text={}", encoded(question)),
            words: found.words.join(", "),
            ask: (!question.is_empty()).then_some(Button { then: "/sessions/{id}", ..ask }),
        }),
    };
    View::new("Search", &page)
}
