//! Agents that do not get on: the same calls with the same results again and again, or many calls and nothing new.
//!
//! The shell keeps a [`Watch`] for each attempt and tells it of calls and of signs of progress. It lives in memory: after
//! a restart it begins anew, and sees the loop a little later.

use std::collections::VecDeque;

use super::input::{Stuck, StuckKind};
use crate::{
    limits::{LOOP_REPEATS, LOOP_STEPS, LOOP_WINDOW, NO_PROGRESS_CALLS},
    text::one_line,
};

/// A call with its result, as far as it takes to know them again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature(u64);

impl Signature {
    /// Of the tool, what it was given, and what came of it.
    pub fn of(tool: &str, input: &str, result: &str) -> Self {
        // FNV-1a: the same on every machine and in every version.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for part in [tool, input, result] {
            for byte in part.bytes().chain([0xff]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
        Self(hash)
    }
}

/// What was seen of one attempt.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    recent: VecDeque<Signature>,
    /// Calls since something new came of one.
    fruitless: u32,
    /// It was told of since the last sign of progress: the next telling comes after as many calls again.
    told: bool,
}

impl Watch {
    /// Takes in a call that has its result; says so if the agent does not get on. `shown` is the call in words.
    pub fn call(&mut self, signature: Signature, shown: &str) -> Option<Stuck> {
        if self.recent.len() == LOOP_WINDOW {
            self.recent.pop_front();
        }
        self.recent.push_back(signature);
        self.fruitless = self.fruitless.saturating_add(1);
        let stuck = self.repeats().map(|(steps, times)| Stuck {
            kind: StuckKind::Loop,
            evidence: match steps {
                1 => format!("the same call with the same result {times} times: {}", one_line(shown, 120)),
                steps => format!("the same {steps} calls {times} times, the last: {}", one_line(shown, 120)),
            },
        });
        let stuck = stuck.or_else(|| {
            (self.fruitless >= NO_PROGRESS_CALLS).then(|| Stuck {
                kind: StuckKind::NoProgress,
                evidence: format!("{} calls without a new file, commit or result", self.fruitless),
            })
        })?;
        // What is told once is told again only after it went on for as long again.
        self.recent.clear();
        self.fruitless = 0;
        self.told = true;
        Some(stuck)
    }

    /// A new file, a commit, other test results, something for a person: it gets on. Says whether it had been told of.
    pub fn progress(&mut self) -> bool {
        self.fruitless = 0;
        self.recent.clear();
        std::mem::take(&mut self.told)
    }

    /// The loop that the last calls are, if they are one: its steps, and how often.
    fn repeats(&self) -> Option<(usize, u32)> {
        let calls: Vec<Signature> = self.recent.iter().rev().copied().collect();
        let times_of = |steps: usize| {
            let rounds = calls.chunks_exact(steps);
            let first = calls.get(..steps)?;
            Some(rounds.take_while(|round| *round == first).count() as u32)
        };
        // A loop of several steps is clear sooner: nobody does three things in the same row by chance.
        let needed = |steps: usize| if steps == 1 { LOOP_REPEATS } else { LOOP_REPEATS.min(4) };
        (1..=LOOP_STEPS).find_map(|steps| {
            let times = times_of(steps)?;
            (times >= needed(steps)).then_some((steps, times))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(watch: &mut Watch, input: &str, result: &str) -> Option<StuckKind> {
        watch.call(Signature::of("bash", input, result), input).map(|stuck| stuck.kind)
    }

    #[test]
    fn the_same_call_with_the_same_result_is_a_loop() {
        let mut watch = Watch::default();
        let seen: Vec<_> = (0..LOOP_REPEATS).map(|_| call(&mut watch, "cargo test", "1 failed")).collect();
        assert_eq!(seen.iter().flatten().count(), 1);
        assert_eq!(seen.last().unwrap(), &Some(StuckKind::Loop));
        assert_eq!(call(&mut watch, "cargo test", "1 failed"), None, "it is told of once for as many calls");
    }

    #[test]
    fn another_result_is_no_loop() {
        let mut watch = Watch::default();
        for n in 0..LOOP_REPEATS * 3 {
            assert_eq!(call(&mut watch, "cargo test", &format!("{n} failed")), None);
        }
    }

    #[test]
    fn several_calls_in_the_same_order_are_a_loop() {
        let mut watch = Watch::default();
        let rounds = ["read a", "edit a", "test"].iter().cycle().take(12);
        let found: Vec<_> = rounds.filter_map(|input| call(&mut watch, input, "same")).collect();
        assert_eq!(found, [StuckKind::Loop]);
    }

    #[test]
    fn many_calls_and_nothing_new_are_no_progress() {
        let mut watch = Watch::default();
        let mut fruitless = |from: u32, to: u32| {
            (from..to).filter_map(|n| call(&mut watch, &format!("read {n}"), "text")).collect::<Vec<_>>()
        };
        assert_eq!(fruitless(0, NO_PROGRESS_CALLS - 1), []);
        assert_eq!(fruitless(1_000, 1_001), [StuckKind::NoProgress]);
        assert!(watch.progress(), "it had been told of");
        assert!(!watch.progress());
    }
}
