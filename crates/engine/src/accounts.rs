//! What campaigns have used of their budgets. One task looks after all of them: it knows how much is left, shares that out
//! among the gateways of a campaign's sessions, and tells the sessions when nothing is.
//!
//! What is left is divided, never lent twice: each gateway holds its calls at the end of its share even when this daemon
//! is gone, so that all of them together go beyond the budget by no more than the calls that are under way.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ostler_domain::{
    CampaignId, Event, Kind, Reason, Refusal, Time,
    budget::{Amount, Period, Standing, Used, unpriced},
    campaign::Campaign,
    event::BudgetReached,
    gateway::Allowance,
    price::{Cost, Dollars},
    query::EventFilter,
    session::{Billing, CampaignUse},
};
use ostler_store::{CampaignSpent, Commit, Urgency};
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    time::{sleep, timeout},
};

use crate::{
    session::{Command, Handle, Held, Spending},
    shared::Shared,
};

/// What is used changes with every call; shares follow at this pace.
const PACE: Duration = Duration::from_millis(100);
/// A look without a reason: prices may have been set, or the clock.
const LOOK: Duration = Duration::from_secs(60);
/// An actor that does not answer for so long is busy starting or ending.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);
/// How many warnings of a period are looked through for a campaign's.
const WARNINGS: u32 = 1_000;

#[derive(Default)]
pub(crate) struct Accounts {
    accounts: Mutex<HashMap<CampaignId, Account>>,
    asking: OnceLock<mpsc::UnboundedSender<Asked>>,
    /// Every session that lived before this daemon has an actor: until then nobody knows among how many to divide.
    is_complete: AtomicBool,
}

struct Account {
    since: Time,
    spent: CampaignSpent,
    /// The amount at whose approach people were warned.
    warned: Option<Amount>,
}

struct Asked {
    campaign: CampaignId,
    done: Option<oneshot::Sender<()>>,
}

impl Accounts {
    /// All sessions that there are have been found.
    pub(crate) fn complete(&self) {
        self.is_complete.store(true, Ordering::Release);
    }

    /// Something was used, or a session came or went, or a budget was set.
    pub(crate) fn changed(&self, campaign: CampaignId) {
        self.ask(Asked { campaign, done: None });
    }

    /// The same, and waits until the sessions know.
    pub(crate) async fn settled(&self, campaign: CampaignId) {
        let (done, is_done) = oneshot::channel();
        self.ask(Asked { campaign, done: Some(done) });
        let _ = timeout(ANSWERED_WITHIN, is_done).await;
    }

    fn ask(&self, asked: Asked) {
        if let Some(asking) = self.asking.get() {
            // Nobody listens when the daemon leaves.
            let _ = asking.send(asked);
        }
    }
}

/// Looks after the accounts until the daemon leaves.
pub(crate) fn keep(shared: &Arc<Shared>) {
    let (asking, mut asked) = mpsc::unbounded_channel::<Asked>();
    if shared.accounts.asking.set(asking).is_err() {
        return;
    }
    let shared = shared.clone();
    tokio::spawn(async move {
        loop {
            let now = shared.clock.now().wall;
            let next_day = Period::Day.end(now).map_or(LOOK, |end| end.since(now));
            let first = tokio::select! {
                first = asked.recv() => first,
                () = sleep(next_day.clamp(PACE, LOOK)) => None,
                () = shared.shutdown.cancelled() => return,
            };
            let all: Vec<Asked> =
                first.into_iter().chain(std::iter::from_fn(|| asked.try_recv().ok())).collect();
            let campaigns: BTreeSet<CampaignId> = if all.is_empty() {
                shared.sessions.all().into_iter().map(|(_, handle)| handle.campaign).collect()
            } else {
                all.iter().map(|asked| asked.campaign).collect()
            };
            for campaign in campaigns {
                if let Err(refusal) = settle(&shared, campaign).await {
                    tracing::warn!(%campaign, %refusal, "the campaign's use of its budget is not known");
                }
            }
            for done in all.into_iter().filter_map(|asked| asked.done) {
                let _ = done.send(());
            }
            sleep(PACE).await;
        }
    });
}

