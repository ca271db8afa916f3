//! `log_event`: appending to it and reading it, in both directions.

use std::ops::ControlFlow;

use ostler_domain::{
    Kind, Recorded, SessionId, Time,
    event::{DecodeError, Event, Unreadable},
    limits::{CLOCK_SLACK, EVENT_PAGE_BYTES, SCAN_ROWS},
    query::{EventFilter, Listed, Page},
};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, ToSql, params};

use crate::{
    blob::Blobs,
    commit::Body,
    convert::{signed, unsigned},
    error::ReadError,
    session,
    store::{Reader, Store},
};

const APPEND: &str = "INSERT INTO log_event(seq, session, session_seq, time, happened, kind, body, blob) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

/// Adds rows to the end of the log.
pub(crate) struct Appender<'c>(CachedStatement<'c>);

impl<'c> Appender<'c> {
    pub(crate) fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        connection.prepare_cached(APPEND).map(Self)
    }

    pub(crate) fn append(
        &mut self,
        seq: u64,
        place: Option<(i64, u64)>,
        (time, recorded): (Time, Option<Time>),
        kind: Kind,
        body: &Body,
    ) -> rusqlite::Result<()> {
        let (session, session_seq) = place.map(|(num, session_seq)| (num, signed(session_seq))).unzip();
        let (text, blob) = match body {
            Body::Inline(text) => (Some(text), None),
            Body::Blob { hash, .. } => (None, Some(hash)),
        };
        let happened = recorded.map(|_| time.micros());
        let recorded = recorded.unwrap_or(time).micros();
        self.0.execute(params![
            signed(seq),
            session,
            session_seq,
            recorded,
            happened,
            kind.code(),
            text,
            blob
        ])?;
        Ok(())
    }
}

/// The highest number in the log; 0 when it is empty.
pub(crate) fn last_seq(connection: &Connection) -> rusqlite::Result<u64> {
    highest(connection, "SELECT max(seq) FROM log_event", [])
}

/// The place of a session's last event.
pub(crate) fn last_session_seq(connection: &Connection, num: i64) -> rusqlite::Result<u64> {
    highest(connection, "SELECT max(session_seq) FROM log_event WHERE session = ?1", [num])
}

fn highest(connection: &Connection, sql: &str, params: impl rusqlite::Params) -> rusqlite::Result<u64> {
    let found: Option<i64> = connection.prepare_cached(sql)?.query_row(params, |row| row.get(0))?;
    Ok(found.map_or(0, unsigned))
}

/// A row of the log before its body is understood. `body` and `blob` are as in the table.
pub(crate) struct Stored {
    pub(crate) seq: u64,
    pub(crate) session_seq: Option<u64>,
    pub(crate) time: Time,
    pub(crate) kind: i64,
    pub(crate) body: Option<String>,
    pub(crate) blob: Option<Vec<u8>>,
}

/// The columns that [`Stored::read`] expects, in its order.
pub(crate) const STORED: &str = "e.seq, e.session_seq, coalesce(e.happened, e.time), e.kind, e.body, e.blob";

impl Stored {
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: unsigned(row.get(0)?),
            session_seq: row.get::<_, Option<i64>>(1)?.map(unsigned),
            time: Time::from_micros(row.get(2)?),
            kind: row.get(3)?,
            body: row.get(4)?,
            blob: row.get(5)?,
        })
    }

    /// Reads the body, wherever it is, and understands it.
    pub(crate) fn event(&self, blobs: &Blobs) -> Result<Event, ReadError> {
        let seq = self.seq;
        let code = u16::try_from(self.kind).unwrap_or(u16::MAX);
        let unknown = || ReadError::Event { seq, source: DecodeError::UnknownKind(code) };
        let kind = Kind::from_code(code).ok_or_else(unknown)?;
        let from_blob;
        let body = match (&self.body, &self.blob) {
            (Some(text), _) => text,
            (None, hash) => {
                let hash = hash.as_deref().unwrap_or_default();
                from_blob =
                    blobs.read(hash).map_err(|(path, source)| ReadError::Blob { seq, path, source })?;
                &from_blob
            }
        };
        Event::decode(kind, body).map_err(|source| ReadError::Event { seq, source })
    }

    /// What is shown of it: one that cannot be read must not hide those behind it.
    pub(crate) fn shown(self, session: Option<SessionId>, blobs: &Blobs) -> Recorded {
        let event = self.event(blobs).unwrap_or_else(|error| {
            Event::Unreadable(Unreadable { code: Some(self.kind), why: error.why() })
        });
        Recorded { seq: self.seq, session, session_seq: self.session_seq, time: self.time, event }
    }
}

/// A row of which not even the columns are what they should be.
fn unreadable(row: &Row<'_>, seq: u64, session: Option<SessionId>, error: &rusqlite::Error) -> Recorded {
    let code = row.get(3).ok();
    let session_seq = row.get::<_, Option<i64>>(1).ok().flatten().map(unsigned);
    let time = Time::from_micros(row.get(2).unwrap_or_default());
    let event = Event::Unreadable(Unreadable { code, why: error.to_string() });
    Recorded { seq, session, session_seq, time, event }
}

