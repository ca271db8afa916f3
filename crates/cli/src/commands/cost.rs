//! `ostler cost`: what was used, and what that cost at the price of each call. What has no price is said to have none.

use std::collections::BTreeMap;

use clap::Args;
use ostler_client::{
    Client, GetUsage,
    reply::{UsageBy, UsageRow},
};
use ostler_domain::{
    Time, Usage,
    limits::PAGE_MOST,
    price::{Dollars, Prices},
    query::{Page, Scope, SessionFilter},
};
use serde::Serialize;

use super::price;
use crate::{
    app::{App, campaign_operand},
    exit_code,
    failure::Failure,
    output::{Column, Line, Table, Tone},
    parse, words,
};

#[derive(Debug, Args)]
pub(crate) struct CostArgs {
    /// Only of these sessions: names, ids, parts of ids
    who: Vec<String>,
    /// What gets a line of its own: session, agent, campaign, model, provider, day
    #[arg(long, value_name = "WORD", default_value = "session", hide_default_value = true)]
    by: By,
    /// In this campaign: name, id or a path in it
    #[arg(short = 'C', long, value_name = "CAMPAIGN")]
    campaign: Option<String>,
    /// Of this provider
    #[arg(long)]
    provider: Option<String>,
    /// Only calls since: 2h (ago), today, 2026-01-31
    #[arg(long, value_parser = parse::moment, value_name = "WHEN")]
    since: Option<Time>,
    /// Only calls before
    #[arg(long, value_parser = parse::moment, value_name = "WHEN")]
    until: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum By {
    Session,
    Agent,
    Campaign,
    Model,
    Provider,
    Day,
}

impl By {
    const fn word(self) -> &'static str {
        match self {
            By::Session => "session",
            By::Agent => "agent",
            By::Campaign => "campaign",
            By::Model => "model",
            By::Provider => "provider",
            By::Day => "day",
        }
    }

    /// How the daemon is asked.
    const fn asked(self) -> UsageBy {
        match self {
            By::Session | By::Agent => UsageBy::Session,
            By::Campaign => UsageBy::Campaign,
            By::Model => UsageBy::Model,
            By::Provider => UsageBy::Provider,
            By::Day => UsageBy::Day,
        }
    }
}

/// One line.
#[derive(Debug, Clone, PartialEq, Default)]
struct Sum {
    name: String,
    calls: u64,
    usage: Usage,
    /// Of the part that has a price.
    cost: Dollars,
    /// What a subscription covers, at the prices that others pay.
    plan: Dollars,
    /// The part that has none.
    unpriced: Usage,
    /// Models of that part, where they are named.
    unpriced_models: Vec<String>,
}

impl Sum {
    /// Takes in calls at the prices that they were made at.
    fn take(&mut self, row: &UsageRow) {
        self.calls += row.calls;
        self.usage += row.usage;
        self.cost = Dollars(self.cost.0.saturating_add(row.cost.0));
        self.plan = Dollars(self.plan.0.saturating_add(row.plan.0));
    }

    /// Takes in calls that had no price, of one model: at the price that it has now.
    fn add(&mut self, model: Option<&str>, prices: &Prices, usage: &Usage) {
        match model.and_then(|model| prices.find(model)) {
            Some(price) => self.cost = Dollars(self.cost.0.saturating_add(price.of(usage).0)),
            None if usage.is_zero() => {}
            None => {
                self.unpriced += *usage;
                let name = model.unwrap_or_default().to_owned();
                if !name.is_empty() && !self.unpriced_models.contains(&name) {
                    self.unpriced_models.push(name);
                }
            }
        }
    }

    fn merge(&mut self, other: &Sum) {
        self.calls += other.calls;
        self.usage += other.usage;
        self.cost = Dollars(self.cost.0.saturating_add(other.cost.0));
        self.plan = Dollars(self.plan.0.saturating_add(other.plan.0));
        self.unpriced += other.unpriced;
        for model in &other.unpriced_models {
            if !self.unpriced_models.contains(model) {
                self.unpriced_models.push(model.clone());
            }
        }
    }

    fn is_known(&self) -> bool {
        self.unpriced.is_zero()
    }

    /// Never a nothing for what nobody knows.
    fn words(&self) -> Line {
        let paid = match (self.is_known(), self.cost) {
            (true, Dollars(0)) if self.plan > Dollars(0) => Line::new(),
            (true, cost) => Line::of(cost.to_string()),
            (false, Dollars(0)) => Line::toned(Tone::Warn, "unknown"),
            (false, cost) => Line::of(format!("{cost} + ")).with(Tone::Warn, "unknown"),
        };
        match self.plan {
            Dollars(0) => paid,
            plan if paid.is_empty() => Line::of(format!("~{plan}")),
            plan => paid.plain(format!(", ~{plan}")),
        }
    }
}

