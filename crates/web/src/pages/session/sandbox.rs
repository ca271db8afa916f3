//! What a session may do: what its sandbox shows it, what was denied, and what would allow that.

use ostler_client::{ListEvents, Place, Received, Session};
use ostler_domain::{Event, Kind, Policy, query::EventFilter, text::visible};
use ostler_form::sandbox::described;

use super::super::{
    campaigns, render,
    tables::{List, Table, TableRow, action, cell, toned},
};
use crate::{guard::Visitor, reply::Failure};

/// Denials that are shown.
const SHOWN: u32 = 200;

pub(super) async fn body(visitor: &Visitor, session: &Session, campaign: &str) -> Result<String, Failure> {
    let filter =
        EventFilter { session: Some(session.id), kinds: vec![Kind::Denied], ..EventFilter::default() };
    let request = ListEvents { filter, from: Place::End, limit: SHOWN };
    let events = visitor.client.events(&request).await?.events;
    let rows = events.iter().filter_map(|received| match received {
        Received::Known(recorded) => match &recorded.event {
            Event::Denied(denied) => Some(TableRow {
                id: recorded.seq.to_string(),
                cells: vec![
                    cell(denied.kind.as_str()),
                    toned(visible(&denied.target), "mono"),
                    cell(visible(&denied.rule)),
                    action(denied.grant.as_deref().and_then(campaigns::grant)),
                ],
                ..TableRow::default()
            }),
            _ => None,
        },
        Received::Unknown(_) => None,
    });
    let denials = Table {
        title: "Denied".to_owned(),
        heads: vec!["What", "Target", "Rule", "What would allow it"],
        rows: rows.collect(),
        nothing: "Nothing was denied.".to_owned(),
    };
    let known = visitor.client.campaign(&session.campaign.to_string()).await;
    let (mounts, policy) = match &known {
        Ok(known) => (sees(&known.policy, &session.working_dir), campaigns::policy(known)),
        Err(_) => (
            Table::default(),
            Table { nothing: format!("{campaign} is not registered any more."), ..Table::default() },
        ),
    };
    let list = List {
        lead: format!("sandbox {} · works in {}", session.sandbox.as_str(), visible(&session.working_dir)),
        tables: vec![denials, mounts, policy].into_iter().filter(|table| table.is_of_use()).collect(),
        clis: vec![
            format!("ostler sandbox show {campaign}"),
            format!("ostler sandbox suggest {}", session.id.short()),
        ],
        ..List::default()
    };
    render(&list)
}

fn sees(policy: &Policy, root: &str) -> Table {
    let row = |(what, words): (&'static str, String)| TableRow {
        cells: vec![cell(what), cell(visible(&words))],
        ..TableRow::default()
    };
    Table {
        title: "What the kernel lets it".to_owned(),
        heads: vec!["What", "Where"],
        rows: described(policy, root).into_iter().map(row).collect(),
        ..Table::default()
    }
}