/// Hands all events of a session from a place on to `take`, in order.
pub(crate) fn for_each_of_session(
    connection: &Connection,
    num: i64,
    from_session_seq: u64,
    mut take: impl FnMut(Stored) -> Result<ControlFlow<()>, ReadError>,
) -> Result<(), ReadError> {
    let sql = format!(
        "SELECT {STORED} FROM log_event e WHERE e.session = ?1 AND e.session_seq >= ?2 ORDER BY e.session_seq"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![num, signed(from_session_seq)])?;
    while let Some(row) = rows.next()? {
        if take(Stored::read(row)?)?.is_break() {
            break;
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    OldestFirst,
    NewestFirst,
}

impl Store {
    /// Events after a place in the log, oldest first. The cursor is a `seq`.
    pub async fn events_after(
        &self,
        after: u64,
        filter: &EventFilter,
        limit: u32,
    ) -> Result<Listed<Recorded>, ReadError> {
        let filter = filter.clone();
        self.read(move |reader| list(reader, &filter, Direction::OldestFirst, after, limit)).await
    }

    /// Events before a place in the log or from its end, newest first. The cursor is a `seq`.
    pub async fn events_before(
        &self,
        before: Option<u64>,
        filter: &EventFilter,
        limit: u32,
    ) -> Result<Listed<Recorded>, ReadError> {
        let filter = filter.clone();
        let before = before.unwrap_or(u64::MAX);
        self.read(move |reader| list(reader, &filter, Direction::NewestFirst, before, limit)).await
    }

    /// A session's events from a `session_seq` on, which is also the cursor.
    pub async fn session_events(
        &self,
        id: SessionId,
        from_session_seq: u64,
        limit: u32,
    ) -> Result<Listed<Recorded>, ReadError> {
        self.read(move |reader| {
            let mut page = EventPage::new(limit);
            let Some(num) = session::number(&reader.connection, id)? else { return Ok(page.finish(None)) };
            let mut next = None;
            for_each_of_session(&reader.connection, num, from_session_seq, |stored| {
                if page.is_full() {
                    next = stored.session_seq;
                    return Ok(ControlFlow::Break(()));
                }
                page.add(stored, Some(id), &reader.blobs);
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(page.finish(next))
        })
        .await
    }

    /// One event by its place in the log.
    pub async fn event(&self, seq: u64) -> Result<Option<Recorded>, ReadError> {
        let listed = self.events_after(seq.saturating_sub(1), &EventFilter::default(), 1).await?;
        Ok(listed.rows.into_iter().next().filter(|found| found.seq == seq))
    }
}

/// Rows of an answer, bounded in number and in bytes.
struct EventPage {
    rows: Vec<Recorded>,
    limit: usize,
    bytes: usize,
}

impl EventPage {
    fn new(limit: u32) -> Self {
        Self { rows: Vec::new(), limit: Page::of(limit, None).limit as usize, bytes: 0 }
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= self.limit || self.bytes >= EVENT_PAGE_BYTES
    }

    fn add(&mut self, stored: Stored, session: Option<SessionId>, blobs: &Blobs) {
        // What came from a file is far larger than what did not; its exact size is of no interest.
        self.bytes += stored.body.as_ref().map_or(EVENT_PAGE_BYTES / 8, String::len);
        self.rows.push(stored.shown(session, blobs));
    }

    fn finish(self, next_cursor: Option<u64>) -> Listed<Recorded> {
        Listed { rows: self.rows, next_cursor }
    }
}

/// Walks the log from a place in one direction and keeps what fits the filter.
fn list(
    reader: &Reader,
    filter: &EventFilter,
    direction: Direction,
    from: u64,
    limit: u32,
) -> Result<Listed<Recorded>, ReadError> {
    let connection = &reader.connection;
    let mut page = EventPage::new(limit);
    let session = match filter.session {
        None => None,
        Some(id) => match session::number(connection, id)? {
            Some(num) => Some((id, num)),
            None => return Ok(page.finish(None)),
        },
    };
    let from = match (direction, session, filter.since) {
        (Direction::OldestFirst, None, Some(since)) => from.max(first_around(connection, since)?),
        _ => from,
    };
    let walk = Walk::new(connection, filter, direction, session.map(|(_, num)| num), from)?;
    let mut statement = connection.prepare_cached(&walk.sql)?;
    let mut rows = statement.query(rusqlite::params_from_iter(walk.params.iter()))?;
    let mut scanned = 0;
    let mut last = from;
    loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => break,
            // What lies before the damage is shown; who goes on from there is told of it.
            Err(_) if !page.rows.is_empty() => return Ok(page.finish(Some(last))),
            Err(error) => return Err(error.into()),
        };
        if page.is_full() || scanned == SCAN_ROWS {
            return Ok(page.finish(Some(last)));
        }
        scanned += 1;
        last = unsigned(row.get(0)?);
        if row.get("fits")? {
            let id = match session {
                Some((id, _)) => Some(id),
                None => crate::convert::parsed_if_any(row, "session_id", "session id")?,
            };
            match Stored::read(row) {
                Ok(stored) => page.add(stored, id, &reader.blobs),
                Err(error) => page.rows.push(unreadable(row, last, id, &error)),
            }
        } else if direction == Direction::NewestFirst && walk.is_past(Time::from_micros(row.get("recorded")?))
        {
            break;
        }
    }
    Ok(page.finish(None))
}

/// A statement that visits the log in order and says of each row whether it fits.
struct Walk {
    sql: String,
    params: Vec<Box<dyn ToSql>>,
    since: Option<Time>,
}

impl Walk {
    fn new(
        connection: &Connection,
        filter: &EventFilter,
        direction: Direction,
        session: Option<i64>,
        from: u64,
    ) -> rusqlite::Result<Self> {
        let mut params: Vec<Box<dyn ToSql>> = Vec::new();
        let mut fits = vec!["1".to_owned()];
        if !filter.kinds.is_empty() {
            let codes: Vec<String> = filter.kinds.iter().map(|kind| kind.code().to_string()).collect();
            fits.push(format!("e.kind IN ({})", codes.join(",")));
        }
        for (time, comparison) in [
            (filter.since, "coalesce(e.happened, e.time) >= ?"),
            (filter.until, "coalesce(e.happened, e.time) < ?"),
        ] {
            if let Some(time) = time {
                fits.push(comparison.to_owned());
                params.push(Box::new(time.micros()));
            }
        }
        if let Some(sessions) = &filter.sessions {
            let fitting = session::Condition::fitting("e.session", sessions);
            fits.push(fitting.sql);
            params.extend(fitting.params);
        }
        let (comparison, order) = match direction {
            Direction::OldestFirst => (">", "ASC"),
            Direction::NewestFirst => ("<", "DESC"),
        };
        let fits = fits.join(" AND ");
        // Bodies of rows that do not fit are not read; they may fill many pages.
        let columns =
            "e.seq, e.session_seq, coalesce(e.happened, e.time), e.kind, iif(fits, e.body, NULL), iif(fits, e.blob, NULL), fits,
             e.time AS recorded";
        let sql = match session {
            Some(num) => {
                let (place, inclusive) = session_place(connection, num, from, direction)?;
                params.push(Box::new(num));
                params.push(Box::new(signed(place)));
                format!(
                    "SELECT {columns} FROM (SELECT *, ({fits}) AS fits FROM log_event e) e
                     WHERE e.session = ? AND e.session_seq {comparison}{inclusive} ? ORDER BY e.session_seq {order}"
                )
            }
            None => {
                params.push(Box::new(signed(from)));
                format!(
                    "SELECT {columns}, (SELECT s.id FROM session s WHERE s.num = e.session) AS session_id
                     FROM (SELECT *, ({fits}) AS fits FROM log_event e) e WHERE e.seq {comparison} ? ORDER BY e.seq {order}"
                )
            }
        };
        Ok(Self { sql, params, since: filter.since })
    }

    /// Going back, rows this much older than what is asked for mean that the rest is older too: clocks are set
    /// back, but not by days.
    fn is_past(&self, time: Time) -> bool {
        self.since.is_some_and(|since| time.plus(CLOCK_SLACK) < since)
    }
}

/// Where in a session's own sequence a place of the log lies. Both grow together, so halving finds it, and the
/// session's index serves a cursor that is a `seq`.
fn session_place(
    connection: &Connection,
    num: i64,
    from: u64,
    direction: Direction,
) -> rusqlite::Result<(u64, &'static str)> {
    let mut statement =
        connection.prepare_cached("SELECT seq FROM log_event WHERE session = ?1 AND session_seq = ?2")?;
    let mut seq_at =
        |place: u64| statement.query_row(params![num, signed(place)], |row| row.get(0)).map(unsigned);
    let past_from = |seq: u64| match direction {
        Direction::OldestFirst => seq > from,
        Direction::NewestFirst => seq >= from,
    };
    let first = first_where(last_session_seq(connection, num)?, |place| Ok(past_from(seq_at(place)?)))?;
    Ok(match direction {
        Direction::OldestFirst => (first, "="),
        Direction::NewestFirst => (first, ""),
    })
}

/// A place in the log before everything recorded from `since` on, by halving. Times in the log grow except for
/// a clock that was set back, hence the slack.
fn first_around(connection: &Connection, since: Time) -> rusqlite::Result<u64> {
    let wanted = since.minus(CLOCK_SLACK).micros();
    let mut statement = connection.prepare_cached("SELECT time FROM log_event WHERE seq = ?1")?;
    let mut time_at = |seq: u64| -> rusqlite::Result<i64> {
        Ok(statement.query_row([signed(seq)], |row| row.get(0)).optional()?.unwrap_or(i64::MIN))
    };
    let first = first_where(last_seq(connection)?, |seq| Ok(time_at(seq)? >= wanted))?;
    Ok(first.saturating_sub(1))
}

/// The first of 1..=last for which the answer is yes and stays yes; `last + 1` when there is none.
fn first_where(last: u64, mut is_so: impl FnMut(u64) -> rusqlite::Result<bool>) -> rusqlite::Result<u64> {
    let (mut low, mut high) = (1, last + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_so(middle)? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(low)
}
