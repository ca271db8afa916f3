//! How far a session may go without asking. The daemon leases it to the session's gateway, which holds calls at its end
//! whether there is a daemon or not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    Usage,
    price::{Dollars, Price},
};

/// Models without a price that are told apart; the rest is counted without a name.
const MODELS: usize = 16;

/// What all calls of a session together may take; what is absent has no end. A later one replaces an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Allowance {
    /// As a budget counts them: input and output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dollars: Option<Dollars>,
    /// Prices that were set since the session began.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, Price>,
    /// A person is asked for more, and the agent stands still meanwhile: a call that waits does so for as long as that takes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_asked_for: bool,
    /// By which whoever gave it knows that it is heeded.
    #[serde(skip_serializing_if = "is_zero")]
    pub number: u64,
}

/// What calls have taken, as far as the gateway has seen them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    pub tokens: u64,
    pub dollars: Dollars,
    /// Calls of models without a price, by their names: against dollars, the end is reached until each has one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unpriced: BTreeMap<String, Usage>,
    /// The number of the allowance that holds for whatever is called from now on.
    #[serde(skip_serializing_if = "is_zero")]
    pub heeds: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Spent {
    /// Adds a call of a model. Without a price its cost is unknown, which is not nothing.
    pub fn add(&mut self, usage: &Usage, model: Option<&str>, cost: Option<Dollars>) {
        self.tokens = self.tokens.saturating_add(usage.budgeted());
        match cost {
            Some(Dollars(cost)) => self.dollars = Dollars(self.dollars.0.saturating_add(cost)),
            None if usage.is_zero() => {}
            None => {
                let model = model.unwrap_or_default();
                let is_known = self.unpriced.len() < MODELS || self.unpriced.contains_key(model);
                *self.unpriced.entry(if is_known { model } else { "" }.to_owned()).or_default() += *usage;
            }
        }
    }

    /// Counts what had no price and has one now.
    pub fn settle(&mut self, price: impl Fn(&str) -> Option<Price>) {
        let dollars = &mut self.dollars;
        self.unpriced.retain(|model, usage| match price(model) {
            Some(price) => {
                *dollars = Dollars(dollars.0.saturating_add(price.of(usage).0));
                false
            }
            None => true,
        });
    }
}

impl Allowance {
    /// Whatever is less of two.
    pub fn least(&self, other: &Allowance) -> Allowance {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        let micros = |dollars: Option<Dollars>| dollars.map(|Dollars(micros)| micros);
        let mut prices = self.prices.clone();
        prices.extend(other.prices.iter().map(|(model, price)| (model.clone(), *price)));
        Allowance {
            tokens: least(self.tokens, other.tokens),
            dollars: least(micros(self.dollars), micros(other.dollars)).map(Dollars),
            prices,
            is_asked_for: self.is_asked_for || other.is_asked_for,
            number: 0,
        }
    }

    /// Why no further call may begin; none if one may.
    pub fn end(&self, spent: &Spent) -> Option<String> {
        if let Some(most) = self.tokens.filter(|most| spent.tokens >= *most) {
            return Some(format!("{} of {most} tokens are used", spent.tokens));
        }
        let most = self.dollars?;
        if spent.dollars >= most {
            return Some(format!("{} of {most} are used", spent.dollars));
        }
        (!spent.unpriced.is_empty())
            .then(|| format!("of {most} an unknown part is used: a model without a price was called"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THOUSAND: Allowance = Allowance {
        tokens: Some(1_000),
        dollars: None,
        prices: BTreeMap::new(),
        is_asked_for: false,
        number: 0,
    };
    const DOLLAR: Allowance = Allowance {
        tokens: None,
        dollars: Some(Dollars(1_000_000)),
        prices: BTreeMap::new(),
        is_asked_for: false,
        number: 0,
    };

    #[test]
    fn the_call_that_reaches_the_end_is_the_last() {
        let mut spent = Spent::default();
        spent.add(
            &Usage { input: 900, cache_read: 5_000, output: 99, ..Usage::default() },
            Some("m"),
            Some(Dollars(999_999)),
        );
        assert_eq!((THOUSAND.end(&spent), DOLLAR.end(&spent)), (None, None));
        spent.add(&Usage { output: 1, ..Usage::default() }, Some("m"), Some(Dollars(1)));
        assert_eq!(THOUSAND.end(&spent).as_deref(), Some("1000 of 1000 tokens are used"));
        assert_eq!(DOLLAR.end(&spent).as_deref(), Some("$1.00 of $1.00 are used"));
        assert_eq!(Allowance::default().end(&spent), None, "no end was set");
    }

    #[test]
    fn what_has_no_price_ends_dollars_and_not_tokens() {
        let mut spent = Spent::default();
        spent.add(&Usage::default(), None, None);
        assert_eq!(DOLLAR.end(&spent), None, "nothing was used");
        spent.add(&Usage { input: 1, ..Usage::default() }, Some("new"), None);
        assert_eq!(THOUSAND.end(&spent), None);
        assert!(DOLLAR.end(&spent).unwrap().contains("without a price"));
        spent.settle(|model| (model == "old").then(Price::default));
        assert!(DOLLAR.end(&spent).is_some(), "another's price is no help");
        let price = Price { input: Dollars(5_000_000), ..Price::default() };
        spent.settle(|model| (model == "new").then_some(price));
        assert_eq!((DOLLAR.end(&spent), spent.dollars), (None, Dollars(5)), "it has a price now");
    }

    #[test]
    fn of_two_the_lesser_holds() {
        let both = THOUSAND.least(&DOLLAR);
        assert_eq!((both.tokens, both.dollars), (Some(1_000), Some(Dollars(1_000_000))));
        let less = Allowance { tokens: Some(10), ..DOLLAR };
        assert_eq!(both.least(&less).tokens, Some(10));
        assert_eq!(Allowance::default().least(&DOLLAR), DOLLAR);
    }
}
