//! What the agent's calls took, and the budgets that this counts against: the session's own, its agent's and the campaign's.

use super::{Draft, request};
use crate::{
    Budget, Reason, Refusal, Usage,
    budget::{Amount, Lent, Standing, Used, WhenUsedUp, unpriced},
    event::{BudgetReached, By, Event, UsageRecorded, UsageSource},
    price::{Dollars, PriceBook},
    session::{Billing, BudgetUse, CallUsage, Effect, Hold, Phase, State, StopRequested, StopRule},
};

pub(super) fn used(draft: &mut Draft<'_>, source: UsageSource, said: CallUsage) {
    let usage = draft.state.ledger.clone().book(source, said.call.as_deref(), said.usage);
    let recorded = priced(draft, source, said, usage);
    draft.record(Event::UsageRecorded(recorded));
    check(draft);
}

/// A call whose tokens nobody read off the wire: it is told. It adds something only where the agent's report of it had been
/// taken for another call's.
pub(super) fn cut_short(draft: &mut Draft<'_>, model: Option<String>, call: Option<String>) {
    let usage = draft.state.ledger.clone().book_cut(call.as_deref());
    let said = CallUsage { usage: Usage::default(), model, call };
    let recorded = UsageRecorded { cut: true, ..priced(draft, UsageSource::Wire, said, usage) };
    draft.record(Event::UsageRecorded(recorded));
    if !usage.is_zero() {
        check(draft);
    }
}

/// The call at the price that holds now: what it cost is told with it, and does not change with later prices.
fn priced(draft: &Draft<'_>, source: UsageSource, said: CallUsage, usage: Usage) -> UsageRecorded {
    let CallUsage { usage: told, model, call } = said;
    let prices = &draft.context.prices;
    let quote = model.as_deref().or(draft.state.model()).and_then(|model| prices.quote(model));
    let quote = quote.filter(|_| !usage.is_zero());
    UsageRecorded {
        cost: quote.map(|quote| quote.price.of(&usage)),
        prices: quote.and_then(|quote| quote.table).map(str::to_owned),
        plan: draft.state.created().config.billing == Billing::Plan,
        said: (told != usage).then_some(told),
        usage,
        model,
        source,
        call,
        cut: false,
    }
}

/// Looks at the session's own budget.
fn check(draft: &mut Draft<'_>) {
    let Some(budget) = draft.state.budget else { return };
    let used = draft.state.charged(&draft.context.prices);
    let reached = BudgetReached::new(budget.amount(), &used);
    match budget.standing(&used) {
        Standing::Within => {}
        Standing::Warned if draft.state.budget_warned => {}
        Standing::Warned => draft.record(Event::BudgetWarned(reached)),
        Standing::UsedUp if waits_for_helpers(draft) => wait_for_helpers(draft, &reached),
        Standing::UsedUp | Standing::Unpriced(_) if draft.state.holds().budget.is_some() => {}
        Standing::UsedUp | Standing::Unpriced(_) if draft.state.ends_of_budget => {}
        Standing::UsedUp | Standing::Unpriced(_) if draft.state.phase() != Phase::Live => {
            used_up_at_the_end(draft, reached);
        }
        Standing::UsedUp | Standing::Unpriced(_) => {
            let reason = reached.reason();
            draft.record(Event::BudgetExceeded(reached));
            match budget.when_used_up {
                WhenUsedUp::Hold => draft.hold(Hold::Budget, reason),
                WhenUsedUp::Stop => stop(draft),
            }
        }
    }
}

/// Nobody is there to be asked. A turn that can use nothing more is brought to its end first: the answer that the last call
/// paid for may not have been said yet.
fn stop(draft: &mut Draft<'_>) {
    if draft.state.ends_of_budget {
        draft.effect(Effect::Allow(draft.state.allowance(&draft.context.prices)));
    } else {
        draft.stop(StopRule::Budget, By::ostler());
    }
}

