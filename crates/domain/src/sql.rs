//! Questions in SQL over the record: what may be asked for, and what is answered.

use std::time::Duration;

/// Rows that are answered where nobody says how many.
pub const USUAL_ROWS: u64 = 1_000;
/// And at most.
pub const MOST_ROWS: u64 = 10_000_000;
/// How long a question may take where nobody says.
pub const USUAL_TIME: Duration = Duration::from_secs(10);
/// And at most: as long as it is answered, the write-ahead log cannot be cut back.
pub const MOST_TIME: Duration = Duration::from_secs(600);
/// What may be asked, in bytes.
pub const SQL_BYTES: usize = 256 * 1024;
/// Bytes of one value.
pub const VALUE_BYTES: usize = 8 * 1024 * 1024;

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub sql: String,
    /// Most rows.
    pub rows: u64,
    pub time: Duration,
}

impl Question {
    pub fn new(sql: String) -> Self {
        Self { sql, rows: USUAL_ROWS, time: USUAL_TIME }
    }

    /// The same within what may be asked for.
    #[must_use]
    pub fn bounded(self) -> Self {
        Self { rows: self.rows.clamp(1, MOST_ROWS), time: self.time.min(MOST_TIME), ..self }
    }
}

/// One value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// First: what the rows have.
    Columns(Vec<String>),
    Rows(Vec<Vec<Cell>>),
    /// Last, where there are more rows than were asked for.
    Cut,
}
