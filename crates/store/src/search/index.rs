//! The thread that follows the log and feeds the index.

use std::{
    sync::mpsc,
    thread::{self, JoinHandle},
    time::Duration,
};

use ostler_domain::NodeId;
use rusqlite::{Connection, params};
use tokio::sync::watch;

use super::{SearchFile, TICKET_WORD, searched_kinds, session_word, text_of};
use crate::{
    blob::Blobs,
    check::Finding,
    connect,
    convert::signed,
    error::{Doing, Fault, FaultKind, ReadError},
    log::{STORED, Stored},
    open::Paths,
    pool::block_on,
};

/// What one transaction takes in at most: bounds its memory, and how long stopping takes.
const ROWS_AT_ONCE: u32 = 2_000;
const BYTES_AT_ONCE: usize = 8 * 1024 * 1024;
/// How long new events gather before they are indexed: one transaction for many commits.
const PAUSE: Duration = Duration::from_millis(100);
/// How long the thread waits after a failure, such as a full disk.
const RETRY: Duration = Duration::from_secs(5);

/// The indexing thread; ends when the writer has ended.
pub(crate) struct Indexer {
    cursor: watch::Receiver<u64>,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Worker {
    file: SearchFile,
    search: Connection,
    record: Connection,
    blobs: Blobs,
    node: NodeId,
    cursor: watch::Sender<u64>,
    published: watch::Receiver<u64>,
    stopped: mpsc::Receiver<()>,
}

impl Indexer {
    /// Opens or recreates the file and starts to follow the log.
    pub(crate) fn start(
        file: &SearchFile,
        paths: &Paths,
        blobs: Blobs,
        node: NodeId,
        published: watch::Receiver<u64>,
    ) -> Result<(Self, Vec<Finding>), Fault> {
        let mut findings = Vec::new();
        let end = *published.borrow();
        let (search, at) = match file.open(node) {
            Ok(Some((search, at))) if at <= end => (search, at),
            Ok(None) => (file.recreate(node)?, 0),
            Ok(Some((search, at))) => {
                // Only what was durable is indexed, so the log has lost something since.
                let text = format!(
                    "event {at} was recorded once, but the log ends with {end}: its end was lost, or an older copy was put in its place"
                );
                findings.push(Finding { part: "log", text });
                drop(search);
                (file.recreate(node)?, 0)
            }
            Err(error) => {
                findings.push(Finding {
                    part: "search",
                    text: format!("the search index is built anew: {error}"),
                });
                (file.recreate(node)?, 0)
            }
        };
        let (cursor, watched) = watch::channel(at);
        let (stop, stopped) = mpsc::channel();
        let record = connect::reader(&paths.db)?;
        let worker = Worker { file: file.clone(), search, record, blobs, node, cursor, published, stopped };
        let thread = thread::Builder::new()
            .name("ostler-search".to_owned())
            .spawn(move || worker.run())
            .doing("start the search index")?;
        Ok((Self { cursor: watched, stop: Some(stop), thread: Some(thread) }, findings))
    }

    /// The last event that can be found.
    pub(crate) fn cursor(&self) -> u64 {
        *self.cursor.borrow()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.cursor.clone()
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Worker {
    fn run(mut self) {
        loop {
            let pause = match self.catch_up() {
                Ok(()) => {
                    if block_on(self.published.changed()).is_err() {
                        return;
                    }
                    PAUSE
                }
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "the search index does not follow the log"
                    );
                    self.recover(&error);
                    RETRY
                }
            };
            if self.stopped.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }

    /// Indexes until the end of the log, or until the writer is gone.
    fn catch_up(&mut self) -> Result<(), ReadError> {
        if self.file.take_damage() {
            self.begin_anew()?;
        }
        loop {
            let end = *self.published.borrow_and_update();
            let from = *self.cursor.borrow();
            if from >= end || self.published.has_changed().is_err() {
                return Ok(());
            }
            let reached = self.index(from, end)?;
            self.cursor.send_replace(reached);
        }
    }

    /// Takes the next events into the index, with the new cursor in the same transaction.
    fn index(&mut self, after: u64, end: u64) -> Result<u64, ReadError> {
        let sql = format!(
            "SELECT {STORED}, e.session AS num FROM log_event e WHERE e.seq > ?1 AND e.seq <= ?2 AND e.kind IN ({}) ORDER BY e.seq LIMIT ?3",
            searched_kinds()
        );
        let mut statement = self.record.prepare_cached(&sql)?;
        let mut rows = statement.query(params![signed(after), signed(end), ROWS_AT_ONCE])?;
        let transaction = self.search.transaction().map_err(damaged)?;
        let mut insert = transaction
            .prepare_cached("INSERT INTO search_text(rowid, text, session) VALUES (?1, ?2, ?3)")
            .map_err(damaged)?;
        let mut reached = end;
        let (mut count, mut bytes) = (0, 0);
        while let Some(row) = rows.next()? {
            let stored = Stored::read(row)?;
            let session = row.get::<_, Option<i64>>("num")?;
            let whose = session.map_or_else(|| TICKET_WORD.to_owned(), session_word);
            count += 1;
            if let Some(text) = readable(&stored, &self.blobs) {
                bytes += text.len();
                insert.execute(params![signed(stored.seq), text, whose]).map_err(damaged)?;
            }
            if count == ROWS_AT_ONCE || bytes >= BYTES_AT_ONCE {
                reached = stored.seq;
                break;
            }
        }
        drop(insert);
        transaction.execute("UPDATE search_meta SET cursor = ?1", [signed(reached)]).map_err(damaged)?;
        transaction.commit().map_err(damaged)?;
        Ok(reached)
    }

    /// A damaged index is replaced; anything else, such as a full disk, may pass.
    fn recover(&mut self, error: &ReadError) {
        if matches!(error, ReadError::SearchIndex(fault) if fault.kind == FaultKind::Corrupt)
            && let Err(error) = self.begin_anew()
        {
            tracing::warn!(error = &error as &dyn std::error::Error, "the search index was not replaced");
        }
    }

    fn begin_anew(&mut self) -> Result<(), Fault> {
        self.search = self.file.recreate(self.node)?;
        self.cursor.send_replace(0);
        Ok(())
    }
}

/// Tells a failure of the index from one of the record.
fn damaged(error: rusqlite::Error) -> ReadError {
    ReadError::SearchIndex(Fault::sqlite("write the search index", error))
}

/// An event that cannot be read cannot be found, and is no reason to find nothing after it.
fn readable(stored: &Stored, blobs: &Blobs) -> Option<String> {
    match stored.event(blobs) {
        Ok(event) => text_of(&event),
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "an event is left out of the search index"
            );
            None
        }
    }
}
