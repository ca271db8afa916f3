//! The raw limit: the same table and the same index by plain `rusqlite`, with nothing around it.

use std::{
    path::Path,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use ostler_domain::limits::CHECKPOINT_PAGES;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::{line_text, wall_us};
use crate::Outcome;

/// Sessions whose events are interleaved.
pub(crate) const SESSIONS: u64 = 500;

/// A database with the log and nothing else.
pub(crate) struct Raw {
    connection: Connection,
    seq: u64,
    /// Ready to be bound, so that making it is not measured.
    body: String,
    _dir: tempfile::TempDir,
}

impl Raw {
    pub(crate) fn create(dir: &Path) -> Outcome<Self> {
        let place = tempfile::Builder::new().prefix("raw-").tempdir_in(dir)?;
        let connection = Connection::open(place.path().join("raw.db"))?;
        connection.pragma_update(None, "page_size", 8192)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        connection.pragma_update(None, "cache_size", -16 * 1024)?;
        connection.execute_batch(
            "CREATE TABLE log_event(
                seq INTEGER PRIMARY KEY, session INTEGER, session_seq INTEGER, time INTEGER NOT NULL,
                kind INTEGER NOT NULL, body TEXT, blob BLOB,
                CHECK ((session IS NULL) = (session_seq IS NULL)), CHECK ((body IS NULL) <> (blob IS NULL))
             ) STRICT;
             CREATE UNIQUE INDEX log_event_session ON log_event(session, session_seq) WHERE session IS NOT NULL;",
        )?;
        let body = format!("{{\"text\":\"{}\"}}", line_text(1));
        Ok(Self { connection, seq: 0, body, _dir: place })
    }

    /// Inserts this many events, so many in each transaction.
    pub(crate) fn insert(&mut self, events: u64, batch: u64) -> Outcome<Duration> {
        let began = Instant::now();
        let end = self.seq + events;
        while self.seq < end {
            let until = end.min(self.seq + batch);
            self.commit_up_to(until)?;
        }
        Ok(began.elapsed())
    }

    fn commit_up_to(&mut self, until: u64) -> Outcome<()> {
        let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
        {
            let mut insert = transaction.prepare_cached(
                "INSERT INTO log_event(seq, session, session_seq, time, kind, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?;
            let time = wall_us();
            while self.seq < until {
                self.seq += 1;
                let (session, session_seq) = (self.seq % SESSIONS, self.seq / SESSIONS);
                insert.execute(params![
                    self.seq.cast_signed(),
                    session.cast_signed(),
                    session_seq.cast_signed(),
                    time,
                    53,
                    self.body
                ])?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    /// How long single events take to be durable, in milliseconds: offered at a rate, a writer takes what waits.
    pub(crate) fn latencies(mut self, per_second: u64, span: Duration) -> Outcome<Vec<f64>> {
        const MOST_AT_ONCE: usize = 1_000;
        let (sender, queue) = mpsc::channel::<Instant>();
        let writer = thread::spawn(move || -> Outcome<Vec<f64>> {
            let mut latencies = Vec::new();
            while let Ok(first) = queue.recv() {
                let offered: Vec<Instant> =
                    std::iter::once(first).chain(queue.try_iter().take(MOST_AT_ONCE - 1)).collect();
                self.commit_up_to(self.seq + offered.len() as u64)?;
                latencies.extend(offered.iter().map(|offered| offered.elapsed().as_secs_f64() * 1_000.0));
            }
            Ok(latencies)
        });
        pace(per_second, span, |_| sender.send(Instant::now()).is_ok());
        drop(sender);
        writer.join().map_err(|_| "the raw writer panicked")?
    }
}

/// Does something at a rate for a while: what was due while the machine was busy is made up for at once.
pub(crate) fn pace(per_second: u64, span: Duration, mut act: impl FnMut(u64) -> bool) {
    let began = Instant::now();
    let mut done = 0;
    while began.elapsed() < span {
        let due = (began.elapsed().as_secs_f64() * per_second as f64) as u64;
        while done < due {
            if !act(done) {
                return;
            }
            done += 1;
        }
        thread::sleep(Duration::from_micros(200));
    }
}
