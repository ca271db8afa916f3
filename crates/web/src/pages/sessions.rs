//! The list of sessions.

use std::collections::HashMap;

use askama::Template;
use ostler_client::Session;
use ostler_domain::{
    MissionId,
    limits::PAGE_MOST,
    query::{Page, Scope, SessionFilter},
    session::Attention,
};
use serde::Deserialize;

use super::{View, encoded, row::Row};
use crate::{
    api::{SessionsAsked, names},
    clock,
    guard::Visitor,
    reply::Failure,
};

/// Rows of a page, and the most that somebody may ask for: a browser holds them all.
const ROWS: u32 = 50;
const ROWS_MOST: u32 = 200;
const GROUPINGS: [(&str, By); 4] = [
    ("one list", By::Nothing),
    ("by campaign", By::Campaign),
    ("by mission", By::Mission),
    ("by provider", By::Provider),
];

pub(super) struct Chip {
    pub(super) href: String,
    pub(super) word: String,
    pub(super) here: bool,
}

/// By what the rows stand together.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum By {
    #[default]
    Nothing,
    Campaign,
    Mission,
    Provider,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Grouped {
    group: By,
}

/// Rows that stand together, under what they have in common.
struct Group {
    title: String,
    rows: Vec<Row>,
}

#[derive(Template)]
#[template(path = "sessions.html")]
struct Sessions {
    chips: Vec<Chip>,
    groupings: Vec<Chip>,
    groups: Vec<Group>,
    campaigns: Vec<String>,
    agents: Vec<String>,
    providers: Vec<String>,
    is_filtered: bool,
    /// The first page, where this is another one.
    newest: String,
    next: String,
}

pub(super) async fn view(
    visitor: &Visitor,
    asked: &SessionsAsked,
    Grouped { group }: Grouped,
) -> Result<View, Failure> {
    let filter = asked.filter(&visitor.client).await?;
    let page = Page::of(asked.limit.unwrap_or(ROWS).min(ROWS_MOST), asked.page()?.cursor);
    let mut listed = visitor.client.sessions(&filter, page).await?;
    // A page of those that are current is sorted as `ls` is; further pages are in the order of the record.
    if !asked.all {
        if page.cursor.is_none() {
            let waiting = waiting(visitor, &filter).await?;
            let is_there = |session: &Session| listed.rows.iter().any(|row| row.id == session.id);
            let others: Vec<_> = waiting.into_iter().filter(|session| !is_there(session)).collect();
            listed.rows.extend(others);
        }
        listed.rows.sort_by_key(|session| session.rank());
    }
    let names = names(&visitor.client).await?;
    let now = clock::now();
    let here = query(asked, None);
    let chip = |word: &str, part: &str| Chip {
        href: address(part, group),
        word: word.to_owned(),
        here: part == here,
    };
    let grouping =
        |(word, by): (&str, By)| Chip { href: address(&here, by), word: word.to_owned(), here: by == group };
    let mut chips = vec![
        chip("current", ""),
        chip("all", "all=true"),
        chip("need you", "needs_me=true"),
        chip("working", "status=WORKING"),
        chip("failed", "all=true&status=FAILED"),
    ];
    chips.extend(
        names.all().iter().take(12).map(|name| chip(name, &format!("all=true&campaign={}", encoded(name)))),
    );
    let next = listed.next_cursor.map(|cursor| address(&query(asked, Some(cursor)), group));
    let missions = missions(visitor, &listed.rows, group).await?;
    let mut groups: Vec<Group> = Vec::new();
    for session in &listed.rows {
        let row = Row::new(session, names.of(&session.campaign), now);
        let title = match group {
            By::Nothing => String::new(),
            By::Campaign => row.campaign.clone(),
            By::Provider => row.provider.clone(),
            By::Mission => session
                .mission
                .as_ref()
                .and_then(|member| missions.get(&member.mission).cloned())
                .unwrap_or_else(|| "no mission".to_owned()),
        };
        match groups.iter_mut().find(|known| known.title == title) {
            Some(known) => known.rows.push(row),
            None => groups.push(Group { title, rows: vec![row] }),
        }
    }
    let agents = visitor.client.agents(None, Page::of(PAGE_MOST, None)).await?.rows;
    let template = Sessions {
        chips,
        groupings: GROUPINGS.into_iter().map(grouping).collect(),
        is_filtered: !here.is_empty(),
        groups,
        campaigns: names.all(),
        agents: agents.iter().map(|agent| agent.name.to_string()).collect(),
        providers: visitor.client.providers().await?.into_iter().map(|provider| provider.name).collect(),
        newest: asked.cursor.as_ref().map(|_| address(&here, group)).unwrap_or_default(),
        next: next.unwrap_or_default(),
    };
    View::new("Sessions", &template)
}

