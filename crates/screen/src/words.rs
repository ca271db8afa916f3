//! Numbers, spans and moments as people read them.

use std::{path::Path, sync::LazyLock, time::SystemTime};

use jiff::{Timestamp, tz::TimeZone};
use ostler_client::reply::DrainState;
use ostler_domain::{Time, event::ContextMeasured};

/// This moment.
pub fn now() -> Time {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time::from_micros(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX))
}

pub use ostler_form::words::{age, count, midnight, number, plural, span, took};

/// How full a context is, for columns: `61%`, and where nobody knows of what, `122k`.
pub fn context_short(context: &ContextMeasured) -> String {
    context.percent().map_or_else(|| count(context.used), |percent| format!("{percent}%"))
}

/// How full a context is: `122k of 200k tokens (61%)`.
pub fn context(context: &ContextMeasured) -> String {
    match (context.window, context.percent()) {
        (Some(window), Some(percent)) => {
            format!("{} of {} tokens ({percent}%)", count(context.used), count(window))
        }
        _ => format!("{} tokens", count(context.used)),
    }
}

/// `nothing new starts: drained by ann (kernel update)`
pub fn drained(drain: &DrainState) -> String {
    let why = if drain.why.is_empty() { String::new() } else { format!(" ({})", drain.why) };
    format!("nothing new starts: drained by {}{why}", drain.by.0)
}

/// A size: `512 B`, `4.0 GiB`.
pub use ostler_domain::text::bytes;

/// What `TZ` says, or else the machine's own file does.
pub fn zone() -> TimeZone {
    static HERE: LazyLock<TimeZone> = LazyLock::new(|| match std::env::var_os("TZ") {
        Some(_) => TimeZone::system(),
        None => zone_of(Path::new("/etc/localtime")).unwrap_or_else(TimeZone::system),
    });
    HERE.clone()
}

/// The zone that a file holds. To learn what it is called, every file of every zone would have to be looked through, and
/// it is not called anything here.
fn zone_of(file: &Path) -> Option<TimeZone> {
    TimeZone::tzif("here", &std::fs::read(file).ok()?).ok()
}

/// The time of day here: `14:02:11`.
pub fn clock(time: Time, zone: &TimeZone) -> String {
    timestamp(time).to_zoned(zone.clone()).strftime("%H:%M:%S").to_string()
}

/// Without the seconds: `14:02`.
pub fn hour_and_minute(time: Time, zone: &TimeZone) -> String {
    timestamp(time).to_zoned(zone.clone()).strftime("%H:%M").to_string()
}

/// With the day: `13 Nov 14:02`.
pub fn day_and_minute(time: Time, zone: &TimeZone) -> String {
    timestamp(time).to_zoned(zone.clone()).strftime("%-d %b %H:%M").to_string()
}

/// A moment for programs: RFC 3339, microseconds, UTC.
pub use ostler_form::rfc3339;

fn timestamp(time: Time) -> Timestamp {
    // A time outside what a calendar can name (the years -9999 to 9999) is a broken clock's: shown as 1970.
    Timestamp::from_microsecond(time.micros()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// A path as people write it: `~/code/shop`.
pub fn path(path: &str, home: Option<&str>) -> String {
    match home.filter(|home| home.len() > 1).and_then(|home| path.strip_prefix(home)) {
        Some("") => "~".to_owned(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn spans_have_one_or_two_units() {
        let seconds = Duration::from_secs;
        assert_eq!(
            [age(seconds(40)), age(seconds(2_460)), age(seconds(7_300)), age(seconds(90_000))],
            ["40s", "41m", "2h", "1d"]
        );
        assert_eq!(
            [span(seconds(72)), span(seconds(3_840)), span(seconds(120)), span(seconds(266_400))],
            ["1m 12s", "1h 4m", "2m", "3d 2h"]
        );
        assert_eq!(
            [took(Duration::from_millis(340)), took(Duration::from_millis(8_249)), took(seconds(252))],
            ["340 ms", "8.2 s", "4m 12s"]
        );
    }

    #[test]
    fn numbers_are_short_and_never_rounded_up() {
        assert_eq!(
            [0, 999, 1_250, 41_999, 1_999_999, 2_100_000_000].map(count),
            ["0", "999", "1.2k", "41k", "1.9M", "2.1G"]
        );
        assert_eq!([0, 999, 1_204, 1_000_000].map(number), ["0", "999", "1,204", "1,000,000"]);
        assert_eq!(
            [512, 1_024, 4 << 30, u64::MAX].map(bytes),
            ["512 B", "1.0 KiB", "4.0 GiB", "16777215.9 TiB"]
        );
    }

    #[test]
    fn moments_are_exact_for_programs() {
        let time = Time::from_micros(1_763_000_000_000_123);
        assert_eq!(rfc3339(time), "2025-11-13T02:13:20.000123Z");
        assert_eq!(clock(time, &TimeZone::UTC), "02:13:20");
        assert_eq!(rfc3339(midnight(time, &TimeZone::UTC)), "2025-11-13T00:00:00.000000Z");
        assert_eq!(rfc3339(Time::from_micros(i64::MAX)), "1970-01-01T00:00:00.000000Z");
    }

    #[test]
    fn the_zone_is_what_the_machine_s_file_holds() {
        // RFC 8536: a block for old readers, the same again, and a rule for all time. One type, two hours ahead.
        let block =
            [b"TZif2".as_slice(), &[0; 15 + 4 * 4], &[0, 0, 0, 1, 0, 0, 0, 1], &[0, 0, 0x1c, 0x20, 0, 0, 0]]
                .concat();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("localtime");
        std::fs::write(&file, [&block, &block, b"\n<+02>-2\n".as_slice()].concat()).unwrap();
        let zone = zone_of(&file).unwrap();
        assert_eq!(clock(Time::from_micros(1_763_000_000_000_000), &zone), "04:13:20");
        std::fs::write(&file, "no zone").unwrap();
        assert!(zone_of(&file).is_none() && zone_of(dir.path()).is_none());
    }

    #[test]
    fn paths_begin_at_home() {
        let home = Some("/home/ann");
        assert_eq!(path("/home/ann/code", home), "~/code");
        assert_eq!(path("/home/ann", home), "~");
        assert_eq!(path("/home/annette", home), "/home/annette");
        assert_eq!(path("/x", None), "/x");
    }
}
