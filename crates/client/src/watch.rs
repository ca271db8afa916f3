//! Following the log by a cursor, over as many connections as it takes.

use std::{collections::VecDeque, time::Duration};

use ostler_domain::{Recorded, query::EventFilter};
use ostler_wire::{
    from_proto, pb,
    reply::{Received, UnknownEvent},
    to_proto,
};
use tokio::time::Instant;
use tonic::Streaming;

use crate::{
    Client, Error,
    error::{Failure, given_up},
    events::service,
    socket,
};

/// How long a daemon that went away is waited for. Longer than an upgrade takes.
const BACK_WITHIN: Duration = Duration::from_secs(60);
/// Waits between tries: from the first, doubled, to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(10);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// What a watch sees.
#[derive(Debug, Clone, PartialEq)]
pub enum Watched {
    /// An event.
    Event(Box<Recorded>),
    /// An event of a kind or form that this version does not know, whole.
    Unknown(UnknownEvent),
    /// The daemon went away and came back. Nothing was missed, and nothing comes twice.
    Reconnected,
}

/// The log from a place on, then as it grows. Goes on after a restart of the daemon.
#[derive(Debug)]
pub struct Watch {
    client: Client,
    request: pb::WatchEventsRequest,
    /// Read and not yet returned.
    ready: VecDeque<Received>,
    link: Link,
}

#[derive(Debug)]
enum Link {
    Up(Streaming<pb::WatchEventsResponse>),
    Down(Outage),
    /// After an error there is nothing more.
    Over,
}

/// A daemon that is away.
#[derive(Debug)]
struct Outage {
    until: Instant,
    next_try: Instant,
    wait: Duration,
}

impl Watch {
    pub(crate) async fn open(
        client: Client,
        filter: &EventFilter,
        after: Option<u64>,
    ) -> Result<Watch, Error> {
        let request = pb::WatchEventsRequest { filter: Some(to_proto::event_filter(filter)), after };
        let answers =
            client.ask(async |channel| service(channel).watch_events(request.clone()).await).await?;
        let mut watch = Watch { client, request, ready: VecDeque::new(), link: Link::Up(answers) };
        // The first message says where "from now on" begins: without it a lost connection would leave a hole.
        while watch.request.after.is_none() {
            watch.fill().await?;
            watch.reconnect().await?;
        }
        Ok(watch)
    }

    /// Everything up to this place in the log has been read; where to go on later, in another process too.
    pub fn cursor(&self) -> Option<u64> {
        match self.ready.front() {
            Some(unread) => unread.seq().checked_sub(1),
            None => self.request.after,
        }
    }

    /// Waits for the next thing. Ends with `None` after an error only: when the daemon refuses, or stays away. May
    /// be dropped and called again without losing anything.
    pub async fn next(&mut self) -> Option<Result<Watched, Error>> {
        loop {
            if let Some(received) = self.ready.pop_front() {
                return Some(Ok(match received {
                    Received::Known(recorded) => Watched::Event(recorded),
                    Received::Unknown(unknown) => Watched::Unknown(unknown),
                }));
            }
            let step = match self.link {
                Link::Up(_) => self.fill().await.map(|()| None),
                Link::Down(_) => self.reconnect().await.map(|()| Some(Watched::Reconnected)),
                Link::Over => return None,
            };
            match step {
                Ok(None) => {}
                Ok(Some(watched)) => return Some(Ok(watched)),
                Err(error) => {
                    self.link = Link::Over;
                    return Some(Err(error));
                }
            }
        }
    }

    /// Takes in one message of a connection that stands, or notes that it is gone.
    async fn fill(&mut self) -> Result<(), Error> {
        let Link::Up(answers) = &mut self.link else { return Ok(()) };
        match answers.message().await.map_err(Failure::of) {
            Ok(Some(batch)) => {
                let seen = batch.seen;
                let events = batch.read()?;
                let events: Result<Vec<_>, _> = events.into_iter().map(from_proto::received).collect();
                for received in events.map_err(|e| e.within("events"))? {
                    // The daemon has its own care; this makes a repetition impossible here as well.
                    if self.request.after.is_none_or(|after| received.seq() > after) {
                        self.request.after = Some(received.seq());
                        self.ready.push_back(received);
                    }
                }
                self.request.after = self.request.after.max(Some(seen));
            }
            // A daemon that ends in an orderly way ends its streams; the log itself has no end.
            Ok(None) | Err(Failure::Lost(_)) => {
                let now = Instant::now();
                self.link = Link::Down(Outage { until: now + BACK_WITHIN, next_try: now, wait: FIRST_WAIT });
            }
            Err(Failure::Final(error)) => return Err(error),
        }
        Ok(())
    }

    /// Tries until the daemon is back, if it is away.
    async fn reconnect(&mut self) -> Result<(), Error> {
        loop {
            let Link::Down(outage) = &mut self.link else { return Ok(()) };
            tokio::time::sleep_until(outage.next_try).await;
            outage.next_try = Instant::now() + outage.wait;
            outage.wait = (outage.wait * 2).min(LONGEST_WAIT);
            let given_up_at = outage.until;
            let answer = service(self.client.channel.clone()).watch_events(self.request.clone()).await;
            match answer.map_err(Failure::of) {
                Ok(answers) => self.link = Link::Up(answers.into_inner()),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Lost(status)) if Instant::now() >= given_up_at => {
                    return Err(given_up(&status, socket::path(&self.client.home)));
                }
                Err(Failure::Lost(_)) => {}
            }
        }
    }
}
