//! Tokens have two sources, the agent's report and the wire. A call seen on the wire counts from the wire, any other from
//! the report, never both.
//!
//! Calls are matched by the model server's name for them. What an agent reports without a name (its sub-agents' and
//! compactions' calls, added up) is matched with whatever the wire saw and nobody has named. Either source may come first.
//!
//! An agent may tell of a call again and again; the wire tells of each once. So a name that it tells again is another call's:
//! small servers choose theirs among a thousand.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::{Usage, event::UsageSource, limits::LEDGER_CALLS};

/// What has been counted, as far as another source may still tell of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ledger {
    /// The last calls, the oldest first.
    calls: VecDeque<Call>,
    /// Reported without a name, and not seen on the wire yet.
    unnamed: Usage,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Call {
    source: UsageSource,
    call: Option<String>,
    /// What was counted and the other source has not told of.
    usage: Usage,
    /// Both have told.
    is_settled: bool,
}

impl Ledger {
    /// Takes in what a source says and gives what that adds to the sum.
    pub(super) fn book(&mut self, source: UsageSource, call: Option<&str>, said: Usage) -> Usage {
        let is_same = |known: &Call| call.is_some() && known.call.as_deref() == call;
        let is_other_side = |known: &Call| !known.is_settled && known.source != source;
        let is_told_again = source != UsageSource::Wire && self.calls.iter().any(is_same);
        let other_side = self.calls.iter_mut().find(|known| is_same(known) && is_other_side(known));
        match (other_side, source, call) {
            (Some(known), ..) => {
                known.is_settled = true;
                let counted = std::mem::take(&mut known.usage);
                if source == UsageSource::Wire { said.less(&counted) } else { Usage::default() }
            }
            _ if is_told_again => Usage::default(),
            (None, UsageSource::Report | UsageSource::History, None) => {
                let mut added = said;
                let on_the_wire = self.calls.iter_mut().filter(|known| known.source == UsageSource::Wire);
                for known in on_the_wire {
                    let rest = known.usage.less(&added);
                    added = added.less(&known.usage);
                    known.usage = rest;
                }
                self.unnamed += added;
                added
            }
            (None, UsageSource::Report | UsageSource::History, Some(_)) => {
                self.remember(source, call, said);
                said
            }
            (None, UsageSource::Wire, _) => {
                let added = said.less(&self.unnamed);
                self.unnamed = self.unnamed.less(&said);
                self.remember(source, call, added);
                added
            }
        }
    }

    fn remember(&mut self, source: UsageSource, call: Option<&str>, usage: Usage) {
        if self.calls.len() == LEDGER_CALLS {
            self.calls.pop_front();
        }
        self.calls.push_back(Call { source, call: call.map(str::to_owned), usage, is_settled: false });
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
            // A shuffle that the seed decides.
            let mut state = seed | 1;
            for at in (1..said.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                said.swap(at, (state >> 33) as usize % (at + 1));
            }
            prop_assert_eq!(sum(&said), truth);
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
