//! One session: what it did, changed, used, was told, may do, and comes from.

mod chain;
mod diff;
mod sandbox;
mod text;
mod usage;

use askama::Template;
use ostler_client::{Place, Session};
use ostler_domain::{
    Mode, Receipt, Refusal,
    query::Page,
    session::{Attention, Status},
    text::{bytes, visible},
};
use ostler_form::words;
use serde::Deserialize;
use serde_json::json;

use super::{
    View, activity,
    draw::escaped,
    render,
    row::Row,
    tables::{Button, List, Table, TableRow, action, cell, number},
};
use crate::{api::names, clock, guard::Visitor, reply::Failure};

const TABS: &[(&str, &str)] = &[
    ("activity", "Activity"),
    ("diff", "Diff"),
    ("usage", "Usage"),
    ("messages", "Messages"),
    ("sandbox", "Sandbox"),
    ("chain", "Chain"),
];
/// Bytes of a message that are shown in a list of them.
const MESSAGE_BYTES: usize = 2_000;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SessionAsked {
    before: Option<u64>,
    after: Option<u64>,
    /// Which event has a text, and from which byte of it.
    at: u64,
    from: usize,
    cursor: Option<u64>,
    /// Which turns, of a difference.
    span: String,
}

struct Tab {
    href: String,
    word: &'static str,
    here: bool,
}

#[derive(Template)]
#[template(path = "session.html")]
struct SessionPage<'a> {
    row: Row,
    actions: Vec<Button>,
    sandbox: &'static str,
    obituary: String,
    facts: String,
    tabs: Vec<Tab>,
    tab: &'a str,
    body: String,
    modes: Vec<&'static str>,
    clis: Vec<String>,
    /// Questions that wait.
    approvals: Vec<String>,
}

pub(super) async fn view(
    visitor: &Visitor,
    who: &str,
    tab: &str,
    asked: &SessionAsked,
) -> Result<View, Failure> {
    let session = visitor.client.session(who).await?;
    let campaign = names(&visitor.client).await?.of(&session.campaign);
    let place = match (asked.before, asked.after) {
        (Some(before), _) => Place::Before(before),
        (None, Some(after)) => Place::After(after),
        (None, None) => Place::End,
    };
    let is_end = place == Place::End;
    let body = match tab {
        "activity" => activity::body(visitor, &session, place).await?,
        "text" => text::body(visitor, &session, asked.at, asked.from).await?,
        "diff" => diff::body(visitor, &session, &asked.span).await?,
        "usage" => usage::body(visitor, &session).await?,
        "messages" => messages(visitor, &session, asked.cursor).await?,
        "sandbox" => sandbox::body(visitor, &session, &campaign).await?,
        "chain" => chain::body(visitor, &session).await?,
        other => return Err(Refusal::invalid(format!("a session has no part \"{other}\"")).into()),
    };
    let row = Row::new(&session, campaign, clock::now());
    let here = |(name, word): &(&'static str, &'static str)| Tab {
        href: match *name {
            "activity" => format!("/sessions/{}", session.id),
            name => format!("/sessions/{}/{name}", session.id),
        },
        word,
        here: *name == tab,
    };
    let short = &row.short;
    let template = SessionPage {
        actions: actions(&session),
        sandbox: session.sandbox.as_str(),
        obituary: session.obituary.as_ref().map(|dead| visible(&dead.sentence)).unwrap_or_default(),
        facts: facts(&session),
        tabs: TABS.iter().map(here).collect(),
        tab,
        body,
        modes: Mode::ALL.iter().map(|mode| mode.as_str()).collect(),
        clis: vec![
            format!("ostler show {short}"),
            format!("ostler logs -f {short}"),
            format!("ostler attach {short}"),
            format!("ostler diff {short}"),
        ],
        approvals: session.approvals_open.iter().map(ToString::to_string).collect(),
        row,
    };
    let view = View::new(session.name.to_string(), &template)?.of_session(session.id);
    let writes = (tab == "activity" && is_end).then_some(session.id);
    Ok(View { writes, ..view })
}

