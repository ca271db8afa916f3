//! Campaigns: what is in force in each, and who says so.

use std::collections::BTreeMap;

use askama::Template;
use ostler_client::{Campaign, Conversation, ListEvents, Place as Begin, Received};
use ostler_domain::{
    Event, Kind,
    approval::{Place, Verdict, judge},
    denied::Denied,
    event::Action,
    limits::PAGE_MOST,
    policy::question,
    query::{ConversationFilter, EventFilter, Page, Scope, SessionFilter},
    text::{bytes, visible},
};
use ostler_form::words;
use serde::Deserialize;
use serde_json::json;

use super::{
    View, encoded, render,
    tables::{Button, List, Table, TableRow, action, cell, number, toned},
};
use crate::{clock, guard::Visitor, reply::Failure};

pub(super) async fn list(visitor: &Visitor) -> Result<View, Failure> {
    let listed = visitor.client.campaigns(Page::of(PAGE_MOST, None)).await?;
    let row = |campaign: &Campaign| TableRow {
        id: campaign.id.to_string(),
        href: format!("/campaigns/{}", campaign.id),
        cells: vec![
            cell(campaign.name.to_string()),
            toned(visible(&campaign.root.path), "mono"),
            cell(campaign.policy.settings().join("  ")),
        ],
    };
    let list = List {
        title: "Campaigns".to_owned(),
        tables: vec![Table {
            heads: vec!["Campaign", "Directory", "Set here"],
            rows: listed.rows.iter().map(row).collect(),
            nothing: "No campaigns yet: a campaign is a directory in which agents may work.".to_owned(),
            ..Table::default()
        }],
        clis: vec!["ostler campaign add .".to_owned()],
        ..List::default()
    };
    View::new("Campaigns", &list)
}

/// What is in force, and who says so.
pub(super) fn policy(campaign: &Campaign) -> Table {
    let row = |line: ostler_domain::policy::PolicyLine| TableRow {
        cells: vec![toned(line.key, "mono"), toned(visible(&line.value), "mono"), cell(line.origin.as_str())],
        ..TableRow::default()
    };
    Table {
        title: "Policy".to_owned(),
        heads: vec!["Key", "Value", "Said by"],
        rows: campaign.policy.lines().into_iter().map(row).collect(),
        ..Table::default()
    }
}

/// The button that allows what was denied; none where nothing does.
pub(super) fn grant(command: &str) -> Option<Button> {
    let words: Vec<&str> = command.strip_prefix("ostler campaign set ")?.splitn(2, ' ').collect();
    let [campaign, setting] = words[..] else { return None };
    // What the shell would make of it is what is stored.
    let setting = setting.trim().trim_matches('\'');
    let path = format!("/v1/campaigns/{}/set", encoded(campaign));
    let button = Button::new("Allow from now on…", path.clone(), command);
    Some(Button {
        preview: path,
        preview_body: json!({ "settings": [setting], "dry_run": true }).to_string(),
        ..button
            .body(&json!({ "settings": [setting] }))
            .confirm(format!("Change what agents of {campaign} may do?"))
    })
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CampaignAsked {
    /// What an agent would do: run, read, write, fetch or net.
    wish: String,
    /// With what.
    what: String,
}

/// What is decided about something that nobody has done yet.
struct Decision {
    tone: &'static str,
    word: &'static str,
    why: String,
}

fn decided(campaign: &Campaign, asked: &CampaignAsked) -> Option<Decision> {
    let what = asked.what.trim().to_owned();
    if what.is_empty() {
        return None;
    }
    let action = match asked.wish.as_str() {
        "run" => Action::Run { command: what },
        "read" => Action::Read { paths: vec![what] },
        "write" => Action::Write { paths: vec![what] },
        "fetch" => Action::Fetch { url: what },
        "net" => return Some(reached(campaign, &what)),
        _ => return None,
    };
    let place = Place { root: &campaign.root.path, is_confined: true };
    let judged = judge(&campaign.policy, &place, &asked.wish, &action);
    let (tone, word) = match judged.verdict {
        Verdict::Allow => ("good", "allowed"),
        Verdict::Deny => ("bad", "denied"),
        Verdict::Ask => ("warn", "asks a person"),
    };
    Some(Decision { tone, word, why: visible(&judged.why) })
}

fn reached(campaign: &Campaign, host: &str) -> Decision {
    let (host, port) = match host.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?))) {
        Some(both) => both,
        None => (host, 443),
    };
    let name = campaign.name.as_str();
    let explained = question::net(&campaign.policy, name, &BTreeMap::new(), host, port);
    let (tone, word) = match explained.verdict {
        question::Verdict::Allowed => ("good", "allowed"),
        question::Verdict::Partly => ("warn", "partly"),
        question::Verdict::Denied => ("bad", "denied"),
    };
    let grant = explained.grant.map(|grant| format!(" · {grant}")).unwrap_or_default();
    Decision { tone, word, why: visible(&format!("{}{grant}", explained.why)) }
}

