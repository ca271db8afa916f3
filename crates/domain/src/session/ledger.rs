//! Tokens have two sources, the agent's report and the wire. A call seen on the wire counts from the wire, any other from
//! the report, never both.
//!
//! Calls are matched by the model server's name for them. What an agent reports without a name (its sub-agents' and
//! compactions' calls, added up) is matched with whatever the wire saw and nobody has named. Either source may come first.
//!
//! A name does not say which call: small servers choose theirs among a thousand, or have only one. So all that was told
//! under a name is matched anew whenever more is: what both say alike first, the rest in its order, as near as it can be. A
//! call whose answer was cut was seen on the wire too, and counts from the report that is matched with it. What an agent
//! says again to the token, and the wire does not, is a call told again.

use std::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::{Usage, event::UsageSource, limits::LEDGER_CALLS};

/// What has been counted, as far as another source may still tell of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ledger {
    /// What was told last, the oldest first.
    calls: VecDeque<Call>,
    /// Reported without a name, and not seen on the wire yet.
    unnamed: Usage,
}

/// A call, as one source told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Call {
    source: UsageSource,
    call: Option<String>,
    /// What was counted and the other source has not told of.
    usage: Usage,
    /// Both have told, and the other's word is forgotten.
    is_settled: bool,
    /// What the source said, where that is not `usage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    said: Option<Usage>,
    /// The wire saw its answer cut before it said what it took.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_cut: bool,
    /// What was counted of all calls of this name beyond what they took, as is known now.
    #[serde(default, skip_serializing_if = "Usage::is_zero")]
    surplus: Usage,
}

impl Call {
    fn new(source: UsageSource, call: Option<&str>, usage: Usage) -> Self {
        let call = call.map(str::to_owned);
        Self { source, call, usage, is_settled: false, said: None, is_cut: false, surplus: Usage::default() }
    }

    fn said(&self) -> Usage {
        self.said.unwrap_or(self.usage)
    }

    fn is_of_wire(&self) -> bool {
        self.source == UsageSource::Wire
    }

    fn is_named(&self, name: &str) -> bool {
        self.call.as_deref() == Some(name)
    }

    /// Whether both say the same. Not every source tells what was thought, which is a part of the output anyway.
    fn agrees_with(&self, other: &Call) -> bool {
        let buckets = |call: &Call| Usage { reasoning: 0, ..call.said() };
        !self.is_cut && !other.is_cut && buckets(self) == buckets(other)
    }
}

impl Ledger {
    /// Takes in what a source says and gives what that adds to the sum.
    pub(super) fn book(&mut self, source: UsageSource, call: Option<&str>, said: Usage) -> Usage {
        match (call, source) {
            (Some(name), _) => self.told(name, Call::new(source, call, said)),
            (None, UsageSource::Wire) => {
                self.make_room();
                let added = self.beyond_unnamed(said);
                self.calls.push_back(Call::new(source, call, added));
                added
            }
            (None, UsageSource::Report | UsageSource::History) => self.added_up(said),
        }
    }

    /// The same of a call whose answer was cut on the wire: what the agent reports of it counts, whichever came first.
    pub(super) fn book_cut(&mut self, call: Option<&str>) -> Usage {
        let Some(name) = call else { return Usage::default() };
        self.told(name, Call { is_cut: true, ..Call::new(UsageSource::Wire, call, Usage::default()) })
    }

    fn told(&mut self, name: &str, call: Call) -> Usage {
        self.make_room();
        let counted = self.counted_from_reports(name, &self.matched(name)) + self.take_surplus(name);
        let (said, is_of_wire, at) = (call.said(), call.is_of_wire(), self.calls.len());
        self.calls.push_back(call);
        let matched = self.matched(name);
        let is_matched = matched.iter().any(|(_, wire)| *wire == at);
        let from_wire = match is_of_wire {
            true if is_matched => said,
            true => self.beyond_unnamed(said),
            false => Usage::default(),
        };
        let due = self.counted_from_reports(name, &matched) + from_wire;
        let added = due.less(&counted);
        let call = &mut self.calls[at];
        if is_of_wire && from_wire != said {
            call.said = Some(said);
            call.usage = from_wire;
        }
        call.surplus = (counted + added).less(&due);
        added
    }

