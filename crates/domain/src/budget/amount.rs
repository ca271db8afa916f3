//! How much: tokens, dollars, or both, as people type it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::price::Dollars;

/// Tokens and dollars; what is absent is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Amount {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dollars: Option<Dollars>,
}

impl Amount {
    /// Reads `2usd`, `500k`, `2usd,500k`. The fault is for people.
    pub fn parse(text: &str) -> Result<Amount, String> {
        let mut amount = Amount::default();
        for part in text.split(',').map(str::trim) {
            let twice = match dollars(part) {
                Some(dollars) => amount.dollars.replace(dollars).is_some(),
                None => amount.tokens.replace(tokens(part).ok_or_else(|| fault(text))?).is_some(),
            };
            if twice {
                return Err(format!("\"{text}\" says the same twice"));
            }
        }
        Ok(amount)
    }

    /// No more than this, and no more than the other.
    #[must_use]
    pub fn at_most(self, most: Amount) -> Amount {
        fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            }
        }
        Amount { tokens: least(self.tokens, most.tokens), dollars: least(self.dollars, most.dollars) }
    }

    /// What this says, and the other where this says nothing.
    pub fn or(self, other: Amount) -> Amount {
        Amount { tokens: self.tokens.or(other.tokens), dollars: self.dollars.or(other.dollars) }
    }
}

fn fault(text: &str) -> String {
    format!("\"{text}\" is no budget; examples: 2usd, 500k, 2usd,500k")
}

/// More than nothing.
fn dollars(text: &str) -> Option<Dollars> {
    let amount = text.strip_suffix("usd").or_else(|| text.strip_suffix("USD"));
    let amount = amount.or_else(|| text.strip_prefix('$'))?;
    Dollars::parse(amount.trim()).filter(|amount| *amount > Dollars(0))
}

/// `500k`, `2M`, `1200`; more than nothing.
fn tokens(text: &str) -> Option<u64> {
    let (digits, unit) = match text.char_indices().next_back()? {
        (end, 'k' | 'K') => (&text[..end], 1_000),
        (end, 'm' | 'M') => (&text[..end], 1_000_000),
        _ => (text, 1),
    };
    if digits.starts_with('+') {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(unit).filter(|amount| *amount > 0)
}

impl fmt::Display for Amount {
    /// As it is typed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dollars = self.dollars.map(|dollars| format!("{}usd", plain(dollars)));
        let tokens = self.tokens.map(|tokens| match tokens {
            n if n.is_multiple_of(1_000_000) => format!("{}M", n / 1_000_000),
            n if n.is_multiple_of(1_000) => format!("{}k", n / 1_000),
            n => n.to_string(),
        });
        f.write_str(&dollars.into_iter().chain(tokens).collect::<Vec<_>>().join(","))
    }
}

fn plain(dollars: Dollars) -> String {
    let decimal = dollars.decimal();
    decimal.strip_suffix(".00").map_or(decimal.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_they_are_shown() {
        for (text, tokens, micros) in [
            ("2usd", None, Some(2_000_000)),
            ("0.50usd", None, Some(500_000)),
            ("500k", Some(500_000), None),
            ("2M", Some(2_000_000), None),
            ("1234", Some(1_234), None),
            ("2usd,500k", Some(500_000), Some(2_000_000)),
        ] {
            let amount = Amount { tokens, dollars: micros.map(Dollars) };
            assert_eq!(Amount::parse(text), Ok(amount), "{text}");
            assert_eq!(amount.to_string(), text);
        }
        assert_eq!(Amount::parse("$2, 500k"), Amount::parse("500k,2usd"));
        for wrong in
            ["", "k", "0", "0usd", "-1", "1.5k", "2eur", "99999999999999999M", "1k,2k", "2usd,", "usd", "$"]
        {
            assert!(Amount::parse(wrong).is_err(), "{wrong}");
        }
    }
}
