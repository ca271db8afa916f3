//! What campaigns and agents have used of their budgets. One task looks after all of them: it knows how much is left, shares
//! that out among the gateways of their sessions, and tells the sessions when nothing is.
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
    CampaignId, Event, Kind, Reason, Refusal, SessionId, Time,
    agent::Agent,
    budget::{Amount, CampaignBudget, Claim, Held, Period, Standing, Used, divide, unpriced},
    campaign::Campaign,
    event::BudgetReached,
    gateway::Allowance,
    price::{Cost, PriceBook},
    query::EventFilter,
    session::{Billing, BudgetUse},
};
use ostler_store::{CampaignSpent, Commit, Urgency};
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    time::{sleep, timeout},
};

use crate::{
    session::{Command, Handle},
    shared::Shared,
};

/// What is used changes with every call; shares follow at this pace.
const PACE: Duration = Duration::from_millis(100);
/// A look without a reason: the clock may have been set.
const LOOK: Duration = Duration::from_secs(60);
/// Prices are a file that anybody writes: whether it is another one is asked at this pace.
const PRICES_LOOK: Duration = Duration::from_secs(1);
/// An actor that does not answer for so long is busy starting or ending.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);
/// How many warnings of a period are looked through for a campaign's.
const WARNINGS: u32 = 1_000;