    /// What a report without a name adds to what the wire saw and nobody named.
    fn added_up(&mut self, said: Usage) -> Usage {
        let names: BTreeSet<&str> = self.calls.iter().filter_map(|known| known.call.as_deref()).collect();
        let named: BTreeSet<usize> =
            names.into_iter().flat_map(|name| self.matched(name)).map(|(_, wire)| wire).collect();
        let is_open = |(at, known): &(usize, &mut Call)| {
            known.is_of_wire() && !known.is_settled && !known.is_cut && !named.contains(at)
        };
        let mut added = said;
        for (_, known) in self.calls.iter_mut().enumerate().filter(is_open) {
            let rest = known.usage.less(&added);
            added = added.less(&known.usage);
            known.said = Some(known.said());
            known.usage = rest;
        }
        self.unnamed += added;
        added
    }

    /// What the wire says of a call beyond what was reported without a name.
    fn beyond_unnamed(&mut self, said: Usage) -> Usage {
        let added = said.less(&self.unnamed);
        self.unnamed = self.unnamed.less(&said);
        added
    }

    /// What counts of the reports under a name: those of answers that were cut, and those that the wire told nothing of.
    fn counted_from_reports(&self, name: &str, matched: &[(usize, usize)]) -> Usage {
        let wire_of = |at: usize| matched.iter().find(|(report, _)| *report == at).map(|(_, wire)| *wire);
        let reports: Vec<(usize, &Call)> = self
            .calls
            .iter()
            .enumerate()
            .filter(|(_, known)| known.is_named(name) && !known.is_of_wire())
            .collect();
        let is_told_again = |at: usize, call: &Call| {
            reports.iter().any(|(other, known)| {
                let is_before = *other < at || known.is_settled || wire_of(*other).is_some();
                *other != at && is_before && known.agrees_with(call)
            })
        };
        let counts = |(at, call): &&(usize, &Call)| match wire_of(*at) {
            Some(wire) => self.calls[wire].is_cut,
            None => !call.is_settled && !is_told_again(*at, call),
        };
        reports.iter().filter(counts).fold(Usage::default(), |sum, (_, call)| sum + call.said())
    }

    fn take_surplus(&mut self, name: &str) -> Usage {
        let of_name = self.calls.iter_mut().filter(|known| known.is_named(name));
        of_name.fold(Usage::default(), |sum, known| sum + std::mem::take(&mut known.surplus))
    }

    /// Which report is of which call on the wire, by their places.
    fn matched(&self, name: &str) -> Vec<(usize, usize)> {
        let open =
            self.calls.iter().enumerate().filter(|(_, known)| known.is_named(name) && !known.is_settled);
        let (mut wires, reports): (Vec<usize>, Vec<usize>) =
            open.map(|(at, _)| at).partition(|at| self.calls[*at].is_of_wire());
        let mut matched = Vec::new();
        let mut others = Vec::new();
        for report in reports {
            let alike = wires.iter().filter(|wire| self.calls[**wire].agrees_with(&self.calls[report]));
            match alike.min_by_key(|wire| wire.abs_diff(report)).copied() {
                Some(wire) => {
                    wires.retain(|known| *known != wire);
                    matched.push((report, wire));
                }
                None => others.push(report),
            }
        }
        matched.extend(self.in_order(&others, &wires));
        matched
    }

    /// As many pairs as there can be without one that crosses another, and of these the nearest. Where two are as near, a
    /// report is of the call that said what it took, and most nearly the same.
    fn in_order(&self, reports: &[usize], wires: &[usize]) -> Vec<(usize, usize)> {
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
        struct Cost {
            left_over: usize,
            distance: usize,
            cut: usize,
            difference: u64,
        }
        let pair = |report: usize, wire: usize, rest: Cost| {
            let (report, wire) = (reports[report], wires[wire]);
            let is_cut = self.calls[wire].is_cut;
            let difference = self.calls[report].said().total().abs_diff(self.calls[wire].said().total());
            Cost {
                distance: rest.distance + report.abs_diff(wire),
                cut: rest.cut + usize::from(is_cut),
                difference: rest.difference.saturating_add(if is_cut { 0 } else { difference }),
                ..rest
            }
        };
        let leave = |rest: Cost| Cost { left_over: rest.left_over + 1, ..rest };
        // The least cost of what begins with each report and each call.
        let mut least = vec![vec![Cost::default(); wires.len() + 1]; reports.len() + 1];
        for report in (0..=reports.len()).rev() {
            for wire in (0..=wires.len()).rev() {
                least[report][wire] = match (report < reports.len(), wire < wires.len()) {
                    (true, true) => pair(report, wire, least[report + 1][wire + 1])
                        .min(leave(least[report + 1][wire]))
                        .min(leave(least[report][wire + 1])),
                    (true, false) => leave(least[report + 1][wire]),
                    (false, true) => leave(least[report][wire + 1]),
                    (false, false) => Cost::default(),
                };
            }
        }
        let (mut report, mut wire, mut pairs) = (0, 0, Vec::new());
        while report < reports.len() && wire < wires.len() {
            let cost = least[report][wire];
            if cost == pair(report, wire, least[report + 1][wire + 1]) {
                pairs.push((reports[report], wires[wire]));
                (report, wire) = (report + 1, wire + 1);
            } else if cost == leave(least[report + 1][wire]) {
                report += 1;
            } else {
                wire += 1;
            }
        }
        pairs
    }

