//! Between Rust's and SQLite's numbers, times and ids. SQLite's integers are signed.

use std::time::{SystemTime, UNIX_EPOCH};

use ostler_domain::Time;
use rusqlite::Row;

use crate::error::ReadError;

/// Counts beyond what SQLite can hold are nonsense that an agent reported: kept as the largest number.
pub(crate) fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

pub(crate) fn unsigned(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

/// Reads a text column as an id, a name or anything else with one spelling.
pub(crate) fn parsed<T: std::str::FromStr>(
    row: &Row<'_>,
    column: &str,
    what: &'static str,
) -> Result<T, ReadError> {
    let text = row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?;
    text.parse().map_err(|_| ReadError::Row { what, text: text.to_owned() })
}

pub(crate) fn parsed_if_any<T: std::str::FromStr>(
    row: &Row<'_>,
    column: &str,
    what: &'static str,
) -> Result<Option<T>, ReadError> {
    match row.get_ref(column)?.as_str_or_null().map_err(rusqlite::Error::from)? {
        None => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| ReadError::Row { what, text: text.to_owned() }),
    }
}

pub(crate) fn time(row: &Row<'_>, column: &str) -> Result<Time, ReadError> {
    Ok(Time::from_micros(row.get(column)?))
}

pub(crate) fn time_if_any(row: &Row<'_>, column: &str) -> Result<Option<Time>, ReadError> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Time::from_micros))
}

pub(crate) fn wall_clock() -> Time {
    let micros = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |span| span.as_micros());
    Time::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}
