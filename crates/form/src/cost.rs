//! Model calls added up, each at the price it was made at.

use std::collections::BTreeMap;

use ostler_client::{
    Client, Error, GetUsage,
    reply::{UsageBy, UsageRow, UsageSums},
};
use ostler_domain::{
    SessionId, Usage,
    price::{Dollars, Prices},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::shape;

/// One line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sum {
    pub key: String,
    pub name: String,
    pub calls: u64,
    pub sessions: u64,
    pub usage: Usage,
    /// Of the part that has a price.
    pub cost: Dollars,
    /// What a subscription covers, at the prices that others pay.
    pub plan: Dollars,
    /// The part that has none.
    pub unpriced: Usage,
    /// The same of what a subscription covers.
    pub plan_unpriced: Usage,
    /// Models of both, where they are named.
    pub unpriced_models: Vec<String>,
}

impl Sum {
    /// Takes in calls at the prices that they were made at.
    fn take(&mut self, row: &UsageRow) {
        self.calls += row.calls;
        self.sessions += row.sessions;
        self.usage += row.usage;
        self.cost = Dollars(self.cost.0.saturating_add(row.cost.0));
        self.plan = Dollars(self.plan.0.saturating_add(row.plan.0));
        self.plan_unpriced += row.plan_unpriced;
    }

    /// Takes in calls that had no price, of one model: at the price that it has now.
    fn add(&mut self, model: Option<&str>, prices: &Prices, usage: &Usage) {
        match model.and_then(|model| prices.find(model)) {
            Some(price) => self.cost = Dollars(self.cost.0.saturating_add(price.of(usage).0)),
            None if usage.is_zero() => {}
            None => {
                self.unpriced += *usage;
                self.name_unpriced(model.unwrap_or_default());
            }
        }
    }

    fn name_unpriced(&mut self, model: &str) {
        if !model.is_empty() && !self.unpriced_models.iter().any(|named| named == model) {
            self.unpriced_models.push(model.to_owned());
        }
    }

    pub fn merge(&mut self, other: &Sum) {
        self.calls += other.calls;
        self.sessions += other.sessions;
        self.usage += other.usage;
        self.cost = Dollars(self.cost.0.saturating_add(other.cost.0));
        self.plan = Dollars(self.plan.0.saturating_add(other.plan.0));
        self.unpriced += other.unpriced;
        self.plan_unpriced += other.plan_unpriced;
        other.unpriced_models.iter().for_each(|model| self.name_unpriced(model));
    }

    pub fn is_known(&self) -> bool {
        self.unpriced.is_zero()
    }
}

/// What gets a line of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Session,
    Agent,
    Campaign,
    Model,
    Provider,
    Day,
    Ticket,
    Chain,
    Mission,
}

impl By {
    pub const ALL: [By; 9] = [
        By::Session,
        By::Agent,
        By::Campaign,
        By::Model,
        By::Provider,
        By::Day,
        By::Ticket,
        By::Chain,
        By::Mission,
    ];

    /// Reads the word.
    pub fn parse(word: &str) -> Option<By> {
        By::ALL.into_iter().find(|by| by.word() == word)
    }

    pub const fn word(self) -> &'static str {
        match self {
            By::Session => "session",
            By::Agent => "agent",
            By::Campaign => "campaign",
            By::Model => "model",
            By::Provider => "provider",
            By::Day => "day",
            By::Ticket => "ticket",
            By::Chain => "chain",
            By::Mission => "mission",
        }
    }

    /// How the daemon is asked.
    pub const fn asked(self) -> UsageBy {
        match self {
            By::Session | By::Agent => UsageBy::Session,
            By::Campaign => UsageBy::Campaign,
            By::Model => UsageBy::Model,
            By::Provider => UsageBy::Provider,
            By::Day => UsageBy::Day,
            By::Ticket => UsageBy::Ticket,
            By::Chain => UsageBy::Chain,
            By::Mission => UsageBy::Mission,
        }
    }
}