    /// Forgets the oldest, and that the other source has still to tell of what was matched with it.
    fn make_room(&mut self) {
        while self.calls.len() >= LEDGER_CALLS {
            let name = self.calls.front().and_then(|oldest| oldest.call.clone());
            let matched = name.map(|name| self.matched(&name)).unwrap_or_default();
            let other = matched.iter().find_map(|(report, wire)| match (*report, *wire) {
                (0, other) | (other, 0) => Some(other),
                _ => None,
            });
            if let Some(other) = other {
                self.calls[other].is_settled = true;
            }
            self.calls.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use UsageSource::{Report, Wire};
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn tokens(input: u64, output: u64) -> Usage {
        Usage { input, output, ..Usage::default() }
    }

    fn sum(said: &[(UsageSource, Option<&str>, Usage)]) -> Usage {
        let mut ledger = Ledger::default();
        said.iter()
            .fold(Usage::default(), |sum, (source, call, usage)| sum + ledger.book(*source, *call, *usage))
    }

    #[test]
    fn a_call_that_both_tell_of_counts_once_and_from_the_wire() {
        let (report, wire) = ((Report, Some("a"), tokens(10, 5)), (Wire, Some("a"), tokens(10, 7)));
        assert_eq!(sum(&[report, wire]), tokens(10, 7));
        assert_eq!(sum(&[wire, report]), tokens(10, 7));
        assert_eq!(sum(&[report]), tokens(10, 5));
        assert_eq!(sum(&[wire]), tokens(10, 7));
        assert_eq!(sum(&[report, report, wire, report]), tokens(10, 7), "nothing counts twice");
    }

    #[test]
    fn a_server_that_gives_two_calls_one_name_has_both_counted() {
        let (report, wire) = ((Report, Some("a"), tokens(10, 5)), (Wire, Some("a"), tokens(10, 5)));
        for order in [
            [wire, report, wire, report],
            [report, wire, report, wire],
            [wire, report, report, wire],
            [wire, wire, report, report],
        ] {
            assert_eq!(sum(&order), tokens(20, 10), "{order:?}");
        }
        assert_eq!(sum(&[wire, wire]), tokens(20, 10));
    }

    /// What is said of a call: by the agent, by the wire, by the wire without a word about tokens.
    #[derive(Debug, Clone, Copy)]
    enum Said {
        Report(u64),
        Wire(u64),
        Cut,
    }
    use Said::{Cut, Report as R, Wire as W};

    /// The sum of what is said of calls that share few names.
    fn total(said: &[(&str, Said)]) -> u64 {
        let mut ledger = Ledger::default();
        let book = |sum, (name, said): &(&str, Said)| {
            let added = match said {
                R(count) => ledger.book(Report, Some(name), tokens(*count, 0)),
                W(count) => ledger.book(Wire, Some(name), tokens(*count, 0)),
                Cut => ledger.book_cut(Some(name)),
            };
            sum + added.total()
        };
        said.iter().fold(0, book)
    }

    #[test]
    fn what_was_reported_of_a_cut_call_stays_beside_the_next_call_of_its_name() {
        for order in [
            [R(1001), Cut, W(1590), R(1590)],
            [Cut, R(1001), W(1590), R(1590)],
            [Cut, R(1001), R(1590), W(1590)],
            [R(1001), W(1590), R(1590), Cut],
            [R(1001), W(1590), Cut, R(1590)],
            [R(1001), R(1590), Cut, W(1590)],
            [W(1590), R(1590), R(1001), Cut],
            [W(1590), Cut, R(1590), R(1001)],
            [W(1590), Cut, R(1001), R(1590)],
        ] {
            assert_eq!(total(&order.map(|said| ("a", said))), 2591, "{order:?}");
        }
        let not_told_of = [R(1001), W(1590), R(1590)];
        assert_eq!(total(&not_told_of.map(|said| ("a", said))), 2591, "the wire missed the first");
        let twice = [Cut, R(7), R(7), Cut, W(7), R(7)];
        assert_eq!(total(&twice.map(|said| ("a", said))), 21, "three calls that took the same");
    }

    #[test]
    fn what_the_wire_corrects_is_not_counted_beside_a_cut_call() {
        for order in [[W(10), R(9), Cut, R(5)], [R(9), W(10), Cut, R(5)], [R(9), W(10), R(5), Cut]] {
            assert_eq!(total(&order.map(|said| ("a", said))), 15, "{order:?}");
        }
        let less = [R(10), W(8), W(5), R(5)];
        assert_eq!(total(&less.map(|said| ("a", said))), 13, "what was counted too much is in the next");
    }

    #[test]
    fn what_is_stored_is_read_back_as_it_was() {
        let mut ledger = Ledger::default();
        ledger.book_cut(Some("a"));
        ledger.book(Report, Some("a"), tokens(10, 0));
        ledger.book(Report, Some("b"), tokens(10, 0));
        ledger.book(Wire, Some("b"), tokens(8, 0));
        ledger.book(Report, None, tokens(3, 0));
        assert_eq!(ledger, serde_json::from_str(&serde_json::to_string(&ledger).unwrap()).unwrap());
    }

    #[test]
    fn a_ledger_of_an_earlier_version_goes_on() {
        let stored = r#"{"calls":[
            {"source":"report","call":"a","usage":{"input":10,"output":0},"is_settled":false},
            {"source":"wire","call":"b","usage":{"input":0,"output":0},"is_settled":true}],
            "unnamed":{"input":0,"output":0}}"#;
        let mut ledger: Ledger = serde_json::from_str(stored).unwrap();
        assert_eq!(ledger.book(Wire, Some("a"), tokens(12, 0)), tokens(2, 0));
        assert_eq!(ledger.book(Wire, Some("b"), tokens(5, 0)), tokens(5, 0));
        assert_eq!(ledger.book(Report, Some("b"), tokens(5, 0)), Usage::default());
    }

