//! What a campaign or an agent may use, and in which stretch of time. Days and months are those of UTC: the same for everybody who
//! looks, wherever the daemon runs.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Amount;
use crate::{Time, price::Dollars};

const DAY_US: i64 = 24 * 60 * 60 * 1_000_000;

/// What all sessions of a campaign, or of an agent, together may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CampaignBudget {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dollars: Option<Dollars>,
    pub period: Period,
}

/// After which time what was used is counted anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Period {
    /// From midnight to midnight, UTC.
    Day,
    /// From the first of the month, UTC.
    Month,
    /// Never.
    Total,
}

impl Period {
    const ALL: [Period; 3] = [Period::Day, Period::Month, Period::Total];

    pub const fn as_str(self) -> &'static str {
        match self {
            Period::Day => "day",
            Period::Month => "month",
            Period::Total => "total",
        }
    }

    /// In a sentence: what was used.
    pub const fn words(self) -> &'static str {
        match self {
            Period::Day => "today (UTC)",
            Period::Month => "this month (UTC)",
            Period::Total => "in all",
        }
    }

    /// When the stretch of time began in which a moment lies.
    pub fn start(self, now: Time) -> Time {
        let days = now.micros().div_euclid(DAY_US);
        match self {
            Period::Day => Time::from_micros(days * DAY_US),
            Period::Month => Time::from_micros((days - (day_of_month(days) - 1)) * DAY_US),
            Period::Total => Time::from_micros(0),
        }
    }

    /// When the next one begins; none for one that never ends.
    pub fn end(self, now: Time) -> Option<Time> {
        // The longest month has 31 days, so the 32nd day lies in the next.
        let within_next = match self {
            Period::Day => 1,
            Period::Month => 31,
            Period::Total => return None,
        };
        let start = self.start(now).micros();
        Some(self.start(Time::from_micros(start + within_next * DAY_US)))
    }
}

/// The day of the month, from 1, of a day since 1970: the calendar's well-known arithmetic on eras of 400 years.
fn day_of_month(days: i64) -> i64 {
    let of_era = (days + 719_468).rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    of_year - (153 * month + 2) / 5 + 1
}

impl CampaignBudget {
    /// Reads `25usd/day`, `2M/month`, `100usd,50M`; without a period it is for good.
    pub fn parse(text: &str) -> Option<CampaignBudget> {
        let (amount, period) = text.split_once('/').unwrap_or((text, Period::Total.as_str()));
        let period = Period::ALL.into_iter().find(|known| known.as_str() == period.trim())?;
        let Amount { tokens, dollars } = Amount::parse(amount).ok()?;
        Some(CampaignBudget { tokens, dollars, period })
    }

    pub fn amount(&self) -> Amount {
        Amount { tokens: self.tokens, dollars: self.dollars }
    }
}

impl fmt::Display for CampaignBudget {
    /// As it is typed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.amount(), self.period.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(text: i64) -> Time {
        Time::from_micros(text * DAY_US)
    }

    #[test]
    fn a_budget_is_typed_with_its_period() {
        for text in ["25usd/day", "2M/month", "100usd,50M/total"] {
            assert_eq!(CampaignBudget::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(CampaignBudget::parse("5usd"), CampaignBudget::parse("5usd/total"));
        for wrong in ["", "/day", "5usd/week", "5usd/day/day", "5"] {
            assert_eq!(CampaignBudget::parse(wrong).is_some(), wrong == "5", "{wrong}");
        }
    }

    #[test]
    fn days_and_months_begin_where_the_calendar_says() {
        // 2024-02-29 is day 19782; 2026-11-16 is day 20773.
        let noon = |day: i64| Time::from_micros(day * DAY_US + DAY_US / 2);
        assert_eq!(Period::Day.start(noon(20_773)), days(20_773));
        assert_eq!(Period::Day.end(noon(20_773)), Some(days(20_774)));
        assert_eq!(Period::Month.start(noon(19_782)), days(19_754), "2024-02-01");
        assert_eq!(Period::Month.end(noon(19_782)), Some(days(19_783)), "2024-03-01");
        assert_eq!(Period::Month.start(noon(20_773)), days(20_758), "2026-11-01");
        assert_eq!(Period::Month.end(noon(20_773)), Some(days(20_788)), "2026-12-01");
        assert_eq!((Period::Total.start(noon(1)), Period::Total.end(noon(1))), (days(0), None));
    }

    #[test]
    fn every_moment_lies_in_its_own_month_and_months_follow_each_other() {
        let mut day = 0;
        while day < 60_000 {
            let (start, end) = (Period::Month.start(days(day)), Period::Month.end(days(day)).unwrap());
            let length = (end.micros() - start.micros()) / DAY_US;
            assert!((28..=31).contains(&length) && start <= days(day) && days(day) < end, "{day}");
            assert_eq!(Period::Month.start(end), end);
            day = end.micros() / DAY_US;
        }
    }
}
