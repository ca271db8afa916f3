//! `ostler search`: full text over what was said and done.

use std::collections::{HashMap, hash_map::Entry};

use clap::Args;
use ostler_client::{Client, query::EventFilter, reply::Hit};
use ostler_domain::{
    Kind, SessionId, Time,
    query::{Page, SessionFilter},
};
use serde::Serialize;

use crate::{
    app::App,
    exit_code,
    failure::Failure,
    form::EventForm,
    output::{Format, Line},
    parse,
    screen::search::{self, Found},
    words,
};

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Words that must all be there; the end of one may be left to *
    #[arg(required = true)]
    text: Vec<String>,
    /// Only in this session: name, id, part of an id
    #[arg(long, value_name = "WHO", visible_alias = "agent")]
    session: Option<String>,
    /// Only in these kinds of events: completion, tool_call
    #[arg(long, value_delimiter = ',', value_parser = parse::kind)]
    kind: Vec<Kind>,
    /// Only in what happened since: 2h (ago), today, 2026-01-31
    #[arg(long, value_parser = parse::moment, value_name = "WHEN")]
    since: Option<Time>,
    /// Only in what happened before
    #[arg(long, value_parser = parse::moment, value_name = "WHEN")]
    until: Option<Time>,
    /// The N newest
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Go on where the last page ended (`next_cursor`)
    #[arg(long)]
    cursor: Option<u64>,
    /// Leave the heads of the columns out
    #[arg(long)]
    no_headers: bool,
}

#[derive(Serialize)]
struct HitForm<'a> {
    #[serde(flatten)]
    event: EventForm<'a>,
    snippet: &'a str,
}

#[derive(Serialize)]
struct HitsForm<'a> {
    hits: Vec<HitForm<'a>>,
    next_cursor: Option<String>,
}

pub(crate) async fn run(app: &App, args: SearchArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let session = match &args.session {
        Some(typed) => Some(app.session(&client, typed).await?.id),
        None => None,
    };
    let filter = EventFilter { session, kinds: args.kind.clone(), since: args.since, until: args.until };
    let (hits, next) = find(&client, &args, &filter).await?;
    let form = |hit: &'_ Hit| -> Result<(), Failure> {
        app.ui.json(&HitForm { event: EventForm::new(&hit.event), snippet: &hit.snippet })
    };
    match app.ui.format() {
        Some(Format::Json) => app.ui.json(&HitsForm {
            hits: hits
                .iter()
                .map(|hit| HitForm { event: EventForm::new(&hit.event), snippet: &hit.snippet })
                .collect(),
            next_cursor: next.map(|next| next.to_string()),
        })?,
        Some(Format::Jsonl) => hits.iter().try_for_each(form)?,
        _ if hits.is_empty() => nothing(app, &client).await?,
        _ => show(app, &client, &args, &hits, next).await?,
    }
    Ok(exit_code::OK)
}

/// A filter is applied to what the index found, so a page may be short and not be the last.
async fn find(
    client: &Client,
    args: &SearchArgs,
    filter: &EventFilter,
) -> Result<(Vec<Hit>, Option<u64>), Failure> {
    let text = args.text.join(" ");
    let mut hits = Vec::new();
    let mut cursor = args.cursor;
    loop {
        let room = args.limit - u32::try_from(hits.len()).unwrap_or(u32::MAX);
        let listed = client.search(&text, filter, Page::of(room, cursor)).await?;
        hits.extend(listed.rows);
        cursor = listed.next_cursor;
        if cursor.is_none() || hits.len() >= args.limit as usize {
            return Ok((hits, cursor));
        }
    }
}

async fn nothing(app: &App, client: &Client) -> Result<(), Failure> {
    let any = client.sessions(&SessionFilter::default(), Page::of(1, None)).await?;
    search::nothing(!any.rows.is_empty()).iter().for_each(|line| app.ui.remark(line));
    Ok(())
}

async fn show(
    app: &App,
    client: &Client,
    args: &SearchArgs,
    hits: &[Hit],
    next: Option<u64>,
) -> Result<(), Failure> {
    let mut names: HashMap<SessionId, String> = HashMap::new();
    for id in hits.iter().filter_map(|hit| hit.event.session()) {
        if let Entry::Vacant(unknown) = names.entry(id) {
            unknown.insert(client.session(&id.to_string()).await?.name.to_string());
        }
    }
    let found: Vec<Found<'_>> = hits
        .iter()
        .map(|hit| Found {
            event: &hit.event,
            name: hit.event.session().and_then(|id| names.get(&id)).map_or("–", String::as_str),
            snippet: &hit.snippet,
        })
        .collect();
    let look = app.ui.out_look();
    app.ui.data_lines(&search::table(&found, !args.no_headers, words::now(), look))?;
    if let Some(next) = next {
        app.ui.remark(&Line::new().faint(format!("older: the same with --cursor {next}")));
    }
    Ok(())
}
