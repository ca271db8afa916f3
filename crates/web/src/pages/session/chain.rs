//! The lives that a session's work had, in time, and who helped.

use ostler_client::Session;
use ostler_form::{money, words};

use super::super::{
    draw::{self, Span},
    render,
    row::Row,
    sessions::Chip,
    tables::{List, Table, TableRow, cell, number, toned},
};
use crate::{clock, guard::Visitor, reply::Failure};

pub(super) async fn body(visitor: &Visitor, session: &Session) -> Result<String, Failure> {
    let chain = visitor.client.whole_chain(&session.id.to_string()).await?;
    let now = clock::now();
    let row = |one: &Session| {
        let life = Row::new(one, String::new(), now);
        let took = one.ended_at.unwrap_or(now).since(one.started_at.unwrap_or(one.created_at));
        TableRow {
            id: life.id.clone(),
            href: format!("/sessions/{}", one.id),
            cells: vec![
                cell(life.name),
                toned(format!("{} {}", life.sign, life.status), life.tone),
                cell(life.now),
                number(words::span(took)),
                number(life.cost),
            ],
        }
    };
    let heads = || vec!["Life", "Status", "", "Took", "Cost"];
    let sum = format!(
        "{} · {} tokens · {}",
        words::plural(chain.session_count, "life", "lives"),
        words::count(chain.sum.usage.total()),
        money::short(&chain.sum.cost)
    );
    let mut tables =
        vec![Table { heads: heads(), rows: chain.sessions.iter().map(row).collect(), ..Table::default() }];
    if !chain.helpers.is_empty() {
        let rows = chain.helpers.iter().map(row).collect();
        tables.push(Table { title: "Helpers".to_owned(), heads: heads(), rows, ..Table::default() });
    }
    let lives = chain.sessions.iter().chain(&chain.helpers);
    let spans: Vec<Span> = lives
        .map(|one| Span {
            name: format!("{} {}", one.id.short(), one.name),
            tone: Row::new(one, String::new(), now).tone,
            began: Some(one.started_at.unwrap_or(one.created_at)),
            over: one.ended_at,
            href: format!("/sessions/{}", one.id),
        })
        .collect();
    let start = spans.iter().filter_map(|span| span.began).min();
    let end = spans.iter().map(|span| span.over.unwrap_or(now)).max();
    let drawing = format!(
        "<div class=\"scroll drawing\" tabindex=\"0\" role=\"region\" aria-label=\"lives in time\">{}</div>",
        draw::timeline(&spans, start, end, now)
    );
    let clis = vec![
        format!("ostler chain show {}", session.id.short()),
        format!("ostler seance {} \"…\"", session.id.short()),
    ];
    let href = format!("/search?whom={}", session.id);
    let chips = vec![Chip { href, word: "ask its past".to_owned(), here: false }];
    render(&List { lead: sum, chips, drawing, tables, clis, ..List::default() })
}