/// The wire tells of the last call when the agent may have told the end of its turn: which of them was heard first does not
/// decide how a session ends.
fn used_up_at_the_end(draft: &mut Draft<'_>, reached: BudgetReached) {
    let ends_by_itself = |stop: &StopRequested| matches!(stop.rule, StopRule::TurnEnded | StopRule::Done);
    if draft.state.phase() == Phase::Stopping && draft.state.stop().is_some_and(ends_by_itself) {
        draft.record(Event::BudgetExceeded(reached));
        let requested = StopRequested { rule: StopRule::Budget, by: By::ostler() };
        draft.record(Event::SessionStopRequested(requested));
    }
}

/// Whether somebody is to say if it may use more. A turn that ends meanwhile ends nothing: its last call is no other than
/// those before it.
pub(super) fn is_asked_for(draft: &Draft<'_>) -> bool {
    draft.state.holds().budget.is_some() && !waits_for_helpers(draft)
}

/// What its helpers took of its budget is known anew: it waits for what they hold, or goes on with what came back.
pub(super) fn helpers(draft: &mut Draft<'_>, lent: Lent) {
    if draft.state.helpers == lent {
        return;
    }
    draft.record(Event::HelpersCharged(lent));
    if draft.state.budget.is_none() {
        return;
    }
    let is_held = draft.state.holds().budget.is_some();
    let has_room = over_budget(&draft.state, &draft.context.prices).is_none();
    let stops = draft.state.budget.is_some_and(|budget| budget.when_used_up == WhenUsedUp::Stop);
    if is_held && has_room {
        draft.release(Hold::Budget);
        request::go_on(draft);
    } else if is_held && stops && !waits_for_helpers(draft) && draft.state.phase() == Phase::Live {
        // It was held until they gave something back, and they have used all of it.
        draft.stop(StopRule::Budget, By::ostler());
    } else {
        check(draft);
    }
    draft.effect(Effect::Allow(draft.state.allowance(&draft.context.prices)));
}

/// Whether all that keeps a session from going on is what its helpers hold, and may give back.
fn waits_for_helpers(draft: &Draft<'_>) -> bool {
    let state = &draft.state;
    let Some(budget) = state.budget else { return false };
    let spent = state.used(&draft.context.prices).and(&state.helpers.spent());
    matches!(budget.standing(&spent), Standing::Within | Standing::Warned)
}

/// Even where nobody is there to ask: a session that gave its helpers all that it had goes on when one of them ends.
fn wait_for_helpers(draft: &mut Draft<'_>, reached: &BudgetReached) {
    if draft.state.holds().budget.is_some() || draft.state.phase() != Phase::Live {
        return;
    }
    let held = draft.state.helpers.held_words(&reached.amount()).unwrap_or_default();
    draft.hold(Hold::Budget, format!("{}, {held}; it goes on when one of them ends", reached.reason()));
}

/// What others use too is known anew, the campaign's budget or its agent's: its sessions are held, or go on.
pub(super) fn shared(draft: &mut Draft<'_>, hold: Hold, used: &BudgetUse) {
    let created = draft.state.created();
    let (config, campaign) = (&created.config, created.campaign);
    let when_used_up = config.when_used_up;
    let amount = used.budget.map(|budget| budget.amount()).unwrap_or_default();
    // What a subscription covers is in no budget of dollars.
    let dollars = amount.dollars.filter(|_| config.billing == Billing::Calls);
    let amount = Amount { dollars, ..amount };
    let is_held = draft.state.holds().of(hold).is_some();
    match amount.standing(&used.used) {
        Standing::Within | Standing::Warned if is_held => {
            draft.release(hold);
            if draft.state.holds_calls {
                draft.effect(Effect::Allow(draft.state.allowance(&draft.context.prices)));
            }
            request::go_on(draft);
        }
        Standing::Within | Standing::Warned => {}
        Standing::UsedUp | Standing::Unpriced(_) if is_held || draft.state.phase() > Phase::Live => {}
        Standing::UsedUp | Standing::Unpriced(_) if draft.state.ends_of_budget => {}
        Standing::UsedUp | Standing::Unpriced(_) => {
            let reached = BudgetReached {
                campaign: Some(campaign),
                agent: used.agent,
                period: used.budget.map(|budget| budget.period),
                ..BudgetReached::new(amount, &used.used)
            };
            let whose = if hold == Hold::AgentBudget { "agent" } else { "campaign" };
            let reason = format!("{whose} {}: {}", used.name, reached.reason());
            draft.record(Event::BudgetExceeded(reached));
            match when_used_up {
                WhenUsedUp::Hold => draft.hold(hold, reason),
                WhenUsedUp::Stop => stop(draft),
            }
        }
    }
}

