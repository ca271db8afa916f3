//! `ostler cost`: what was used, and what that cost at the price of each call. What has no price is said to have none.

use std::cell::RefCell;

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use ostler_client::{Client, GetUsage};
use ostler_domain::{
    Time,
    budget::Period,
    limits::PAGE_MOST,
    price::Prices,
    query::{Page, SessionFilter},
};
use serde::Serialize;

use super::price;
use crate::{
    app::App,
    failure::Failure,
    filters::Filters,
    listing::{self, Found, List, ListArgs, Screen},
    output::to_json,
    screen::cost::{self as screen, Against, By, Earlier, Sum, Sums},
    words,
};
use ostler_form::cost::{CostsForm, SumForm};

/// Where nothing is said, one day is told, or with `--by day` a week of them.
const DAYS: u32 = 7;
/// How far back is looked for anything, where a shorter time has nothing.
const EARLIER_DAYS: [u32; 3] = [30, 365, 3_650];
const DAY: std::time::Duration = std::time::Duration::from_secs(24 * 3_600);

#[derive(Debug, Args)]
pub(crate) struct CostArgs {
    /// Only of these sessions: names, ids, parts of ids
    #[arg(value_name = "WHO")]
    who: Vec<String>,
    /// What gets a line of its own: day, model, provider, campaign, agent, session, ticket, chain, mission
    #[arg(
        long,
        value_name = "WORD",
        default_value = "session",
        hide_default_value = true,
        hide_possible_values = true,
        value_parser = dimension()
    )]
    by: By,
    #[command(flatten)]
    filters: Filters,
    #[command(flatten)]
    list: ListArgs,
}

fn dimension() -> impl TypedValueParser<Value = By> {
    PossibleValuesParser::new(By::ALL.map(By::word)).map(|word| By::parse(&word).unwrap_or(By::Session))
}

pub(crate) async fn run(app: &App, args: CostArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let mut chosen = Vec::new();
    for who in &args.who {
        chosen.push(app.session(&client, who).await?.id.to_string());
    }
    if !chosen.is_empty() && !matches!(args.by, By::Session | By::Agent) {
        return Err(Failure::usage("sessions that are named are summed up by session or agent"));
    }
    let is_filtered = args.filters.is_any();
    let timeless = Filters { since: None, until: None, ..args.filters.clone() };
    let costs = Costs {
        app,
        client: &client,
        prices: price::prices(app)?,
        by: args.by,
        // Who names sessions wants all of them.
        since: match (args.filters.since, args.filters.until) {
            (None, None) if chosen.is_empty() => Some(usual_start(args.by)),
            (since, _) => since,
        },
        until: args.filters.until,
        filter: timeless.resolve(app, &client, true).await?,
        is_filtered: is_filtered || !chosen.is_empty(),
        chosen,
        most: args.list.most(None),
        total: RefCell::default(),
    };
    listing::run(app, Some(&client), &args.list, &costs).await
}

/// The day of budgets, as everywhere where money is summed up.
fn usual_start(by: By) -> Time {
    let midnight = Period::Day.start(words::now());
    match by {
        By::Day => (1..DAYS).fold(midnight, |time, _| time.minus(DAY)),
        _ => midnight,
    }
}

struct Costs<'a> {
    app: &'a App,
    client: &'a Client,
    prices: Prices,
    by: By,
    filter: SessionFilter,
    since: Option<Time>,
    until: Option<Time>,
    is_filtered: bool,
    /// Ids of sessions that were named.
    chosen: Vec<String>,
    most: Option<u32>,
    /// Of what was found last.
    total: RefCell<Sum>,
}

impl List for Costs<'_> {
    type Row = Sum;
    const ROWS: &'static str = "rows";

    async fn find(&self) -> Result<Found<Sum>, Failure> {
        let Sums { rows, total } = self.sums(self.since, self.until).await?;
        self.total.replace(total);
        Ok(Found::whole(rows, self.most))
    }

    fn id(&self, sum: &Sum) -> String {
        sum.key.clone()
    }

    fn name(&self, sum: &Sum) -> String {
        sum.name.clone()
    }

    fn form(&self, sum: &Sum) -> impl Serialize {
        SumForm::from(sum)
    }

    fn object(&self, found: &Found<Sum>) -> Option<String> {
        Some(to_json(&CostsForm {
            by: self.by.word(),
            since: self.since.map(words::rfc3339),
            until: self.until.map(words::rfc3339),
            prices_date: &self.prices.date,
            total: SumForm::from(&*self.total.borrow()),
            rows: found.rows.iter().map(SumForm::from).collect(),
        }))
    }

    async fn screen(&self, found: &Found<Sum>) -> Result<Screen, Failure> {
        let zone = self.app.zone();
        let midnight = Period::Day.start(words::now());
        let since = self.since.map(|since| screen::since(since, midnight, &zone));
        if found.rows.is_empty() {
            let earlier = if self.is_filtered { None } else { self.earlier(midnight).await? };
            let since = since.filter(|_| !self.is_filtered);
            let remarks = screen::nothing(since.as_deref(), earlier.as_ref());
            return Ok(Screen { remarks, ..Screen::default() });
        }
        let total = self.total.borrow().clone();
        let mut remarks: Vec<_> = self.budgets().await?.iter().map(screen::budget).collect();
        remarks.extend(screen::remarks(&total, &self.prices.date, since.as_deref().unwrap_or("since ever")));
        let table = screen::table(screen::head(self.by), &found.rows, &total);
        Ok(Screen { table: Some(table), remarks, ..Screen::default() })
    }
}

