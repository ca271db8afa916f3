//! Agents that do not get on: the same calls with the same results again and again, or many calls and nothing new.
//!
//! The shell keeps a [`Watch`] for each attempt and tells it of calls and of signs of progress. It lives in memory: after
//! a restart it begins anew, and sees the loop a little later.

use std::collections::{HashSet, VecDeque};

use super::input::{Stuck, StuckKind};
use crate::{
    Time,
    event::{ToolCall, ToolResult},
    handoff::written,
    limits::{LOOP_REPEATS, LOOP_STEPS, LOOP_WINDOW, NO_PROGRESS_CALLS, NUDGE_UNREAD_CALLS, RESULTS_KNOWN},
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

/// A call that has its result.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub at: Time,
    /// The call, what it was given, and what came of it.
    pub whole: Signature,
    /// What is new about it if it was never seen: its result, or what it wrote.
    pub fruit: Signature,
    /// The call in words.
    pub shown: &'a str,
}

impl<'a> Call<'a> {
    pub fn of(at: Time, call: &'a ToolCall, result: &ToolResult) -> Self {
        let whole = Signature::of(&call.tool, &call.input, &result.output);
        // Whoever writes hears the same each time.
        let is_write = result.success && written(call).is_some();
        let fruit = if is_write { whole } else { Signature::of("", "", &result.output) };
        Self { at, whole, fruit, shown: &call.summary }
    }
}

/// What a call says about an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    Nothing,
    /// Something new came of it, and the agent had been told that it does not get on.
    GotOn,
    /// It does not get on, unless there are new files or commits since the moment at which that began.
    Stuck {
        stuck: Stuck,
        since: Time,
    },
}

/// What was seen of one attempt.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    recent: VecDeque<Signature>,
    /// Results and writes that were seen: the same again is no progress.
    known: HashSet<Signature>,
    /// Calls since something new came of one, and when the first of them was.
    fruitless: u32,
    since: Option<Time>,
    told: Told,
}

/// Whether an agent knows that it does not get on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Told {
    #[default]
    No,
    /// It was told, and has not got the message: these calls were made without it.
    Unread(u32),
    /// It has not got the message after so many calls: it may be one that can be told nothing within a turn.
    Unheard,
    Read,
}

impl Watch {
    /// Takes in a call that has its result; says so if the agent does not get on.
    pub fn call(&mut self, call: &Call<'_>) -> Seen {
        if self.is_new(call.fruit) {
            let was_told = self.progress();
            // It may be the first of many.
            self.recent.push_back(call.whole);
            return if was_told { Seen::GotOn } else { Seen::Nothing };
        }
        if let Told::Unread(calls) = self.told {
            self.told = if calls + 1 < NUDGE_UNREAD_CALLS { Told::Unread(calls + 1) } else { Told::Unheard };
            return Seen::Nothing;
        }
        if self.recent.len() == LOOP_WINDOW {
            self.recent.pop_front();
        }
        self.recent.push_back(call.whole);
        self.fruitless = self.fruitless.saturating_add(1);
        let since = *self.since.get_or_insert(call.at);
        let Some(stuck) = self.stuck(call.shown) else { return Seen::Nothing };
        // What is told once is told again only after it went on for as long again.
        self.begin_anew();
        self.told = if self.told == Told::No { Told::Unread(0) } else { Told::No };
        Seen::Stuck { stuck, since }
    }

    fn is_new(&mut self, fruit: Signature) -> bool {
        if self.known.len() == RESULTS_KNOWN && !self.known.contains(&fruit) {
            self.known.clear();
        }
        self.known.insert(fruit)
    }

    fn stuck(&self, shown: &str) -> Option<Stuck> {
        let (shown, is_unread) = (one_line(shown, 120), self.told == Told::Unheard);
        if let Some((steps, times)) = self.repeats() {
            let evidence = match steps {
                1 => format!("the same call with the same result {times} times: {shown}"),
                steps => format!("the same {steps} calls {times} times, the last: {shown}"),
            };
            return Some(Stuck { kind: StuckKind::Loop, evidence, is_unread });
        }
        (self.fruitless >= NO_PROGRESS_CALLS).then(|| Stuck {
            kind: StuckKind::NoProgress,
            evidence: format!("{} calls without a new file, commit or result", self.fruitless),
            is_unread,
        })
    }

