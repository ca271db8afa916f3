//! What would be paid for what would run: from what the same sort of work cost before, or said to be unknown.

use super::{
    State,
    eta::{History, quantile, sort_words},
};
use crate::price::Dollars;

/// A price that is only expected.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Estimate {
    /// What half of such work cost at most, and four fifths, of what is known.
    pub likely: Dollars,
    pub high: Dollars,
    /// Assignments whose price is in it.
    pub known: u32,
    /// Assignments of which nothing is known, and their sorts.
    pub unknown: u32,
    pub sorts: Vec<String>,
}

/// What the assignments at these places would cost.
pub fn estimate(state: &State, places: &[usize], history: &History) -> Estimate {
    let mut estimate = Estimate::default();
    for place in places {
        let costs = history.costs.get(&History::sort(state, *place));
        match costs.and_then(|costs| Some((quantile(costs, 50)?, quantile(costs, 80)?))) {
            Some((likely, high)) => {
                estimate.known += 1;
                estimate.likely = Dollars(estimate.likely.0.saturating_add(likely));
                estimate.high = Dollars(estimate.high.0.saturating_add(high));
            }
            None => {
                estimate.unknown += 1;
                let sort = sort_words(state, *place);
                // Such work was done, and nobody knows what it cost.
                let is_known = history.has_done(state, *place);
                estimate.sorts.push(if is_known { format!("{sort} with a price") } else { sort });
            }
        }
    }
    estimate.sorts.sort();
    estimate.sorts.dedup();
    estimate
}

impl Estimate {
    /// `about $3.40, at most $5.10; 2 more of which nothing is known (builder, task, opus)`.
    pub fn words(&self) -> String {
        let sorts = || {
            let more = self.sorts.len().saturating_sub(3);
            let more = if more > 0 { format!("; {more} more sorts") } else { String::new() };
            format!("{}{more}", self.sorts.iter().take(3).cloned().collect::<Vec<_>>().join("; "))
        };
        match (self.known, self.unknown) {
            (0, 0) => "nothing would run".to_owned(),
            (0, _) => format!("the price is not known: no history of {}", sorts()),
            (_, 0) => format!("about {}, likely below {}", self.likely, self.high),
            (_, unknown) => {
                let (likely, high) = (self.likely, self.high);
                format!("about {likely}, likely below {high}, and {unknown} without a history ({})", sorts())
            }
        }
    }
}