pub(crate) async fn run(app: &App, args: CostArgs) -> Result<u8, Failure> {
    let prices = price::prices(app)?;
    let client = app.client().await?;
    let mut chosen = Vec::new();
    for who in &args.who {
        chosen.push(app.session(&client, who).await?.id.to_string());
    }
    if !chosen.is_empty() && !matches!(args.by, By::Session | By::Agent) {
        return Err(Failure::usage("sessions that are named are summed up by session or agent"));
    }
    let campaign = match &args.campaign {
        Some(who) => Some(client.campaign(&campaign_operand(who)?).await?.id),
        None => None,
    };
    let provider = args.provider.clone();
    let filter = SessionFilter { scope: Scope::All, campaign, provider, ..SessionFilter::default() };
    let question = GetUsage { filter, since: args.since, until: args.until, by: None, limit: 0 };
    let rows = sums(&client, &question, args.by, &prices, &chosen).await?;
    let mut total = Sum::default();
    rows.iter().for_each(|row| total.merge(row));
    show(app, args.by, &rows, &total, &prices)
}

/// Each call has its cost. What had no price has the one that its model has now: one question for each model.
async fn sums(
    client: &Client,
    question: &GetUsage,
    by: By,
    prices: &Prices,
    chosen: &[String],
) -> Result<Vec<Sum>, Failure> {
    let ask = async |model: Option<&str>, by: UsageBy| {
        let mut question = GetUsage { by: Some(by), ..question.clone() };
        question.filter.model = model.map(str::to_owned);
        client.usage(&question).await
    };
    let everything = ask(None, by.asked()).await?.rows;
    let names = match by {
        By::Session | By::Agent => names(client, &question.filter).await?,
        By::Campaign | By::Model | By::Provider | By::Day => BTreeMap::new(),
    };
    let is_chosen = |key: &str| chosen.is_empty() || chosen.iter().any(|id| id == key);
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    let mut left: BTreeMap<String, Usage> = BTreeMap::new();
    let mut order = Vec::new();
    for row in everything.into_iter().filter(|row| is_chosen(&row.key)) {
        let known = names.get(&row.key).map(|(name, short)| match by {
            By::Agent => name.clone(),
            _ => format!("{name} {short}"),
        });
        let shown = || if row.name.is_empty() { row.key.clone() } else { row.name.clone() };
        let mut sum = Sum { name: known.unwrap_or_else(shown), ..Sum::default() };
        sum.take(&row);
        sums.insert(row.key.clone(), sum);
        left.insert(row.key.clone(), row.unpriced);
        order.push(row.key);
    }
    let is_open = |row: &UsageRow| !row.key.is_empty() && !row.unpriced.is_zero();
    for model in ask(None, UsageBy::Model).await?.rows.into_iter().filter(is_open) {
        for row in ask(Some(&model.key), by.asked()).await?.rows {
            let (Some(sum), Some(usage)) = (sums.get_mut(&row.key), left.get_mut(&row.key)) else { continue };
            sum.add(Some(&model.key), prices, &row.unpriced);
            *usage = usage.less(&row.unpriced);
        }
    }
    for (key, usage) in left {
        if let Some(sum) = sums.get_mut(&key) {
            sum.add(None, prices, &usage);
        }
    }
    let rows = order.into_iter().filter_map(|key| sums.remove(&key));
    Ok(if by == By::Agent { by_name(rows) } else { rows.collect() })
}

/// What sessions are called, and the short form of their ids.
async fn names(
    client: &Client,
    filter: &SessionFilter,
) -> Result<BTreeMap<String, (String, String)>, Failure> {
    let mut names = BTreeMap::new();
    let mut page = Page::of(PAGE_MOST, None);
    loop {
        let listed = client.sessions(filter, page).await?;
        let called = listed.rows.into_iter();
        names.extend(
            called.map(|session| (session.id.to_string(), (session.name.to_string(), session.id.short()))),
        );
        match listed.next_cursor {
            Some(cursor) => page.cursor = Some(cursor),
            None => return Ok(names),
        }
    }
}

fn by_name(rows: impl Iterator<Item = Sum>) -> Vec<Sum> {
    let mut named: Vec<Sum> = Vec::new();
    for row in rows {
        match named.iter_mut().find(|sum| sum.name == row.name) {
            Some(sum) => sum.merge(&row),
            None => named.push(row),
        }
    }
    named
}

#[derive(Serialize)]
struct CostForm<'a> {
    by: &'static str,
    /// Of the table of prices.
    prices_date: &'a str,
    total: SumForm<'a>,
    rows: Vec<SumForm<'a>>,
}

#[derive(Serialize)]
struct SumForm<'a> {
    name: &'a str,
    calls: u64,
    usage: Usage,
    /// Of the part that has a price; absent where none has.
    cost: Option<Dollars>,
    /// Whether that is all of it.
    is_known: bool,
    /// What a subscription covers, at the prices that others pay; not in `cost`.
    plan: Dollars,
    unpriced: Usage,
    unpriced_models: &'a [String],
}

