//! The dashboard: pages that are made here, whole, and followed as they change. Whatever an agent wrote is text.

mod activity;
mod campaigns;
mod cost;
mod draw;
mod home;
mod live;
mod machine;
mod missions;
mod patch;
mod row;
mod search;
mod session;
mod sessions;
mod tables;
mod tickets;

use askama::Template;
use axum::{
    Extension, Router,
    http::{StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::get,
};
use ostler_client::Client;
use ostler_domain::{
    Refusal, SessionId,
    budget::{Period, Today},
    limits::PAGE_MOST,
    price::Dollars,
    query::{EventFilter, Page, Scope, SessionFilter},
    refusal::Hint,
    session::Attention,
};
use serde::de::DeserializeOwned;

pub(crate) use self::draw::escaped;
use crate::{clock, guard::Visitor, reply::Failure};

/// Where there are pages.
const PATHS: &[&str] = &[
    "/",
    "/sessions",
    "/sessions/{who}",
    "/sessions/{who}/{tab}",
    "/missions",
    "/missions/{who}",
    "/missions/{who}/report",
    "/search",
    "/cost",
    "/tickets",
    "/tickets/{who}",
    "/campaigns",
    "/campaigns/{who}",
    "/machine",
];

pub(crate) fn router() -> Router {
    let pages = PATHS.iter().fold(Router::new(), |router, path| router.route(path, get(page)));
    pages.route("/live", get(live::live)).route("/cost.csv", get(cost::csv))
}

/// A page without its frame.
pub(crate) struct View {
    title: String,
    main: String,
    /// The events after which it may look different.
    watches: EventFilter,
    /// The session whose agent is shown while it writes.
    writes: Option<SessionId>,
}

impl View {
    fn new(title: impl Into<String>, template: &impl Template) -> Result<View, Failure> {
        Ok(View {
            title: title.into(),
            main: render(template)?,
            watches: EventFilter::default(),
            writes: None,
        })
    }

    fn of_session(self, id: SessionId) -> View {
        View { watches: EventFilter { session: Some(id), ..EventFilter::default() }, ..self }
    }
}

fn render(template: &impl Template) -> Result<String, Failure> {
    Ok(template.render().map_err(|error| Refusal::internal(error.to_string()))?)
}

/// The page that an address means, as it is now.
async fn view(visitor: &Visitor, uri: &Uri) -> Result<View, Failure> {
    let parts: Vec<String> = uri.path().split('/').filter(|part| !part.is_empty()).map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["sessions"] => sessions::view(visitor, &asked(uri)?, asked(uri)?).await,
        ["sessions", who] => session::view(visitor, who, "activity", &asked(uri)?).await,
        ["sessions", who, tab] => session::view(visitor, who, tab, &asked(uri)?).await,
        ["missions"] => missions::list(visitor, &asked(uri)?).await,
        ["missions", who] => missions::one(visitor, who).await,
        ["missions", who, "report"] => missions::report(visitor, who).await,
        ["search"] => search::view(visitor, &asked(uri)?, &asked(uri)?).await,
        ["cost"] => cost::view(visitor, &asked(uri)?).await,
        ["tickets"] => tickets::list(visitor, &asked(uri)?).await,
        ["tickets", who] => tickets::one(visitor, who).await,
        ["campaigns"] => campaigns::list(visitor).await,
        ["campaigns", who] => campaigns::one(visitor, who, &asked(uri)?).await,
        ["machine"] => machine::view(visitor).await,
        [] => home::view(visitor).await,
        _ => Err(nowhere()),
    }
}

/// For people, who came by an address that is misspelt or old.
fn nowhere() -> Failure {
    let refusal =
        Refusal::invalid("there is no such page").because("all that there are stand in the list of pages");
    Failure::new(StatusCode::NOT_FOUND, refusal.hint("ostler open", "opens the first of them"))
}

fn asked<T: DeserializeOwned>(uri: &Uri) -> Result<T, Failure> {
    let asked = axum::extract::Query::try_from_uri(uri);
    let axum::extract::Query(asked) =
        asked.map_err(|error| Refusal::invalid("this address makes no sense").because(error.body_text()))?;
    Ok(asked)
}

/// A part of a path, with what was written as `%2F`.
fn decoded(part: &str) -> String {
    String::from_utf8_lossy(&bytes_of(part)).into_owned()
}

