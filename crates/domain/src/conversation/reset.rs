//! When a conversation begins anew by itself: after it rested for long, or once a day. Looked at when something is said
//! to it, and never before, so that nobody's dialogue ends behind their back.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    Time,
    time::{span, span_text},
};

const MINUTE_US: i64 = 60 * 1_000_000;
const DAY_US: i64 = 24 * 60 * MINUTE_US;

/// A campaign's rules for its conversations. None of them, where nobody says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ResetRules {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<IdleReset>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daily: Option<DailyReset>,
}

/// Nothing was said for so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IdleReset {
    micros: u64,
}

impl IdleReset {
    /// `30d`, `12h`.
    pub fn parse(text: &str) -> Option<Self> {
        let limit = span(text).filter(|limit| *limit >= Duration::from_secs(1))?;
        Some(Self { micros: u64::try_from(limit.as_micros()).ok()? })
    }

    pub const fn limit(self) -> Duration {
        Duration::from_micros(self.micros)
    }
}

impl fmt::Display for IdleReset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&span_text(self.limit()))
    }
}

/// A time of day, where the daemon's machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DailyReset {
    /// Minutes since midnight.
    minute: u16,
}

impl DailyReset {
    /// `04:00`.
    pub fn parse(text: &str) -> Option<Self> {
        let (hour, minute) = text.split_once(':')?;
        let two = |text: &str| match text.len() {
            2 if text.bytes().all(|b| b.is_ascii_digit()) => text.parse::<u16>().ok(),
            _ => None,
        };
        let (hour, minute) = (two(hour)?, two(minute)?);
        (hour < 24 && minute < 60).then_some(Self { minute: hour * 60 + minute })
    }
}

impl fmt::Display for DailyReset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.minute / 60, self.minute % 60)
    }
}

impl ResetRules {
    pub fn is_empty(&self) -> bool {
        *self == ResetRules::default()
    }

    /// What was said, by key.
    pub(crate) fn values(&self) -> impl Iterator<Item = (&'static str, String)> {
        let idle = self.idle.map(|idle| ("reset.idle", idle.to_string()));
        idle.into_iter().chain(self.daily.map(|daily| ("reset.daily", daily.to_string())))
    }
}

/// The rule by which a conversation that was last active then is to begin anew now, as it was typed; none where none says
/// so. `seconds_east` is how far the clocks on the wall are ahead of UTC at a moment.
pub fn reset_due(
    rules: &ResetRules,
    last_active: Time,
    now: Time,
    seconds_east: impl Fn(Time) -> i64,
) -> Option<String> {
    if let Some(idle) = rules.idle.filter(|idle| now.since(last_active) >= idle.limit()) {
        return Some(format!("reset.idle={idle}"));
    }
    let daily = rules.daily?;
    let on_the_wall = |at: Time| at.micros().saturating_add(seconds_east(at).saturating_mul(1_000_000));
    let here = on_the_wall(now);
    let today = here.div_euclid(DAY_US) * DAY_US + i64::from(daily.minute) * MINUTE_US;
    let last = if today <= here { today } else { today - DAY_US };
    // A clock that was set back has nothing begin anew.
    (last_active <= now && on_the_wall(last_active) < last).then(|| format!("reset.daily={daily}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Time {
        Time::from_rfc3339(text).unwrap()
    }

    fn rules(idle: &str, daily: &str) -> ResetRules {
        ResetRules { idle: IdleReset::parse(idle), daily: DailyReset::parse(daily) }
    }

    #[test]
    fn a_conversation_is_due_by_the_rule_that_says_so() {
        let utc = 0;
        let berlin = 3_600;
        for (idle, daily, east, active, now, due) in [
            ("", "", utc, "2020-01-01T00:00:00Z", "2026-11-17T12:00:00Z", None),
            ("30d", "", utc, "2026-10-18T12:00:00Z", "2026-11-17T12:00:00Z", Some("reset.idle=30d")),
            ("30d", "", utc, "2026-10-18T12:00:01Z", "2026-11-17T12:00:00Z", None),
            // It was active before four, and now it is after.
            ("", "04:00", utc, "2026-11-17T03:59:59Z", "2026-11-17T04:00:00Z", Some("reset.daily=04:00")),
            ("", "04:00", utc, "2026-11-17T04:00:00Z", "2026-11-17T23:00:00Z", None),
            ("", "04:00", utc, "2026-11-16T05:00:00Z", "2026-11-17T03:00:00Z", None),
            ("", "04:00", utc, "2026-11-16T03:00:00Z", "2026-11-17T03:00:00Z", Some("reset.daily=04:00")),
            // Four o'clock is where the machine is.
            ("", "04:00", berlin, "2026-11-17T02:59:59Z", "2026-11-17T03:00:00Z", Some("reset.daily=04:00")),
            ("", "04:00", berlin, "2026-11-17T03:00:00Z", "2026-11-17T04:30:00Z", None),
            // Whichever comes first.
            ("1h", "04:00", utc, "2026-11-17T05:00:00Z", "2026-11-17T06:00:00Z", Some("reset.idle=1h")),
            ("30d", "04:00", utc, "2026-11-16T20:00:00Z", "2026-11-17T06:00:00Z", Some("reset.daily=04:00")),
            // Clocks that were set back.
            ("1h", "04:00", utc, "2026-11-17T05:00:00Z", "2026-11-16T03:00:00Z", None),
        ] {
            let found = reset_due(&rules(idle, daily), at(active), at(now), |_| east);
            assert_eq!(found.as_deref(), due, "{idle} {daily} {active} {now}");
        }
    }

    #[test]
    fn rules_are_read_and_written() {
        for text in ["30d", "12h", "90s"] {
            assert_eq!(IdleReset::parse(text).unwrap().to_string(), text);
        }
        for text in ["00:00", "04:00", "23:59"] {
            assert_eq!(DailyReset::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "30", "0s", "-1d", "never"] {
            assert_eq!(IdleReset::parse(text), None, "{text}");
        }
        for text in ["", "4:00", "24:00", "04:60", "04", "+4:00", "04:00:00", "04:00Z"] {
            assert_eq!(DailyReset::parse(text), None, "{text}");
        }
    }
}