/// Those that need somebody, however old they are: they come first, wherever the record has them.
async fn waiting(visitor: &Visitor, filter: &SessionFilter) -> Result<Vec<Session>, Failure> {
    let is_asked = |one: &Attention| filter.attention.is_empty() || filter.attention.contains(one);
    let attention: Vec<Attention> =
        Attention::ALL.iter().copied().filter(|one| one.needs_you() && is_asked(one)).collect();
    if attention.is_empty() {
        return Ok(Vec::new());
    }
    let filter = SessionFilter { scope: Scope::NotEnded, attention, ..filter.clone() };
    Ok(visitor.client.sessions(&filter, Page::of(ROWS, None)).await?.rows)
}

/// What the missions of these sessions are called, where somebody wants to know.
async fn missions(
    visitor: &Visitor,
    sessions: &[Session],
    group: By,
) -> Result<HashMap<MissionId, String>, Failure> {
    let mut names = HashMap::new();
    for member in sessions.iter().filter_map(|session| session.mission.as_ref()) {
        if group == By::Mission && !names.contains_key(&member.mission) {
            let whole = visitor.client.mission(&member.mission.to_string()).await?;
            names.insert(member.mission, whole.mission.name.to_string());
        }
    }
    Ok(names)
}

fn address(query: &str, group: By) -> String {
    let group = match group {
        By::Nothing => "",
        By::Campaign => "group=campaign",
        By::Mission => "group=mission",
        By::Provider => "group=provider",
    };
    let parts: Vec<&str> = [query, group].into_iter().filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { "/sessions".to_owned() } else { format!("/sessions?{}", parts.join("&")) }
}

/// What was asked for, as an address says it.
fn query(asked: &SessionsAsked, cursor: Option<u64>) -> String {
    let switch = |name, is_on: bool| is_on.then(|| format!("{name}=true"));
    let text = |name: &str, value: &Option<String>| {
        value.as_ref().filter(|value| !value.is_empty()).map(|value| format!("{name}={}", encoded(value)))
    };
    let parts = [
        switch("all", asked.all),
        switch("needs_me", asked.needs_me),
        text("campaign", &asked.campaign),
        text("status", &asked.status),
        text("attention", &asked.attention),
        text("outcome", &asked.outcome),
        text("provider", &asked.provider),
        text("model", &asked.model),
        text("agent", &asked.agent),
        text("role", &asked.role),
        text("branch", &asked.branch),
        text("ticket", &asked.ticket),
        text("mission", &asked.mission),
        text("chain", &asked.chain),
        text("since", &asked.since),
        text("until", &asked.until),
        asked.limit.map(|limit| format!("limit={limit}")),
        cursor.map(|cursor| format!("cursor={cursor}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_of_the_same_sessions() {
        let asked = "all=true&needs_me=true&campaign=shop&status=FAILED&attention=idle&outcome=oom&provider=script\
                     &model=m&agent=a&role=builder&branch=agent%2Fx&ticket=t&mission=m&chain=c&since=2h&until=1h&limit=60";
        let uri = format!("/sessions?{asked}").parse().unwrap();
        let parsed: SessionsAsked = super::super::asked(&uri).unwrap();
        assert_eq!(query(&parsed, Some(7)), format!("{asked}&cursor=7"));
    }
}
