//! What calls have cost: told with each call at the price that held then, and added up.

use std::{collections::BTreeMap, ops::AddAssign};

use serde::{Deserialize, Serialize};

use super::{Dollars, PriceBook};
use crate::{Usage, event::UsageRecorded};

/// Models without a price that are told apart; the rest is counted without a name.
const MODELS: usize = 16;

/// What a session's calls have cost, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// Of calls that are paid for one by one.
    pub paid: Dollars,
    /// Of calls that a subscription covers, at the prices that others pay. On no bill, and in no budget.
    pub plan: Dollars,
    /// Calls whose model had no price, by its name: what they cost is unknown, which is not nothing.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unpriced: BTreeMap<String, Usage>,
    /// The same of calls that a subscription covers: nobody pays for them, so their models do not matter.
    #[serde(skip_serializing_if = "Usage::is_zero")]
    pub plan_unpriced: Usage,
}

impl Cost {
    /// Adds a call; `model` is the session's, for calls that name none.
    pub(crate) fn add(&mut self, recorded: &UsageRecorded, model: Option<&str>) {
        let sum = if recorded.plan { &mut self.plan } else { &mut self.paid };
        match recorded.cost {
            Some(Dollars(cost)) => *sum = Dollars(sum.0.saturating_add(cost)),
            None if recorded.usage.is_zero() => {}
            None if recorded.plan => self.plan_unpriced += recorded.usage,
            None => {
                let model = recorded.model.as_deref().or(model).unwrap_or_default();
                let is_new = !self.unpriced.contains_key(model);
                let name = if is_new && self.unpriced.len() >= MODELS { "" } else { model };
                *self.unpriced.entry(name.to_owned()).or_default() += recorded.usage;
            }
        }
    }

    /// What is paid, with what had no price then and has one now; and a model that still has none.
    pub fn settled(&self, prices: &PriceBook) -> (Dollars, Option<String>) {
        let mut sum = self.paid;
        let mut unknown = None;
        for (model, usage) in &self.unpriced {
            match prices.quote(model) {
                Some(quote) => sum = Dollars(sum.0.saturating_add(quote.price.of(usage).0)),
                None => unknown = Some(model.clone()),
            }
        }
        (sum, unknown)
    }

    /// The same, with what had no price then and has one now among what is paid: one answer, whoever is asked.
    #[must_use]
    pub fn at(&self, prices: &PriceBook) -> Cost {
        if self.unpriced.is_empty() {
            return self.clone();
        }
        let (paid, _) = self.settled(prices);
        let mut unpriced = self.unpriced.clone();
        unpriced.retain(|model, _| prices.quote(model).is_none());
        Cost { paid, unpriced, ..self.clone() }
    }

    pub fn is_zero(&self) -> bool {
        *self == Cost::default()
    }
}

/// Of several sessions together.
impl AddAssign<&Cost> for Cost {
    fn add_assign(&mut self, other: &Cost) {
        self.paid = Dollars(self.paid.0.saturating_add(other.paid.0));
        self.plan = Dollars(self.plan.0.saturating_add(other.plan.0));
        self.plan_unpriced += other.plan_unpriced;
        for (model, usage) in &other.unpriced {
            *self.unpriced.entry(model.clone()).or_default() += *usage;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::price::Price;

    fn call(model: &str, cost: Option<u64>, plan: bool) -> UsageRecorded {
        UsageRecorded {
            usage: Usage { output: 1_000_000, ..Usage::default() },
            model: Some(model.to_owned()),
            cost: cost.map(Dollars),
            plan,
            ..UsageRecorded::default()
        }
    }

    #[test]
    fn what_has_no_price_is_kept_until_it_has_one() {
        let mut cost = Cost::default();
        cost.add(&call("known", Some(7), false), None);
        cost.add(&call("new", None, false), None);
        cost.add(&call("covered", Some(5), true), None);
        cost.add(&call("covered-too", None, true), None);
        let mut book = PriceBook::default();
        assert_eq!(cost.settled(&book), (Dollars(7), Some("new".to_owned())));
        assert_eq!((cost.plan, cost.plan_unpriced.output), (Dollars(5), 1_000_000));
        book.own.insert("new".to_owned(), Price { output: Dollars(3), ..Price::default() });
        assert_eq!(cost.settled(&book), (Dollars(10), None));
        let now = cost.at(&book);
        assert_eq!((now.paid, now.unpriced.is_empty(), now.plan), (Dollars(10), true, Dollars(5)));
        assert_eq!(now.at(&book), now, "nothing is counted twice");
    }

    #[test]
    fn an_agent_cannot_fill_the_memory_with_names() {
        let mut cost = Cost::default();
        for n in 0..100 {
            cost.add(&call(&n.to_string(), None, false), None);
        }
        assert!(cost.unpriced.len() <= MODELS + 1);
        let sum: u64 = cost.unpriced.values().map(|usage| usage.output).sum();
        assert_eq!(sum, 100_000_000, "and nothing is forgotten");
    }
}
