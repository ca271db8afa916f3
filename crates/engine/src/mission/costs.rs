//! What missions cost at the prices of now: what had none when it was done may have one since.

use std::collections::{BTreeMap, BTreeSet};

use ostler_domain::{
    AssignmentId, MissionId, Refusal,
    mission::{
        Listed as Mission, Spent,
        eta::{NoCost, Sample},
    },
    price::{Cost, PriceBook},
};
use ostler_store::DoneAssignment;

use crate::Engine;

impl Engine {
    /// The same with what had no price then and has one now.
    pub(super) async fn priced(&self, mut mission: Mission) -> Result<Mission, Refusal> {
        if mission.spent.unpriced {
            let mut all = Cost::default();
            let costs = self.shared.store.assignment_costs(vec![mission.id]).await?;
            costs.values().for_each(|cost| all += cost);
            mission.spent = mission.spent.at(&all, &self.shared.prices.current());
        }
        Ok(mission)
    }

    /// What assignments of a mission have used, with what had no price then and has one now, where they have any such.
    pub async fn price_assignments<'a>(
        &self,
        mission: MissionId,
        spent: impl IntoIterator<Item = (AssignmentId, &'a mut Spent)>,
    ) -> Result<(), Refusal> {
        let unpriced: Vec<_> = spent.into_iter().filter(|(_, spent)| spent.unpriced).collect();
        if unpriced.is_empty() {
            return Ok(());
        }
        let (costs, prices) =
            (self.shared.store.assignment_costs(vec![mission]).await?, self.shared.prices.current());
        for (id, spent) in unpriced {
            // Of calls that are gone nothing else is known.
            if let Some(cost) = costs.get(&id) {
                *spent = spent.at(cost, &prices);
            }
        }
        Ok(())
    }

    /// What was done before, and how long it took.
    pub(super) fn timed_samples(done: Vec<DoneAssignment>) -> Vec<Sample> {
        done.into_iter().map(|one| sample(one, &BTreeMap::new(), &PriceBook::default())).collect()
    }

    /// The same with what it costs at the prices of now.
    pub(super) async fn priced_samples(&self, done: Vec<DoneAssignment>) -> Result<Vec<Sample>, Refusal> {
        let missions: BTreeSet<MissionId> = done.iter().map(|one| one.mission).collect();
        let costs = self.shared.store.assignment_costs(missions.into_iter().collect()).await?;
        let prices = self.shared.prices.current();
        Ok(done.into_iter().map(|one| sample(one, &costs, &prices)).collect())
    }
}

fn sample(done: DoneAssignment, costs: &BTreeMap<AssignmentId, Cost>, prices: &PriceBook) -> Sample {
    let calls = costs.get(&done.id);
    let is_on_plan = calls.is_some_and(|calls| calls.plan.0 > 0 || !calls.plan_unpriced.is_zero());
    let cost = match calls.filter(|calls| !calls.unpriced.is_empty()) {
        // Part of a price is none.
        Some(calls) => match calls.settled(prices) {
            (paid, None) => Ok(paid),
            (_, Some(model)) => {
                let model = Some(model).filter(|model| !model.is_empty()).or_else(|| done.model.clone());
                Err(NoCost::Price { model })
            }
        },
        // Zero is only what costs nothing.
        None if done.cost.0 > 0 => Ok(done.cost),
        None if done.tokens == 0 => Err(NoCost::Usage),
        None if is_on_plan => Err(NoCost::Plan),
        None => Ok(done.cost),
    };
    Sample {
        role: done.role,
        kind: done.kind,
        model: done.model,
        took: std::time::Duration::from_micros(done.took_us),
        cost,
    }
}

#[cfg(test)]
mod tests {
    use ostler_domain::{
        Time, Usage,
        price::{Dollars, Price},
    };

    use super::*;

    fn cost_of(
        done: &DoneAssignment,
        costs: &BTreeMap<AssignmentId, Cost>,
        book: &PriceBook,
    ) -> Result<Dollars, NoCost> {
        sample(done.clone(), costs, book).cost
    }

    #[test]
    fn a_price_that_was_set_later_counts_and_part_of_one_is_none() {
        let id = AssignmentId::new(Time::from_micros(1), 1);
        let done = DoneAssignment {
            id,
            mission: MissionId::new(Time::from_micros(1), 2),
            role: "builder".to_owned(),
            kind: "task".to_owned(),
            model: None,
            took_us: 1,
            tokens: 10,
            cost: Dollars(7),
        };
        let usage = Usage { output: 1_000_000, ..Usage::default() };
        let unpriced = [("foo-1".to_owned(), usage)].into();
        let costs = [(id, Cost { paid: Dollars(7), unpriced, ..Cost::default() })].into();
        let mut book = PriceBook::default();
        let unknown = NoCost::Price { model: Some("foo-1".to_owned()) };
        assert_eq!(cost_of(&done, &costs, &book), Err(unknown));
        book.own.insert("foo-1".to_owned(), Price { output: Dollars(3), ..Price::default() });
        assert_eq!(cost_of(&done, &costs, &book), Ok(Dollars(10)));
        assert_eq!(cost_of(&done, &BTreeMap::new(), &book), Ok(Dollars(7)), "its calls are gone");
        let free = DoneAssignment { cost: Dollars(0), ..done };
        let covered = [(id, Cost { plan: Dollars(5), ..Cost::default() })].into();
        assert_eq!(cost_of(&free, &covered, &book), Err(NoCost::Plan));
        assert_eq!(cost_of(&free, &BTreeMap::new(), &book), Ok(Dollars(0)));
        assert_eq!(
            cost_of(&DoneAssignment { tokens: 0, ..free }, &BTreeMap::new(), &book),
            Err(NoCost::Usage)
        );
    }
}
