//! Time as an argument: moments, the caller's "now", and deadlines that survive a jumping clock.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

/// A moment of wall-clock time in microseconds since 1970, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(i64);

impl Time {
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn micros(self) -> i64 {
        self.0
    }

    /// How long after `earlier` this is; zero when the clock went backwards.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The moment as others read it: `2025-11-13T02:13:20.000123Z`.
    pub fn rfc3339(self) -> String {
        let (seconds, micros) = (self.0.div_euclid(1_000_000), self.0.rem_euclid(1_000_000));
        let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
    }

    /// Reads `2025-11-13T02:13:20Z`, with or without parts of a second, or with another offset.
    pub fn from_rfc3339(text: &str) -> Option<Time> {
        let (date, rest) = text.split_once(['T', 't', ' '])?;
        let [year, month, day] = date.split('-').collect::<Vec<_>>()[..] else { return None };
        let offset = rest.find(['Z', 'z', '+', '-'])?;
        let (clock, offset) = rest.split_at(offset);
        let (clock, part) = clock.split_once('.').unwrap_or((clock, ""));
        let at = moment(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?, clock)?;
        let micros: String = part.chars().chain("000000".chars()).take(6).collect();
        let at = at.plus(Duration::from_micros(micros.parse().ok()?));
        if offset.eq_ignore_ascii_case("z") {
            return Some(at);
        }
        let (hours, minutes) = offset.get(1..)?.split_once(':')?;
        let (hours, minutes): (u32, u32) = (hours.parse().ok()?, minutes.parse().ok()?);
        let east = Duration::from_secs(u64::from(hours) * 3_600 + u64::from(minutes) * 60);
        Some(if offset.starts_with('+') { at.minus(east) } else { at.plus(east) })
    }

    pub fn plus(self, span: Duration) -> Time {
        Time(self.0.saturating_add(micros(span)))
    }

    pub fn minus(self, span: Duration) -> Time {
        Time(self.0.saturating_sub(micros(span)))
    }
}

/// A span of time as people write it: `500ms`, `90s`, `10m`, `2h`, `3d`.
pub fn span(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_at);
    let number: u64 = number.parse().ok()?;
    let seconds = match unit {
        "ms" => return Some(Duration::from_millis(number)),
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    number.checked_mul(seconds).map(Duration::from_secs)
}

/// A span in its largest whole unit: `90s`, `2h`.
pub fn span_text(span: Duration) -> String {
    let seconds = span.as_secs();
    if span.subsec_millis() != 0 {
        return format!("{}ms", span.as_millis());
    }
    let units = [(86_400, "d"), (3_600, "h"), (60, "m")];
    let whole = units.iter().find(|(unit, _)| seconds >= *unit && seconds.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{seconds}s"), |(unit, name)| format!("{}{name}", seconds / unit))
}

/// A span in one unit, for columns: `40s`, `41m`, `2h`, `12d`.
pub fn age(span: Duration) -> String {
    match span.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m", seconds / 60),
        seconds @ 3_600..86_400 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// Year, month and day of a day counted from 1970, in the Gregorian calendar. Years are counted from March, so that the
/// day that not every year has is its last.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// A day of the calendar at `08:49:37`, UTC.
pub(crate) fn moment(year: i64, month: u32, day: u32, clock: &str) -> Option<Time> {
    let [hour, minute, second] = clock.split(':').collect::<Vec<_>>()[..] else { return None };
    let (hour, minute, second): (u32, u32, u32) =
        (hour.parse().ok()?, minute.parse().ok()?, second.parse().ok()?);
    let is_one = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    let of_day = i64::from(hour * 3_600 + minute * 60 + second);
    is_one.then(|| Time::from_micros((days(year, month, day) * 86_400 + of_day) * 1_000_000))
}

/// Days since 1970, in years that begin in March: leap days then come last.
fn days(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * i64::from((month + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The machine's clocks at one moment, as the shell read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Now {
    pub wall: Time,
    /// CLOCK_BOOTTIME: counts sleep, never jumps, starts anew with each boot.
    pub since_boot: Duration,
    pub boot: BootId,
}

/// Which boot of the machine a BOOTTIME belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootId(pub String);

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A moment to come. Within the same boot BOOTTIME decides, so a stepped clock fires nothing early and holds
/// nothing back; after a reboot only the wall clock is left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    boot: BootId,
    since_boot_us: u64,
    wall: Time,
}

impl Deadline {
    pub fn after(now: &Now, span: Duration) -> Self {
        Self {
            boot: now.boot.clone(),
            since_boot_us: u64::try_from(now.since_boot.saturating_add(span).as_micros()).unwrap_or(u64::MAX),
            wall: now.wall.plus(span),
        }
    }

    /// How long until it passes; zero when it has.
    pub fn remaining(&self, now: &Now) -> Duration {
        if self.boot == now.boot {
            Duration::from_micros(self.since_boot_us).saturating_sub(now.since_boot)
        } else {
            self.wall.since(now.wall)
        }
    }

    pub fn has_passed(&self, now: &Now) -> bool {
        self.remaining(now).is_zero()
    }

    /// The same deadline, this much later: watchdogs stand still while a session is paused.
    pub fn postponed(&self, span: Duration) -> Self {
        Self {
            boot: self.boot.clone(),
            since_boot_us: self
                .since_boot_us
                .saturating_add(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)),
            wall: self.wall.plus(span),
        }
    }

    pub fn wall(&self) -> Time {
        self.wall
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(wall_s: i64, boot_s: u64, boot: &str) -> Now {
        Now {
            wall: Time::from_micros(wall_s * 1_000_000),
            since_boot: Duration::from_secs(boot_s),
            boot: BootId(boot.into()),
        }
    }

    #[test]
    fn a_moment_is_written_as_others_read_it() {
        for (micros, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (1_763_000_000_000_123, "2025-11-13T02:13:20.000123Z"),
            (1_709_164_800_000_000, "2024-02-29T00:00:00.000000Z"),
            (951_868_799_999_999, "2000-02-29T23:59:59.999999Z"),
            (4_107_542_400_000_000, "2100-03-01T00:00:00.000000Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(Time::from_micros(micros).rfc3339(), text);
        }
    }

    #[test]
    fn a_stepped_clock_moves_no_deadline_of_this_boot() {
        let deadline = Deadline::after(&now(1_000, 50, "a"), Duration::from_secs(60));
        assert_eq!(deadline.remaining(&now(1_000 - 3_600, 60, "a")), Duration::from_secs(50));
        assert_eq!(deadline.remaining(&now(1_000 + 86_400, 60, "a")), Duration::from_secs(50));
        assert!(deadline.has_passed(&now(0, 110, "a")));
    }

    #[test]
    fn after_a_reboot_the_wall_clock_decides() {
        let deadline = Deadline::after(&now(1_000, 50_000, "a"), Duration::from_secs(60));
        assert_eq!(deadline.remaining(&now(1_030, 5, "b")), Duration::from_secs(30));
        assert!(deadline.has_passed(&now(1_060, 5, "b")));
    }
}
