//! `ostler usage audit`: the agent's word for its tokens beside what the gateway saw on the wire.

use clap::{Args, Subcommand};
use ostler_client::{Client, ListEvents, Place, Received, Session, query::EventFilter};
use ostler_domain::{
    Event, Kind,
    event::UsageRecorded,
    limits::PAGE_MOST,
    provider::SCRIPT,
    query::{Page, SessionFilter},
    usage_audit::{Agreement, Compared, Verdict, compare},
};
use serde::Serialize;

use crate::{
    app::App,
    failure::Failure,
    filters::Filters,
    listing::{self, Found, List, ListArgs, Screen},
    output::{Column, Line, Table, Tone},
    words,
};

/// Sessions that are compared when none is named.
const NEWEST: u32 = 20;
/// Sessions that are looked at together: few of them may have called a model.
const AT_ONCE: u32 = 200;

#[derive(Debug, Args)]
pub(crate) struct UsageArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Compare what agents report with what the gateway saw, and say why they differ
    Audit {
        /// Sessions: names, ids, parts of ids [default: the 20 newest that called a model]
        #[arg(value_name = "WHO", conflicts_with = "Filters")]
        who: Vec<String>,
        #[command(flatten)]
        filters: Filters,
        #[command(flatten)]
        list: ListArgs,
    },
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
    let Verb::Audit { who, filters, list: args } = args.verb;
    let client = app.client().await?;
    let most = args.most(Some(NEWEST));
    let filter = filters.resolve(app, &client, true).await?;
    listing::run(app, Some(&client), &args, &Audits { app, client: &client, who, filter, most }).await
}

struct Audits<'a> {
    app: &'a App,
    client: &'a Client,
    who: Vec<String>,
    /// Which sessions, where none is named.
    filter: SessionFilter,
    most: Option<u32>,
}

struct Audited {
    session: Session,
    models: Vec<Compared>,
}

impl List for Audits<'_> {
    type Row = Audited;
    const ROWS: &'static str = "sessions";

    async fn find(&self) -> Result<Found<Audited>, Failure> {
        let mut rows = Vec::new();
        for typed in &self.who {
            rows.push(self.audited(self.app.session(self.client, typed).await?).await?);
        }
        if self.who.is_empty() {
            rows = self.newest().await?;
        }
        Ok(Found { rows, next_cursor: None })
    }

    fn id(&self, audited: &Audited) -> String {
        audited.session.id.to_string()
    }

    fn form(&self, audited: &Audited) -> impl Serialize {
        let model =
            |compared: &Compared| ModelForm { meaning: compared.verdict.words(), compared: compared.clone() };
        SessionForm {
            session: audited.session.id.to_string(),
            name: audited.session.name.to_string(),
            models: audited.models.iter().map(model).collect(),
        }
    }

    async fn screen(&self, found: &Found<Audited>) -> Result<Screen, Failure> {
        if found.rows.iter().all(|audited| audited.models.is_empty()) {
            let remarks = vec![Line::of("No model has been called.")];
            return Ok(Screen { remarks, ..Screen::default() });
        }
        let remark = "tokens of all buckets; -o json has each. What the wire saw counts from the wire";
        Ok(Screen {
            table: Some(table(&found.rows)),
            remarks: vec![Line::new().faint(remark)],
            ..Screen::default()
        })
    }
}

impl Audits<'_> {
    async fn audited(&self, session: Session) -> Result<Audited, Failure> {
        let recorded = recorded(self.client, &session).await?;
        let models = compare(&recorded, session.model.as_deref());
        Ok(Audited { session, models })
    }

    /// The newest that called a model, however many there are since that called none.
    async fn newest(&self) -> Result<Vec<Audited>, Failure> {
        let most = self.most.map_or(usize::MAX, |most| most as usize);
        let mut rows = Vec::new();
        let mut page = Page { limit: AT_ONCE, cursor: None };
        loop {
            let listed = self.client.sessions(&self.filter, page).await?;
            // Of what is cut nobody may have said what it took: a sum of nothing is no proof that none was called.
            let may_have_called = |session: &Session| session.provider != SCRIPT || !session.usage.is_zero();
            for session in listed.rows.into_iter().filter(may_have_called) {
                let audited = self.audited(session).await?;
                if audited.models.is_empty() {
                    continue;
                }
                rows.push(audited);
                if rows.len() >= most {
                    return Ok(rows);
                }
            }
            match listed.next_cursor {
                Some(cursor) => page.cursor = Some(cursor),
                None => return Ok(rows),
            }
        }
    }
}

/// Pages of calls that are looked through to say one word about their sum.
const PAGES: usize = 20;

/// What both sources say of a session's tokens. Told beside a sum, so nothing is said where the daemon does not answer, or
/// there are too many calls to look through.
pub(super) async fn counted(client: &Client, session: &Session) -> Option<Agreement> {
    let recorded = recorded_within(client, session, PAGES).await.ok()??;
    Agreement::of(&compare(&recorded, session.model.as_deref()))
}

/// All that was recorded of a session's tokens.
async fn recorded(client: &Client, session: &Session) -> Result<Vec<UsageRecorded>, Failure> {
    Ok(recorded_within(client, session, usize::MAX).await?.unwrap_or_default())
}

/// The same; none where it takes more pages.
async fn recorded_within(
    client: &Client,
    session: &Session,
    pages: usize,
) -> Result<Option<Vec<UsageRecorded>>, Failure> {
    let kinds = vec![Kind::UsageRecorded];
    let filter = EventFilter { session: Some(session.id), kinds, ..EventFilter::default() };
    let mut recorded = Vec::new();
    let mut from = 0;
    for _ in 0..pages {
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
            None => return Ok(Some(recorded)),
        }
    }
    Ok(None)
}

fn table(audited: &[Audited]) -> Table {
    let mut table = Table::new([
        Column::new("SESSION"),
        Column::new("MODEL"),
        Column::new("REPORT").right(),
        Column::new("WIRE").right(),
        Column::new("COUNTED").right(),
        Column::new("VERDICT").gives_way_to(40),
    ]);
    for Audited { session, models } in audited {
        for row in models {
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
    table
}
/// With nothing in it yet.
pub(super) fn empty_table() -> Table {
    table(&[])
}
