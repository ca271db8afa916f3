//! Bodies: tokens and what they may cost.

use serde::{Deserialize, Serialize};

use crate::{
    CampaignId, Usage,
    budget::{Amount, Budget, Period, Used},
    event::By,
    id::AgentId,
    price::Dollars,
};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct UsageRecorded {
    /// What this adds to every sum. Less than what was said when another source had told of the same tokens.
    pub usage: Usage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default)]
    pub source: UsageSource,
    /// The model server's name for the call, by which both sources mean the same one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// What the source said, where that is not what is added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Usage>,
    /// What the added tokens cost at the price that held then; absent when the model had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Dollars>,
    /// The date of the table that the price is from; absent for one that a person had set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<String>,
    /// A subscription covers the call: its cost is on no bill.
    #[serde(default, skip_serializing_if = "is_false")]
    pub plan: bool,
    /// The wire saw the call, and its answer was cut before it said what it took: the agent's report is all there is.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cut: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(value: &bool) -> bool {
    !value
}

impl UsageRecorded {
    /// What the source said.
    pub fn said(&self) -> Usage {
        self.said.unwrap_or(self.usage)
    }
}

/// Who told of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageSource {
    /// The agent.
    #[default]
    Report,
    /// The model gateway, which read it off the wire.
    Wire,
    /// The agent program's own store, long after: nobody else tells of the call.
    History,
}

impl UsageSource {
    pub const fn as_str(self) -> &'static str {
        match self {
            UsageSource::Report => "report",
            UsageSource::Wire => "wire",
            UsageSource::History => "history",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BudgetReached {
    /// Tokens, as budgets count them.
    pub used: u64,
    /// How many of them there are to use; absent where only dollars are limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// What is paid so far, where dollars are limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Dollars>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dollars: Option<Dollars>,
    /// A model without a price was called, so that nobody knows how many dollars are left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpriced: Option<String>,
    /// The campaign whose budget it is, and for which stretch of time; absent for a session's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign: Option<CampaignId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Period>,
    /// The agent of that campaign whose budget it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
}

impl BudgetReached {
    pub fn new(amount: Amount, used: &Used) -> BudgetReached {
        BudgetReached {
            used: used.tokens,
            tokens: amount.tokens,
            spent: amount.dollars.map(|_| used.dollars),
            dollars: amount.dollars,
            unpriced: amount.dollars.and(used.unpriced.clone()),
            campaign: None,
            period: None,
            agent: None,
        }
    }

    /// Whether it tells of the same budget that several sessions use, of the same height. Who is covered by a subscription
    /// knows of no dollars.
    pub fn is_same_crossing(&self, other: &BudgetReached) -> bool {
        let of = |reached: &BudgetReached| {
            let Self { campaign, agent, period, tokens, unpriced, .. } = reached.clone();
            (campaign, agent, period, tokens, unpriced)
        };
        let has_same_dollars =
            self.dollars == other.dollars || self.dollars.is_none() || other.dollars.is_none();
        self.campaign.is_some() && of(self) == of(other) && has_same_dollars
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BudgetChanged {
    pub budget: Option<Budget>,
    pub by: By,
}