/// Counts anew, warns, and gives each session its share.
async fn settle(shared: &Arc<Shared>, id: CampaignId) -> Result<(), Refusal> {
    let Some(row) = shared.store.campaign(id).await? else { return Ok(()) };
    let sessions = shared.sessions.all().into_iter().map(|(_, handle)| handle);
    let sessions: Vec<Handle> = sessions.filter(|session| session.campaign == id).collect();
    // What they say they have used is in the record by the time that it is read: none of it counts as left.
    let sessions = spending(sessions).await;
    let usage = shared.campaign_use(&row.campaign).await?;
    warn_once(shared, &row.campaign, &usage).await?;
    let is_known = sessions.iter().all(|(_, spending)| !matches!(spending.held, Held::Unknown));
    if usage.budget.is_some() && !(is_known && shared.accounts.is_complete.load(Ordering::Acquire)) {
        // What a session has used since the last daemon may be all that is left.
        shared.accounts.changed(id);
        return Ok(());
    }
    let shares = shares(&usage, &sessions);
    // First what becomes less, then what becomes more: at no moment is more out than there is.
    for only_less in [true, false] {
        share_out(&sessions, &shares, only_less).await;
    }
    for (session, _) in &sessions {
        let _ = session.commands.send(Command::Campaign(usage.clone())).await;
    }
    Ok(())
}

/// Asks each session what it has used. Who ends meanwhile has no part in the rest.
async fn spending(sessions: Vec<Handle>) -> Vec<(Handle, Spending)> {
    let mut asked = Vec::with_capacity(sessions.len());
    for session in sessions {
        let (done, answer) = oneshot::channel();
        if session.commands.send(Command::Spending(done)).await.is_ok() {
            asked.push((session, answer));
        }
    }
    let mut all = Vec::with_capacity(asked.len());
    for (session, answer) in asked {
        match timeout(ANSWERED_WITHIN, answer).await {
            Ok(Ok(spending)) => all.push((session, spending)),
            Ok(Err(_)) => {}
            Err(_) => all.push((session, Spending { used: Used::default(), held: Held::Unknown })),
        }
    }
    all
}

/// How far each session may go: what it has used, and an equal part of what is left and not out of reach.
fn shares(usage: &CampaignUse, sessions: &[(Handle, Spending)]) -> Vec<Option<Allowance>> {
    let Some(budget) = usage.budget else { return vec![None; sessions.len()] };
    let out = sessions.iter().filter_map(|(_, spending)| match spending.held {
        Held::OutOfReach(amount) => Some(amount),
        Held::InReach | Held::Nothing | Held::Unknown => None,
    });
    let needs_some = |spending: &Spending| !matches!(spending.held, Held::Nothing);
    let needing = sessions.iter().filter(|(_, spending)| needs_some(spending)).count();
    let (mut reached, mut out_of_reach) = (needing as u64, Amount::default());
    for amount in out {
        (reached, out_of_reach) = (reached - 1, add(out_of_reach, amount));
    }
    let part = part(left_of(budget.amount(), &usage.used), out_of_reach, reached);
    let absolute = |(_, spending): &(Handle, Spending)| {
        let used = &spending.used;
        let part = if needs_some(spending) { part } else { nothing_of(part) };
        Some(Allowance {
            tokens: part.tokens.map(|part| used.tokens.saturating_add(part)),
            dollars: part.dollars.map(|part| Dollars(used.dollars.0.saturating_add(part.0))),
            ..Allowance::default()
        })
    };
    sessions.iter().map(absolute).collect()
}

/// No part of what is limited.
fn nothing_of(part: Amount) -> Amount {
    Amount { tokens: part.tokens.and(Some(0)), dollars: part.dollars.and(Some(Dollars(0))) }
}

fn left_of(amount: Amount, used: &Used) -> Amount {
    Amount {
        tokens: amount.tokens.map(|most| most.saturating_sub(used.tokens)),
        dollars: amount.dollars.map(|most| Dollars(most.0.saturating_sub(used.dollars.0))),
    }
}

fn add(one: Amount, other: Amount) -> Amount {
    let micros = |amount: Amount| amount.dollars.map_or(0, |dollars| dollars.0);
    Amount {
        tokens: Some(one.tokens.unwrap_or(0).saturating_add(other.tokens.unwrap_or(0))),
        dollars: Some(Dollars(micros(one).saturating_add(micros(other)))),
    }
}

/// What each of so many gets.
fn part(left: Amount, out_of_reach: Amount, sessions: u64) -> Amount {
    let each = |left: u64, out: u64| left.saturating_sub(out) / sessions.max(1);
    let out = out_of_reach.dollars.unwrap_or_default();
    Amount {
        tokens: left.tokens.map(|left| each(left, out_of_reach.tokens.unwrap_or(0))),
        dollars: left.dollars.map(|left| Dollars(each(left.0, out.0))),
    }
}

async fn share_out(sessions: &[(Handle, Spending)], shares: &[Option<Allowance>], only_less: bool) {
    let mut told = Vec::with_capacity(sessions.len());
    for ((session, _), share) in sessions.iter().zip(shares) {
        let (done, is_done) = oneshot::channel();
        let share = share.clone();
        if session.commands.send(Command::Share { share, only_less, done }).await.is_ok() {
            told.push(is_done);
        }
    }
    for is_done in told {
        let _ = timeout(ANSWERED_WITHIN, is_done).await;
    }
}