/// What an address says, with what it writes as `%XX`.
pub(crate) fn bytes_of(part: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

/// A text as a part of an address.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// What stands above every page.
#[derive(Template)]
#[template(path = "counts.html")]
struct Counts {
    needs: usize,
    working: usize,
    live: u64,
    today: String,
    halt: String,
}

impl Counts {
    async fn of(client: &Client) -> Result<Counts, Failure> {
        let status = client.status().await?;
        let needs = Attention::ALL.iter().copied().filter(|attention| attention.needs_you()).collect();
        let today = client.today(Period::Day.start(clock::now())).await?;
        Ok(Counts {
            needs: count(client, needs).await?,
            working: count(client, vec![Attention::Working]).await?,
            live: status.live_sessions,
            today: money(&today),
            halt: status.halt.map(|halt| format!("{} {}", halt.by.0, halt.why)).unwrap_or_default(),
        })
    }
}

/// How many sessions this is true of, however many pages they fill.
async fn count(client: &Client, attention: Vec<Attention>) -> Result<usize, Failure> {
    let filter = SessionFilter { scope: Scope::NotEnded, attention, ..SessionFilter::default() };
    let (mut count, mut page) = (0, Page::of(PAGE_MOST, None));
    loop {
        let listed = client.sessions(&filter, page).await?;
        count += listed.rows.len();
        match listed.next_cursor {
            Some(cursor) => page.cursor = Some(cursor),
            None => return Ok(count),
        }
    }
}

fn money(today: &Today) -> String {
    let of = today.budget.map(|budget| format!(" of {budget}")).unwrap_or_default();
    let paid = match (today.paid, today.is_unknown) {
        (Dollars(0), true) => "cost unknown".to_owned(),
        (paid, true) => format!("{paid} + unknown"),
        (paid, false) => paid.to_string(),
    };
    format!("{} {paid}{of}", Period::Day.words())
}

/// What the browser's tab says: who waits is seen without looking at the page.
fn title(needs: usize, name: &str) -> String {
    let needs = if needs > 0 { format!("({needs}) ") } else { String::new() };
    format!("{needs}{name} · Ostler")
}

struct NavItem {
    href: &'static str,
    word: &'static str,
    here: bool,
    count: usize,
    class: &'static str,
}

#[derive(Template)]
#[template(path = "layout.html")]
struct Layout<'a> {
    title: String,
    csrf: &'a str,
    page: &'a str,
    /// The place in the log that the page shows, or one before it.
    after: u64,
    counts: String,
    nav: Vec<NavItem>,
    main: &'a str,
}

const NAV: &[(&str, &str)] = &[
    ("/", "Needs you"),
    ("/sessions", "Sessions"),
    ("/missions", "Missions"),
    ("/search", "Search"),
    ("/cost", "Cost"),
    ("/tickets", "Tickets"),
    ("/campaigns", "Campaigns"),
    ("/machine", "Machine"),
];

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    status: StatusCode,
    message: &'a str,
    why: &'a str,
    hints: &'a [Hint],
}

pub(crate) async fn page(Extension(visitor): Extension<Visitor>, uri: Uri) -> Response {
    match whole(&visitor, &uri).await {
        Ok(answer) => answer,
        Err(failure) => failure.into_response(),
    }
}

async fn whole(visitor: &Visitor, uri: &Uri) -> Result<Response, Failure> {
    // Asked before the page is made: what happens meanwhile is told by the stream.
    let after = visitor.client.status().await?.last_seq;
    let counts = Counts::of(&visitor.client).await?;
    let (status, view) = match view(visitor, uri).await {
        Ok(view) => (StatusCode::OK, view),
        Err(Failure { status, refusal }) => {
            let why = refusal.why.as_deref().unwrap_or_default();
            let page = ErrorPage { status, message: &refusal.message, why, hints: &refusal.hints };
            let name = if status == StatusCode::NOT_FOUND { "Not found" } else { "Not possible" };
            (status, View::new(name, &page)?)
        }
    };
    let here = format!("/{}", uri.path().split('/').nth(1).unwrap_or_default());
    let item = |(href, word): &(&'static str, &'static str)| NavItem {
        href,
        word,
        here: *href == here,
        count: if *href == "/" { counts.needs } else { 0 },
        class: if *href == "/" { "needs" } else { "" },
    };
    let layout = Layout {
        title: title(counts.needs, &view.title),
        csrf: visitor.csrf.as_deref().unwrap_or_default(),
        page: &here,
        after,
        counts: render(&counts)?,
        nav: NAV.iter().map(item).collect(),
        main: &view.main,
    };
    Ok((status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], render(&layout)?).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_survives_an_address() {
        for name in ["plain", "a/b", "ü %2F", "<script>"] {
            let there = encoded(name);
            assert!(there.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)));
            assert_eq!(decoded(&there), name);
        }
        assert_eq!(decoded("100%"), "100%");
    }

    #[test]
    fn where_there_is_nothing_a_page_says_so_and_what_to_do() {
        let Failure { status, refusal } = nowhere();
        let why = refusal.why.as_deref().unwrap_or_default();
        let page = ErrorPage { status, message: &refusal.message, why, hints: &refusal.hints };
        let page = render(&page).unwrap();
        assert!(page.contains("<h1 data-fixed>404 Not Found</h1>"), "{page}");
        assert!(page.contains("there is no such page") && page.contains("the list of pages"), "{page}");
        assert!(
            page.contains("<code>ostler open</code>") && !page.contains("openapi"),
            "not a program's: {page}"
        );
        // What somebody put into the address is text there.
        let message = "there is no session \"<script>\"";
        let page = render(&ErrorPage { status, message, why: "<b>", hints: &[] }).unwrap();
        assert!(!page.contains("<script>") && !page.contains("<b>"), "{page}");
    }
}
