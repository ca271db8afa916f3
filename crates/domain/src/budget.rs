//! Budgets in tokens and in dollars: what they allow, when they warn, when they hold.

mod amount;
mod division;
mod family;
mod period;
mod today;

use serde::{Deserialize, Serialize};

use crate::{
    Usage,
    gateway::Allowance,
    limits::BUDGET_WARNS_AT_PERCENT,
    price::{Cost, Dollars, PriceBook},
};

pub use amount::Amount;
pub use division::{Claim, Held, divide};
pub use family::{Family, Lent, Member};
pub use period::{CampaignBudget, Period};
pub use today::{DayBudgets, Today};

/// What a session may use, and what happens when it is used up. What is absent has no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Budget {
    /// As a budget counts them: input and output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dollars: Option<Dollars>,
    #[serde(default)]
    pub when_used_up: WhenUsedUp,
}

/// What follows a used-up budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenUsedUp {
    /// The agent is frozen and a person is asked: the default where somebody is there.
    #[default]
    Hold,
    /// The session ends with the outcome `budget`: the default where nobody is.
    Stop,
}

/// Where a use stands against a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    Within,
    Warned,
    /// A part of what was used has no price, so that nobody knows how many dollars are left.
    Unpriced(String),
    UsedUp,
}

/// What was used, as budgets count it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Used {
    pub tokens: u64,
    /// Of calls that are paid for one by one; those of a plan are not counted.
    pub dollars: Dollars,
    /// A model without a price that was called; empty for one that nobody named.
    pub unpriced: Option<String>,
}

impl Used {
    /// What a session has used, at the prices that hold where its calls had none.
    pub fn of(usage: &Usage, cost: &Cost, prices: &PriceBook) -> Used {
        let (dollars, unpriced) = cost.settled(prices);
        Used { tokens: usage.budgeted(), dollars, unpriced }
    }

    pub fn add(&mut self, other: &Used) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.dollars.0 = self.dollars.0.saturating_add(other.dollars.0);
        if self.unpriced.is_none() {
            self.unpriced.clone_from(&other.unpriced);
        }
    }
}

impl Budget {
    pub fn new(amount: Amount, when_used_up: WhenUsedUp) -> Budget {
        Budget { tokens: amount.tokens, dollars: amount.dollars, when_used_up }
    }

    pub fn amount(&self) -> Amount {
        Amount { tokens: self.tokens, dollars: self.dollars }
    }

    /// What a gateway may let pass by itself.
    pub fn allowance(&self) -> Allowance {
        Allowance { tokens: self.tokens, dollars: self.dollars, ..Allowance::default() }
    }

    pub fn standing(&self, used: &Used) -> Standing {
        self.amount().standing(used)
    }
}

impl Amount {
    pub fn standing(&self, used: &Used) -> Standing {
        let share = |used: u64, most: Option<u64>| match most {
            Some(most) if used >= most => Standing::UsedUp,
            Some(most)
                if u128::from(used) * 100 >= u128::from(most) * u128::from(BUDGET_WARNS_AT_PERCENT) =>
            {
                Standing::Warned
            }
            _ => Standing::Within,
        };
        let tokens = share(used.tokens, self.tokens);
        let dollars = share(used.dollars.0, self.dollars.map(|most| most.0));
        match (tokens, dollars, &used.unpriced) {
            (Standing::UsedUp, ..) | (_, Standing::UsedUp, _) => Standing::UsedUp,
            (.., Some(model)) if self.dollars.is_some() => Standing::Unpriced(model.clone()),
            (Standing::Warned, ..) | (_, Standing::Warned, _) => Standing::Warned,
            _ => Standing::Within,
        }
    }

    /// `1200 of 1000 tokens used`, `$2.10 of $2.00 used`: whatever is limited.
    pub fn told(&self, used: &Used) -> String {
        let tokens = self.tokens.map(|most| format!("{} of {most} tokens", used.tokens));
        let dollars = self.dollars.map(|most| format!("{} of {most}", used.dollars));
        let parts: Vec<String> = dollars.into_iter().chain(tokens).collect();
        format!("{} used", parts.join(" and "))
    }
}

/// Why dollars cannot be counted, and the command that cures it.
pub fn unpriced(model: &str) -> (String, String) {
    match model {
        "" => ("a model that was not named has no price".to_owned(), "ostler price ls".to_owned()),
        model => (
            format!("the model {model} has no price"),
            format!("ostler price set {model} input=DOLLARS output=DOLLARS"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(tokens: u64, micros: u64) -> Used {
        Used { tokens, dollars: Dollars(micros), unpriced: None }
    }

    #[test]
    fn warns_at_eighty_percent_and_is_used_up_at_a_hundred() {
        let tokens = Amount { tokens: Some(1000), dollars: None };
        let dollars = Amount { tokens: None, dollars: Some(Dollars(1000)) };
        for (at, standing) in [
            (799, Standing::Within),
            (800, Standing::Warned),
            (999, Standing::Warned),
            (1000, Standing::UsedUp),
        ] {
            assert_eq!(tokens.standing(&used(at, 0)), standing, "{at} tokens");
            assert_eq!(dollars.standing(&used(0, at)), standing, "{at} millionths");
        }
        let most = Amount { tokens: Some(u64::MAX), dollars: None };
        assert_eq!(most.standing(&used(u64::MAX, 0)), Standing::UsedUp);
        assert_eq!(Amount::default().standing(&used(u64::MAX, u64::MAX)), Standing::Within, "no end was set");
    }

    #[test]
    fn what_has_no_price_is_never_within_dollars_and_does_not_touch_tokens() {
        let unknown = Used { unpriced: Some("new-model".to_owned()), ..used(1, 1) };
        let dollars = Amount { tokens: None, dollars: Some(Dollars(1_000_000)) };
        assert_eq!(dollars.standing(&unknown), Standing::Unpriced("new-model".to_owned()));
        let tokens = Amount { tokens: Some(1_000), dollars: None };
        assert_eq!(tokens.standing(&unknown), Standing::Within);
        let both = Amount { tokens: Some(1), ..dollars };
        assert_eq!(both.standing(&unknown), Standing::UsedUp, "the tokens are used up anyhow");
    }

    #[test]
    fn a_budget_of_tokens_alone_is_read_from_its_old_form() {
        let old: Budget = serde_json::from_str(r#"{"tokens":500,"when_used_up":"stop"}"#).unwrap();
        assert_eq!((old.tokens, old.dollars, old.when_used_up), (Some(500), None, WhenUsedUp::Stop));
        assert_eq!(serde_json::to_string(&old).unwrap(), r#"{"tokens":500,"when_used_up":"stop"}"#);
    }
}
