//! How long a mission will take: an interval from what the same sort of work took before, or nothing.
//!
//! A sort of work is (role, type, model). Each assignment takes as long as half, or four fifths, of its kind did; the
//! mission is played through with that, its graph and its limits. How often such intervals held is said beside them.

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
use crate::{Now, price::Dollars};

/// What one assignment took before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    pub role: String,
    pub kind: String,
    pub model: Option<String>,
    /// Attempts and the time between them.
    pub took: Duration,
    /// None where its price is not known.
    pub cost: Option<Dollars>,
}

/// What is known of work that was done before.
#[derive(Debug, Clone, Default)]
pub struct History {
    took: BTreeMap<Sort, Vec<u64>>,
    pub(super) costs: BTreeMap<Sort, Vec<u64>>,
}

type Sort = (String, String, Option<String>);

impl History {
    pub fn of(samples: impl IntoIterator<Item = Sample>) -> Self {
        let mut history = Self::default();
        for sample in samples {
            let sort = (sample.role, sample.kind, sample.model);
            history.took.entry(sort.clone()).or_default().push(micros(sample.took));
            if let Some(cost) = sample.cost {
                history.costs.entry(sort).or_default().push(cost.0);
            }
        }
        history.took.values_mut().chain(history.costs.values_mut()).for_each(|all| all.sort_unstable());
        history
    }

    pub(super) fn sort(state: &State, place: usize) -> Sort {
        let work = state.work(place);
        (work.role.to_string(), work.kind.clone(), work.model.clone())
    }

    /// Whether such work was done before.
    pub(super) fn has_done(&self, state: &State, place: usize) -> bool {
        self.took.contains_key(&Self::sort(state, place))
    }

    /// How long the assignment at this place still takes, at this share of a hundred, having run for so long.
    fn left(&self, state: &State, place: usize, percent: u64, ran: u64) -> Option<u64> {
        let took = self.took.get(&Self::sort(state, place))?;
        // Of those that took longer than this one has: they are what it may yet be.
        let longer = &took[took.partition_point(|took| *took <= ran)..];
        match quantile(longer, percent) {
            Some(took) => Some(took - ran),
            // It already takes longer than any before: as much again, for want of anything better.
            None => Some(ran / 2),
        }
    }
}

/// The value below which this share of a hundred lies: one of the values, the higher one where it falls between two.
pub(super) fn quantile(sorted: &[u64], percent: u64) -> Option<u64> {
    let last = sorted.len().checked_sub(1)?;
    let at = (last as u64 * percent).div_ceil(100);
    sorted.get(at as usize).copied()
}

/// When a mission will be over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Eta {
    Over,
    /// From now on, if it is not paused.
    In(Interval),
    /// Nobody has done such work before: the sorts of it of which nothing is known.
    NoHistory {
        sorts: Vec<String>,
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
    let mut unknown: Vec<String> = open
        .iter()
        .filter(|place| !history.has_done(state, **place))
        .map(|place| sort_words(state, *place))
        .collect();
    unknown.sort();
    unknown.dedup();
    if !unknown.is_empty() {
        return Eta::NoHistory { sorts: unknown };
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
            Eta::NoHistory { sorts } => {
                let more =
                    if sorts.len() > 1 { format!(" and {} more", sorts.len() - 1) } else { String::new() };
                let first = sorts.first().map_or("", String::as_str);
                format!("no ETA: no history of ({first}){more}")
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
        let ten: Vec<u64> = (1..=11).collect();
        assert_eq!([0, 20, 50, 80, 100].map(|p| quantile(&ten, p)), [1, 3, 6, 9, 11].map(Some));
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
