//! Tickets: the list, and one with all that came of it.

use askama::Template;
use ostler_domain::{
    query::{Page, TicketFilter},
    text::visible,
    ticket::{Status, Ticket},
};
use ostler_form::words;
use serde::Deserialize;
use serde_json::json;

use super::{
    View, render,
    sessions::Chip,
    tables::{Button, List, Table, TableRow, cell, number, toned},
};
use crate::{api::names, clock, guard::Visitor, reply::Failure};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TicketsAsked {
    status: Option<String>,
    cursor: Option<u64>,
    /// `board` for columns by status.
    view: Option<String>,
}

/// Tickets of each column of a board.
const COLUMN: u32 = 30;

struct Column {
    status: &'static str,
    tickets: Vec<CardRow>,
    /// Where the rest of them is.
    more: String,
}

struct CardRow {
    id: String,
    title: String,
    about: String,
}

#[derive(Template)]
#[template(path = "board.html")]
struct Board {
    columns: Vec<Column>,
}

async fn board(visitor: &Visitor) -> Result<View, Failure> {
    let (now, names) = (clock::now(), names(&visitor.client).await?);
    let mut columns = Vec::new();
    for status in Status::ALL {
        let filter = TicketFilter { statuses: vec![status], ..TicketFilter::default() };
        let listed = visitor.client.tickets(&filter, Page::of(COLUMN, None)).await?;
        let card = |ticket: &Ticket| CardRow {
            id: ticket.id.to_string(),
            title: visible(ticket.about.title()),
            about: format!("{} · {}", names.of(&ticket.campaign), words::age(now.since(ticket.added))),
        };
        let more = listed.next_cursor.map(|_| format!("/tickets?status={}", status.as_str()));
        columns.push(Column {
            status: status.as_str(),
            tickets: listed.rows.iter().map(card).collect(),
            more: more.unwrap_or_default(),
        });
    }
    View::new("Tickets", &Board { columns })
}

pub(super) async fn list(visitor: &Visitor, asked: &TicketsAsked) -> Result<View, Failure> {
    if asked.view.as_deref() == Some("board") {
        return board(visitor).await;
    }
    let status = asked.status.as_deref().and_then(Status::parse);
    let filter = TicketFilter { statuses: status.into_iter().collect(), ..TicketFilter::default() };
    let listed = visitor.client.tickets(&filter, Page::of(50, asked.cursor)).await?;
    let (now, names) = (clock::now(), names(&visitor.client).await?);
    let row = |ticket: &Ticket| TableRow {
        id: ticket.id.to_string(),
        href: format!("/tickets/{}", ticket.id),
        cells: vec![
            cell(visible(ticket.about.title())),
            cell(ticket.links.external.as_ref().map(ToString::to_string).unwrap_or_default()),
            cell(names.of(&ticket.campaign)),
            cell(ticket.about.kind.clone()),
            toned(ticket.status.as_str(), "word"),
            number(words::age(now.since(ticket.added))),
        ],
    };
    let chip = |wanted: Option<Status>| Chip {
        href: wanted
            .map_or_else(|| "/tickets".to_owned(), |wanted| format!("/tickets?status={}", wanted.as_str())),
        word: wanted.map_or("all", |wanted| wanted.as_str()).to_owned(),
        here: wanted == status,
    };
    let list = List {
        title: "Tickets".to_owned(),
        chips: [None].into_iter().chain(Status::ALL.map(Some)).map(chip).collect(),
        tables: vec![Table {
            heads: vec!["Ticket", "Elsewhere", "Campaign", "Type", "Status", "Age"],
            rows: listed.rows.iter().map(row).collect(),
            nothing: "No tickets. They can be written down, or imported from markdown, beads or GitHub."
                .to_owned(),
            ..Table::default()
        }],
        next: listed
            .next_cursor
            .map(|cursor| {
                let status = status.map(|status| format!("status={}&", status.as_str())).unwrap_or_default();
                format!("/tickets?{status}cursor={cursor}")
            })
            .unwrap_or_default(),
        more_chips: vec![
            Chip { href: "/tickets".to_owned(), word: "list".to_owned(), here: true },
            Chip { href: "/tickets?view=board".to_owned(), word: "board".to_owned(), here: false },
        ],
        clis: vec!["ostler ticket add \"…\"".to_owned(), "ostler ticket import FILE".to_owned()],
        below: render(&AddTicket { campaigns: names.all() })?,
        ..List::default()
    };
    View::new("Tickets", &list)
}