/// Warns of a campaign's budget, once for each period and amount.
async fn warn_once(shared: &Shared, campaign: &Campaign, usage: &CampaignUse) -> Result<(), Refusal> {
    let Some(budget) = usage.budget else { return Ok(()) };
    let amount = budget.amount();
    if !matches!(amount.standing(&usage.used), Standing::Warned | Standing::UsedUp) {
        return Ok(());
    }
    let mut accounts = shared.accounts.accounts.lock().await;
    let Some(account) = accounts.get_mut(&campaign.id) else { return Ok(()) };
    if account.warned == Some(amount) {
        return Ok(());
    }
    account.warned = Some(amount);
    let since = Some(account.since);
    let filter = EventFilter { kinds: vec![Kind::BudgetWarned], since, ..EventFilter::default() };
    let warnings = shared.store.events_before(None, &filter, WARNINGS).await?;
    let is_this = |event: &Event| {
        matches!(event, Event::BudgetWarned(reached) if reached.campaign == Some(campaign.id)
            && (reached.tokens, reached.dollars) == (amount.tokens, amount.dollars))
    };
    // A daemon before this one has done it.
    if warnings.rows.iter().any(|recorded| is_this(&recorded.event)) {
        return Ok(());
    }
    let reached = BudgetReached {
        campaign: Some(campaign.id),
        period: Some(budget.period),
        ..BudgetReached::new(amount, &usage.used)
    };
    let commit = Commit {
        urgency: Urgency::Control,
        node_events: vec![(shared.clock.now().wall, Event::BudgetWarned(reached))],
        session: None,
        request: None,
    };
    shared.store.commit(commit).await?;
    Ok(())
}

impl Shared {
    /// What a campaign's sessions have used of its budget.
    pub(crate) async fn campaign_use(&self, campaign: &Campaign) -> Result<CampaignUse, Refusal> {
        let name = campaign.name.to_string();
        let Some(budget) = campaign.policy.budget else {
            return Ok(CampaignUse { name, ..CampaignUse::default() });
        };
        let since = budget.period.start(self.clock.now().wall);
        let mut accounts = self.accounts.accounts.lock().await;
        let fresh = || Account { since, spent: CampaignSpent::default(), warned: None };
        let account = accounts.entry(campaign.id).or_insert_with(fresh);
        if account.since != since {
            *account = fresh();
        }
        let spent = self.store.campaign_spent(campaign.id, since, account.spent.clone()).await?;
        account.spent = spent.clone();
        let cost = Cost { paid: spent.paid, unpriced: spent.unpriced, ..Cost::default() };
        let (dollars, unpriced) = cost.settled(&self.prices.current());
        Ok(CampaignUse { name, budget: Some(budget), used: Used { tokens: spent.tokens, dollars, unpriced } })
    }

    /// Refuses a session that its campaign has nothing left for.
    pub(crate) async fn check_campaign_budget(
        &self,
        campaign: &Campaign,
        billing: Billing,
    ) -> Result<(), Refusal> {
        let usage = self.campaign_use(campaign).await?;
        let Some(budget) = usage.budget else { return Ok(()) };
        let amount = budget.amount();
        let dollars = amount.dollars.filter(|_| billing == Billing::Calls);
        let amount = Amount { dollars, ..amount };
        let message = |what: &str| {
            Refusal::new(
                Reason::OverBudget,
                format!("campaign {} {what}, so nothing was started", campaign.name),
            )
        };
        match amount.standing(&usage.used) {
            Standing::Within | Standing::Warned => Ok(()),
            Standing::UsedUp => {
                let told = format!("{} {}", amount.told(&usage.used), budget.period.words());
                Err(message("has used up its budget").because(told).hint(
                    format!("ostler campaign set {} budget=AMOUNT/{}", campaign.name, budget.period.as_str()),
                    "allows more, as in 50usd/day",
                ))
            }
            Standing::Unpriced(model) => {
                let (why, cure) = unpriced(&model);
                Err(message("has used an unknown part of its budget")
                    .because(why)
                    .hint(cure, "says what its tokens cost"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_divided_and_never_lent_twice() {
        let left = Amount { tokens: Some(100), dollars: Some(Dollars(1_000)) };
        assert_eq!(
            part(left, Amount::default(), 3),
            Amount { tokens: Some(33), dollars: Some(Dollars(333)) }
        );
        let out = Amount { tokens: Some(60), dollars: Some(Dollars(2_000)) };
        assert_eq!(part(left, out, 2), Amount { tokens: Some(20), dollars: Some(Dollars(0)) });
        assert_eq!(part(Amount::default(), out, 0), Amount::default(), "what is not limited is not divided");
    }
}
