//! The two clocks of a keeper: wall time for the record, and the earliest of many deadlines.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Microseconds since 1970 UTC.
pub(crate) fn wall_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

pub(crate) fn earliest(deadlines: impl IntoIterator<Item = Option<Instant>>) -> Option<Instant> {
    deadlines.into_iter().flatten().min()
}
