//! The actor's part in what its agent may use: its own budget, and its share of the campaign's and its agent's.

use ostler_domain::{
    budget::{Amount, Claim, Held, Used},
    gateway::{Allowance, Spent},
    price::Dollars,
    session::{BudgetUse, Input, Phase},
};
use tokio::sync::oneshot;

use super::actor::Actor;

/// What the keeper was last told that calls may take.
pub(super) struct Lease {
    number: u64,
    /// The most of the campaign's budget that it may still believe to have: what was told since it last heeded anything.
    most: Amount,
    /// Who wants to know when it is heeded, and how much was used by then; without a gateway's count, nothing.
    waiting: Vec<oneshot::Sender<Option<Spent>>>,
}

impl Lease {
    /// Numbers that no daemon before this one has given.
    pub(super) fn of_epoch(epoch: u64) -> Lease {
        Lease { number: epoch << 32, most: Amount::default(), waiting: Vec::new() }
    }

    /// Another allowance is told, of which this is the campaign's.
    fn told(&mut self, share: Amount) -> u64 {
        self.number += 1;
        self.most = Amount {
            tokens: self.most.tokens.max(share.tokens),
            dollars: self.most.dollars.max(share.dollars),
        };
        self.number
    }
}

impl Actor {
    /// Before anything is started or found: whether the campaign or its agent has a budget, of which nothing is this
    /// session's yet.
    pub(super) async fn join_campaign(&mut self) {
        let created = self.state.created().clone();
        let id = created.campaign;
        self.is_caught_up = self.state.phase() == Phase::Created;
        let uses = match self.shared.store.campaign(id).await {
            Ok(Some(row)) => self.shared.uses(&row.campaign, &created).await,
            Ok(None) => return,
            Err(error) => Err(error.into()),
        };
        match uses {
            Ok((campaign, agent)) => {
                let budgets = [&campaign, &agent].map(|usage| usage.budget.map(|budget| budget.amount()));
                if budgets == [None, None] {
                    return;
                }
                let most = budgets.into_iter().flatten().fold(Amount::default(), Amount::least);
                let (tokens, dollars) = (most.tokens.and(Some(0)), most.dollars.and(Some(Dollars(0))));
                self.share = Some(Allowance { tokens, dollars, ..Allowance::default() });
                self.budgets_used(campaign, agent).await;
                self.shared.accounts.changed(id);
            }
            Err(refusal) => {
                tracing::warn!(session = %self.id, %refusal, "the campaign's budget is not known")
            }
        }
    }

    /// Says what was used, once that is durable: whoever reads the record then finds at least as much there.
    pub(super) async fn spending(&mut self) -> Claim {
        self.settle().await;
        let used = self.state.used(&self.shared.prices.current());
        let is_in_reach = self.keeping.is_linked() && self.is_heeded();
        self.is_caught_up |= is_in_reach && self.intake.offset() >= self.keeping.tape_end();
        let held = if self.state.phase() == Phase::Created {
            Held::Nothing
        } else if !self.is_caught_up {
            Held::Unknown
        } else if is_in_reach || self.state.process().is_none() {
            Held::InReach
        } else {
            let share = self.lease.most;
            // Whichever of the two is behind: what it may still use is at most this.
            let counted = self.keeping.spent();
            let tokens = counted.map_or(used.tokens, |spent| spent.tokens.min(used.tokens));
            let dollars = counted.map_or(used.dollars, |spent| spent.dollars.min(used.dollars));
            Held::OutOfReach(Amount {
                tokens: share.tokens.map(|most| most.saturating_sub(tokens)),
                dollars: share.dollars.map(|most| Dollars(most.0.saturating_sub(dollars.0))),
            })
        };
        Claim { used, counted: self.keeping.spent().cloned(), held }
    }

