//! Looks for damage: SQLite's own check, then what must be true of our tables. Reports, never repairs.

use ostler_domain::session::View;
use rusqlite::{Connection, params};

use crate::{
    blob,
    convert::unsigned,
    error::ReadError,
    log, session,
    store::{Reader, Store},
};

/// Findings beyond this many say nothing new.
const MOST: usize = 100;
/// Newest sessions that a quick check folds again, and newest events whose blobs it looks for.
const QUICK_SESSIONS: i64 = 1_000;
const QUICK_EVENTS: u64 = 100_000;

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckDepth {
    /// The structure of the database and the newest part of its content.
    Quick,
    /// All of it; takes as long as reading the whole record.
    Full,
}

/// Something that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// `database`, `log`, `derived`, `blobs`, `outbox` or `search`.
    pub part: &'static str,
    pub text: String,
}

/// What was looked at, and what was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckReport {
    pub sessions: u64,
    pub blobs: u64,
    /// Empty when all is well; the first hundred.
    pub findings: Vec<Finding>,
}

impl CheckReport {
    fn find(&mut self, part: &'static str, text: String) {
        if self.findings.len() < MOST {
            self.findings.push(Finding { part, text });
        }
    }
}

type Part = fn(&Reader, CheckDepth, &mut CheckReport) -> Result<(), ReadError>;

impl Store {
    /// Looks for damage in the record as it is at this moment.
    pub async fn check(&self, depth: CheckDepth) -> Result<CheckReport, ReadError> {
        self.read(move |reader| {
            let mut report = CheckReport::default();
            let parts: [Part; 5] = [database, sequences, sessions, blobs, outbox];
            for part in parts {
                // A part that cannot be read is a finding, and the others are looked at all the same.
                if let Err(error) = part(reader, depth, &mut report) {
                    report.find("database", describe(&error));
                }
            }
            Ok(report)
        })
        .await
    }
}

fn describe(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", describe(source)),
        None => error.to_string(),
    }
}

fn database(reader: &Reader, depth: CheckDepth, report: &mut CheckReport) -> Result<(), ReadError> {
    let pragma = match depth {
        CheckDepth::Quick => "PRAGMA quick_check",
        CheckDepth::Full => "PRAGMA integrity_check",
    };
    for_each_text(&reader.connection, pragma, |text| {
        if text != "ok" {
            report.find("database", text);
        }
    })
}

/// The first session and the first event that a check of this depth looks at.
fn bounds(connection: &Connection, depth: CheckDepth) -> Result<(i64, u64), ReadError> {
    Ok(match depth {
        CheckDepth::Full => (1, 1),
        CheckDepth::Quick => (
            (session::last_number(connection)? - QUICK_SESSIONS + 1).max(1),
            (log::last_seq(connection)? + 1).saturating_sub(QUICK_EVENTS).max(1),
        ),
    })
}

/// Every session's events are counted from 1 without a hole.
fn sequences(reader: &Reader, depth: CheckDepth, report: &mut CheckReport) -> Result<(), ReadError> {
    let (first_session, _) = bounds(&reader.connection, depth)?;
    let sql = format!(
        "SELECT 'session number ' || session || ' has ' || count(*) || ' events numbered from ' || min(session_seq) || ' to ' || max(session_seq)
         FROM log_event WHERE session >= {first_session} GROUP BY session HAVING min(session_seq) <> 1 OR max(session_seq) <> count(*)"
    );
    for_each_text(&reader.connection, &sql, |text| report.find("log", text))
}

/// Every session's row is what its events add up to.
fn sessions(reader: &Reader, depth: CheckDepth, report: &mut CheckReport) -> Result<(), ReadError> {
    let connection = &reader.connection;
    let (first, _) = bounds(connection, depth)?;
    for num in first..=session::last_number(connection)? {
        report.sessions += 1;
        let folded = match session::fold(connection, &reader.blobs, num) {
            Ok(Some(state)) => state.view(),
            Ok(None) => {
                report.find("log", format!("session number {num} does not begin with its creation"));
                continue;
            }
            Err(error) => {
                report.find("log", format!("session number {num}: {}", describe(&error)));
                continue;
            }
        };
        // A row may be a moment behind, and must then be what the events up to its own add up to.
        let at = session::row(connection, num).map_or(folded.session_seq, |row| row.session_seq);
        let folded = match session::fold_to(connection, &reader.blobs, num, at) {
            Ok(Some(state)) if at < folded.session_seq && folded.ended_at.is_none() => state.view(),
            _ => folded,
        };
        if let Err(difference) = session::compare(connection, num, &folded)? {
            report.find("derived", format!("session {} {difference}", identity(&folded)));
        }
    }
    Ok(())
}

fn identity(view: &View) -> String {
    format!("{} ({})", view.id, view.name)
}

/// Every blob that the log names is there, and is what its name says.
fn blobs(reader: &Reader, depth: CheckDepth, report: &mut CheckReport) -> Result<(), ReadError> {
    let (_, first_event) = bounds(&reader.connection, depth)?;
    let mut statement = reader.connection.prepare(
        "SELECT seq, blob, 'body' FROM log_event WHERE seq >= ?1 AND blob IS NOT NULL
         UNION ALL SELECT seq, blob, 'picture' FROM image WHERE seq >= ?1",
    )?;
    let mut rows = statement.query(params![first_event.cast_signed()])?;
    while let Some(row) = rows.next()? {
        let (seq, hash) = (unsigned(row.get(0)?), row.get::<_, Vec<u8>>(1)?);
        let what: String = row.get(2)?;
        let path = reader.blobs.path(&hash);
        report.blobs += 1;
        match reader.blobs.bytes(&hash) {
            Ok(bytes) if blob::hash(&bytes).as_slice() == hash => {}
            Ok(_) => {
                report.find("blobs", format!("the {what} of event {seq} was changed: {}", path.display()))
            }
            Err(error) => report.find(
                "blobs",
                format!("the {what} of event {seq} is not there: {}: {error}", path.display()),
            ),
        }
    }
    Ok(())
}

/// The outbox holds inputs of living sessions with numbers that were given out.
fn outbox(reader: &Reader, _: CheckDepth, report: &mut CheckReport) -> Result<(), ReadError> {
    const SQL: &str = "
        SELECT 'input ' || o.input_no || ' of session number ' || o.session || ' was never given out'
        FROM node_outbox o LEFT JOIN node_session n ON n.session = o.session
        WHERE n.session IS NULL OR o.input_no > n.last_input_no
        UNION ALL
        SELECT 'session number ' || o.session || ' has ended, or never was, and waits to be told something'
        FROM node_outbox o LEFT JOIN session s ON s.num = o.session WHERE s.num IS NULL OR s.ended IS NOT NULL";
    for_each_text(&reader.connection, SQL, |text| report.find("outbox", text))
}

fn for_each_text(connection: &Connection, sql: &str, mut take: impl FnMut(String)) -> Result<(), ReadError> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        take(row.get(0)?);
    }
    Ok(())
}
