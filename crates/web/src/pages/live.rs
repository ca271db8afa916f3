//! Following a page: what changed is made anew and sent, under the place in the log that it shows. Whoever comes back
//! gets the page as it is then, so nothing is missed.

use std::{convert::Infallible, time::Duration};

use axum::{
    Extension,
    http::{HeaderMap, Uri},
    response::sse::Event,
};
use ostler_client::{Incoming, Watch, Watched, reply::Delta};
use ostler_domain::{Kind, Reason, Refusal, http, query::EventFilter};
use ostler_form::to_json;
use serde::Deserialize;
use tokio::{sync::mpsc, time::Instant};

use super::{Counts, render, title, view};
use crate::{
    guard::Visitor,
    reply::{Answer, Asked, Failure},
    stream::{last_seen, sse},
};

/// Pieces that wait for a browser.
const WAITING: usize = 4;
/// How long news is gathered before the page is made anew: a busy agent changes many times a second.
const GATHER: Duration = Duration::from_millis(300);

/// Events that a page may be late without saying so.
const BEHIND: u64 = 100;
/// After these the counts above every page may be others.
pub(super) const FRAME_KINDS: &[Kind] = &[
    Kind::SessionCreated,
    Kind::SessionStarted,
    Kind::SessionStopped,
    Kind::SessionFailed,
    Kind::SessionPaused,
    Kind::SessionResumed,
    Kind::SessionHeld,
    Kind::SessionReleased,
    Kind::SessionStalled,
    Kind::SessionRecovered,
    Kind::TurnStarted,
    Kind::TurnEnded,
    Kind::UsageRecorded,
    Kind::ApprovalRequested,
    Kind::ApprovalAnswered,
    Kind::Halted,
    Kind::HaltReleased,
];

/// Times that a page reads on before it is shown although there is more.
const ROUNDS: u32 = 10;

/// How old a page may be in which nothing happens: ages grow.
const TICK: Duration = Duration::from_secs(15);

#[derive(Debug, Deserialize)]
pub(super) struct LiveAsked {
    page: String,
    after: Option<u64>,
}

type News = mpsc::Sender<Result<Event, Infallible>>;

pub(super) async fn live(
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    Asked(asked): Asked<LiveAsked>,
) -> Answer {
    let uri: Uri = http::page(&asked.page)
        .parse()
        .map_err(|_| Refusal::invalid("page: not an address of this dashboard"))?;
    let first = view(&visitor, &uri).await?;
    let mut after = last_seen(&headers)?.or(asked.after);
    let client = &visitor.client;
    let is_narrow = first.watches != EventFilter::default();
    // What happened between the page and the stream is in what is sent first.
    let is_due = after.is_some();
    let page = match client.watch(first.watches.clone(), after).await {
        // The log was put back from a copy: the page is shown as it is now, and goes on from there.
        Err(error) if error.is_refused_for(Reason::CursorUnknown) => {
            let page = client.watch(first.watches, None).await?;
            after = page.cursor();
            page
        }
        opened => opened?,
    };
    // What stands above the page is about everybody, however little the page itself is about.
    let frame = match is_narrow {
        true => {
            let kinds = FRAME_KINDS.to_vec();
            Some(client.watch(EventFilter { kinds, ..EventFilter::default() }, after).await?)
        }
        false => None,
    };
    let deltas = match first.writes {
        // Text that is just being written is a courtesy: a page is followed without it too.
        Some(session) => client.deltas(&session.to_string()).await.ok(),
        None => None,
    };
    let (news, waiting) = mpsc::channel(WAITING);
    let following =
        Following { uri, page, frame, deltas, news, shown: Shown::default(), made: Instant::now() };
    tokio::spawn(async move {
        // A stream that cannot go on ends, and the browser comes back by itself.
        tokio::select! {
            _ = following.run(&visitor, is_due) => {}
            () = visitor.turned_out() => {}
        }
    });
    Ok(sse(waiting))
}

/// A page that a browser looks at.
struct Following {
    uri: Uri,
    page: Watch,
    frame: Option<Watch>,
    deltas: Option<Incoming<Delta>>,
    news: News,
    shown: Shown,
    /// When the page was made last: what happens to others does not make it any younger.
    made: Instant,
}

/// What may look different.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Due {
    All,
    Frame,
}

impl Following {
    async fn run(mut self, visitor: &Visitor, is_due: bool) -> Result<(), Failure> {
        let mut due = is_due.then_some(Due::All);
        let mut is_late = self.frame.is_none();
        loop {
            self.catch_up(visitor, is_late).await?;
            let place = self.page.cursor().unwrap_or(0);
            if due == Some(Due::All) {
                self.made = Instant::now();
            }
            if let Some(due) = due
                && !self.shown.send(visitor, &self.uri, place, due, &self.news).await?
            {
                return Ok(());
            }
            let Some(next) = self.next().await? else { return Ok(()) };
            due = Some(next);
            is_late = has_more(&mut self.page).await;
        }
    }