    #[test]
    fn what_has_no_name_is_matched_with_what_nobody_named() {
        let turn = |order: [usize; 4]| {
            let said = [
                (Wire, Some("main"), tokens(10, 1)),
                (Report, Some("main"), tokens(10, 1)),
                (Wire, Some("sub"), tokens(20, 2)),
                (Report, None, tokens(20, 2)),
            ];
            sum(&order.map(|place| said[place]))
        };
        for order in [[0, 1, 2, 3], [1, 0, 3, 2], [0, 2, 1, 3], [2, 0, 1, 3], [1, 0, 2, 3]] {
            assert_eq!(turn(order), tokens(30, 3), "{order:?}");
        }
    }

    proptest! {
        /// Calls that are named by both are told in any order, as many as there may be under way at once.
        #[test]
        fn in_any_order_each_call_counts_once_and_from_the_wire_if_it_was_seen_there(
            calls in vec((0..1000_u64, 0..1000_u64, 0..1000_u64, any::<bool>(), any::<bool>()), 0..LEDGER_CALLS / 2),
            seed in any::<u64>(),
        ) {
            let names: Vec<String> = (0..calls.len()).map(|n| n.to_string()).collect();
            let mut said = Vec::new();
            let mut truth = Usage::default();
            for ((input, reported, seen, by_report, by_wire), name) in calls.iter().zip(&names) {
                if *by_report {
                    said.push((Report, Some(name.as_str()), tokens(*input, *reported)));
                }
                if *by_wire {
                    said.push((Wire, Some(name.as_str()), tokens(*input, (*seen).max(*reported))));
                }
                match (by_report, by_wire) {
                    (_, true) => truth += tokens(*input, (*seen).max(*reported)),
                    (true, false) => truth += tokens(*input, *reported),
                    (false, false) => {}
                }
            }
            shuffle(&mut said, seed);
            prop_assert_eq!(sum(&said), truth);
        }

        /// Whatever comes first: an agent that tells of each call, also of those that were cut.
        #[test]
        fn calls_of_few_names_count_once_each_when_some_are_cut(
            calls in vec((0..3_usize, 0..3_u8, 1..5_u64), 0..40),
            seed in any::<u64>(),
        ) {
            let told = calls.into_iter().map(|(name, kind, count)| match kind {
                0 => (name, vec![R(count), W(count)], count),
                1 => (name, vec![R(count), Cut], count),
                _ => (name, vec![Cut], 0),
            });
            let (mut said, truth) = all(told);
            shuffle(&mut said, seed);
            prop_assert_eq!(total(&said), truth, "{:?}", said);
        }

        /// The same of calls that the wire did not see. Nothing but its tokens tells such a call from one told again.
        #[test]
        fn calls_of_few_names_count_once_each_when_some_pass_the_wire(
            calls in vec((0..3_usize, 0..4_u8), 0..40),
            seed in any::<u64>(),
        ) {
            let told = calls.into_iter().zip(1..).map(|((name, kind), count)| match kind {
                0 => (name, vec![R(count), W(count)], count),
                1 => (name, vec![R(count), Cut], count),
                2 => (name, vec![R(count)], count),
                _ => (name, vec![Cut], 0),
            });
            let (mut said, truth) = all(told);
            shuffle(&mut said, seed);
            prop_assert_eq!(total(&said), truth, "{:?}", said);
        }

        /// An agent that is silent about calls that it was interrupted in.
        #[test]
        fn calls_of_few_names_count_once_each_when_some_are_not_reported(
            calls in vec((0..3_usize, 0..3_u8, 1..5_u64), 0..40),
            seed in any::<u64>(),
        ) {
            let told = calls.into_iter().map(|(name, kind, count)| match kind {
                0 => (name, vec![R(count), W(count)], count),
                1 => (name, vec![W(count)], count),
                _ => (name, vec![Cut], 0),
            });
            let (mut said, truth) = all(told);
            shuffle(&mut said, seed);
            prop_assert_eq!(total(&said), truth, "{:?}", said);
        }

        /// One after the other, either side first; of some the wire saw more than the agent.
        #[test]
        fn calls_that_follow_each_other_count_once_each(
            calls in vec((0..3_usize, 0..3_u8, any::<bool>()), 0..40),
        ) {
            let told = calls.into_iter().zip(1..).map(|((name, kind, is_wire_first), n)| {
                let count = 10 * n;
                let (mut told, taken) = match kind {
                    0 => (vec![R(count), W(count)], count),
                    1 => (vec![R(count), Cut], count),
                    _ => (vec![R(count), W(count + 1)], count + 1),
                };
                if is_wire_first {
                    told.reverse();
                }
                (name, told, taken)
            });
            let (said, truth) = all(told);
            prop_assert_eq!(total(&said), truth, "{:?}", said);
        }
    }

