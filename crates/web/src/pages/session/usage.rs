//! What a session used: call by call, how full its context is, and whether the agent's word agrees with the wire.

use ostler_client::{ListEvents, Place, Received, Session};
use ostler_domain::{
    Event, Kind, Usage, event::UsageRecorded, limits::PAGE_MOST, query::EventFilter, usage_audit::compare,
};
use ostler_form::{money, words};

use super::super::{
    activity, render,
    tables::{List, Table, TableRow, cell, number},
};
use crate::{guard::Visitor, reply::Failure};

/// Model calls that are shown.
const SHOWN: usize = 200;

pub(super) async fn body(visitor: &Visitor, session: &Session) -> Result<String, Failure> {
    let recorded = recorded(visitor, session).await?;
    let of = |usage: &Usage| {
        [usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning]
            .map(|tokens| number(words::number(tokens)))
    };
    let mut rows = vec![TableRow {
        cells: [cell("all")]
            .into_iter()
            .chain(of(&session.usage))
            .chain([number(money::short(&session.cost)), cell("")])
            .collect(),
        ..TableRow::default()
    }];
    rows.extend(recorded.iter().rev().take(SHOWN).map(|(seq, used)| {
        let price = used.cost.map_or_else(|| unpriced(session, used).to_owned(), |cost| cost.to_string());
        TableRow {
            id: seq.to_string(),
            cells: [cell(used.model.clone().unwrap_or_else(|| "–".to_owned()))]
                .into_iter()
                .chain(of(&used.usage))
                .chain([number(price), cell(activity::word(&used.source))])
                .collect(),
            ..TableRow::default()
        }
    }));
    let calls = Table {
        title: "Calls".to_owned(),
        heads: vec!["Model", "Input", "Cache read", "Cache write", "Output", "Reasoning", "Cost", "Source"],
        rows,
        ..Table::default()
    };
    let context = session.context.as_ref().and_then(|context| Some((context.used, context.window?)));
    let bar = context.map(|(used, window)| {
        format!(
            "<p class=\"facts\">context <progress max=\"{window}\" value=\"{used}\" aria-label=\"context\"></progress> {} of {} tokens</p>",
            words::count(used),
            words::count(window)
        )
    });
    let list = List {
        drawing: bar.unwrap_or_default(),
        tables: vec![audit(&recorded, session), calls],
        clis: vec![format!("ostler usage audit {}", session.id.short())],
        ..List::default()
    };
    render(&list)
}

/// Of a call without a price of its own: what it cost is in the sum once its model has one.
fn unpriced(session: &Session, used: &UsageRecorded) -> &'static str {
    let has_none = session.cost.unpriced.contains_key(used.model.as_deref().unwrap_or_default());
    if has_none || used.plan { "unknown" } else { "priced since" }
}

/// The agent's word beside what the gateway saw, by model.
fn audit(recorded: &[(u64, UsageRecorded)], session: &Session) -> Table {
    let all: Vec<UsageRecorded> = recorded.iter().map(|(_, used)| used.clone()).collect();
    let rows = compare(&all, session.model.as_deref()).into_iter().map(|model| TableRow {
        cells: vec![
            cell(if model.model.is_empty() { "–".to_owned() } else { model.model.clone() }),
            number(words::number(model.wire.total())),
            number(words::number(model.report.total())),
            number(words::number(model.counted.total())),
            cell(model.verdict.words()),
        ],
        ..TableRow::default()
    });
    Table {
        title: "Wire against report".to_owned(),
        heads: vec!["Model", "On the wire", "Reported", "Counted", "What that means"],
        rows: rows.collect(),
        nothing: "No model call was recorded.".to_owned(),
    }
}

/// All of it, the oldest first.
async fn recorded(visitor: &Visitor, session: &Session) -> Result<Vec<(u64, UsageRecorded)>, Failure> {
    let filter =
        EventFilter { session: Some(session.id), kinds: vec![Kind::UsageRecorded], ..EventFilter::default() };
    let (mut all, mut after) = (Vec::new(), 0);
    loop {
        let request = ListEvents { filter: filter.clone(), from: Place::After(after), limit: PAGE_MOST };
        let page = visitor.client.events(&request).await?;
        all.extend(page.events.into_iter().filter_map(|received| match received {
            Received::Known(recorded) => match recorded.event {
                Event::UsageRecorded(used) => Some((recorded.seq, used)),
                _ => None,
            },
            Received::Unknown(_) => None,
        }));
        match page.next {
            Some(next) => after = next,
            None => return Ok(all),
        }
    }
}
