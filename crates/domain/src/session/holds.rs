//! What keeps a session from going on, beside a person's pause.

use serde::{Deserialize, Serialize};

use super::State;
use crate::{Time, event::Held};

/// What keeps a session from going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    Budget,
    /// The campaign's budget is used up.
    CampaignBudget,
    /// The budget of its agent is used up.
    AgentBudget,
    Halt,
    Disk,
}

/// The holds in force, each with its reason. A person's pause is [`Desired::Pause`](super::Desired::Pause).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Holds {
    pub budget: Option<String>,
    #[serde(default)]
    pub campaign_budget: Option<String>,
    #[serde(default)]
    pub agent_budget: Option<String>,
    pub halt: Option<String>,
    pub disk: Option<String>,
}

impl Holds {
    /// Why a person is to look at a budget.
    pub fn of_budget(&self) -> Option<&String> {
        self.budget.as_ref().or(self.agent_budget.as_ref()).or(self.campaign_budget.as_ref())
    }

    pub(super) fn of(&self, hold: Hold) -> Option<&String> {
        match hold {
            Hold::Budget => self.budget.as_ref(),
            Hold::CampaignBudget => self.campaign_budget.as_ref(),
            Hold::AgentBudget => self.agent_budget.as_ref(),
            Hold::Halt => self.halt.as_ref(),
            Hold::Disk => self.disk.as_ref(),
        }
    }

    fn slot(&mut self, hold: Hold) -> &mut Option<String> {
        match hold {
            Hold::Budget => &mut self.budget,
            Hold::CampaignBudget => &mut self.campaign_budget,
            Hold::AgentBudget => &mut self.agent_budget,
            Hold::Halt => &mut self.halt,
            Hold::Disk => &mut self.disk,
        }
    }
}

impl State {
    pub(super) fn hold_by(&mut self, held: &Held, at: Time) {
        *self.holds.slot(held.hold) = Some(held.reason.clone());
        self.held_since = at;
        self.settles |= held.settles;
    }

    pub(super) fn let_go_of(&mut self, hold: Hold) {
        *self.holds.slot(hold) = None;
        self.settles &= self.holds.of_budget().is_some();
    }
}
