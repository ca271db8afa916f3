//! Moments.

use jiff::Timestamp;
use ostler_domain::Time;

/// In UTC, with microseconds.
pub fn rfc3339(time: Time) -> String {
    // A time outside what a calendar can name (the years -9999 to 9999) is a broken clock's: shown as 1970.
    let time = Timestamp::from_microsecond(time.micros()).unwrap_or(Timestamp::UNIX_EPOCH);
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
