//! The actor's part in what its agent may use: its own budget, and its share of the campaign's.

use ostler_domain::{
    budget::{Amount, Used},
    gateway::Allowance,
    price::Dollars,
    session::{CampaignUse, Input, Phase},
};

use super::actor::Actor;

/// What a session has used, all of it durable, and where its share is.
pub(crate) struct Spending {
    pub(crate) used: Used,
    pub(crate) held: Held,
}

/// Where a session's share of its campaign's budget is.
pub(crate) enum Held {
    /// With a keeper that can be told of another.
    InReach,
    /// With a keeper that cannot be told: so much of it may still be used.
    OutOfReach(Amount),
    /// Nowhere: it waits to start, and needs none yet.
    Nothing,
    /// A daemon before this one gave it, and what of it was used is not read yet.
    Unknown,
}

impl Actor {
    /// Before anything is started or found: whether the campaign has a budget, of which nothing is this session's yet.
    pub(super) async fn join_campaign(&mut self) {
        let id = self.state.created().campaign;
        self.is_caught_up = self.state.phase() == Phase::Created;
        let usage = match self.shared.store.campaign(id).await {
            Ok(Some(row)) => self.shared.campaign_use(&row.campaign).await,
            Ok(None) => return,
            Err(error) => Err(error.into()),
        };
        match usage {
            Ok(usage) => {
                let Some(budget) = usage.budget else { return };
                let (tokens, dollars) = (budget.tokens.and(Some(0)), budget.dollars.and(Some(Dollars(0))));
                self.share = Some(Allowance { tokens, dollars, ..Allowance::default() });
                let context = self.shared.context();
                self.decided(Input::Campaign(usage), &context).await;
                self.shared.accounts.changed(id);
            }
            Err(refusal) => {
                tracing::warn!(session = %self.id, %refusal, "the campaign's budget is not known")
            }
        }
    }

    /// Says what was used, once that is durable: whoever reads the record then finds at least as much there.
    pub(super) async fn spending(&mut self) -> Spending {
        self.settle().await;
        let used = self.state.used(&self.shared.prices.current());
        self.is_caught_up |= self.keeping.is_linked() && self.intake.offset() >= self.keeping.tape_end();
        let held = if self.state.phase() == Phase::Created {
            Held::Nothing
        } else if !self.is_caught_up {
            Held::Unknown
        } else if self.keeping.is_linked() || self.state.process().is_none() {
            Held::InReach
        } else {
            let share = self.share.clone().unwrap_or_default();
            Held::OutOfReach(Amount {
                tokens: share.tokens.map(|most| most.saturating_sub(used.tokens)),
                dollars: share.dollars.map(|most| Dollars(most.0.saturating_sub(used.dollars.0))),
            })
        };
        Spending { used, held }
    }

    /// Takes another share of the campaign's budget, or only what of it is less.
    pub(super) async fn take_share(&mut self, share: Option<Allowance>, only_less: bool) {
        let share = match (&self.share, share) {
            (Some(had), Some(share)) if only_less => Some(had.least(&share)),
            (Some(had), None) if only_less => Some(had.clone()),
            (_, share) => share,
        };
        if share != self.share {
            self.share = share;
            self.send_allowance().await;
        }
    }

    /// The campaign's use is known anew.
    pub(super) async fn campaign_used(&mut self, usage: CampaignUse) {
        let context = self.shared.context();
        self.decided(Input::Campaign(usage), &context).await;
    }

    /// How far calls may go: by the session's own budget and by its share of the campaign's.
    pub(super) fn allowance(&self) -> Allowance {
        let own = self.state.allowance(&self.shared.prices.current());
        own.least(&self.share.clone().unwrap_or_default())
    }

    pub(super) async fn send_allowance(&mut self) {
        let allowance = self.allowance();
        self.allow(allowance).await;
    }
}