    /// A new file, a commit, another result, something for a person: it gets on. Says whether it had been told of.
    pub fn progress(&mut self) -> bool {
        self.begin_anew();
        std::mem::take(&mut self.told) != Told::No
    }

    /// What it was told has reached the agent: what it does from now on counts.
    pub fn heard(&mut self) {
        if matches!(self.told, Told::Unread(_) | Told::Unheard) {
            self.told = Told::Read;
        }
    }

    fn begin_anew(&mut self) {
        self.recent.clear();
        self.fruitless = 0;
        self.since = None;
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

    fn seen(watch: &mut Watch, input: &str, result: &str) -> Seen {
        let whole = Signature::of("bash", input, result);
        let fruit = Signature::of("", "", result);
        watch.call(&Call { at: Time::from_micros(7), whole, fruit, shown: input })
    }

    fn call(watch: &mut Watch, input: &str, result: &str) -> Option<StuckKind> {
        match seen(watch, input, result) {
            Seen::Stuck { stuck, .. } => Some(stuck.kind),
            Seen::Nothing | Seen::GotOn => None,
        }
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
    fn whoever_was_told_is_left_in_peace_until_the_message_has_come() {
        let again = |watch: &mut Watch| (1..200).find(|_| call(watch, "test", "same").is_some()).unwrap();
        let mut watch = Watch::default();
        assert_eq!(again(&mut watch), LOOP_REPEATS);
        assert_eq!(again(&mut watch), NUDGE_UNREAD_CALLS + LOOP_REPEATS, "an agent that cannot be told");
        let mut deaf = Watch::default();
        let mut told = (0..200).filter_map(|_| match seen(&mut deaf, "test", "same") {
            Seen::Stuck { stuck, .. } => Some(stuck.is_unread),
            Seen::Nothing | Seen::GotOn => None,
        });
        assert_eq!((told.next(), told.next()), (Some(false), Some(true)), "which is said");
        let mut watch = Watch::default();
        again(&mut watch);
        (0..3).for_each(|_| assert_eq!(call(&mut watch, "test", "same"), None));
        watch.heard();
        assert_eq!(again(&mut watch), LOOP_REPEATS, "what it did before it knew does not count");
    }

    #[test]
    fn another_result_is_progress_however_often_the_call_is_made() {
        let mut watch = Watch::default();
        for n in 0..NO_PROGRESS_CALLS * 3 {
            assert_eq!(seen(&mut watch, "cargo test", &format!("{n} failed")), Seen::Nothing);
        }
        (0..LOOP_REPEATS).for_each(|_| drop(seen(&mut watch, "cargo test", "1 failed")));
        assert_eq!(seen(&mut watch, "cargo test", "all passed"), Seen::GotOn, "it had been told");
    }

    #[test]
    fn several_calls_in_the_same_order_are_a_loop() {
        let mut watch = Watch::default();
        let rounds = ["read a", "edit a", "test"].iter().cycle().take(12);
        let found: Vec<_> = rounds.filter_map(|input| call(&mut watch, input, "same")).collect();
        assert_eq!(found, [StuckKind::Loop]);
    }

    #[test]
    fn many_calls_and_nothing_new_are_no_progress_since_the_first_of_them() {
        let mut watch = Watch::default();
        let mut fruitless = |from: u32, to: u32| {
            (from..to).filter_map(|n| call(&mut watch, &format!("touch {n}"), "")).collect::<Vec<_>>()
        };
        assert_eq!(fruitless(0, NO_PROGRESS_CALLS), []);
        assert_eq!(fruitless(1_000, 1_001), [StuckKind::NoProgress]);
        assert!(watch.progress(), "it had been told of");
        assert!(!watch.progress());
    }

    #[test]
    fn what_is_written_is_new_although_the_result_is_the_same() {
        let call = |input: &str| ToolCall {
            tool: "write".into(),
            tool_id: "1".into(),
            input: input.into(),
            summary: "src/lib.rs".into(),
            subagent: None,
        };
        let result = |success| ToolResult {
            tool_id: "1".into(),
            success,
            exit: None,
            output: "written".into(),
            subagent: None,
        };
        let (one, other) = (call("fn a"), call("fn b"));
        let fruit = |call: &ToolCall, success| Call::of(Time::from_micros(1), call, &result(success)).fruit;
        assert_ne!(fruit(&one, true), fruit(&other, true));
        assert_eq!(fruit(&one, false), fruit(&other, false), "what could not be written is no file");
    }
}