/// Why a session cannot go on with its budget as it is.
pub(super) fn over_budget(state: &State, prices: &PriceBook) -> Option<Refusal> {
    let budget = state.budget?;
    let used = state.charged(prices);
    let short = state.created().id.short();
    let refuse = |message: String| Refusal::new(Reason::OverBudget, message);
    match budget.standing(&used) {
        Standing::Within | Standing::Warned => None,
        Standing::UsedUp => {
            let twice = Amount {
                tokens: budget
                    .tokens
                    .filter(|most| used.tokens >= *most)
                    .map(|_| used.tokens.saturating_mul(2)),
                dollars: budget
                    .dollars
                    .filter(|most| used.dollars >= *most)
                    .map(|_| Dollars(used.dollars.0.saturating_mul(2))),
            };
            let refusal = refuse(format!("session {short} has used up its budget"));
            let told = budget.amount().told(&used);
            let held = state.helpers.held_words(&budget.amount());
            Some(
                refusal
                    .because(held.map_or(told.clone(), |held| format!("{told}, {held}")))
                    .hint(format!("ostler resume {short} --budget {twice}"), "raises the budget and goes on"),
            )
        }
        Standing::Unpriced(model) => {
            let (why, cure) = unpriced(&model);
            let refusal = refuse(format!("nobody knows how much of its budget session {short} has used"));
            Some(refusal.because(why).hint(cure, "says what its tokens cost; then resume it"))
        }
    }
}

impl State {
    /// What was used of its budget: by itself, and by its helpers, with what they still hold.
    pub fn charged(&self, prices: &PriceBook) -> Used {
        self.used(prices).and(&self.helpers.charged())
    }

    /// What its helpers took of its budget.
    pub fn helpers(&self) -> &Lent {
        &self.helpers
    }

    /// What the session that goes on with this one may use: what this one left of its budget, or of the one that it was
    /// given instead. A new process is no new budget.
    pub fn budget_left(
        &self,
        instead: Option<Budget>,
        prices: &PriceBook,
    ) -> Result<Option<Budget>, Refusal> {
        let Some(budget) = instead.or(self.budget) else { return Ok(None) };
        let as_if = State { budget: Some(budget), ..self.clone() };
        if let Some(refusal) = over_budget(&as_if, prices) {
            return Err(refusal);
        }
        let left = budget.amount().left(&self.charged(prices));
        Ok(Some(Budget::new(left, budget.when_used_up)))
    }
}

impl BudgetReached {
    fn amount(&self) -> Amount {
        Amount { tokens: self.tokens, dollars: self.dollars }
    }

    /// What is used of it, or why nobody knows that; with the cure.
    pub fn reason(&self) -> String {
        let period = self.period.map(|period| format!(" {}", period.words())).unwrap_or_default();
        let used = Used { tokens: self.used, dollars: self.spent.unwrap_or_default(), unpriced: None };
        match (&self.unpriced, self.dollars) {
            (Some(model), Some(most)) if self.amount().standing(&used) != Standing::UsedUp => {
                let (why, cure) = unpriced(model);
                format!("{why}, so nobody knows how much of {most} is used{period}: {cure}")
            }
            _ => format!("{}{period}", self.amount().told(&used)),
        }
    }

    pub fn whose(&self) -> &'static str {
        match (self.agent, self.campaign) {
            (Some(_), _) => "its agent's",
            (None, Some(_)) => "its campaign's",
            (None, None) => "its",
        }
    }

    /// For an obituary, after "because".
    pub fn sentence(&self) -> String {
        let (whose, of) = (self.whose(), self.amount());
        match &self.unpriced {
            Some(_) => self.reason(),
            None => format!("{whose} budget of {of} was used up ({})", self.reason()),
        }
    }
}
