//! How what is left of a campaign's budget is divided among its sessions' gateways, so that it is never lent twice.
//!
//! The daemon is always behind: a gateway may have used its whole share while the record has not heard of it. So a share
//! counts from what the gateway says that it has counted, what it is ahead of the record is not left, and nobody gets more
//! before every gateway has said how far it had come when it heeded its new end.

use super::{Amount, Used};
use crate::{gateway::Spent, price::Dollars};

/// What one session has to do with the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// By the record.
    pub used: Used,
    /// By the gateway, as far as the keeper has said it; more than the record, as long as that is behind.
    pub counted: Option<Spent>,
    pub held: Held,
}

/// Where a session's share is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    /// With a keeper that can be told of another.
    InReach,
    /// With a keeper that cannot be told: so much of it may still be used.
    OutOfReach(Amount),
    /// Nowhere: it waits to start, and needs none yet.
    Nothing,
    /// A daemon before this one gave it, and what of it was used is not read yet.
    Unknown,
}

/// How far each session's calls may go; none for those that cannot be told. `left` is what the record leaves of the budget.
pub fn divide(left: Amount, claims: &[Claim]) -> Vec<Option<Amount>> {
    let sharing = claims.iter().filter(|claim| claim.held == Held::InReach).count() as u64;
    let taken = claims.iter().map(Claim::taken);
    let (tokens, dollars) = taken
        .fold((0_u64, 0_u64), |sum, taken| (sum.0.saturating_add(taken.0), sum.1.saturating_add(taken.1)));
    let part = |left: u64, taken: u64| left.saturating_sub(taken) / sharing.max(1);
    let part = Amount {
        tokens: left.tokens.map(|left| part(left, tokens)),
        dollars: left.dollars.map(|left| Dollars(part(left.0, dollars))),
    };
    claims.iter().map(|claim| claim.end(part)).collect()
}

impl Claim {
    /// What of the rest is not to be divided: what the gateway has counted and the record has not, and what is out of reach.
    fn taken(&self) -> (u64, u64) {
        if let Held::OutOfReach(out) = &self.held {
            return (out.tokens.unwrap_or(0), out.dollars.map_or(0, |dollars| dollars.0));
        }
        let (tokens, dollars) = self.base();
        (tokens.saturating_sub(self.used.tokens), dollars.0.saturating_sub(self.used.dollars.0))
    }

    /// Where its share begins: a gateway holds calls by its own count.
    fn base(&self) -> (u64, Dollars) {
        self.counted
            .as_ref()
            .map_or((self.used.tokens, self.used.dollars), |spent| (spent.tokens, spent.dollars))
    }

    fn end(&self, part: Amount) -> Option<Amount> {
        let (tokens, dollars) = self.base();
        let part = match self.held {
            Held::InReach => part,
            Held::Nothing | Held::Unknown => {
                Amount { tokens: part.tokens.and(Some(0)), dollars: part.dollars.and(Some(Dollars(0))) }
            }
            Held::OutOfReach(_) => return None,
        };
        Some(Amount {
            tokens: part.tokens.map(|part| tokens.saturating_add(part)),
            dollars: part.dollars.map(|part| Dollars(dollars.0.saturating_add(part.0))),
        })
    }
}

