//! The writer thread: the only one that changes the database. It gathers commits, writes them in one
//! transaction, and only when that is durable answers their owners and publishes their events.

mod apply;
mod queue;

use std::{
    collections::HashMap,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
    time::Instant,
};

use ostler_domain::{
    SessionId,
    limits::{CHECKPOINT_PAGES, SHOWN_WITHIN},
};
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, broadcast, oneshot, watch};

use crate::{
    commit::{Committed, Encoded},
    error::{CommitError, Doing, Fault},
    log,
    meter::Meter,
    published::Published,
    session::{self, Shown},
    store::Batch,
};
use apply::{Known, Look, PendingRow};
use queue::Next;
pub(crate) use queue::Queue;

/// Sessions whose place the writer remembers; more than ever live at once.
const SESSIONS_KNOWN: usize = 8_192;

/// Something for the writer to do.
pub(crate) enum Job {
    Commit {
        encoded: Box<Encoded>,
        answer: Answer,
        arrived: Instant,
        /// Makes others wait while this one is not answered.
        _room: OwnedSemaphorePermit,
    },
    /// Work that wants the connection for itself.
    Exclusive(Work),
}

type Work = Box<dyn FnOnce(&mut Writer) + Send>;

type Answer = oneshot::Sender<Result<Committed, CommitError>>;

/// A commit waiting for its transaction.
struct Waiting {
    encoded: Encoded,
    answer: Answer,
    arrived: Instant,
    _room: OwnedSemaphorePermit,
}

pub(crate) struct Writer {
    connection: Connection,
    counters: Counters,
    known: HashMap<SessionId, Known>,
    wal_pages: Arc<AtomicI32>,
    published: watch::Sender<u64>,
    tail: broadcast::Sender<Batch>,
    shown: Shown,
    meter: Meter,
    /// When the looks were last written into their rows.
    looks_written: Instant,
}

/// The last numbers given out. Only the writer gives any, so memory is where they are kept.
#[derive(Debug, Clone, Copy)]
struct Counters {
    seq: u64,
    session: i64,
}

impl Counters {
    fn read(connection: &Connection) -> Result<Self, Fault> {
        let read = || -> rusqlite::Result<Self> {
            Ok(Self { seq: log::last_seq(connection)?, session: session::last_number(connection)? })
        };
        read().doing("find the end of the log")
    }
}

/// One transaction in the making.
#[derive(Default)]
struct Draft {
    recorded: Vec<Arc<Published>>,
    /// Session rows to write once, at the end, however many commits change them.
    rows: HashMap<SessionId, PendingRow>,
}

/// What a transaction came to: a result for each of its commits, and the events of those that succeeded.
struct Written {
    results: Vec<Result<Range<u64>, CommitError>>,
    recorded: Vec<Arc<Published>>,
    looks: Vec<Look>,
}

impl Writer {
    pub(crate) fn new(
        mut connection: Connection,
        tail: broadcast::Sender<Batch>,
        shown: Shown,
        meter: Meter,
    ) -> Result<(Self, watch::Receiver<u64>), Fault> {
        let wal_pages = Arc::new(AtomicI32::new(0));
        let pages_seen = Arc::clone(&wal_pages);
        // Replaces SQLite's own checkpoint, which would run inside COMMIT, before anyone is answered.
        connection
            .wal_hook(Some(move |_: &mut _, pages| {
                pages_seen.store(pages, Ordering::Relaxed);
                Ok(())
            }))
            .doing("watch the write-ahead log")?;
        let counters = Counters::read(&connection)?;
        let (published, watched) = watch::channel(counters.seq);
        let writer = Self {
            connection,
            counters,
            known: HashMap::new(),
            wal_pages,
            published,
            tail,
            shown,
            meter,
            looks_written: Instant::now(),
        };
        Ok((writer, watched))
    }

