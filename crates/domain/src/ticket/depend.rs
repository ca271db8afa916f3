//! What must be done before what.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{ExternalRef, Status};
use crate::TicketId;

/// A ticket that another one waits for, or would if it were not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocker {
    pub id: TicketId,
    pub status: Status,
    pub external: Option<ExternalRef>,
    /// The first line of its intent.
    pub title: String,
}

impl Blocker {
    /// What was archived was over before, and nobody waits for what is over and out of sight.
    pub fn is_done(&self) -> bool {
        matches!(self.status, Status::Done | Status::Archived)
    }
}

/// Those that are not done yet.
pub fn waits_for(depends_on: &[Blocker]) -> Vec<&Blocker> {
    depends_on.iter().filter(|blocker| !blocker.is_done()).collect()
}

/// The way back to a ticket that begins with one it is to depend on: with that, nothing in it could ever begin. `edges`
/// says of each what it depends on.
pub fn cycle(
    edges: &BTreeMap<TicketId, Vec<TicketId>>,
    ticket: TicketId,
    on: TicketId,
) -> Option<Vec<TicketId>> {
    let mut seen = BTreeSet::new();
    let mut ways = vec![vec![on]];
    while let Some(way) = ways.pop() {
        let Some(last) = way.last().copied() else { continue };
        if last == ticket {
            return Some(way);
        }
        if !seen.insert(last) {
            continue;
        }
        for next in edges.get(&last).into_iter().flatten() {
            let mut longer = way.clone();
            longer.push(*next);
            ways.push(longer);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Time;

    fn ticket(n: u8) -> TicketId {
        TicketId::new(Time::from_micros(1_000), u128::from(n))
    }

    #[test]
    fn a_way_back_is_told() {
        let edges = BTreeMap::from([(ticket(1), vec![ticket(2)]), (ticket(2), vec![ticket(3), ticket(4)])]);
        assert_eq!(cycle(&edges, ticket(3), ticket(1)), Some(vec![ticket(1), ticket(2), ticket(3)]));
        assert_eq!(cycle(&edges, ticket(5), ticket(1)), None);
        assert_eq!(cycle(&edges, ticket(1), ticket(1)), Some(vec![ticket(1)]));
    }

    #[test]
    fn only_what_is_done_lets_others_begin() {
        let of = |status| Blocker { id: ticket(1), status, external: None, title: String::new() };
        let all = Status::ALL.map(of);
        let open: Vec<_> = waits_for(&all).into_iter().map(|blocker| blocker.status).collect();
        let expected =
            [Status::Initialized, Status::Queued, Status::Running, Status::Failed, Status::Cancelled];
        assert_eq!(open, expected);
    }

    proptest! {
        /// Tickets to which only such dependencies are added have an order in which all of them can be done.
        #[test]
        fn without_a_way_back_everything_can_be_done(wanted in prop::collection::vec((0_u8..12, 0_u8..12), 0..80)) {
            let mut edges: BTreeMap<TicketId, Vec<TicketId>> = BTreeMap::new();
            for (one, other) in wanted {
                if cycle(&edges, ticket(one), ticket(other)).is_none() {
                    edges.entry(ticket(one)).or_default().push(ticket(other));
                }
            }
            let mut done = BTreeSet::new();
            for _ in 0..12 {
                let can: Vec<TicketId> = (0..12)
                    .map(ticket)
                    .filter(|id| edges.get(id).into_iter().flatten().all(|on| done.contains(on)))
                    .collect();
                done.extend(can);
            }
            prop_assert_eq!(done.len(), 12);
        }
    }
}