    /// Waits for news; none when nobody listens any more.
    async fn next(&mut self) -> Result<Option<Due>, Failure> {
        let grown_old = self.made + TICK;
        let tick = tokio::time::sleep_until(grown_old);
        tokio::pin!(tick);
        let due = loop {
            tokio::select! {
                watched = self.page.next() => match watched.transpose()? {
                    Some(_) => break Due::All,
                    None => return Ok(None),
                },
                watched = next_of(&mut self.frame) => match watched.transpose()? {
                    Some(_) => break Due::Frame,
                    None => return Ok(None),
                },
                written = next_written(&mut self.deltas) => match written {
                    Some(text) => {
                        let piece = Event::default().event("delta").data(to_json(&text));
                        if self.news.send(Ok(piece)).await.is_err() {
                            return Ok(None);
                        }
                    }
                    None => self.deltas = None,
                },
                () = &mut tick => break Due::All,
                () = self.news.closed() => return Ok(None),
            }
        };
        // What comes within a moment is taken along; what the page is about may be among it.
        let until = Instant::now() + GATHER;
        let came = drained(&mut self.page, until).await;
        if let Some(frame) = &mut self.frame {
            drained(frame, Instant::now()).await;
        }
        let is_old = Instant::now() >= grown_old;
        Ok(Some(if came || is_old { Due::All } else { due }))
    }

    /// Reads what was missed, and says how much there is of it. Of a page that is about little, the cursor says nothing:
    /// it stands where the last event of its own was.
    async fn catch_up(&mut self, visitor: &Visitor, mut is_late: bool) -> Result<(), Failure> {
        let mut was_late = false;
        for _ in 0..ROUNDS {
            if !is_late {
                break;
            }
            let last = visitor.client.status().await?.last_seq;
            let missing = last.saturating_sub(self.page.cursor().unwrap_or(last));
            if missing <= BEHIND {
                break;
            }
            was_late = true;
            if self.news.send(Ok(Event::default().event("behind").data(missing.to_string()))).await.is_err() {
                return Ok(());
            }
            drained(&mut self.page, Instant::now() + GATHER).await;
            is_late = has_more(&mut self.page).await;
        }
        if was_late {
            // Who does not listen is noticed by the next word.
            let _ = self.news.send(Ok(Event::default().event("level").data("0"))).await;
        }
        Ok(())
    }
}

/// Reads what is there until a moment, and says whether there was any.
async fn drained(watch: &mut Watch, until: Instant) -> bool {
    let mut any = false;
    while let Ok(Some(Ok(_))) = tokio::time::timeout_at(until, watch.next()).await {
        any = true;
    }
    any
}

/// Whether there is an event already, which is taken along.
async fn has_more(watch: &mut Watch) -> bool {
    drained(watch, Instant::now()).await
}

async fn next_of(watch: &mut Option<Watch>) -> Option<Result<Watched, ostler_client::Error>> {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}

async fn next_written(deltas: &mut Option<Incoming<Delta>>) -> Option<String> {
    match deltas {
        Some(deltas) => deltas.next().await?.ok().map(|delta| delta.text),
        None => std::future::pending().await,
    }
}

/// What the browser has.
#[derive(Default)]
struct Shown {
    /// Of the page.
    name: String,
    main: String,
    counts: String,
    title: String,
}

impl Shown {
    /// Sends what is not as the browser has it. Says whether it still listens.
    async fn send(
        &mut self,
        visitor: &Visitor,
        uri: &Uri,
        place: u64,
        due: Due,
        news: &News,
    ) -> Result<bool, Failure> {
        let main = match due {
            Due::All => {
                let view = view(visitor, uri).await?;
                self.name = view.title;
                Some(view.main)
            }
            Due::Frame => None,
        };
        let counts = Counts::of(&visitor.client).await?;
        let title = title(counts.needs, &self.name);
        let parts = [
            ("counts", Some(render(&counts)?), &mut self.counts),
            ("title", Some(title).filter(|_| !self.name.is_empty()), &mut self.title),
            ("main", main, &mut self.main),
        ];
        for (name, fresh, had) in parts {
            let Some(fresh) = fresh else { continue };
            if *had == fresh {
                continue;
            }
            // A line's end other than its own would end a line of the stream too.
            let data = fresh.replace('\r', "");
            let piece = Event::default().event(name).id(place.to_string()).data(data);
            *had = fresh;
            if news.send(Ok(piece)).await.is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
