//! What tokens cost. A model without a price costs an unknown amount, never nothing.
//!
//! The table that is built in is `prices.json`: list prices in dollars for a million tokens, as generally known on its
//! date. They are one number for each bucket; discounts, longer caches and dearer long contexts are a person's to set.

mod book;
mod cost;

use std::{collections::BTreeMap, sync::OnceLock};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::Usage;

pub use book::{PriceBook, Quote, is_model};
pub use cost::Cost;

const BUILT_IN: &str = include_str!("prices.json");
const MILLION: u128 = 1_000_000;

/// Millionths of a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Dollars(pub u64);

impl Dollars {
    /// Reads `3`, `0.30` or `$12.5`; at most six places, since there is nothing smaller.
    pub fn parse(text: &str) -> Option<Dollars> {
        let text = text.strip_prefix('$').unwrap_or(text);
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_digits(whole) || !is_digits(part) || part.len() > 6 {
            return None;
        }
        let digits = part.bytes().chain(std::iter::repeat(b'0')).take(6);
        let micros = digits.fold(0, |micros, digit| micros * 10 + u64::from(digit - b'0'));
        whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(micros).map(Dollars)
    }

    /// `0.30`: at least two places, and as many as it takes.
    pub fn decimal(self) -> String {
        let part = format!("{:06}", self.0 % 1_000_000);
        let places = part.trim_end_matches('0').len().max(2);
        format!("{}.{}", self.0 / 1_000_000, &part[..places])
    }
}

impl std::fmt::Display for Dollars {
    /// For people: cents, and more places only where cents would say nothing.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if (1..50).contains(&self.0) {
            return f.write_str("<$0.0001");
        }
        let (divisor, places) = if self.0 >= 10_000 || self.0 == 0 { (10_000, 2) } else { (100, 4) };
        let rounded = self.0.saturating_add(divisor / 2) / divisor;
        let unit = 1_000_000 / divisor;
        write!(f, "${}.{:0places$}", rounded / unit, rounded % unit)
    }
}

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.decimal())
    }
}

impl<'de> Deserialize<'de> for Dollars {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let fault =
            || D::Error::custom(format!("\"{text}\" is no amount of dollars, such as \"3\" or \"0.30\""));
        Dollars::parse(&text).ok_or_else(fault)
    }
}

/// Dollars for a million tokens of each bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub input: Dollars,
    pub cache_read: Dollars,
    pub cache_write: Dollars,
    pub output: Dollars,
}

impl Price {
    /// What these tokens cost, rounded to the nearest millionth of a dollar.
    pub fn of(&self, usage: &Usage) -> Dollars {
        let parts = [
            (self.input, usage.input),
            (self.cache_read, usage.cache_read),
            (self.cache_write, usage.cache_write),
            (self.output, usage.output),
        ];
        let sum: u128 = parts.iter().map(|(price, tokens)| u128::from(price.0) * u128::from(*tokens)).sum();
        Dollars(u64::try_from((sum + MILLION / 2) / MILLION).unwrap_or(u64::MAX))
    }
}

/// A table of prices, by the model's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    pub version: u32,
    /// The day on which they were looked at, `2026-11-16`.
    pub date: String,
    pub models: BTreeMap<String, Price>,
}

impl Prices {
    /// The table that is part of this program.
    pub fn built_in() -> &'static Prices {
        static TABLE: OnceLock<Prices> = OnceLock::new();
        TABLE.get_or_init(|| {
            serde_json::from_str(BUILT_IN)
                .unwrap_or_else(|error| unreachable!("the table is tested: {error}"))
        })
    }

    /// The price of a model, by its name or by one that means the same.
    pub fn find(&self, model: &str) -> Option<Price> {
        self.models.get(model).or_else(|| self.models.get(plain_name(model))).copied()
    }

    /// With prices of one's own above it.
    pub fn with(&self, own: &BTreeMap<String, Price>) -> Prices {
        let mut prices = self.clone();
        prices.models.extend(own.iter().map(|(model, price)| (model.clone(), *price)));
        prices
    }
}

/// A model's name without what says from where, of which day or with how much room it is. Nothing else is guessed: a
/// model that only sounds like another may cost ten times as much.
pub fn plain_name(model: &str) -> &str {
    let model = model.rsplit('/').next().unwrap_or(model);
    let model = model.split(['[', '@']).next().unwrap_or(model);
    let model = model.strip_suffix("-latest").unwrap_or(model);
    without_day(model)
}

