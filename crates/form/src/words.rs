//! Numbers and spans as people read them.

use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};
use ostler_client::reply::HttpToken;
use ostler_domain::{ApprovalId, Time};
pub use ostler_domain::{text::count, time::age};

/// When today began there.
pub fn midnight(now: Time, zone: &TimeZone) -> Time {
    let now_there = Timestamp::from_microsecond(now.micros()).unwrap_or(Timestamp::UNIX_EPOCH);
    let today = now_there.to_zoned(zone.clone()).start_of_day();
    today.map_or(now, |start| Time::from_micros(start.timestamp().as_microsecond()))
}

/// A span in two units: `40s`, `1m 12s`, `1h 4m`, `3d 2h`.
pub fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    let (large, small) = match seconds {
        0..60 => return format!("{seconds}s"),
        60..3_600 => ((seconds / 60, 'm'), (seconds % 60, 's')),
        3_600..86_400 => ((seconds / 3_600, 'h'), (seconds % 3_600 / 60, 'm')),
        _ => ((seconds / 86_400, 'd'), (seconds % 86_400 / 3_600, 'h')),
    };
    match small.0 {
        0 => format!("{}{}", large.0, large.1),
        n => format!("{}{} {n}{}", large.0, large.1, small.1),
    }
}

/// How long something took: `340 ms`, `8.2 s`, `4m 12s`.
pub fn took(duration: Duration) -> String {
    match duration.as_millis() {
        millis @ 0..1_000 => format!("{millis} ms"),
        millis @ 1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        _ => span(duration),
    }
}

/// What whoever comes with it may do: `look`, `everything`, `answer qkff2`.
pub fn may(token: &HttpToken) -> String {
    match &token.approval {
        // A browser that followed the link of a notice has the rights of that card alone.
        Some(id) => {
            let short = id.parse::<ApprovalId>().map_or_else(|_| id.clone(), |id| id.short());
            format!("answer {short}")
        }
        None if token.read_only => "look".to_owned(),
        None => "everything".to_owned(),
    }
}

/// A number in full: `1,204`.
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 session`, `2 sessions`.
pub fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", number(n), if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Money of today is that of the day of whoever looks, not of Greenwich.
    #[test]
    fn a_day_begins_at_the_midnight_of_whoever_looks() {
        let began = |now: &str, zone: &TimeZone| {
            midnight(Time::from_rfc3339(now).unwrap(), zone).rfc3339()[..16].to_owned()
        };
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        assert_eq!(began("2026-11-18T15:00:00Z", &TimeZone::UTC), "2026-11-18T00:00");
        assert_eq!(began("2026-11-18T15:00:00Z", &berlin), "2026-11-17T23:00");
        assert_eq!(began("2026-11-18T23:30:00Z", &berlin), "2026-11-18T23:00", "it is tomorrow there");
        assert_eq!(
            began("2026-03-29T12:00:00Z", &berlin),
            "2026-03-28T23:00",
            "the clock was put forward since"
        );
    }
}