    /// Takes another share of the campaign's budget, or only what of it is less. What is less is answered when it is heeded.
    pub(super) async fn take_share(
        &mut self,
        share: Option<Allowance>,
        only_less: bool,
        heeded: oneshot::Sender<Option<Spent>>,
    ) {
        // It keeps what it has as long as it cannot be told, and no answer says so.
        if !self.keeping.is_linked() && self.state.process().is_some() {
            return;
        }
        let share = match (&self.share, share) {
            (Some(had), Some(share)) if only_less => Some(had.least(&share)),
            (Some(had), None) if only_less => Some(had.clone()),
            (_, share) => share,
        };
        if share != self.share {
            self.share = share;
            self.send_allowance().await;
        }
        if !only_less {
            let _ = heeded.send(None);
        } else if !self.state.is_ended() {
            self.lease.waiting.push(heeded);
            self.look_whether_heeded();
        }
    }

    /// Answers who waits for the keeper to heed what it was told. One of an earlier version never says that it does.
    pub(super) fn look_whether_heeded(&mut self) {
        if self.is_heeded() {
            self.lease.most = self.share_amount();
        } else if self.keeping.is_linked() {
            return;
        }
        let counted = self.keeping.spent().cloned();
        for waiting in self.lease.waiting.drain(..) {
            let _ = waiting.send(counted.clone());
        }
    }

    fn is_heeded(&self) -> bool {
        self.keeping.spent().is_none_or(|spent| spent.heeds == self.lease.number)
    }

    fn share_amount(&self) -> Amount {
        let share = self.share.as_ref();
        Amount {
            tokens: share.and_then(|share| share.tokens),
            dollars: share.and_then(|share| share.dollars),
        }
    }

    /// Nobody can say any more how far the keeper has come.
    pub(super) fn forget_who_waits(&mut self) {
        self.lease.waiting.clear();
    }

    /// What it uses together with others is known anew.
    pub(super) async fn budgets_used(&mut self, campaign: BudgetUse, agent: BudgetUse) {
        let context = self.shared.context();
        self.decided(Input::Campaign(campaign), &context).await;
        self.decided(Input::Agent(agent), &context).await;
    }

    /// Holds back what is about to be another session's, and answers when the gateway heeds that.
    pub(super) async fn lend(&mut self, amount: Amount, heeded: oneshot::Sender<Option<Spent>>) {
        self.settle().await;
        self.lending = amount;
        if self.state.process().is_none() {
            let _ = heeded.send(None);
        } else if self.keeping.is_linked() {
            self.send_allowance().await;
            self.lease.waiting.push(heeded);
            self.look_whether_heeded();
        }
    }

    /// What was lent is in the record by now, or came to nothing.
    pub(super) async fn charge_helpers(&mut self) {
        let was_lending = std::mem::take(&mut self.lending) != Amount::default();
        match self.shared.lent_by(self.id).await {
            Ok(lent) => {
                let context = self.shared.context();
                self.decided(Input::Helpers(lent), &context).await;
            }
            Err(refusal) => tracing::warn!(session = %self.id, %refusal, "its helpers' use is not known"),
        }
        if was_lending {
            self.settle().await;
            self.send_allowance().await;
        }
    }

    /// How far calls may go: by the session's own budget and by its share of the campaign's.
    pub(super) fn allowance(&self) -> Allowance {
        let own = self.state.allowance(&self.shared.prices.current());
        let lending = Used {
            tokens: self.lending.tokens.unwrap_or(0),
            dollars: self.lending.dollars.unwrap_or_default(),
            unpriced: None,
        };
        let left = Amount { tokens: own.tokens, dollars: own.dollars }.left(&lending);
        let own = Allowance { tokens: left.tokens, dollars: left.dollars, ..own };
        own.least(&self.share.clone().unwrap_or_default())
    }

    /// What a keeper begins with: nothing of the campaign's budget, since what its share is may change before it can be told.
    pub(super) fn first_allowance(&self) -> Allowance {
        let nothing = self.share.as_ref().map(|share| Allowance {
            tokens: share.tokens.and(Some(0)),
            dollars: share.dollars.and(Some(Dollars(0))),
            ..Allowance::default()
        });
        self.allowance().least(&nothing.unwrap_or_default())
    }

    pub(super) async fn send_allowance(&mut self) {
        let number = self.lease.told(self.share_amount());
        let allowance = Allowance { number, ..self.allowance() };
        self.allow(allowance).await;
    }
}
