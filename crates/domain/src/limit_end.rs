//! When a limit of a model's server ends, as the headers of its answer say it. Everybody says it differently.

use std::time::Duration;

use crate::{Time, time::moment};

/// A kind of limit whose end is named in `{prefix}reset{suffix}` and what is left of it in `{prefix}remaining{suffix}`.
const FAMILIES: [(&str, &str); 7] = [
    ("x-ratelimit-", "-requests"),
    ("x-ratelimit-", "-tokens"),
    ("x-ratelimit-", ""),
    ("anthropic-ratelimit-requests-", ""),
    ("anthropic-ratelimit-tokens-", ""),
    ("anthropic-ratelimit-input-tokens-", ""),
    ("anthropic-ratelimit-output-tokens-", ""),
];
/// Of a subscription: the one that is used up is the one whose end is named.
const UNIFIED: &str = "anthropic-ratelimit-unified-reset";
/// What is larger is no span of seconds but a moment.
const LONGEST_SPAN: f64 = 1_000_000_000.0;

/// How long a server asks to be left alone: milliseconds, seconds, or a date.
pub fn retry_after<'a>(header: impl Fn(&str) -> Option<&'a str>, now: Time) -> Option<Duration> {
    if let Some(ms) = header("retry-after-ms").and_then(positive) {
        return Duration::try_from_secs_f64(ms / 1000.0).ok();
    }
    let asked = header("retry-after")?;
    match positive(asked) {
        Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        None => Some(http_date(asked)?.since(now)),
    }
}

/// The same of an answer that refused a call because of a limit: if nothing is asked for, the end of the limit that is used
/// up. Where none is said to be, the first to end: whoever asks too early is only told again.
pub fn of_limited<'a>(header: impl Fn(&str) -> Option<&'a str>, now: Time) -> Option<Duration> {
    if let Some(asked) = retry_after(&header, now) {
        return Some(asked);
    }
    if let Some(end) = header(UNIFIED).and_then(|text| span(text, now)) {
        return Some(end);
    }
    let ends = FAMILIES.iter().filter_map(|(prefix, suffix)| {
        let end = span(header(&format!("{prefix}reset{suffix}"))?, now)?;
        let left = header(&format!("{prefix}remaining{suffix}")).and_then(positive);
        Some((end, left == Some(0.0)))
    });
    let ends: Vec<(Duration, bool)> = ends.collect();
    let used_up = ends.iter().filter(|(_, is_used_up)| *is_used_up).map(|(end, _)| *end).max();
    used_up.or_else(|| ends.iter().map(|(end, _)| *end).min())
}

fn positive(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)
}

/// `6m0s`, `20ms`, `1.5` (seconds), a date, or a moment in seconds or milliseconds since 1970.
fn span(text: &str, now: Time) -> Option<Duration> {
    let text = text.trim();
    let until = |seconds: f64| {
        let since_1970 = Duration::try_from_secs_f64(seconds).ok()?;
        Some(Time::default().plus(since_1970).since(now))
    };
    match positive(text) {
        Some(seconds) if seconds < LONGEST_SPAN => Duration::try_from_secs_f64(seconds).ok(),
        Some(millis) if millis >= LONGEST_SPAN * 1_000.0 => until(millis / 1_000.0),
        Some(seconds) => until(seconds),
        None => units(text).or_else(|| Some(rfc3339(text).or_else(|| http_date(text))?.since(now))),
    }
}

/// Spans as Go writes them.
fn units(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut all = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(digits);
        let unit = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit);
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        all += positive(number)? * seconds;
        rest = after;
    }
    if text.is_empty() { None } else { Duration::try_from_secs_f64(all).ok() }
}

/// A moment, to the second.
fn rfc3339(text: &str) -> Option<Time> {
    let micros = Time::from_rfc3339(text)?.micros();
    Some(Time::from_micros(micros - micros.rem_euclid(1_000_000)))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(text: &str) -> Option<Time> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, date) = text.trim().split_once(", ")?;
    let [day, month, year, clock, "GMT" | "UTC" | "+0000"] = date.split(' ').collect::<Vec<_>>()[..] else {
        return None;
    };
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    moment(year.parse().ok()?, u32::try_from(month).ok()?, day.parse().ok()?, clock)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT.
    const NOW: i64 = 784_111_777;

    fn read(headers: &[(&str, &str)]) -> Option<f64> {
        let header = |asked: &str| headers.iter().find(|(name, _)| *name == asked).map(|(_, value)| *value);
        of_limited(header, Time::from_micros(NOW * 1_000_000)).map(|span| span.as_secs_f64())
    }

    #[test]
    fn patience_is_asked_for_in_many_forms() {
        for (name, value, seconds) in [
            ("retry-after-ms", "1500", Some(1.5)),
            ("retry-after", "2", Some(2.0)),
            ("retry-after", "0.5", Some(0.5)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT", Some(10.0)),
            ("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT", Some(0.0)),
            ("retry-after", "-1", None),
            ("retry-after", "soon", None),
            ("retry-after", "Sun, 06 Nov 1994", None),
            ("x-ratelimit-reset-requests", "6m0s", Some(360.0)),
            ("x-ratelimit-reset-tokens", "20ms", Some(0.02)),
            ("x-ratelimit-reset-tokens", "1h2m3.5s", Some(3_723.5)),
            ("x-ratelimit-reset-tokens", "1x", None),
            ("x-ratelimit-reset-tokens", "s", None),
            ("anthropic-ratelimit-requests-reset", "1994-11-06T08:50:37Z", Some(60.0)),
            ("anthropic-ratelimit-tokens-reset", "1994-11-06T09:50:37.25+01:00", Some(60.0)),
            ("anthropic-ratelimit-input-tokens-reset", "1994-11-06", None),
        ] {
            assert_eq!(read(&[(name, value)]), seconds, "{name}: {value}");
        }
    }

    #[test]
    fn large_numbers_are_moments() {
        let now = Time::from_micros(1_763_000_000 * 1_000_000);
        let read = |value: &'static str| {
            of_limited(|asked| (asked == UNIFIED).then_some(value), now).map(|span| span.as_secs())
        };
        assert_eq!(read("1763000300"), Some(300));
        assert_eq!(read("1763000300000"), Some(300));
        assert_eq!(read("300"), Some(300));
    }

    #[test]
    fn the_limit_that_is_used_up_counts_and_a_wish_counts_more() {
        let requests = ("x-ratelimit-reset-requests", "1h");
        let tokens = ("x-ratelimit-reset-tokens", "30s");
        assert_eq!(read(&[requests, tokens, ("x-ratelimit-remaining-requests", "0")]), Some(3_600.0));
        assert_eq!(read(&[requests, tokens, ("x-ratelimit-remaining-tokens", "0")]), Some(30.0));
        assert_eq!(read(&[requests, tokens]), Some(30.0), "too early is only told again");
        assert_eq!(read(&[requests, ("retry-after", "7")]), Some(7.0));
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        for at in [0_i64, 951_782_400, 1_709_164_800, 4_102_444_800, NOW] {
            let time = Time::from_micros(at * 1_000_000);
            assert_eq!(rfc3339(&time.rfc3339()), Some(time), "{}", time.rfc3339());
        }
    }
}