impl<'a> From<&'a Sum> for SumForm<'a> {
    fn from(sum: &'a Sum) -> Self {
        SumForm {
            name: &sum.name,
            calls: sum.calls,
            usage: sum.usage,
            cost: (sum.is_known() || sum.cost != Dollars(0)).then_some(sum.cost),
            is_known: sum.is_known(),
            plan: sum.plan,
            unpriced: sum.unpriced,
            unpriced_models: &sum.unpriced_models,
        }
    }
}

fn show(app: &App, by: By, rows: &[Sum], total: &Sum, prices: &Prices) -> Result<u8, Failure> {
    if app.ui.is_json() {
        let rows = rows.iter().map(SumForm::from).collect();
        app.ui.json(&CostForm { by: by.word(), prices_date: &prices.date, total: total.into(), rows })?;
        return Ok(exit_code::OK);
    }
    if rows.is_empty() {
        app.ui.say(&Line::of("No model has been called."));
        return Ok(exit_code::OK);
    }
    app.ui.data_lines(&table(by, rows, total).lines(app.ui.out_look()))?;
    let mut remark =
        Line::new().faint(format!("each call at the price of its day; those of {} hold now", prices.date));
    if let Some(model) = total.unpriced_models.first() {
        remark = remark
            .faint(format!("; no price is known of {}. ", total.unpriced_models.join(", ")))
            .with(Tone::Accent, format!("ostler price set {model} input=… output=…"));
    }
    app.ui.say(&remark);
    Ok(exit_code::OK)
}

fn table(by: By, rows: &[Sum], total: &Sum) -> Table {
    let number = |head| Column::new(head).right();
    let head = match by {
        By::Session => "SESSION",
        By::Agent => "AGENT",
        By::Campaign => "CAMPAIGN",
        By::Model => "MODEL",
        By::Provider => "PROVIDER",
        By::Day => "DAY (UTC)",
    };
    let mut table = Table::new([
        Column::new(head),
        number("CALLS").goes(1),
        number("INPUT"),
        number("CACHE READ").goes(2),
        number("CACHE WRITE").goes(3),
        number("OUTPUT"),
        number("COST"),
    ]);
    let mut row = |name: Line, sum: &Sum| {
        let count = |n| Line::of(words::count(n));
        table.row(vec![
            name,
            count(sum.calls),
            count(sum.usage.input),
            count(sum.usage.cache_read),
            count(sum.usage.cache_write),
            count(sum.usage.output),
            sum.words(),
        ]);
    };
    for sum in rows {
        let name =
            if sum.name.is_empty() { Line::new().faint("not said") } else { Line::new().strong(&sum.name) };
        row(name, sum);
    }
    if rows.len() > 1 {
        row(Line::new().faint("total"), total);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(models: &[(Option<&str>, u64)]) -> Sum {
        let mut sum = Sum::default();
        for (model, output) in models {
            let usage = Usage { output: *output, ..Usage::default() };
            sum.take(&UsageRow { usage, calls: 1, ..UsageRow::default() });
            sum.add(*model, Prices::built_in(), &usage);
        }
        sum
    }

    #[test]
    fn what_has_no_price_is_unknown_and_never_nothing() {
        let words = |sum: Sum| sum.words().show(&crate::output::Look::plain(None));
        assert_eq!(words(sum(&[(Some("claude-sonnet-5"), 100_000)])), "$1.00");
        assert_eq!(words(sum(&[(Some("new-model"), 5)])), "unknown");
        assert_eq!(words(sum(&[(Some("claude-sonnet-5"), 100_000), (None, 5)])), "$1.00 + unknown");
        assert_eq!(words(sum(&[(Some("new-model"), 0)])), "$0.00", "nothing was used");
        let plan = Dollars(210_000_000);
        assert_eq!(words(Sum { plan, ..Sum::default() }), "~$210.00", "on no bill");
        assert_eq!(words(Sum { plan, cost: Dollars(1_000_000), ..Sum::default() }), "$1.00, ~$210.00");
        let mixed = sum(&[(Some("new-model"), 5), (Some("new-model"), 6), (None, 7)]);
        assert_eq!(mixed.unpriced_models, ["new-model"]);
        let form = SumForm::from(&mixed);
        assert_eq!((form.cost, form.is_known, form.unpriced.output), (None, false, 18));
    }

    #[test]
    fn sessions_of_one_name_are_one_agent() {
        let named =
            |name: &str, output| Sum { name: name.to_owned(), ..sum(&[(Some("claude-sonnet-5"), output)]) };
        let rows = by_name([named("api", 1), named("web", 2), named("api", 3)].into_iter());
        let seen: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.usage.output, row.calls)).collect();
        assert_eq!(seen, [("api", 4, 2), ("web", 2, 1)]);
    }
}