#[derive(Template)]
#[template(path = "decide.html")]
struct Decide<'a> {
    id: String,
    name: &'a str,
    wish: &'a str,
    what: &'a str,
    wishes: &'static [&'static str],
    decision: Option<Decision>,
}

const WISHES: &[&str] = &["run", "read", "write", "fetch", "net"];
/// Denials that are counted, and rows that come of them.
const DENIALS: u32 = 1_000;
const DENIED_ROWS: usize = 20;
/// Conversations that are shown.
const CONVERSATIONS: u32 = 30;

/// What was denied, the most frequent first.
async fn denials(visitor: &Visitor, campaign: &Campaign) -> Result<Table, Failure> {
    let sessions =
        SessionFilter { scope: Scope::All, campaigns: vec![campaign.id], ..SessionFilter::default() };
    let filter = EventFilter {
        kinds: vec![Kind::Denied],
        sessions: Some(Box::new(sessions)),
        ..EventFilter::default()
    };
    let request = ListEvents { filter, from: Begin::End, limit: DENIALS };
    let mut counts: Vec<(Denied, usize)> = Vec::new();
    for received in visitor.client.events(&request).await?.events {
        let Received::Known(recorded) = received else { continue };
        let Event::Denied(denied) = recorded.event else { continue };
        match counts.iter_mut().find(|(known, _)| *known == denied) {
            Some((_, count)) => *count += 1,
            None => counts.push((denied, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let row = |(denied, count): &(Denied, usize)| TableRow {
        cells: vec![
            number(format!("{count}×")),
            cell(denied.kind.as_str()),
            toned(visible(&denied.target), "mono"),
            cell(visible(&denied.rule)),
            action(denied.grant.as_deref().and_then(grant)),
        ],
        ..TableRow::default()
    };
    Ok(Table {
        title: "Denied".to_owned(),
        heads: vec!["", "What", "Target", "Rule", "What would allow it"],
        rows: counts.iter().take(DENIED_ROWS).map(row).collect(),
        nothing: "Nothing was denied.".to_owned(),
    })
}

async fn conversations(visitor: &Visitor, campaign: &Campaign) -> Result<Table, Failure> {
    let filter = ConversationFilter { campaign: Some(campaign.id), ..ConversationFilter::default() };
    let listed = visitor.client.conversations(&filter, Page::of(CONVERSATIONS, None)).await?;
    let now = clock::now();
    let row = |conversation: &Conversation| TableRow {
        id: conversation.id.to_string(),
        href: format!("/sessions/{}", conversation.id),
        cells: vec![
            cell(conversation.name.to_string()),
            toned(visible(&conversation.key.to_string()), "mono"),
            number(format!("{} ago", words::age(now.since(conversation.active)))),
        ],
    };
    Ok(Table {
        title: "Conversations".to_owned(),
        heads: vec!["Conversation", "Key", "Active"],
        rows: listed.rows.iter().map(row).collect(),
        nothing: "No conversation is open.".to_owned(),
    })
}

/// What is kept, for how long, and what it takes.
async fn kept(visitor: &Visitor, campaign: &Campaign) -> Result<Table, Failure> {
    let used = visitor.client.disk_use(1).await?;
    let own = used.campaigns.iter().find(|used| used.campaign == campaign.id);
    let fact =
        |what: &str, words: String| TableRow { cells: vec![cell(what), cell(words)], ..TableRow::default() };
    let mut rows = vec![
        fact(
            "tapes",
            own.map_or_else(
                || "none".to_owned(),
                |own| {
                    format!("{} of {}", bytes(own.tapes), words::plural(own.sessions, "session", "sessions"))
                },
            ),
        ),
        fact("homes", own.map_or_else(|| "none".to_owned(), |own| bytes(own.homes))),
    ];
    let lines = campaign.policy.lines();
    let rules = lines.iter().filter(|line| line.key.starts_with("retention."));
    rows.extend(rules.map(|line| fact(line.key, visible(&line.value))));
    Ok(Table { title: "Retention and disk".to_owned(), heads: vec!["", ""], rows, ..Table::default() })
}

pub(super) async fn one(visitor: &Visitor, who: &str, asked: &CampaignAsked) -> Result<View, Failure> {
    let campaign = visitor.client.campaign(who).await?;
    let name = campaign.name.to_string();
    let agents = visitor.client.agents(Some(&campaign.id.to_string()), Page::of(PAGE_MOST, None)).await?;
    let agent = |agent: &ostler_client::Agent| TableRow {
        href: format!("/sessions?all=true&agent={}", encoded(agent.name.as_str())),
        cells: vec![
            cell(agent.name.to_string()),
            cell(agent.profile.role.to_string()),
            cell(agent.profile.provider.clone().unwrap_or_default()),
            cell(agent.profile.model.clone().unwrap_or_default()),
        ],
        ..TableRow::default()
    };
    let hidden = campaign.tracked_hidden.iter().map(|path| visible(path)).collect::<Vec<_>>().join(", ");
    let lead = match hidden.is_empty() {
        true => visible(&campaign.root.path),
        false => format!("{} · hidden files that git tracks: {hidden}", visible(&campaign.root.path)),
    };
    let decide = Decide {
        id: campaign.id.to_string(),
        name: &name,
        wish: if asked.wish.is_empty() { "run" } else { &asked.wish },
        what: &asked.what,
        wishes: WISHES,
        decision: decided(&campaign, asked),
    };
    let list = List {
        title: name.clone(),
        lead,
        drawing: render(&decide)?,
        tables: vec![
            denials(visitor, &campaign).await?,
            Table {
                title: "Agents".to_owned(),
                heads: vec!["Agent", "Role", "Provider", "Model"],
                rows: agents.rows.iter().map(agent).collect(),
                nothing: "No agents are registered.".to_owned(),
            },
            conversations(visitor, &campaign).await?,
            policy(&campaign),
            kept(visitor, &campaign).await?,
        ],
        clis: vec![
            format!("ostler campaign set {name} KEY=VALUE"),
            format!("ostler policy test net HOST -C {name}"),
            format!("ostler sandbox show {name}"),
            format!("ostler retention plan -C {name}"),
        ],
        ..List::default()
    };
    View::new(name, &list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_stored_as_the_shell_would_have_it() {
        let button = grant("ostler campaign set shop 'net.allow+=registry.example'").unwrap();
        assert_eq!(button.path, "/v1/campaigns/shop/set");
        assert_eq!(button.body, r#"{"settings":["net.allow+=registry.example"]}"#);
        assert!(grant("ostler run --approve all").is_none() && grant("ostler campaign set shop").is_none());
    }
}