#[derive(Default)]
pub(crate) struct Accounts {
    accounts: Mutex<HashMap<String, Account>>,
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

/// Whose budget it is.
pub(crate) enum Owner {
    Campaign(CampaignId),
    Agent(Box<Agent>),
}

impl Owner {
    fn id(&self) -> String {
        match self {
            Owner::Campaign(id) => id.to_string(),
            Owner::Agent(agent) => agent.id.to_string(),
        }
    }
}

/// A session that uses what there is.
struct Spender {
    id: SessionId,
    handle: Handle,
    claim: Claim,
}

/// What is left for some of the sessions together: for all of a campaign's, or for those of one agent.
struct Pot {
    usage: BudgetUse,
    /// Places of those who draw from it.
    members: Vec<usize>,
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
        let mut prices = shared.prices.current();
        loop {
            let now = shared.clock.now().wall;
            let next_day = Period::Day.end(now).map_or(LOOK, |end| end.since(now));
            let first = tokio::select! {
                first = asked.recv() => first,
                () = sleep(next_day.clamp(PACE, LOOK)) => None,
                () = repriced(&shared, &prices) => None,
                () = shared.shutdown.cancelled() => return,
            };
            let all: Vec<Asked> =
                first.into_iter().chain(std::iter::from_fn(|| asked.try_recv().ok())).collect();
            // Before anything is counted: what is set meanwhile is seen by the next look.
            prices = shared.prices.current();
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

/// Waits until other prices hold than these.
pub(crate) async fn repriced(shared: &Shared, known: &Arc<PriceBook>) {
    loop {
        sleep(PRICES_LOOK).await;
        if !Arc::ptr_eq(&shared.prices.current(), known) {
            return;
        }
    }
}

/// Counts anew, warns, and gives each session its share.
async fn settle(shared: &Arc<Shared>, id: CampaignId) -> Result<(), Refusal> {
    let Some(row) = shared.store.campaign(id).await? else { return Ok(()) };
    let sessions = shared.sessions.all().into_iter();
    let sessions = sessions.filter(|(_, session)| session.campaign == id).collect();
    // What they say they have used is in the record by the time that it is read: none of it counts as left.
    let sessions = spending(sessions).await;
    let pots = pots(shared, &row.campaign, &sessions).await?;
    for pot in &pots {
        warn_once(shared, id, &pot.usage).await?;
    }
    let is_known = sessions.iter().all(|session| session.claim.held != Held::Unknown);
    let is_limited = pots.iter().any(|pot| pot.usage.budget.is_some());
    if is_limited && !(is_known && shared.accounts.is_complete.load(Ordering::Acquire)) {
        // What a session has used since the last daemon may be all that is left.
        shared.accounts.changed(id);
        return Ok(());
    }
    let shares = shares(&pots, &sessions);
    // First what becomes less, then, when all heed it and none had gone beyond it, what becomes more: at no moment is more
    // out than there is.
    if share_out(&shares, true).await {
        share_out(&shares, false).await;
    } else {
        shared.accounts.changed(id);
    }
    for (place, session) in sessions.iter().enumerate() {
        let mut own = pots.iter().filter(|pot| pot.members.contains(&place)).map(|pot| pot.usage.clone());
        let campaign = Box::new(own.next().unwrap_or_default());
        let agent = Box::new(own.next().unwrap_or_default());
        let _ = session.handle.commands.send(Command::Budgets { campaign, agent }).await;
    }
    Ok(())
}

/// What the campaign has left for all, and then each of its agents that has a budget for its own.
async fn pots(shared: &Shared, campaign: &Campaign, sessions: &[Spender]) -> Result<Vec<Pot>, Refusal> {
    let members = (0..sessions.len()).collect();
    let mut pots = vec![Pot { usage: shared.campaign_use(campaign).await?, members }];
    let agents = shared.store.budgeted_agents(campaign.id).await?;
    if agents.is_empty() {
        return Ok(pots);
    }
    let mut whose = Vec::with_capacity(sessions.len());
    for session in sessions {
        whose.push(shared.store.agent_worked_for(session.id).await?);
    }
    for agent in agents {
        let members = (0..sessions.len()).filter(|place| whose[*place] == Some(agent.id)).collect();
        pots.push(Pot { usage: shared.agent_use(&agent).await?, members });
    }
    Ok(pots)
}

/// Asks each session what it has used. Who ends meanwhile has no part in the rest.
async fn spending(sessions: Vec<(SessionId, Handle)>) -> Vec<Spender> {
    let mut asked = Vec::with_capacity(sessions.len());
    for (id, handle) in sessions {
        let (done, answer) = oneshot::channel();
        if handle.commands.send(Command::Spending(done)).await.is_ok() {
            asked.push((id, handle, answer));
        }
    }
    let mut all = Vec::with_capacity(asked.len());
    for (id, handle, answer) in asked {
        match timeout(ANSWERED_WITHIN, answer).await {
            Ok(Ok(claim)) => all.push(Spender { id, handle, claim }),
            Ok(Err(_)) => {}
            Err(_) => {
                let claim = Claim { used: Used::default(), counted: None, held: Held::Unknown };
                all.push(Spender { id, handle, claim });
            }
        }
    }
    all
}

/// How far each session may go, without those that cannot be told: as far as each pot that it draws from lets it.
fn shares(pots: &[Pot], sessions: &[Spender]) -> Vec<(Handle, Option<Amount>)> {
    let mut ends: Vec<Option<Amount>> = vec![None; sessions.len()];
    for pot in pots {
        let Some(budget) = pot.usage.budget else { continue };
        let claims: Vec<Claim> = pot.members.iter().map(|place| sessions[*place].claim.clone()).collect();
        let divided = divide(budget.amount().left(&pot.usage.used), &claims);
        for (place, end) in pot.members.iter().zip(divided) {
            let Some(end) = end else { continue };
            ends[*place] = Some(ends[*place].map_or(end, |other| other.least(end)));
        }
    }
    let can_be_told = |session: &Spender| !matches!(session.claim.held, Held::OutOfReach(_));
    let told = sessions.iter().zip(ends).filter(|(session, _)| can_be_told(session));
    told.map(|(session, end)| (session.handle.clone(), end)).collect()
}

/// Tells the sessions their shares. Says whether all heed them, and had used no more than that before.
async fn share_out(shares: &[(Handle, Option<Amount>)], only_less: bool) -> bool {
    let mut told = Vec::with_capacity(shares.len());
    for (session, end) in shares {
        let (heeded, is_heeded) = oneshot::channel();
        let share =
            end.map(|end| Allowance { tokens: end.tokens, dollars: end.dollars, ..Allowance::default() });
        if session.commands.send(Command::Share { share, only_less, heeded }).await.is_ok() {
            told.push((is_heeded, end));
        }
    }
    let mut is_held_by_all = true;
    for (is_heeded, end) in told {
        let counted = timeout(ANSWERED_WITHIN, is_heeded).await;
        is_held_by_all &= match (counted, end) {
            (_, None) | (Ok(Ok(None)), _) => true,
            (Ok(Ok(Some(counted))), Some(end)) => end.holds(&counted),
            (Ok(Err(_)) | Err(_), _) => false,
        };
    }
    is_held_by_all
}

/// Warns of a budget that several sessions use, once for each period and amount.
async fn warn_once(shared: &Shared, campaign: CampaignId, usage: &BudgetUse) -> Result<(), Refusal> {
    let Some(budget) = usage.budget else { return Ok(()) };
    let amount = budget.amount();
    if !matches!(amount.standing(&usage.used), Standing::Warned | Standing::UsedUp) {
        return Ok(());
    }
    let mut accounts = shared.accounts.accounts.lock().await;
    let owner = usage.agent.map_or_else(|| campaign.to_string(), |agent| agent.to_string());
    let Some(account) = accounts.get_mut(&owner) else { return Ok(()) };
    if account.warned == Some(amount) {
        return Ok(());
    }
    account.warned = Some(amount);
    let since = Some(account.since);
    let filter = EventFilter { kinds: vec![Kind::BudgetWarned], since, ..EventFilter::default() };
    let warnings = shared.store.events_before(None, &filter, WARNINGS).await?;
    let is_this = |event: &Event| {
        matches!(event, Event::BudgetWarned(reached) if reached.campaign == Some(campaign)
            && reached.agent == usage.agent && (reached.tokens, reached.dollars) == (amount.tokens, amount.dollars))
    };
    // A daemon before this one has done it.
    if warnings.rows.iter().any(|recorded| is_this(&recorded.event)) {
        return Ok(());
    }
    let reached = BudgetReached {
        campaign: Some(campaign),
        agent: usage.agent,
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
    pub(crate) async fn campaign_use(&self, campaign: &Campaign) -> Result<BudgetUse, Refusal> {
        self.budget_use(Owner::Campaign(campaign.id), campaign.name.to_string(), campaign.policy.budget).await
    }

    pub(crate) async fn budget_use(
        &self,
        owner: Owner,
        name: String,
        budget: Option<CampaignBudget>,
    ) -> Result<BudgetUse, Refusal> {
        let agent = match &owner {
            Owner::Campaign(_) => None,
            Owner::Agent(agent) => Some(agent.id),
        };
        let Some(budget) = budget else {
            return Ok(BudgetUse { name, agent, ..BudgetUse::default() });
        };
        let since = budget.period.start(self.clock.now().wall);
        let mut accounts = self.accounts.accounts.lock().await;
        let fresh = || Account { since, spent: CampaignSpent::default(), warned: None };
        let account = accounts.entry(owner.id()).or_insert_with(fresh);
        if account.since != since {
            *account = fresh();
        }
        let before = account.spent.clone();
        let spent = match &owner {
            Owner::Campaign(id) => self.store.campaign_spent(*id, since, before).await?,
            Owner::Agent(agent) => self.store.agent_spent(agent, since, before).await?,
        };
        account.spent = spent.clone();
        let cost = Cost { paid: spent.paid, unpriced: spent.unpriced, ..Cost::default() };
        let (dollars, unpriced) = cost.settled(&self.prices.current());
        let used = Used { tokens: spent.tokens, dollars, unpriced };
        Ok(BudgetUse { name, agent, budget: Some(budget), used })
    }

    /// Refuses a session that its campaign has nothing left for.
    pub(crate) async fn check_campaign_budget(
        &self,
        campaign: &Campaign,
        billing: Billing,
    ) -> Result<(), Refusal> {
        let usage = self.campaign_use(campaign).await?;
        let command = format!("ostler campaign set {}", campaign.name);
        check_left(&usage, billing, &format!("campaign {}", campaign.name), &command)
    }
}

/// Refuses a session for which nothing is left. `command` is what sets the budget.
pub(crate) fn check_left(
    usage: &BudgetUse,
    billing: Billing,
    whose: &str,
    command: &str,
) -> Result<(), Refusal> {
    let Some(budget) = usage.budget else { return Ok(()) };
    let amount = budget.amount();
    let dollars = amount.dollars.filter(|_| billing == Billing::Calls);
    let amount = Amount { dollars, ..amount };
    let message =
        |what: &str| Refusal::new(Reason::OverBudget, format!("{whose} {what}, so nothing was started"));
    match amount.standing(&usage.used) {
        Standing::Within | Standing::Warned => Ok(()),
        Standing::UsedUp => {
            let told = format!("{} {}", amount.told(&usage.used), budget.period.words());
            Err(message("has used up its budget").because(told).hint(
                format!("{command} budget=AMOUNT/{}", budget.period.as_str()),
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
