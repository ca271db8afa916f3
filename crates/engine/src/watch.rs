//! Watching is reading: a subscription is a cursor into the log.
//!
//! A watcher that keeps up is fed from memory; one that does not, reads the log again at its cursor. It misses
//! nothing and slows nobody.

use std::{collections::HashMap, sync::Arc};

use ostler_domain::{
    Reason, Refusal, SessionId, TicketId,
    query::{EventFilter, SessionFilter},
};
use ostler_store::{Batch, Published};
use tokio::sync::{broadcast, watch};

use crate::Engine;

/// Events read from the log in one go.
const PAGE: u32 = 512;

/// A place in the log that moves forward.
pub struct Watch {
    engine: Engine,
    filter: EventFilter,
    /// Everything up to here was handed out or does not fit the filter.
    cursor: u64,
    tail: broadcast::Receiver<Batch>,
    published: watch::Receiver<u64>,
    /// Whether the tail has everything after the cursor.
    on_tail: bool,
}

impl Engine {
    /// Watches events after a place in the log: first those that are there, then those to come.
    /// Without a place: only those to come.
    pub fn watch(&self, filter: EventFilter, after: Option<u64>) -> Watch {
        let store = &self.shared.store;
        Watch {
            tail: store.subscribe_tail(),
            published: store.published(),
            engine: self.clone(),
            filter,
            cursor: after.unwrap_or_else(|| *store.published().borrow()),
            on_tail: false,
        }
    }
}

impl Engine {
    /// Refuses a place that the log does not have. Who comes with one has seen a log that was put back from a copy since:
    /// its next events would be taken for known.
    pub async fn check_place(&self, after: u64) -> Result<(), Refusal> {
        let store = &self.shared.store;
        if after <= store.last_seq() {
            return Ok(());
        }
        // What has just been committed is read a moment before it is published.
        let last = store.events_before(None, &EventFilter::default(), 1).await?;
        let last = last.rows.first().map_or(0, |event| event.seq).max(store.last_seq());
        if after <= last {
            return Ok(());
        }
        Err(Refusal::new(Reason::CursorUnknown, format!("the log has no place {after}"))
            .because(format!("it ends at {last}: it was put back from a copy, or the place is another log's"))
            .hint("ostler events --after 0", "begins anew"))
    }
}

/// Which sessions a filter fits, each asked for once.
pub(crate) struct Fits<'a> {
    engine: &'a Engine,
    filter: &'a SessionFilter,
    known: HashMap<SessionId, bool>,
    known_tickets: HashMap<TicketId, bool>,
}

impl<'a> Fits<'a> {
    pub(crate) fn new(engine: &'a Engine, filter: &'a SessionFilter) -> Self {
        Self { engine, filter, known: HashMap::new(), known_tickets: HashMap::new() }
    }

    /// What belongs to no session fits none.
    pub(crate) async fn session(&mut self, id: Option<SessionId>) -> Result<bool, Refusal> {
        let Some(id) = id else { return Ok(false) };
        if let Some(fits) = self.known.get(&id) {
            return Ok(*fits);
        }
        let fits = self.engine.shared.store.session_fits(id, self.filter).await?;
        self.known.insert(id, fits);
        Ok(fits)
    }

    /// What belongs to a ticket fits where the ticket does.
    pub(crate) async fn ticket(&mut self, id: TicketId) -> Result<bool, Refusal> {
        if let Some(fits) = self.known_tickets.get(&id) {
            return Ok(*fits);
        }
        let ticket = self.engine.shared.store.ticket(id).await?;
        let fits = ticket.is_some_and(|ticket| self.filter.fits_ticket(&ticket));
        self.known_tickets.insert(id, fits);
        Ok(fits)
    }
}

impl Watch {
    /// The next events that fit; never none. Ends with an error only when the log cannot be read.
    pub async fn next(&mut self) -> Result<Vec<Arc<Published>>, Refusal> {
        loop {
            let events = if self.on_tail { self.follow().await? } else { self.read().await? };
            if !events.is_empty() {
                return Ok(events);
            }
        }
    }

    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    async fn read(&mut self) -> Result<Vec<Arc<Published>>, Refusal> {
        let end = *self.published.borrow_and_update();
        if self.cursor >= end {
            self.on_tail = true;
            return Ok(Vec::new());
        }
        let listed = self.engine.shared.store.events_after(self.cursor, &self.filter, PAGE).await?;
        self.cursor = match (listed.next_cursor, listed.rows.last()) {
            (Some(next), _) => next,
            (None, Some(last)) => last.seq.max(end),
            (None, None) => end,
        };
        Ok(listed.rows.into_iter().map(|event| Arc::new(Published::new(event))).collect())
    }

    /// Those whose sessions fit as they are now: the record has everything of the batch.
    async fn of_fitting_sessions(&self, events: Vec<Arc<Published>>) -> Result<Vec<Arc<Published>>, Refusal> {
        let Some(sessions) = &self.filter.sessions else { return Ok(events) };
        let mut fits = Fits::new(&self.engine, sessions);
        let mut fitting = Vec::new();
        for event in events {
            if fits.session(event.session).await? {
                fitting.push(event);
            }
        }
        Ok(fitting)
    }

    async fn follow(&mut self) -> Result<Vec<Arc<Published>>, Refusal> {
        match self.tail.recv().await {
            Ok(batch) => {
                let first = batch.first().map_or(self.cursor, |event| event.seq);
                if first > self.cursor + 1 {
                    // A batch was published while the log was read: the log has it.
                    self.on_tail = false;
                    return Ok(Vec::new());
                }
                let fresh = batch
                    .iter()
                    .filter(|event| {
                        event.seq > self.cursor
                            && self.filter.fits(event.event.kind(), event.session, event.time)
                    })
                    .cloned()
                    .collect();
                let fresh = self.of_fitting_sessions(fresh).await?;
                self.cursor = batch.last().map_or(self.cursor, |event| event.seq.max(self.cursor));
                Ok(fresh)
            }
            Err(broadcast::error::RecvError::Lagged(_)) => {
                self.on_tail = false;
                Ok(Vec::new())
            }
            Err(broadcast::error::RecvError::Closed) => {
                Err(Refusal::new(Reason::ShuttingDown, "the daemon is shutting down"))
            }
        }
    }
}
