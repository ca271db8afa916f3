//! A token budget: what it allows, when it warns, when it holds.

use serde::{Deserialize, Serialize};

use crate::{gateway::Allowance, limits::BUDGET_WARNS_AT_PERCENT, usage::Usage};

/// How many tokens a session may use, and what happens when they are used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    pub tokens: u64,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    Within,
    Warned,
    UsedUp,
}

impl Budget {
    /// What a gateway may let pass by itself.
    pub fn allowance(&self) -> Allowance {
        Allowance { tokens: Some(self.tokens), dollars: None }
    }

    pub fn standing(&self, usage: &Usage) -> Standing {
        let used = u128::from(usage.budgeted());
        let most = u128::from(self.tokens);
        if used >= most {
            Standing::UsedUp
        } else if used * 100 >= most * u128::from(BUDGET_WARNS_AT_PERCENT) {
            Standing::Warned
        } else {
            Standing::Within
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warns_at_eighty_percent_and_is_used_up_at_a_hundred() {
        let budget = Budget { tokens: 1000, when_used_up: WhenUsedUp::Hold };
        let at = |n| budget.standing(&Usage { input: n, ..Usage::default() });
        assert_eq!(
            (at(799), at(800), at(999), at(1000)),
            (Standing::Within, Standing::Warned, Standing::Warned, Standing::UsedUp)
        );
        assert_eq!(
            Budget { tokens: u64::MAX, ..budget }.standing(&Usage {
                input: u64::MAX,
                output: 9,
                ..Usage::default()
            }),
            Standing::UsedUp
        );
    }
}