/// Each call has its cost. What had no price has the one that its model has now: one question for each model.
pub async fn sums(
    client: &Client,
    question: &GetUsage,
    by: By,
    prices: &Prices,
    chosen: &[String],
) -> Result<Sums, Error> {
    let ask = async |model: Option<&str>, by: UsageBy| {
        let mut question = GetUsage { by: Some(by), ..question.clone() };
        if let Some(model) = model {
            question.filter.models = vec![model.to_owned()];
        }
        client.usage(&question).await
    };
    let UsageSums { total: whole, rows: everything } = ask(None, by.asked()).await?;
    let is_chosen = |key: &str| chosen.is_empty() || chosen.iter().any(|id| id == key);
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    let mut left: BTreeMap<String, Usage> = BTreeMap::new();
    let mut order = Vec::new();
    for row in everything.into_iter().filter(|row| is_chosen(&row.key)) {
        let name = match by {
            By::Session | By::Chain => format!("{} {}", row.name, short(&row.key)),
            _ if row.name.is_empty() => row.key.clone(),
            _ => row.name.clone(),
        };
        let mut sum = Sum { key: row.key.clone(), name, ..Sum::default() };
        sum.take(&row);
        sums.insert(row.key.clone(), sum);
        left.insert(row.key.clone(), row.unpriced);
        order.push(row.key);
    }
    let lacks = |row: &UsageRow| !row.unpriced.is_zero() || !row.plan_unpriced.is_zero();
    let is_open = |row: &UsageRow| !row.key.is_empty() && lacks(row);
    let models = if lacks(&whole) { ask(None, UsageBy::Model).await?.rows } else { Vec::new() };
    for model in models.into_iter().filter(is_open) {
        for row in ask(Some(&model.key), by.asked()).await?.rows {
            let (Some(sum), Some(usage)) = (sums.get_mut(&row.key), left.get_mut(&row.key)) else { continue };
            sum.add(Some(&model.key), prices, &row.unpriced);
            if !row.plan_unpriced.is_zero() {
                sum.name_unpriced(&model.key);
            }
            *usage = usage.less(&row.unpriced);
        }
    }
    for (key, usage) in left {
        if let Some(sum) = sums.get_mut(&key) {
            sum.add(None, prices, &usage);
        }
    }
    let rows = order.into_iter().filter_map(|key| sums.remove(&key));
    let rows = if by == By::Agent { by_name(rows) } else { rows.collect() };
    let mut total = Sum { name: "TOTAL".to_owned(), ..Sum::default() };
    rows.iter().for_each(|row| total.merge(row));
    if chosen.is_empty() {
        // One that called two models is one session.
        total.sessions = whole.sessions;
    }
    Ok(Sums { rows, total })
}

/// What was used and what it cost, line by line and in all.
#[derive(Debug, Default)]
pub struct Sums {
    pub rows: Vec<Sum>,
    pub total: Sum,
}

/// The end of an id, as people type it.
fn short(id: &str) -> String {
    id.parse::<SessionId>().map_or_else(|_| id.to_owned(), |id| id.short())
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

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Sum")]
pub struct SumForm<'a> {
    key: &'a str,
    name: &'a str,
    sessions: u64,
    calls: u64,
    #[schemars(with = "shape::Usage")]
    usage: Usage,
    /// Of the part that has a price; absent where none has.
    #[schemars(with = "Option<shape::Dollars>")]
    cost: Option<Dollars>,
    /// Whether that is all of it.
    is_known: bool,
    /// What a subscription covers, at the prices that others pay; not in `cost`.
    #[schemars(with = "shape::Dollars")]
    plan: Dollars,
    #[schemars(with = "shape::Usage")]
    unpriced: Usage,
    /// What of the subscription's part has no price.
    #[schemars(with = "shape::Usage")]
    plan_unpriced: Usage,
    unpriced_models: &'a [String],
}

impl<'a> From<&'a Sum> for SumForm<'a> {
    fn from(sum: &'a Sum) -> Self {
        SumForm {
            key: &sum.key,
            name: &sum.name,
            sessions: sum.sessions,
            calls: sum.calls,
            usage: sum.usage,
            cost: (sum.is_known() || sum.cost != Dollars(0)).then_some(sum.cost),
            is_known: sum.is_known(),
            plan: sum.plan,
            unpriced: sum.unpriced,
            plan_unpriced: sum.plan_unpriced,
            unpriced_models: &sum.unpriced_models,
        }
    }
}

/// All of it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Costs")]
pub struct CostsForm<'a> {
    pub by: &'static str,
    pub since: Option<String>,
    pub until: Option<String>,
    /// Of the table of prices.
    pub prices_date: &'a str,
    pub total: SumForm<'a>,
    pub rows: Vec<SumForm<'a>>,
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
        let cost = |models| {
            let sum = sum(models);
            (sum.cost, sum.is_known())
        };
        assert_eq!(cost(&[(Some("claude-sonnet-5"), 100_000)]), (Dollars(1_000_000), true));
        assert_eq!(cost(&[(Some("new-model"), 5)]), (Dollars(0), false));
        assert_eq!(cost(&[(Some("claude-sonnet-5"), 100_000), (None, 5)]), (Dollars(1_000_000), false));
        assert_eq!(cost(&[(Some("new-model"), 0)]), (Dollars(0), true), "nothing was used");
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
