//! How long a mission will take: an interval from what the same sort of work took before, or nothing.
//!
//! A sort of work is (role, type, model). Each assignment takes as long as a fifth, half, or four fifths of its kind did;
//! the mission is played through with that, its graph and its limits. Of n that are known the next one lies below the
//! k-th with k / (n + 1): so few say little, and of fewer than [`HISTORY_LEAST`] nothing is said. How often such intervals
//! held is said beside them.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    time::Duration,
};

use super::{
    Interval, State,
    state::{Slot, Step},
    words::{micros, short_span},
};
use crate::{Now, limits::HISTORY_LEAST, price::Dollars};

/// What one assignment took before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    pub role: String,
    pub kind: String,
    pub model: Option<String>,
    /// Attempts and the time between them.
    pub took: Duration,
    pub cost: Result<Dollars, NoCost>,
}

/// Why nobody knows what work cost.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoCost {
    /// The model has no price; none where nobody said which model it was.
    Price { model: Option<String> },
    /// A subscription covered it, which is not counted in dollars.
    Plan,
    /// Its agent did not say what it used.
    Usage,
}

impl NoCost {
    /// `no price for foo-1`.
    pub fn words(&self) -> String {
        match self {
            NoCost::Price { model: Some(model) } => format!("no price for {model}"),
            NoCost::Price { model: None } => "no price for its model".to_owned(),
            NoCost::Plan => "covered by a plan".to_owned(),
            NoCost::Usage => "no usage was reported".to_owned(),
        }
    }
}

/// What is known of work that was done before.
#[derive(Debug, Clone, Default)]
pub struct History {
    took: BTreeMap<Sort, Vec<u64>>,
    pub(super) costs: BTreeMap<Sort, Vec<u64>>,
    pub(super) no_costs: BTreeMap<Sort, NoCost>,
}

type Sort = (String, String, Option<String>);

impl History {
    pub fn of(samples: impl IntoIterator<Item = Sample>) -> Self {
        let mut history = Self::default();
        for sample in samples {
            let sort = (sample.role, sample.kind, sample.model);
            history.took.entry(sort.clone()).or_default().push(micros(sample.took));
            match sample.cost {
                Ok(cost) => history.costs.entry(sort).or_default().push(cost.0),
                Err(why) => drop(history.no_costs.insert(sort, why)),
            }
        }
        history.took.values_mut().chain(history.costs.values_mut()).for_each(|all| all.sort_unstable());
        history
    }

    pub(super) fn sort(state: &State, place: usize) -> Sort {
        let work = state.work(place);
        (work.role.to_string(), work.kind.clone(), work.model.clone())
    }

    /// How often such work was done before.
    pub(super) fn done(&self, state: &State, place: usize) -> usize {
        self.took.get(&Self::sort(state, place)).map_or(0, Vec::len)
    }

    /// How long the assignment at this place still takes, at this share of a hundred, having run for so long.
    fn left(&self, state: &State, place: usize, percent: u64, ran: u64) -> Option<u64> {
        let took = self.took.get(&Self::sort(state, place))?;
        // Of those that took longer than this one has: they are what it may yet be.
        let longer = &took[took.partition_point(|took| *took <= ran)..];
        if longer.len() >= HISTORY_LEAST {
            return Some(quantile(longer, percent)? - ran);
        }
        // It takes longer than most did, or than any: it may end now, or take as long again.
        let longest = longer.last().map_or(0, |longest| longest - ran);
        Some(match percent {
            0..50 => 0,
            50 => quantile(longer, 50).map_or(ran / 2, |took| took - ran),
            _ => longest.max(ran),
        })
    }
}

/// The value below which the next one lies in this share of a hundred cases. One of the values: where it falls between two,
/// the lower one below the middle, and else the higher one.
pub(super) fn quantile(sorted: &[u64], percent: u64) -> Option<u64> {
    let last = sorted.len().checked_sub(1)? as u64;
    let at = (last + 2) * percent;
    let nth = if percent < 50 { at / 100 } else { at.div_ceil(100) };
    sorted.get(nth.saturating_sub(1).min(last) as usize).copied()
}

/// When a mission will be over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Eta {
    Over,
    /// Only the merge is left: what its gate takes nobody foresees.
    Merge,
    /// From now on, if it is not paused.
    In(Interval),
    /// Nobody has done such work before: the sorts of it of which nothing is known.
    NoHistory {
        sorts: Vec<String>,
    },
    /// Such work was done too few times: the sorts, and how often.
    LittleHistory {
        sorts: Vec<(String, usize)>,
    },
}

/// How long the mission still takes.
pub fn eta(state: &State, history: &History, now: &Now) -> Eta {
    if state.is_over() {
        return Eta::Over;
    }
    let ran = |slot: &Slot| micros(slot.took(now.wall).unwrap_or_default());
    let open: Vec<usize> =
        (0..state.slots().len()).filter(|place| !state.slots()[*place].is_over()).collect();
    if open.is_empty() {
        return Eta::Merge;
    }
    let done: BTreeMap<String, usize> =
        open.iter().map(|place| (sort_words(state, *place), history.done(state, *place))).collect();
    let little: Vec<(String, usize)> = done.into_iter().filter(|(_, done)| *done < HISTORY_LEAST).collect();
    if little.iter().any(|(_, done)| *done == 0) {
        let unknown = little.into_iter().filter(|(_, done)| *done == 0).map(|(sort, _)| sort);
        return Eta::NoHistory { sorts: unknown.collect() };
    }
    if !little.is_empty() {
        return Eta::LittleHistory { sorts: little };
    }
    let [low, likely, high] = [20, 50, 80].map(|percent| {
        let left: BTreeMap<usize, u64> = open
            .iter()
            .map(|place| {
                let ran = ran(&state.slots()[*place]);
                (*place, history.left(state, *place, percent, ran).unwrap_or_default())
            })
            .collect();
        Duration::from_micros(played(state, &left))
    });
    Eta::In(Interval::new(low, likely.max(low), high.max(likely)))
}

