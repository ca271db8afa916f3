//! What a day has cost so far, beside what it may cost.

use std::collections::BTreeMap;

use super::{CampaignBudget, Period};
use crate::{
    CampaignId, Time, Usage,
    price::{Cost, Dollars, PriceBook},
    query::UsageSum,
};

/// What all sessions used today.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Today {
    pub paid: Dollars,
    /// What subscriptions cover, at the prices that others pay.
    pub plan: Dollars,
    /// Some of it has no price.
    pub is_unknown: bool,
    /// What all campaigns may cost a day, where all that were at work have a budget for one: then the day is that of
    /// budgets, in UTC.
    pub budget: Option<Dollars>,
    pub tokens: u64,
}

/// What campaigns may cost a day, by their ids.
#[derive(Debug, Clone, Default)]
pub struct DayBudgets(BTreeMap<String, Dollars>);

impl DayBudgets {
    /// Those among campaigns' budgets that are dollars for a day.
    pub fn among(budgets: impl IntoIterator<Item = (CampaignId, CampaignBudget)>) -> Self {
        let of_day = |(campaign, budget): (CampaignId, CampaignBudget)| {
            Some((campaign.to_string(), budget.dollars.filter(|_| budget.period == Period::Day)?))
        };
        Self(budgets.into_iter().filter_map(of_day).collect())
    }

    /// When the day began that is told of: that of budgets where there are any, else the one of who asks.
    pub fn since(&self, now: Time, midnight: Time) -> Time {
        if self.0.is_empty() { midnight } else { Period::Day.start(now) }
    }

    /// The day, from what campaigns used of it; and by model where some of that had no price when it was used.
    pub fn today(&self, campaigns: &[UsageSum], models: &[UsageSum], prices: &PriceBook) -> Today {
        let sum = |part: fn(&UsageSum) -> Dollars| {
            Dollars(campaigns.iter().fold(0, |sum, row| sum.saturating_add(part(row).0)))
        };
        let unpriced = models.iter().filter(|row| !row.unpriced.is_zero());
        let unpriced = unpriced.map(|row| (row.key.clone(), row.unpriced)).collect();
        let cost = Cost { paid: sum(|row| row.cost), unpriced, ..Cost::default() };
        let (paid, unknown) = cost.settled(prices);
        let is_paid = |row: &&UsageSum| row.cost > Dollars(0) || !row.unpriced.is_zero();
        let all_have = campaigns.iter().filter(is_paid).all(|row| self.0.contains_key(&row.key));
        let total = self.0.values().fold(0_u64, |sum, budget| sum.saturating_add(budget.0));
        Today {
            paid,
            plan: sum(|row| row.plan),
            is_unknown: unknown.is_some(),
            budget: (all_have && !self.0.is_empty()).then_some(Dollars(total)),
            tokens: campaigns.iter().fold(Usage::default(), |sum, row| sum + row.usage).total(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn campaign(n: u128) -> CampaignId {
        CampaignId::new(Time::from_micros(1), n)
    }

    fn used(key: &str, dollars: u64, unpriced: u64) -> UsageSum {
        let unpriced = Usage { output: unpriced, ..Usage::default() };
        UsageSum {
            key: key.to_owned(),
            name: String::new(),
            calls: 1,
            sessions: 1,
            usage: Usage { output: 10, ..Usage::default() },
            cost: Dollars(dollars),
            plan: Dollars(1),
            unpriced,
            plan_unpriced: Usage::default(),
        }
    }

    fn budget(dollars: u64, period: Period) -> CampaignBudget {
        CampaignBudget { tokens: None, dollars: Some(Dollars(dollars)), period }
    }

    #[test]
    fn a_budget_is_told_of_where_all_that_cost_anything_have_one_for_a_day() {
        let prices = PriceBook::default();
        let (shop, site) = (campaign(1), campaign(2));
        let budgets = DayBudgets::among([(shop, budget(25, Period::Day)), (site, budget(9, Period::Month))]);
        let today = |rows: &[UsageSum]| budgets.today(rows, &[], &prices);
        let of_shop = used(&shop.to_string(), 3, 0);
        let whole = today(std::slice::from_ref(&of_shop));
        assert_eq!((whole.paid, whole.plan, whole.tokens), (Dollars(3), Dollars(1), 10));
        assert_eq!(whole.budget, Some(Dollars(25)));
        let free = used(&site.to_string(), 0, 0);
        assert_eq!(today(&[of_shop.clone(), free]).budget, Some(Dollars(25)), "it cost nothing");
        assert_eq!(today(&[of_shop, used(&site.to_string(), 1, 0)]).budget, None);
        assert_eq!(DayBudgets::default().today(&[], &[], &prices), Today::default());
    }

    #[test]
    fn what_had_no_price_has_the_one_of_now_or_is_unknown() {
        let prices = PriceBook::default();
        let rows = [used("cmp", 3, 7)];
        let today = |model: &str| DayBudgets::default().today(&rows, &[used(model, 0, 7)], &prices);
        let known = today("gpt-5");
        assert!(known.paid > Dollars(3) && !known.is_unknown, "{known:?}");
        let unknown = today("new-model");
        assert_eq!((unknown.paid, unknown.is_unknown), (Dollars(3), true));
    }

    #[test]
    fn the_day_is_that_of_budgets_where_there_are_any() {
        let (now, midnight) = (Time::from_micros(1_763_000_000_000_000), Time::from_micros(7));
        assert_eq!(DayBudgets::default().since(now, midnight), midnight);
        let budgets = DayBudgets::among([(campaign(1), budget(1, Period::Day))]);
        assert_eq!(budgets.since(now, midnight), Period::Day.start(now));
    }
}