/// What can be done with it, as it is now.
fn actions(session: &Session) -> Vec<Button> {
    let (short, name) = (session.id.short(), session.name.to_string());
    let to = |verb: &str| format!("/v1/sessions/{}/{verb}", session.id);
    let button = |word: &str, verb: &str| Button::new(word, to(verb), format!("ostler {verb} {short}"));
    let is_live = !matches!(session.status, Status::Stopped | Status::Failed);
    let mut actions = Vec::new();
    if is_live {
        actions.push(button("Interrupt", "interrupt"));
        actions.push(match session.attention {
            Some(Attention::Paused) => button("Resume", "resume"),
            _ => button("Pause", "pause"),
        });
        actions.push(button("Stop…", "stop").confirm(format!("End {name} in an orderly way?")));
    } else {
        let go_on = button("Go on in a new session", "resume");
        actions.push(Button { then: "/sessions/{id}", ..go_on });
    }
    let handoff = button("Hand off…", "handoff").body(&json!({ "to": "" }));
    actions.push(handoff.confirm(format!("End {name} and have another go on with its work")).ask(
        "Who goes on: a registered agent, PROVIDER or PROVIDER/MODEL; empty: one like this",
        "to",
        format!("ostler handoff {short} --to"),
    ));
    let fork = button("Fork at turn…", "fork").confirm("Begin a new conversation as a copy of this one");
    actions.push(Button {
        then: "/sessions/{id}",
        ..fork.ask("Up to which turn; empty: all of it", "at", format!("ostler fork {short} --at"))
    });
    actions
}

fn facts(session: &Session) -> String {
    let Some(dead) = &session.obituary else { return String::new() };
    let parts = [
        dead.exit_code.map(|code| format!("exit code {code}")),
        dead.signal.map(|signal| format!("signal {signal}")),
        dead.by.as_ref().map(|by| format!("asked by {by}")),
        dead.last.as_ref().map(|last| format!("last seen: {}", visible(last))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// A part that has nothing to show, and why.
fn nothing(sentence: &str, why: &str) -> String {
    format!(
        "<section class=\"empty\"><p class=\"calm\">{}</p><p>{}</p></section>",
        escaped(sentence),
        escaped(why)
    )
}

/// A message as a row has room for it; activity has a link to all of it.
fn shortened(text: &str) -> String {
    let end = text.floor_char_boundary(MESSAGE_BYTES);
    if end == text.len() {
        return visible(text);
    }
    format!("{}… ({} in all)", visible(&text[..end]), bytes(text.len() as u64))
}

async fn messages(visitor: &Visitor, session: &Session, cursor: Option<u64>) -> Result<String, Failure> {
    let listed = visitor.client.messages(&session.id.to_string(), Page::of(50, cursor)).await?;
    let now = clock::now();
    let rows = listed.rows.iter().map(|message| {
        let id = message.message.id;
        let waits = message.receipt == Receipt::Accepted;
        let cancel = waits.then(|| {
            let cli = format!("ostler message rm {}", id.short());
            Button::new("Take back", format!("/v1/messages/{id}/cancel"), cli)
        });
        TableRow {
            id: id.to_string(),
            cells: vec![
                cell(shortened(&message.message.text)),
                cell(message.message.mode.as_str()),
                cell(message.receipt.as_str()),
                cell(message.by.0.clone()),
                number(format!("{} ago", words::age(now.since(message.accepted)))),
                action(cancel),
            ],
            ..TableRow::default()
        }
    });
    let rows = rows.collect();
    let heads = vec!["Message", "Mode", "Receipt", "By", "When", ""];
    let table = Table { heads, rows, nothing: "Nothing was said to it.".to_owned(), ..Table::default() };
    let next = listed.next_cursor.map(|cursor| format!("/sessions/{}/messages?cursor={cursor}", session.id));
    let clis = vec![format!("ostler message ls {}", session.id.short())];
    render(&List { tables: vec![table], next: next.unwrap_or_default(), clis, ..List::default() })
}
