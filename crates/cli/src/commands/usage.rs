//! `ostler usage audit`: the agent's word for its tokens beside what the gateway saw on the wire.

use clap::{Args, Subcommand};
use ostler_client::{Client, ListEvents, Place, Received, Session, query::EventFilter};
use ostler_domain::{
    Event, Kind,
    event::UsageRecorded,
    limits::PAGE_MOST,
    query::{Page, Scope, SessionFilter},
    usage_audit::{Compared, Verdict, compare},
};
use serde::Serialize;

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    output::{Column, Line, Table, Tone},
    words,
};

/// Sessions that are compared when none is named.
const NEWEST: u32 = 20;

#[derive(Debug, Args)]
pub(crate) struct UsageArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Compare what agents report with what the gateway saw, and say why they differ
    Audit {
        /// Sessions: names, ids, parts of ids [default: the 20 newest]
        who: Vec<String>,
    },
}

#[derive(Serialize)]
struct AuditForm {
    sessions: Vec<SessionForm>,
}

#[derive(Serialize)]
struct SessionForm {
    session: String,
    name: String,
    models: Vec<ModelForm>,
}

#[derive(Serialize)]
struct ModelForm {
    #[serde(flatten)]
    compared: Compared,
    meaning: &'static str,
}

pub(crate) async fn run(app: &App, args: UsageArgs) -> Result<u8, Failure> {
    let Verb::Audit { who } = args.verb;
    let client = app.client().await?;
    let mut sessions = Vec::new();
    for typed in &who {
        sessions.push(app.session(&client, typed).await?);
    }
    if who.is_empty() {
        let filter = SessionFilter { scope: Scope::All, ..SessionFilter::default() };
        sessions = client.sessions(&filter, Page::of(NEWEST, None)).await?.rows;
    }
    let mut audited = Vec::new();
    for session in sessions {
        let recorded = recorded(&client, &session).await?;
        let compared = compare(&recorded, session.model.as_deref());
        if !compared.is_empty() || !who.is_empty() {
            audited.push((session, compared));
        }
    }
    show(app, audited)
}

/// All that was recorded of a session's tokens.
async fn recorded(client: &Client, session: &Session) -> Result<Vec<UsageRecorded>, Failure> {
    let kinds = vec![Kind::UsageRecorded];
    let filter = EventFilter { session: Some(session.id), kinds, ..EventFilter::default() };
    let mut recorded = Vec::new();
    let mut from = 0;
    loop {
        let question = ListEvents { filter: filter.clone(), from: Place::After(from), limit: PAGE_MOST };
        let page = client.events(&question).await?;
        recorded.extend(page.events.into_iter().filter_map(|received| match received {
            Received::Known(event) => match event.event {
                Event::UsageRecorded(used) => Some(used),
                _ => None,
            },
            Received::Unknown(_) => None,
        }));
        match page.next {
            Some(next) => from = next,
            None => return Ok(recorded),
        }
    }
}

fn show(app: &App, audited: Vec<(Session, Vec<Compared>)>) -> Result<u8, Failure> {
    if app.ui.is_json() {
        let model = |compared: Compared| ModelForm { meaning: compared.verdict.words(), compared };
        let sessions = audited.into_iter().map(|(session, rows)| SessionForm {
            session: session.id.to_string(),
            name: session.name.to_string(),
            models: rows.into_iter().map(model).collect(),
        });
        app.ui.json(&AuditForm { sessions: sessions.collect() })?;
        return Ok(exit_code::OK);
    }
    if audited.iter().all(|(_, rows)| rows.is_empty()) {
        app.ui.say(&Line::of("No model has been called."));
        return Ok(exit_code::OK);
    }
    let mut table = Table::new([
        Column::new("SESSION"),
        Column::new("MODEL"),
        Column::new("REPORT").right(),
        Column::new("WIRE").right(),
        Column::new("COUNTED").right(),
        Column::new("").gives_way_to(40),
    ]);
    for (session, rows) in &audited {
        for row in rows {
            let tone = if row.verdict == Verdict::Agree { Tone::Good } else { Tone::Warn };
            let count = |n| Line::of(words::number(n));
            table.row(vec![
                Line::new().strong(session.name.to_string()).faint(format!(" {}", session.id.short())),
                Line::of(if row.model.is_empty() { "–" } else { &row.model }),
                count(row.report.total()),
                count(row.wire.total()),
                count(row.counted.total()),
                Line::toned(tone, row.verdict.words()),
            ]);
        }
    }
    app.ui.data_lines(&table.lines(app.ui.out_look()))?;
    app.ui.say(
        &Line::new().faint("tokens of all buckets; -o json has each. What the wire saw counts from the wire"),
    );
    Ok(exit_code::OK)
}