/// `-20251001` and `-2025-10-01` at the end.
fn without_day(model: &str) -> &str {
    let is_day =
        |day: &str| day.len() == 8 && day.starts_with("20") && day.bytes().all(|byte| byte.is_ascii_digit());
    for length in ["-20251001".len(), "-2025-10-01".len()] {
        if let Some((name, day)) = model.len().checked_sub(length).and_then(|at| model.split_at_checked(at))
            && day.starts_with('-')
            && !name.is_empty()
            && is_day(&day.replace('-', ""))
        {
            return name;
        }
    }
    model
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(model: &str, input: u64, output: u64, cache_read: u64, cache_write: u64) -> Dollars {
        let usage = Usage { input, output, cache_read, cache_write, reasoning: output };
        Prices::built_in().find(model).unwrap().of(&usage)
    }

    #[test]
    fn the_table_that_is_built_in_gives_what_a_provider_said_its_calls_cost() {
        // From recordings: tokens and the cost that the agent reported for them.
        assert_eq!(cost("claude-sonnet-5", 36, 126, 6100, 3180), Dollars(10_502));
        assert_eq!(cost("claude-opus-5-5", 100_000, 10_000, 1000, 20), Dollars(600_300));
        assert_eq!(cost("claude-opus-4-8[1m]", 200, 20, 2000, 40), Dollars(2_750));
        assert_eq!(cost("claude-haiku-4-5-20251001", 40_000, 10, 0, 20), Dollars(40_075));
        assert_eq!(cost("claude-sonnet-5-5", 100, 10, 1000, 20), Dollars(450));
        assert_eq!(cost("claude-haiku-5-5", 100, 10, 1000, 20), Dollars(28), "27.5 is rounded");
    }

    #[test]
    fn a_model_is_known_by_names_that_mean_the_same_and_by_no_others() {
        for name in [
            "gpt-5",
            "openai/gpt-5",
            "gpt-5-2025-08-07",
            "gpt-5-latest",
            "us.anthropic/claude-sonnet-4-5@20250929",
            "models/gemini-2.5-pro",
        ] {
            assert!(Prices::built_in().find(name).is_some(), "{name}");
        }
        for name in
            ["", "gpt-5-ultra", "gpt", "fake-model", "nope-model", "gpt-5-20", "-20250101", "<synthetic>"]
        {
            assert_eq!(Prices::built_in().find(name), None, "{name}");
        }
    }

    #[test]
    fn amounts_are_exact_to_a_millionth() {
        for (text, micros) in [("3", 3_000_000), ("0.30", 300_000), ("$12.5", 12_500_000), ("0.000001", 1)] {
            assert_eq!(Dollars::parse(text), Some(Dollars(micros)));
        }
        for wrong in ["", ".5", "-1", "1e3", "0.0000001", "1.2.3", "three", "18446744073710"] {
            assert_eq!(Dollars::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Dollars(1_230_000).decimal(), "1.23");
        assert_eq!(Dollars(28).decimal(), "0.000028");
        let shown =
            [0, 28, 49, 51, 10_502, 999_999, 1_234_567, 12_345_678_901].map(|n| Dollars(n).to_string());
        assert_eq!(
            shown,
            ["$0.00", "<$0.0001", "<$0.0001", "$0.0001", "$0.01", "$1.00", "$1.23", "$12345.68"]
        );
    }

    #[test]
    fn ones_own_prices_go_first_and_sums_do_not_overflow() {
        let own = BTreeMap::from([("gpt-5".to_owned(), Price::default())]);
        assert_eq!(Prices::built_in().with(&own).find("gpt-5"), Some(Price::default()));
        let dear = Price { input: Dollars(u64::MAX), ..Price::default() };
        assert_eq!(dear.of(&Usage { input: u64::MAX, ..Usage::default() }), Dollars(u64::MAX));
    }

    #[test]
    fn the_table_has_a_date_and_every_bucket() {
        let table = Prices::built_in();
        assert_eq!(table.date.len(), "2026-11-16".len());
        for (model, price) in &table.models {
            assert!(price.input.0 > 0 && price.output >= price.input, "{model}");
            assert!(price.cache_read < price.input && price.cache_write >= price.input, "{model}");
            assert_eq!(plain_name(model), model, "found by its plain name");
        }
    }
}
