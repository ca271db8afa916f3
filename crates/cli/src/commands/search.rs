//! `ostler search`: full text over what was said and done.

use std::collections::{HashMap, hash_map::Entry};

use clap::Args;
use ostler_client::{Client, query::EventFilter, reply::Hit};
use ostler_domain::{
    Kind, SessionId, TicketId,
    query::{Page, Scope, SessionFilter},
};
use ostler_form::{HitForm, ticket_of};
use serde::Serialize;

use crate::{
    app::App,
    failure::Failure,
    filters::Filters,
    listing::{self, Found, List, ListArgs, Screen},
    output::Line,
    parse,
    screen::{
        self,
        search::{self, Past},
    },
    words,
};

/// Hits that are shown when nothing else is said.
const NEWEST: u32 = 20;

/// Newest sessions among which one that was imported is looked for.
const LOOKED_AT: u32 = 200;

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Words that must all be there; the end of one may be left to *
    #[arg(required = true)]
    text: Vec<String>,
    /// Only in this session: name, id, part of an id
    #[arg(long, value_name = "WHO")]
    session: Option<String>,
    /// Only in these kinds of events: completion, tool_call
    #[arg(long, value_delimiter = ',', value_parser = parse::kind)]
    kind: Vec<Kind>,
    #[command(flatten)]
    filters: Filters,
    #[command(flatten)]
    list: ListArgs,
    /// Go on where the last page ended (`next_cursor`)
    #[arg(long, help_heading = "List")]
    cursor: Option<u64>,
}

impl SearchArgs {
    /// Whether nothing narrows what is looked through.
    pub(super) fn is_of_all(&self) -> bool {
        let Self { text: _, session, kind, filters, list: _, cursor } = self;
        session.is_none() && kind.is_empty() && !filters.is_any() && cursor.is_none()
    }

    /// What is looked for.
    pub(super) fn words(&self) -> String {
        self.text.join(" ")
    }
}

pub(crate) async fn run(app: &App, args: SearchArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let filter = args.filters.resolve_events(app, &client, args.session.as_deref(), &args.kind).await?;
    let list = Hits {
        client: &client,
        text: args.words(),
        filter,
        most: args.list.most(Some(NEWEST)),
        cursor: args.cursor,
    };
    listing::run(app, Some(&client), &args.list, &list).await
}

struct Hits<'a> {
    client: &'a Client,
    text: String,
    filter: EventFilter,
    most: Option<u32>,
    cursor: Option<u64>,
}

impl List for Hits<'_> {
    type Row = Hit;
    const ROWS: &'static str = "hits";

    async fn find(&self) -> Result<Found<Hit>, Failure> {
        let ask = async |page| self.client.search(&self.text, &self.filter, page).await;
        Found::paged(self.most, self.cursor, ask).await
    }

    fn id(&self, hit: &Hit) -> String {
        hit.event.seq().to_string()
    }

    /// Whose they are.
    fn name(&self, hit: &Hit) -> String {
        let ticket = || Some(ticket_of(hit)?.to_string());
        hit.event.session().map(|id| id.to_string()).or_else(ticket).unwrap_or_else(|| "–".to_owned())
    }

    fn form(&self, hit: &Hit) -> impl Serialize {
        HitForm::new(hit)
    }

    async fn screen(&self, found: &Found<Hit>) -> Result<Screen, Failure> {
        // A daemon that does not say so has an index that follows at once.
        let behind = self.client.status().await.map_or(0, |status| status.store.unsearched_events);
        if found.rows.is_empty() {
            let all = SessionFilter { scope: Scope::All, ..SessionFilter::default() };
            let newest = self.client.sessions(&all, Page::of(LOOKED_AT, None)).await?.rows;
            let past = match newest.iter().any(|session| session.imported.is_some()) {
                true => Past::Imported,
                false if newest.is_empty() => Past::Nothing,
                false => Past::OwnAlone,
            };
            let remarks = match search::behind(behind) {
                Some(behind) => vec![Line::of("Nothing found yet: ").append(behind)],
                None => search::nothing(past),
            };
            return Ok(Screen { remarks, ..Screen::default() });
        }
        let names = self.names(&found.rows).await?;
        let hits: Vec<_> = found
            .rows
            .iter()
            .map(|hit| {
                let whose = Whose::of(hit);
                search::Found {
                    event: &hit.event,
                    id: whose.map_or_else(|| "–".to_owned(), Whose::short),
                    name: whose.and_then(|whose| names.get(&whose)).map_or("–", String::as_str),
                    snippet: &hit.snippet,
                }
            })
            .collect();
        let older = |next| Line::new().faint(format!("older: the same with --cursor {next}"));
        Ok(Screen {
            table: Some(search::table(&hits, words::now())),
            remarks: found.next_cursor.map(older).into_iter().chain(search::behind(behind)).collect(),
            ..Screen::default()
        })
    }
}

impl Hits<'_> {
    async fn names(&self, hits: &[Hit]) -> Result<HashMap<Whose, String>, Failure> {
        let mut names: HashMap<Whose, String> = HashMap::new();
        for whose in hits.iter().filter_map(Whose::of) {
            if let Entry::Vacant(unknown) = names.entry(whose) {
                unknown.insert(match whose {
                    Whose::Session(id) => self.client.session(&id.to_string()).await?.name.to_string(),
                    Whose::Ticket(id) => {
                        screen::ticket::name(&self.client.ticket(&id.to_string()).await?.ticket)
                    }
                });
            }
        }
        Ok(names)
    }
}

/// Whose a hit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Whose {
    Session(SessionId),
    Ticket(TicketId),
}

impl Whose {
    fn of(hit: &Hit) -> Option<Whose> {
        hit.event.session().map(Whose::Session).or_else(|| ticket_of(hit).map(Whose::Ticket))
    }

    fn short(self) -> String {
        match self {
            Whose::Session(id) => id.short(),
            Whose::Ticket(id) => id.short(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        search: SearchArgs,
    }

    #[test]
    fn whatever_narrows_a_search_is_seen() {
        let is_of_all =
            |args: &[&str]| Typed::parse_from([&["search", "x"], args].concat()).search.is_of_all();
        assert!(is_of_all(&[]) && is_of_all(&["y", "--limit", "3"]));
        for one in [["--session", "api"], ["-C", "shop"], ["--agent", "api"], ["--kind", "completion"]] {
            assert!(!is_of_all(&one), "{one:?}");
        }
    }
}
