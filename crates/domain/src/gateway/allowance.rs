//! How far a session may go without asking. The daemon leases it to the session's gateway, which holds calls at its end
//! whether there is a daemon or not.

use serde::{Deserialize, Serialize};

use crate::{Usage, price::Dollars};

/// What all calls of a session together may take; what is absent has no end. A later one replaces an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Allowance {
    /// As a budget counts them: input and output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dollars: Option<Dollars>,
}

/// What calls have taken, as far as the gateway has seen them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    pub tokens: u64,
    pub dollars: Dollars,
    /// A call was made whose price nobody knows: against dollars, the end is reached.
    pub is_unpriced: bool,
}

impl Spent {
    /// Adds a call. Without a price its cost is unknown, which is not nothing.
    pub fn add(&mut self, usage: &Usage, cost: Option<Dollars>) {
        self.tokens = self.tokens.saturating_add(usage.budgeted());
        match cost {
            Some(Dollars(cost)) => self.dollars = Dollars(self.dollars.0.saturating_add(cost)),
            None => self.is_unpriced |= !usage.is_zero(),
        }
    }
}

impl Allowance {
    /// Why no further call may begin; none if one may.
    pub fn end(&self, spent: &Spent) -> Option<String> {
        if let Some(most) = self.tokens.filter(|most| spent.tokens >= *most) {
            return Some(format!("{} of {most} tokens are used", spent.tokens));
        }
        let most = self.dollars?;
        if spent.dollars >= most {
            return Some(format!("{} of {most} are used", spent.dollars));
        }
        spent
            .is_unpriced
            .then(|| format!("of {most} an unknown part is used: a model without a price was called"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THOUSAND: Allowance = Allowance { tokens: Some(1_000), dollars: None };
    const DOLLAR: Allowance = Allowance { tokens: None, dollars: Some(Dollars(1_000_000)) };

    #[test]
    fn the_call_that_reaches_the_end_is_the_last() {
        let mut spent = Spent::default();
        spent.add(
            &Usage { input: 900, cache_read: 5_000, output: 99, ..Usage::default() },
            Some(Dollars(999_999)),
        );
        assert_eq!((THOUSAND.end(&spent), DOLLAR.end(&spent)), (None, None));
        spent.add(&Usage { output: 1, ..Usage::default() }, Some(Dollars(1)));
        assert_eq!(THOUSAND.end(&spent).as_deref(), Some("1000 of 1000 tokens are used"));
        assert_eq!(DOLLAR.end(&spent).as_deref(), Some("$1.00 of $1.00 are used"));
        assert_eq!(Allowance::default().end(&spent), None, "no end was set");
    }

    #[test]
    fn what_has_no_price_ends_dollars_and_not_tokens() {
        let mut spent = Spent::default();
        spent.add(&Usage::default(), None);
        assert_eq!(DOLLAR.end(&spent), None, "nothing was used");
        spent.add(&Usage { input: 1, ..Usage::default() }, None);
        assert_eq!(THOUSAND.end(&spent), None);
        assert!(DOLLAR.end(&spent).unwrap().contains("without a price"));
    }
}
