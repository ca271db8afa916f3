//! Values that people type: spans, moments, amounts, kinds.

use std::time::Duration;

use jiff::{Timestamp, Zoned, civil::DateTime, tz::TimeZone};
use ostler_domain::{Kind, Time, budget::Amount};

use crate::words;

/// A span: `90s`, `30m`, `1h30m`, `500ms`, `2d`; a bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("\"{text}\" is no span of time; examples: 90s, 30m, 1h30m, 2d");
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let mut sum = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0).ok_or_else(wrong)?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let part = match unit {
            "ms" => Some(Duration::from_millis(number)),
            "s" => Some(Duration::from_secs(number)),
            "m" | "min" => number.checked_mul(60).map(Duration::from_secs),
            "h" => number.checked_mul(3_600).map(Duration::from_secs),
            "d" => number.checked_mul(86_400).map(Duration::from_secs),
            _ => None,
        };
        sum = part.and_then(|part| sum.checked_add(part)).ok_or_else(wrong)?;
        rest = after;
    }
    if text.is_empty() { Err(wrong()) } else { Ok(sum) }
}

/// A limit in time: a span that is not nothing.
pub(crate) fn time_limit(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("a limit of no time at all would end everything before it begins".to_owned()),
        limit => Ok(limit),
    }
}

/// A moment: a span before now, a date, or a date with a time; where no zone is named, it is the one of whoever asks.
pub(crate) fn moment(text: &str) -> Result<Time, String> {
    moment_at(text, words::now(), &words::zone())
}

fn moment_at(text: &str, now: Time, zone: &TimeZone) -> Result<Time, String> {
    if let Ok(ago) = duration(text) {
        return Ok(now.minus(ago));
    }
    if text == "today" {
        return Ok(words::midnight(now, zone));
    }
    // A civil moment is read last: it would take one with a zone, and ignore the zone.
    let moment = (text.parse::<Timestamp>().ok())
        .or_else(|| text.parse::<Zoned>().ok().map(|zoned| zoned.timestamp()))
        .or_else(|| {
            let civil = text.parse::<DateTime>().ok().filter(|_| !text.contains('['))?;
            civil.to_zoned(zone.clone()).ok().map(|zoned| zoned.timestamp())
        });
    moment.map(|moment| Time::from_micros(moment.as_microsecond())).ok_or_else(|| {
        format!(
            "\"{text}\" is no moment; examples: 2h (ago), today, 2026-01-31, 2026-01-31T14:02, 2026-01-31T14:02:00Z"
        )
    })
}

/// A budget: `2usd`, `500k`, or both with a comma between them.
pub(crate) fn budget(text: &str) -> Result<Amount, String> {
    Amount::parse(text)
}

/// A size: `8GiB`, `512MiB`, `4G`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    ostler_domain::policy::size(text).ok_or_else(|| format!("\"{text}\" is no size; examples: 8GiB, 512MiB"))
}

/// A kind of event, in any case; `AGENT_` may be left out.
pub(crate) fn kind(text: &str) -> Result<Kind, String> {
    let name = text.trim().to_ascii_uppercase().replace('-', "_");
    Kind::from_name(&name).or_else(|| Kind::from_name(&format!("AGENT_{name}"))).ok_or_else(|| {
        let near: Vec<_> =
            Kind::ALL.iter().map(|kind| kind.name()).filter(|known| known.contains(&name)).collect();
        if near.is_empty() || name.is_empty() {
            format!(
                "there is no kind of event \"{text}\"; examples: AGENT_COMPLETION, tool_call, session_stopped"
            )
        } else {
            format!("there is no kind of event \"{text}\"; near: {}", near.join(", "))
        }
    })
}

/// A variable: `NAME=VALUE`.
pub(crate) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("\"{text}\" is not NAME=VALUE")),
    }
}