/// A form below the list.
#[derive(Template)]
#[template(path = "add_ticket.html")]
struct AddTicket {
    campaigns: Vec<String>,
}

/// What can be done with it, as it stands.
fn actions(ticket: &Ticket) -> Vec<Button> {
    let (short, path) = (ticket.id.short(), format!("/v1/tickets/{}", ticket.id));
    let moved = |word: &str, verb: &str| {
        Button::new(word, format!("{path}/move"), format!("ostler ticket {verb} {short}"))
            .body(&json!({ "verb": verb }))
    };
    let link = Button::new("Link…", format!("{path}/link"), format!("ostler ticket link {short} --ref REF"));
    let link = link.ask(
        "What it is elsewhere, such as gh:shop#412",
        "external",
        format!("ostler ticket link {short} --ref"),
    );
    let mut actions = Vec::new();
    match ticket.status {
        Status::Done | Status::Failed | Status::Cancelled | Status::Archived => {
            actions.push(moved("Reopen", "reopen"));
        }
        _ => {
            let cli = format!("ostler ticket start {short}");
            let start = Button::new("Start", format!("{path}/start"), cli);
            actions.push(Button { then: "/sessions/{id}", class: "allow", ..start });
            actions.push(moved("Done", "done"));
            actions.push(moved("Cancel…", "cancel").confirm("Nobody is to work on this any more?"));
        }
    }
    actions.push(link);
    actions
}

pub(super) async fn one(visitor: &Visitor, who: &str) -> Result<View, Failure> {
    let whole = visitor.client.ticket(who).await?;
    let campaign = names(&visitor.client).await?.of(&whole.ticket.campaign);
    let ticket = &whole.ticket;
    let tries = whole.iterations.iter().map(|iteration| TableRow {
        id: iteration.session.to_string(),
        href: format!("/sessions/{}", iteration.session),
        cells: vec![
            cell(iteration.name.to_string()),
            cell(iteration.provider.clone()),
            cell(iteration.result.map_or("under way", |outcome| outcome.as_str())),
            number(words::count(iteration.usage.total())),
            number(iteration.cost.map_or_else(|| "unknown".to_owned(), |cost| cost.to_string())),
        ],
    });
    let outputs = whole.outputs.iter().map(|output| TableRow {
        cells: vec![
            cell(output.what.name.clone()),
            cell(output.what.kind.as_str()),
            toned(visible(&output.what.value), "mono"),
        ],
        ..TableRow::default()
    });
    let waits = whole.depends_on.iter().map(|needed| TableRow {
        href: format!("/tickets/{}", needed.id),
        cells: vec![cell(visible(&needed.title)), cell(needed.status.as_str())],
        ..TableRow::default()
    });
    let short = ticket.id.short();
    let table = |title: &str, heads, rows: Vec<TableRow>, nothing: &str| Table {
        title: title.to_owned(),
        heads,
        rows,
        nothing: nothing.to_owned(),
    };
    let list = List {
        title: visible(ticket.about.title()),
        lead: format!(
            "{} · {campaign} · {} · {}",
            ticket.status.as_str(),
            ticket.about.kind,
            visible(&ticket.about.intent)
        ),
        tables: vec![
            table(
                "Attempts",
                vec!["Session", "Provider", "Result", "Tokens", "Cost"],
                tries.collect(),
                "Nobody has worked on it yet.",
            ),
            table("Waits for", vec!["Ticket", "Status"], waits.collect(), "Nothing."),
            table("Outputs", vec!["Name", "Kind", "Value"], outputs.collect(), "None."),
        ],
        actions: actions(ticket),
        clis: vec![format!("ostler ticket show {short}")],
        ..List::default()
    };
    View::new(ticket.about.title().to_owned(), &list)
}