    pub(crate) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Works until nobody is left to ask for anything.
    pub(crate) fn run(mut self, queue: &Queue) {
        let _abandoned = Abandoned(queue);
        loop {
            let patience = self.shown.has_unwritten().then_some(SHOWN_WITHIN);
            match queue.next(patience) {
                Next::Closed => break,
                Next::Quiet => self.write_looks_now(),
                Next::Jobs(batch, exclusive) => {
                    if !batch.is_empty() {
                        self.commit(batch);
                        self.checkpoint_if_due();
                    }
                    if self.looks_written.elapsed() >= SHOWN_WITHIN || exclusive.is_some() {
                        self.write_looks_now();
                    }
                    if let Some(work) = exclusive {
                        work(&mut self);
                    }
                }
            }
        }
        self.write_looks_now();
        // Leaves one whole file behind; SQLite would only do so if this connection were the last.
        if let Err(error) = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
            tracing::warn!(error = &error as &dyn std::error::Error, "the write-ahead log stays");
        }
    }

    /// Writes a batch and answers its owners.
    fn commit(&mut self, batch: Vec<Waiting>) {
        let counters = self.counters;
        let begun = Instant::now();
        let arrived: Vec<Instant> = batch.iter().map(|waiting| waiting.arrived).collect();
        let (encoded, answers): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|waiting| (waiting.encoded, (waiting.answer, waiting._room))).unzip();
        let written = self.write(encoded);
        match &written {
            Ok(written) => {
                let waited: Vec<_> = arrived.iter().map(Instant::elapsed).collect();
                self.meter.committed(&written.recorded, begun.elapsed(), &waited);
            }
            Err(_) => self.meter.failed(),
        }
        let Written { results, recorded, looks } = written.unwrap_or_else(|fault| {
            tracing::error!(error = &fault as &dyn std::error::Error, "a transaction was not committed");
            self.forget(counters);
            let failed = answers.iter().map(|_| Err(CommitError::Fault(fault.clone()))).collect();
            Written { results: failed, recorded: Vec::new(), looks: Vec::new() }
        });
        let last_seq = self.counters.seq;
        for Look { num, view, is_written } in looks {
            self.shown.show(num, view, is_written);
        }
        // Before the answers: who was answered finds its own events within what is published.
        if !recorded.is_empty() {
            self.published.send_replace(last_seq);
        }
        for ((answer, _room), result) in answers.into_iter().zip(results) {
            // An owner that no longer waits has had its commit all the same.
            let _ = answer.send(result.map(|seqs| Committed { seqs, last_seq }));
        }
        if !recorded.is_empty() && self.tail.receiver_count() > 0 {
            let _ = self.tail.send(recorded.into());
        }
    }

    /// Writes what is shown into the rows. It stays shown while that fails.
    fn write_looks_now(&mut self) {
        self.looks_written = Instant::now();
        if let Err(error) = self.write_looks() {
            tracing::warn!(error = &error as &dyn std::error::Error, "sessions' rows stay behind");
        }
    }

    /// Writes a batch in one transaction. Each commit of it succeeds or fails alone; an error means that none did.
    fn write(&mut self, batch: Vec<Encoded>) -> Result<Written, Fault> {
        self.transaction(|writer| writer.write_each(batch))
    }

    fn transaction<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Fault>) -> Result<T, Fault> {
        self.execute("BEGIN IMMEDIATE").doing("begin a transaction")?;
        let committed = work(self).and_then(|done| {
            self.execute("COMMIT").doing("commit to the log")?;
            Ok(done)
        });
        if committed.is_err() && !self.connection.is_autocommit() {
            self.execute("ROLLBACK").doing("roll back a transaction")?;
        }
        committed
    }

    fn write_each(&mut self, batch: Vec<Encoded>) -> Result<Written, Fault> {
        let is_alone = batch.len() == 1;
        let mut draft = Draft::default();
        let mut results = Vec::with_capacity(batch.len());
        for encoded in batch {
            let counters = self.counters;
            let recorded = draft.recorded.len();
            let session = encoded.session.as_ref().map(|session| session.id);
            // A commit that is alone is rolled back with its transaction; and what cannot be refused half way needs no
            // way back, which would cost a copy of every page it touches.
            let has_savepoint = !is_alone && encoded.may_be_refused();
            if has_savepoint {
                self.execute("SAVEPOINT one").doing("begin a commit")?;
            }
            let applied = self.apply(encoded, &mut draft);
            match &applied {
                Ok(_) if has_savepoint => self.execute("RELEASE one").doing("end a commit")?,
                Ok(_) => {}
                Err(CommitError::Fault(fault)) if !is_alone && !has_savepoint => return Err(fault.clone()),
                Err(error) => {
                    // Some failures take the whole transaction with them; then nobody's part is left.
                    if self.connection.is_autocommit() {
                        return Err(match error {
                            CommitError::Fault(fault) => fault.clone(),
                            _ => Fault::sqlite("go on with a transaction", rusqlite::Error::InvalidQuery),
                        });
                    }
                    if is_alone {
                        self.connection
                            .execute_batch("ROLLBACK; BEGIN IMMEDIATE")
                            .doing("roll back a commit")?;
                    } else if has_savepoint {
                        self.connection
                            .execute_batch("ROLLBACK TO one; RELEASE one")
                            .doing("roll back a commit")?;
                    }
                    self.counters = counters;
                    draft.recorded.truncate(recorded);
                    if let Some(id) = session {
                        self.known.remove(&id);
                    }
                }
            }
            results.push(applied);
        }
        let looks = self.write_rows(draft.rows)?;
        Ok(Written { results, recorded: draft.recorded, looks })
    }

    /// Writes commits that all must succeed, in one transaction. Whoever loads publishes at its end.
    pub(crate) fn load(&mut self, batch: Vec<Encoded>) -> Result<(), CommitError> {
        let counters = self.counters;
        let written = self.write_all(batch);
        if written.is_err() {
            self.forget(counters);
            if !self.connection.is_autocommit() {
                self.execute("ROLLBACK").doing("roll back a transaction")?;
            }
        }
        self.checkpoint_if_due();
        written
    }

    fn write_all(&mut self, batch: Vec<Encoded>) -> Result<(), CommitError> {
        let mut draft = Draft::default();
        self.execute("BEGIN IMMEDIATE").doing("begin a transaction")?;
        for encoded in batch {
            self.apply(encoded, &mut draft)?;
        }
        // What is loaded is written once and for all: a look that waits would have to be kept for each session.
        let looks = self.write_rows(draft.rows)?;
        for look in looks.iter().filter(|look| !look.is_written) {
            session::update_view(&self.connection, look.num, &look.view).doing("update a session's row")?;
        }
        Ok(self.execute("COMMIT").doing("commit to the log")?)
    }

    /// Forgets what a transaction that did not happen would have made true.
    fn forget(&mut self, counters: Counters) {
        self.counters = counters;
        self.known.clear();
    }

    /// Looks again at a database that was changed by other means than commits, and says so.
    pub(crate) fn look_again(&mut self) -> Result<(), Fault> {
        self.known.clear();
        self.counters = Counters::read(&self.connection)?;
        self.published.send_replace(self.counters.seq);
        Ok(())
    }

    fn checkpoint_if_due(&self) {
        let is_due = |pages: i32| u32::try_from(pages).is_ok_and(|pages| pages >= CHECKPOINT_PAGES);
        if is_due(self.wal_pages.load(Ordering::Relaxed))
            && let Err(error) = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
        {
            // What was committed is safe in the write-ahead log; the next commit tries again.
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the write-ahead log was not checkpointed"
            );
        }
    }

    fn execute(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([])?;
        Ok(())
    }
}

/// A writer that is gone, however that came about, leaves nobody waiting for it.
struct Abandoned<'q>(&'q Queue);

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