/// A command for a shell. An empty one would succeed, and say that all is well of what nobody looked at.
pub(crate) fn shell_command(text: &str) -> Result<String, String> {
    match text.trim().is_empty() {
        true => Err("the command is empty".to_owned()),
        false => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use ostler_domain::price::Dollars;

    use super::*;

    #[test]
    fn spans() {
        let millis = |text| duration(text).map(|span| span.as_millis());
        assert_eq!(millis("90s"), Ok(90_000));
        assert_eq!(millis("1h30m"), Ok(5_400_000));
        assert_eq!(millis("500ms"), Ok(500));
        assert_eq!(millis("2d"), Ok(172_800_000));
        assert_eq!(millis("30"), Ok(30_000));
        for text in ["", "m", "3x", "1h30", "-5m", "99999999999999999999s", "18446744073709551615d"] {
            assert!(millis(text).is_err(), "{text}");
        }
    }

    #[test]
    fn commands() {
        assert_eq!(shell_command("cargo test"), Ok("cargo test".to_owned()));
        for text in ["", "  ", "\n\t"] {
            assert!(shell_command(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn limits() {
        assert_eq!(time_limit("5m"), Ok(Duration::from_secs(300)));
        assert!(time_limit("0s").is_err());
    }

    #[test]
    fn moments() {
        let now = Time::from_micros(1_763_000_000_000_000);
        let at = |text| moment_at(text, now, &TimeZone::UTC).map(words::rfc3339);
        assert_eq!(at("2h").as_deref(), Ok("2025-11-13T00:13:20.000000Z"));
        assert_eq!(at("today").as_deref(), Ok("2025-11-13T00:00:00.000000Z"));
        assert_eq!(at("2025-10-01").as_deref(), Ok("2025-10-01T00:00:00.000000Z"));
        assert_eq!(at("2025-10-01T12:00:00+02:00").as_deref(), Ok("2025-10-01T10:00:00.000000Z"));
        assert!(at("soon").is_err());
    }

    #[test]
    fn a_time_counts_with_or_without_a_zone() {
        let now = Time::from_micros(1_763_000_000_000_000);
        let berlin = TimeZone::fixed(jiff::tz::offset(1));
        let at = |text| moment_at(text, now, &berlin).map(words::rfc3339);
        for (text, moment) in [
            ("2025-11-13", "2025-11-12T23:00:00.000000Z"),
            ("2025-11-13T05:00", "2025-11-13T04:00:00.000000Z"),
            ("2025-11-13 05:00", "2025-11-13T04:00:00.000000Z"),
            ("2025-11-13T05:00:07", "2025-11-13T04:00:07.000000Z"),
            ("2025-11-13T05:00:07.25", "2025-11-13T04:00:07.250000Z"),
            ("2025-11-13T05:00Z", "2025-11-13T05:00:00.000000Z"),
            ("2025-11-13T05:00:07Z", "2025-11-13T05:00:07.000000Z"),
            ("2025-11-13T05:00-05:00", "2025-11-13T10:00:00.000000Z"),
            ("2025-11-13T05:00[+03:00]", "2025-11-13T02:00:00.000000Z"),
        ] {
            assert_eq!(at(text).as_deref(), Ok(moment), "{text}");
        }
        for text in [
            "2025-11-13T",
            "2025-11-13T25:00",
            "2025-11-13T05:00 UTC",
            "2025-11-13T05:00[no/where]",
            "05:00",
            "2025-13-01",
        ] {
            assert!(at(text).is_err(), "{text}");
        }
    }

    #[test]
    fn amounts() {
        let both = Amount { tokens: Some(500_000), dollars: Some(Dollars(2_000_000)) };
        assert_eq!(budget("2usd,500k"), Ok(both));
        assert!(budget("2eur").unwrap_err().contains("examples: 2usd"));
        assert_eq!([bytes("8GiB"), bytes("512"), bytes("4m")], [Ok(8 << 30), Ok(512), Ok(4 << 20)]);
        assert!(bytes("99999999999TiB").is_err());
        assert!(bytes("x").is_err());
    }

    #[test]
    fn kinds() {
        assert_eq!(kind("AGENT_COMPLETION"), Ok(Kind::AgentCompletion));
        assert_eq!(kind("tool-call"), Ok(Kind::AgentToolCall));
        assert!(kind("stopp").unwrap_err().contains("SESSION_STOPPED"));
        assert!(kind("").is_err());
    }

    #[test]
    fn variables() {
        assert_eq!(variable("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
        assert!(variable("A").is_err());
        assert!(variable("=x").is_err());
    }
}