/// `builder, task, opus`.
pub(super) fn sort_words(state: &State, place: usize) -> String {
    let work = state.work(place);
    let model = work.model.as_deref().unwrap_or("any model");
    format!("{}, {}, {model}", work.role, work.kind)
}

/// Plays the rest of the mission, each taking as long as is said, and says when the last is over.
fn played(state: &State, left: &BTreeMap<usize, u64>) -> u64 {
    let limit = state.plan().limits.concurrency.map_or(usize::MAX, |most| most as usize);
    let mut unmet: Vec<u32> = state.slots().iter().map(|slot| slot.unmet).collect();
    let mut running: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut ready: BinaryHeap<(u64, Reverse<usize>)> = BinaryHeap::new();
    for place in left.keys().copied() {
        match &state.slots()[place].step {
            Step::Running { .. } | Step::Checking { .. } => running.push(Reverse((left[&place], place))),
            _ if unmet[place] == 0 => ready.push((state.graph().height(place), Reverse(place))),
            _ => {}
        }
    }
    let mut time = 0;
    loop {
        while running.len() < limit
            && let Some((_, Reverse(place))) = ready.pop()
        {
            running.push(Reverse((time + left.get(&place).copied().unwrap_or_default(), place)));
        }
        let Some(Reverse((end, place))) = running.pop() else { return time };
        time = end;
        for next in state.graph().feeds(place).iter().map(|next| *next as usize) {
            unmet[next] = unmet[next].saturating_sub(1);
            if unmet[next] == 0 && left.contains_key(&next) {
                ready.push((state.graph().height(next), Reverse(next)));
            }
        }
    }
}

/// How often what was forecast held: each interval with what it then took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HitRate {
    pub held: u32,
    pub of: u32,
}

impl HitRate {
    pub fn of(past: impl IntoIterator<Item = (Interval, Duration)>) -> Self {
        past.into_iter().fold(Self::default(), |rate, (interval, took)| Self {
            held: rate.held + u32::from(interval.held(took)),
            of: rate.of + 1,
        })
    }

    /// `81 % of 37 past intervals held`; none where there are none.
    pub fn words(&self) -> Option<String> {
        let percent = (self.held * 100).checked_div(self.of)?;
        let intervals = if self.of == 1 { "interval" } else { "intervals" };
        Some(format!("{percent} % of {} past {intervals} held", self.of))
    }
}

impl Eta {
    /// `ETA 14m (10m–22m; 81 % of 37 past intervals held)`.
    pub fn words(&self, rate: &HitRate) -> String {
        match self {
            Eta::Over => "over".to_owned(),
            Eta::Merge => "no ETA: the merge and its gate are left".to_owned(),
            Eta::NoHistory { sorts } => {
                let more =
                    if sorts.len() > 1 { format!(" and {} more", sorts.len() - 1) } else { String::new() };
                let first = sorts.first().map_or("", String::as_str);
                format!("no ETA: no history of ({first}){more}")
            }
            Eta::LittleHistory { sorts } => {
                let more =
                    if sorts.len() > 1 { format!(" and {} more", sorts.len() - 1) } else { String::new() };
                let (first, done) = sorts.first().map_or(("", 0), |(sort, done)| (sort.as_str(), *done));
                let little = format!("too little history ({done} of at least {HISTORY_LEAST})");
                format!("no ETA: {little} of ({first}){more}")
            }
            Eta::In(interval) => {
                let [low, likely, high] =
                    [interval.low(), interval.likely(), interval.high()].map(short_span);
                let rate = rate.words().unwrap_or_else(|| "no past intervals".to_owned());
                format!("ETA {likely} ({low}–{high}; {rate})")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_seen() {
        assert_eq!(quantile(&[], 50), None);
        assert_eq!(quantile(&[7], 80), Some(7));
        let eleven: Vec<u64> = (1..=11).collect();
        assert_eq!([0, 20, 50, 80, 100].map(|p| quantile(&eleven, p)), [1, 2, 6, 10, 11].map(Some));
        let least: Vec<u64> = (1..=HISTORY_LEAST as u64).collect();
        assert_eq!([20, 50, 80].map(|p| quantile(&least, p)), [1, 3, 4].map(Some), "all that there are");
    }

    #[test]
    fn intervals_of_few_hold_as_often_as_they_claim() {
        // A generator of its own: the same numbers in every run.
        let mut seed = 7_u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 33
        };
        for n in [HISTORY_LEAST, 5, 7, 10, 40] {
            let held = (0..4_000).filter(|_| {
                let mut seen: Vec<u64> = (0..n).map(|_| next()).collect();
                seen.sort_unstable();
                let took = next();
                (quantile(&seen, 20).unwrap()..=quantile(&seen, 80).unwrap()).contains(&took)
            });
            let held = held.count();
            assert!(held >= 4_000 * 57 / 100, "{held} of 4000 with {n} samples");
        }
    }

    #[test]
    fn intervals_that_held_are_counted() {
        let interval =
            Interval::new(Duration::from_secs(10), Duration::from_secs(20), Duration::from_secs(30));
        let past = [10, 30, 31, 9, 20].map(|seconds| (interval, Duration::from_secs(seconds)));
        let rate = HitRate::of(past);
        assert_eq!(rate.words().unwrap(), "60 % of 5 past intervals held");
        assert_eq!(HitRate::default().words(), None);
        let shown = Eta::In(interval).words(&rate);
        assert_eq!(shown, "ETA 20s (10s–30s; 60 % of 5 past intervals held)");
    }
}