impl Amount {
    /// Whether a gateway that heeds this as its end had not gone beyond it before: then what it does not need is others'.
    pub fn holds(&self, counted: &Spent) -> bool {
        self.tokens.is_none_or(|most| counted.tokens <= most)
            && self.dollars.is_none_or(|most| counted.dollars <= most)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn claim(used: u64, counted: Option<u64>, held: Held) -> Claim {
        let counted = counted.map(|tokens| Spent { tokens, ..Spent::default() });
        Claim { used: Used { tokens: used, ..Used::default() }, counted, held }
    }

    fn tokens(amount: u64) -> Amount {
        Amount { tokens: Some(amount), dollars: None }
    }

    #[test]
    fn what_is_left_is_divided_and_never_lent_twice() {
        let dollars = Dollars(1_000);
        let both = Amount { dollars: Some(dollars), ..tokens(100) };
        let three = [0; 3].map(|_| claim(0, None, Held::InReach));
        let each = Amount { dollars: Some(Dollars(333)), ..tokens(33) };
        assert_eq!(divide(both, &three), vec![Some(each); 3]);
        let out = Amount { dollars: Some(Dollars(2_000)), ..tokens(60) };
        let one_is_away = [claim(0, None, Held::InReach), claim(5, None, Held::OutOfReach(out))];
        let rest = Amount { dollars: Some(Dollars(0)), ..tokens(40) };
        assert_eq!(divide(both, &one_is_away), [Some(rest), None], "who cannot be told keeps what it has");
        assert_eq!(divide(Amount::default(), &three), vec![Some(Amount::default()); 3], "nothing is limited");
        let waits = [claim(0, None, Held::InReach), claim(0, None, Held::Nothing)];
        assert_eq!(divide(tokens(100), &waits), [Some(tokens(100)), Some(tokens(0))]);
    }

    #[test]
    fn what_a_gateway_has_used_and_the_record_has_not_heard_of_is_not_left() {
        // Ten are left by the record, of which the first has used three.
        let claims = [claim(2, Some(5), Held::InReach), claim(5, Some(5), Held::InReach)];
        assert_eq!(divide(tokens(10), &claims), [Some(tokens(8)), Some(tokens(8))]);
        // What an agent says that it has used beside its gateway is in the record alone, and is no room in the gateway.
        let claims = [claim(9, Some(5), Held::InReach)];
        assert_eq!(divide(tokens(10), &claims), [Some(tokens(15))]);
        assert!(tokens(5).holds(&Spent { tokens: 5, ..Spent::default() }));
        assert!(!tokens(5).holds(&Spent { tokens: 6, ..Spent::default() }));
    }

    /// A gateway, and how much of what it did the daemon knows of.
    #[derive(Debug, Clone, Default)]
    struct Gateway {
        spent: u64,
        end: u64,
        /// What the keeper last said.
        counted: u64,
        recorded: u64,
        told: u64,
    }

    const BUDGET: u64 = 1_000;
    const CALL: u64 = 60;

    proptest! {
        /// Gateways call, are heard of and heed at any time; daemons divide at any time, and may die in between.
        #[test]
        fn however_far_the_record_is_behind_no_more_is_used_than_calls_under_way_go_beyond(
            count in 1..4_usize,
            steps in vec((0..6_u8, 0..4_usize), 0..200),
        ) {
            let mut gateways = vec![Gateway::default(); count];
            for (step, at) in steps {
                let at = at % count;
                match step {
                    0 | 1 if gateways[at].spent < gateways[at].end => gateways[at].spent += CALL,
                    2 => gateways[at].counted = gateways[at].spent,
                    3 => gateways[at].recorded = gateways[at].counted,
                    4 => gateways[at].end = gateways[at].told,
                    5 => division(&mut gateways, at),
                    _ => {}
                }
            }
            let used: u64 = gateways.iter().map(|gateway| gateway.spent).sum();
            prop_assert!(used < BUDGET + CALL * count as u64, "{used} used: {gateways:?}");
        }
    }

    /// A division in which everybody makes another call between being asked and being told, if they may.
    fn division(gateways: &mut [Gateway], dies_at: usize) {
        let recorded: u64 = gateways.iter().map(|gateway| gateway.recorded).sum();
        let claims: Vec<Claim> = gateways
            .iter()
            .map(|gateway| claim(gateway.recorded, Some(gateway.counted), Held::InReach))
            .collect();
        let ends = divide(tokens(BUDGET.saturating_sub(recorded)), &claims);
        let ends: Vec<u64> = ends.iter().filter_map(|end| end.as_ref()?.tokens).collect();
        let mut is_held_by_all = true;
        for (gateway, end) in gateways.iter_mut().zip(&ends) {
            if gateway.spent < gateway.end {
                gateway.spent += CALL;
            }
            (gateway.told, gateway.end) = (gateway.end.min(*end), gateway.end.min(*end));
            gateway.counted = gateway.spent;
            is_held_by_all &= tokens(*end).holds(&Spent { tokens: gateway.counted, ..Spent::default() });
        }
        for (at, (gateway, end)) in gateways.iter_mut().zip(&ends).enumerate() {
            if is_held_by_all && at >= dies_at {
                (gateway.told, gateway.end) = (*end, *end);
            }
        }
    }
}