impl Costs<'_> {
    /// What was used before the time in which nothing was: the day before, else within the shortest span that has anything.
    async fn earlier(&self, midnight: Time) -> Result<Option<Earlier>, Failure> {
        let Some(since) = self.since else { return Ok(None) };
        let by = match self.by {
            By::Session => String::new(),
            by => format!("--by {} ", by.word()),
        };
        if since == midnight {
            let sum = self.sums(Some(midnight.minus(DAY)), Some(midnight)).await?.total;
            if sum.calls > 0 {
                let (when, command) = ("Yesterday".to_owned(), format!("cost {by}--since 1d"));
                return Ok(Some(Earlier { when, sum, command }));
            }
        }
        for days in EARLIER_DAYS {
            let sum = self.sums(Some(words::now().minus(DAY * days)), Some(since)).await?.total;
            if sum.calls > 0 {
                let when = format!("In the last {days} days");
                return Ok(Some(Earlier { when, sum, command: format!("cost {by}--since {days}d") }));
            }
        }
        Ok(None)
    }

    async fn sums(&self, since: Option<Time>, until: Option<Time>) -> Result<Sums, Failure> {
        let question = GetUsage { filter: self.filter.clone(), since, until, by: None, limit: 0 };
        Ok(screen::sums(self.client, &question, self.by, &self.prices, &self.chosen).await?)
    }

    /// The same of the agents among them that have a budget of their own: what helpers used counts there too.
    async fn agents_budgets(&self) -> Result<Vec<Against>, Failure> {
        let names = self.app.campaign_names(self.client).await?;
        let mut budgets = Vec::new();
        let mut page = Page::of(PAGE_MOST, None);
        loop {
            let agents = self.client.agents(None, page).await?;
            for agent in agents.rows {
                let is_asked = is_among(&self.filter.campaigns, &agent.campaign)
                    && is_among(&self.filter.agents, &agent.name.to_string());
                let Some(budget) = agent.profile.period_budget.filter(|_| is_asked) else { continue };
                let (_, used) = self.client.agent_with_use(&agent.id.to_string()).await?;
                let used = used.unwrap_or_default();
                let whose = format!("{}/{}", names.of(&agent.campaign), agent.name);
                let paid = used.dollars;
                budgets.push(Against { whose, budget, paid, paid_now: paid, tokens: used.tokens });
            }
            match agents.next_cursor {
                Some(next) => page = Page::of(PAGE_MOST, Some(next)),
                None => return Ok(budgets),
            }
        }
    }

    /// What the campaigns asked about may use, and have used.
    async fn budgets(&self) -> Result<Vec<Against>, Failure> {
        let now = words::now();
        let mut budgets = Vec::new();
        for campaign in self.client.campaigns(Page::of(PAGE_MOST, None)).await?.rows {
            let is_asked = is_among(&self.filter.campaigns, &campaign.id);
            let Some(budget) = campaign.policy.budget.filter(|_| is_asked) else { continue };
            let filter = SessionFilter { campaigns: vec![campaign.id], ..SessionFilter::default() };
            let since = Some(budget.period.start(now));
            let question = GetUsage { filter, since, ..GetUsage::default() };
            let used = self.client.usage(&question).await?.total;
            let (paid, tokens) = (used.cost, used.usage.budgeted());
            let paid_now = match used.unpriced.is_zero() {
                true => paid,
                false => {
                    screen::sums(self.client, &question, By::Campaign, &self.prices, &[]).await?.total.cost
                }
            };
            budgets.push(Against { whose: campaign.name.to_string(), budget, paid, paid_now, tokens });
        }
        budgets.extend(self.agents_budgets().await?);
        Ok(budgets)
    }
}

/// Whether one is asked for, where nothing in particular may be.
fn is_among<T: PartialEq>(asked: &[T], one: &T) -> bool {
    asked.is_empty() || asked.contains(one)
}