    /// What is said of all calls, and the tokens that they took.
    fn all(calls: impl Iterator<Item = (usize, Vec<Said>, u64)>) -> (Vec<(&'static str, Said)>, u64) {
        let (mut said, mut truth) = (Vec::new(), 0);
        for (name, told, taken) in calls {
            said.extend(told.into_iter().map(|told| (["a", "b", "c"][name], told)));
            truth += taken;
        }
        (said, truth)
    }

    /// The seed decides.
    fn shuffle<T>(said: &mut [T], seed: u64) {
        let mut state = seed | 1;
        for at in (1..said.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            said.swap(at, (state >> 33) as usize % (at + 1));
        }
    }

    #[test]
    fn what_is_forgotten_takes_its_other_side_along() {
        for once in [[R(5), W(5)], [W(5), R(5)], [R(5), Cut], [Cut, R(5)], [R(4), W(5)]] {
            let calls: Vec<_> =
                once.iter().cycle().take(3 * LEDGER_CALLS + 1).map(|said| ("a", *said)).collect();
            let whole = &calls[..3 * LEDGER_CALLS];
            assert_eq!(total(whole), 5 * whole.len() as u64 / 2, "{once:?}");
        }
    }

    #[test]
    fn the_memory_is_bounded() {
        let mut ledger = Ledger::default();
        for n in 0..3 * LEDGER_CALLS {
            ledger.book(Report, Some(&n.to_string()), tokens(1, 1));
        }
        assert_eq!(ledger.calls.len(), LEDGER_CALLS);
    }
}
