//! What would be paid for what would run: from what the same sort of work cost before, or said to be unknown.

use super::{
    State,
    eta::{History, NoCost, quantile, sort_words},
};
use crate::{limits::HISTORY_LEAST, price::Dollars};

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
    /// Why nobody knows what such of them cost that were done before.
    pub no_costs: Vec<NoCost>,
    /// How often the rarest of what is known was done, where that is too little to say how far it may go.
    pub little: Option<usize>,
}

/// What the assignments at these places would cost.
pub fn estimate(state: &State, places: &[usize], history: &History) -> Estimate {
    let mut estimate = Estimate::default();
    for place in places {
        let costs = history.costs.get(&History::sort(state, *place));
        match costs.and_then(|costs| Some((quantile(costs, 50)?, quantile(costs, 80)?))) {
            Some((likely, high)) => {
                estimate.known += 1;
                let done = costs.map_or(0, Vec::len);
                if done < HISTORY_LEAST {
                    estimate.little = Some(estimate.little.map_or(done, |least| least.min(done)));
                }
                estimate.likely = Dollars(estimate.likely.0.saturating_add(likely));
                estimate.high = Dollars(estimate.high.0.saturating_add(high));
            }
            None => {
                estimate.unknown += 1;
                // Such work was done, and nobody knows what it cost.
                match history.no_costs.get(&History::sort(state, *place)) {
                    Some(why) => estimate.no_costs.push(why.clone()),
                    None => estimate.sorts.push(sort_words(state, *place)),
                }
            }
        }
    }
    estimate.sorts.sort();
    estimate.sorts.dedup();
    estimate.no_costs.sort();
    estimate.no_costs.dedup();
    estimate
}

impl Estimate {
    /// `about $3.40, likely below $5.10, and 2 of unknown cost (no price for foo-1)`.
    pub fn words(&self) -> String {
        if (self.known, self.unknown) == (0, 0) {
            return "nothing would run".to_owned();
        }
        let about = match self.little {
            None => format!("about {}, likely below {}", self.likely, self.high),
            Some(done) => {
                let little = format!("too little history to say more: {done} of at least {HISTORY_LEAST}");
                format!("about {} ({little})", self.likely)
            }
        };
        match (self.known, self.unknown) {
            (_, 0) => about,
            (0, _) if self.no_costs.is_empty() => format!("the price is not known: {}", self.why_unknown()),
            (0, _) => format!("cost unknown ({})", self.why_unknown()),
            (_, unknown) => format!("{about}, and {unknown} of unknown cost ({})", self.why_unknown()),
        }
    }

    /// `no price for foo-1; no history of builder, task, opus`.
    fn why_unknown(&self) -> String {
        const SHOWN: usize = 3;
        let some = |all: Vec<String>| {
            let more = all.len().saturating_sub(SHOWN);
            let more = if more > 0 { format!("; {more} more") } else { String::new() };
            format!("{}{more}", all[..all.len().min(SHOWN)].join("; "))
        };
        let no_costs = some(self.no_costs.iter().map(NoCost::words).collect());
        let history = some(self.sorts.clone());
        match (self.no_costs.is_empty(), self.sorts.is_empty()) {
            (_, true) => no_costs,
            (true, false) => format!("no history of {history}"),
            (false, false) => format!("{no_costs}; no history of {history}"),
        }
    }
}
