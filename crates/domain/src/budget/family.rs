//! What helpers may use of the budget of whoever asked for them, so that no budget is ever given twice.
//!
//! A session that has not ended holds all that it was given, used or not; one that has ended took what it used, and the
//! rest is whoever's gave it. Who goes on with a session hangs below that one, a helper below whoever asked for it: each is
//! counted once, at whatever depth.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{Amount, Standing, Used, unpriced};
use crate::{
    Reason, Refusal, SessionId,
    price::{Dollars, PriceBook},
    session::View,
};

/// A session, as budgets see it.
#[derive(Debug, Clone)]
pub struct Member {
    pub id: SessionId,
    pub continues: Option<SessionId>,
    pub spawned_by: Option<SessionId>,
    pub has_ended: bool,
    pub budget: Amount,
    pub used: Used,
}

impl Member {
    pub fn of(view: &View, prices: &PriceBook) -> Member {
        Member {
            id: view.id,
            continues: view.continues,
            spawned_by: view.spawned_by,
            has_ended: view.outcome.is_some(),
            budget: view.budget.map(|budget| budget.amount()).unwrap_or_default(),
            used: Used::of(&view.usage, &view.cost, prices),
        }
    }
}

/// What others took of a session's budget: its helpers, and theirs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Lent {
    /// Used by them, as budgets count it.
    pub tokens: u64,
    pub dollars: Dollars,
    /// What those that have not ended may still use.
    #[serde(skip_serializing_if = "is_none_held")]
    pub held_tokens: u64,
    #[serde(skip_serializing_if = "are_none_held")]
    pub held_dollars: Dollars,
    /// A model without a price that one of them called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unpriced: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_none_held(tokens: &u64) -> bool {
    *tokens == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn are_none_held(dollars: &Dollars) -> bool {
    *dollars == Dollars(0)
}

impl Lent {
    /// What they have used and may still use.
    pub fn charged(&self) -> Used {
        Used {
            tokens: self.tokens.saturating_add(self.held_tokens),
            dollars: sum(self.dollars, self.held_dollars),
            unpriced: self.unpriced.clone(),
        }
    }

    /// What they have used.
    pub fn spent(&self) -> Used {
        Used { tokens: self.tokens, dollars: self.dollars, unpriced: self.unpriced.clone() }
    }

    fn add(&mut self, other: &Lent) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.dollars = sum(self.dollars, other.dollars);
        self.held_tokens = self.held_tokens.saturating_add(other.held_tokens);
        self.held_dollars = sum(self.held_dollars, other.held_dollars);
        self.unpriced = self.unpriced.take().or_else(|| other.unpriced.clone());
    }
}

fn sum(one: Dollars, other: Dollars) -> Dollars {
    Dollars(one.0.saturating_add(other.0))
}

impl Used {
    /// Both together.
    #[must_use]
    pub fn and(&self, other: &Used) -> Used {
        Used {
            tokens: self.tokens.saturating_add(other.tokens),
            dollars: sum(self.dollars, other.dollars),
            unpriced: self.unpriced.clone().or_else(|| other.unpriced.clone()),
        }
    }
}

impl Amount {
    /// What a use leaves of it.
    #[must_use]
    pub fn left(&self, used: &Used) -> Amount {
        Amount {
            tokens: self.tokens.map(|most| most.saturating_sub(used.tokens)),
            dollars: self.dollars.map(|most| Dollars(most.0.saturating_sub(used.dollars.0))),
        }
    }

    /// Whatever is less of both.
    #[must_use]
    pub fn least(self, other: Amount) -> Amount {
        fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            }
        }
        Amount { tokens: least(self.tokens, other.tokens), dollars: least(self.dollars, other.dollars) }
    }

    /// What of this a new helper gets: as much as is wanted, if there is so much; else an equal part for each place that is
    /// free, and one for whoever asks.
    #[must_use]
    pub fn grant(self, wanted: Amount, free_places: u32) -> Amount {
        let part = |left: u64| (left / (u64::from(free_places) + 1)).max(1).min(left);
        let usual = Amount {
            tokens: self.tokens.map(part),
            dollars: self.dollars.map(|Dollars(left)| Dollars(part(left))),
        };
        self.least(wanted.or(usual))
    }
}

/// Sessions that one budget was divided among.
#[derive(Debug, Default)]
pub struct Family {
    members: Vec<Member>,
    places: HashMap<SessionId, usize>,
    /// What those below each member took of its budget.
    lent: Vec<Lent>,
}

impl Family {
    /// Of sessions in the order in which they were created.
    pub fn of(members: Vec<Member>) -> Family {
        let places: HashMap<SessionId, usize> =
            members.iter().enumerate().map(|(place, member)| (member.id, place)).collect();
        let mut lent = vec![Lent::default(); members.len()];
        for (place, member) in members.iter().enumerate().rev() {
            let charge = charge(member, &lent[place]);
            let above = member.continues.or(member.spawned_by).and_then(|above| places.get(&above));
            // Whoever is below was created later: nothing goes in circles.
            if let Some(above) = above.filter(|above| **above < place) {
                lent[*above].add(&charge);
            }
        }
        Family { members, places, lent }
    }

    /// What helpers took of a session's budget, and whoever goes on with it.
    pub fn lent(&self, id: SessionId) -> Lent {
        self.places.get(&id).map(|place| self.lent[*place].clone()).unwrap_or_default()
    }

    /// How many of a session's helpers have not ended.
    pub fn helpers_at_work(&self, id: SessionId) -> u32 {
        let at_work = self.members.iter().filter(|one| one.spawned_by == Some(id) && !one.has_ended);
        u32::try_from(at_work.count()).unwrap_or(u32::MAX)
    }

    /// How much another session below this one may be given: what it has left, and, where it has ended and so holds nothing
    /// any more, no more than whoever it had its budget from has left.
    pub fn room(&self, id: SessionId) -> Result<Amount, Refusal> {
        let mut room = Amount::default();
        let mut at = self.places.get(&id).copied();
        while let Some(place) = at {
            room = room.least(self.left(place)?);
            at = self.above(place).filter(|_| self.members[place].has_ended);
        }
        Ok(room)
    }

    /// From whom a member has its budget; none for one that a person gave more than was left.
    fn above(&self, place: usize) -> Option<usize> {
        let member = &self.members[place];
        let above = *self.places.get(&member.continues.or(member.spawned_by)?)?;
        let rest = self.members[above].budget.left(&self.members[above].used);
        let was_raised = member.continues.is_some() && member.budget.least(rest) != member.budget;
        (above < place && !was_raised).then_some(above)
    }

    fn left(&self, place: usize) -> Result<Amount, Refusal> {
        let (member, lent) = (&self.members[place], &self.lent[place]);
        let charged = member.used.and(&lent.charged());
        let short = member.id.short();
        let refuse = |message: String| Refusal::new(Reason::OverBudget, message);
        match member.budget.standing(&charged) {
            Standing::Within | Standing::Warned => Ok(member.budget.left(&charged)),
            Standing::UsedUp => {
                let held = lent.held_words(&member.budget);
                let told = member.budget.told(&charged);
                Err(refuse(format!("session {short} has nothing left of its budget for helpers"))
                    .because(held.map_or(told.clone(), |held| format!("{told}, {held}"))))
            }
            Standing::Unpriced(model) => {
                let (why, cure) = unpriced(&model);
                let unknown = format!("nobody knows how much session {short} has left of its budget");
                Err(refuse(unknown).because(why).hint(cure, "says what its tokens cost"))
            }
        }
    }
}

impl Lent {
    /// What of a budget is only set aside; none where nothing is.
    pub fn held_words(&self, budget: &Amount) -> Option<String> {
        let held = Amount {
            tokens: budget.tokens.map(|_| self.held_tokens).filter(|held| *held > 0),
            dollars: budget.dollars.map(|_| self.held_dollars).filter(|held| *held > Dollars(0)),
        };
        let tokens = held.tokens.map(|tokens| format!("{tokens} tokens"));
        let dollars = held.dollars.map(|dollars| dollars.to_string());
        let parts: Vec<String> = dollars.into_iter().chain(tokens).collect();
        (!parts.is_empty()).then(|| format!("of which its helpers hold {}", parts.join(" and ")))
    }
}

/// What a session takes of the budget above it.
fn charge(member: &Member, below: &Lent) -> Lent {
    let spent = member.used.and(&below.spent());
    let holds = !member.has_ended;
    let rest = member.budget.left(&spent);
    Lent {
        tokens: spent.tokens,
        dollars: spent.dollars,
        held_tokens: rest.tokens.filter(|_| holds).unwrap_or(0).max(below.held_tokens),
        held_dollars: rest.dollars.filter(|_| holds).unwrap_or_default().max(below.held_dollars),
        unpriced: spent.unpriced,
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::Time;

    fn id(n: usize) -> SessionId {
        SessionId::new(Time::from_micros(1), n as u128)
    }

    fn tokens(amount: u64) -> Amount {
        Amount { tokens: Some(amount), dollars: None }
    }

    fn member(n: usize, spawned_by: Option<usize>, budget: u64, used: u64, has_ended: bool) -> Member {
        Member {
            id: id(n),
            continues: None,
            spawned_by: spawned_by.map(id),
            has_ended,
            budget: tokens(budget),
            used: Used { tokens: used, ..Used::default() },
        }
    }

    #[test]
    fn who_has_not_ended_holds_what_it_was_given_and_who_has_gives_the_rest_back() {
        let with_helper = |used: u64, has_ended: bool| {
            Family::of(vec![member(0, None, 100, 10, false), member(1, Some(0), 40, used, has_ended)])
        };
        assert_eq!(with_helper(0, false).room(id(0)).unwrap(), tokens(50));
        assert_eq!(with_helper(15, false).room(id(0)).unwrap(), tokens(50), "used or not");
        assert_eq!(with_helper(15, true).room(id(0)).unwrap(), tokens(75));
        assert_eq!(with_helper(45, false).room(id(0)).unwrap(), tokens(45), "it went beyond its own");
    }

    #[test]
    fn a_helper_s_helpers_are_within_what_it_holds_and_stay_when_it_ends() {
        let family = |has_ended: bool| {
            Family::of(vec![
                member(0, None, 100, 0, false),
                member(1, Some(0), 40, 10, has_ended),
                member(2, Some(1), 20, 5, false),
            ])
        };
        assert_eq!(family(false).room(id(0)).unwrap(), tokens(60));
        assert_eq!(family(false).room(id(1)).unwrap(), tokens(10));
        assert_eq!(family(true).room(id(0)).unwrap(), tokens(70), "10 used, 20 held below it");
    }

    #[test]
    fn who_goes_on_with_a_helper_gets_no_more_than_whoever_asked_for_it_has_left() {
        // It had 40 and used 10; of the 90 that came back, another helper holds 70.
        let mut members = vec![
            member(0, None, 100, 0, false),
            member(1, Some(0), 40, 10, true),
            member(2, Some(0), 70, 0, false),
        ];
        assert_eq!(Family::of(members.clone()).room(id(1)).unwrap(), tokens(20));
        members.push(Member { continues: Some(id(1)), ..member(3, Some(0), 20, 0, false) });
        let refusal = Family::of(members).room(id(0)).unwrap_err();
        assert_eq!(refusal.reason, Reason::OverBudget);
        assert!(refusal.why.unwrap().contains("100 of 100 tokens used, of which its helpers hold 90 tokens"));
    }

    #[test]
    fn what_a_helper_of_the_one_before_was_given_again_is_not_left_to_whoever_goes_on() {
        // The lead went on with all of it and gave 250 of that to a helper; then one of the first lead's was gone on with.
        let members = vec![
            member(0, None, 1_000, 0, true),
            member(1, Some(0), 250, 0, true),
            Member { continues: Some(id(0)), ..member(2, None, 1_000, 0, true) },
            member(3, Some(2), 250, 0, false),
            Member { continues: Some(id(1)), ..member(4, Some(0), 250, 0, false) },
        ];
        assert_eq!(Family::of(members.clone()).room(id(2)).unwrap(), tokens(500));
        // More than was left is a person's word, and nobody's rest.
        let mut raised = members;
        raised[2].budget = tokens(2_000);
        assert_eq!(Family::of(raised).room(id(2)).unwrap(), tokens(1_750));
    }

    #[test]
    fn without_a_wish_all_places_and_the_asker_get_the_same() {
        assert_eq!(tokens(90).grant(Amount::default(), 8), tokens(10));
        assert_eq!(tokens(80).grant(Amount::default(), 7), tokens(10));
        assert_eq!(
            tokens(3).grant(Amount::default(), 8),
            tokens(1),
            "never nothing where there is something"
        );
        assert_eq!(tokens(90).grant(tokens(30), 8), tokens(30));
        assert_eq!(tokens(90).grant(tokens(300), 8), tokens(90), "no more than there is");
        assert_eq!(Amount::default().grant(tokens(300), 8), tokens(300));
        assert_eq!(Amount::default().grant(Amount::default(), 8), Amount::default(), "no budget, no end");
        let both = Amount { tokens: Some(90), dollars: Some(Dollars(90)) };
        let dollars = Amount { tokens: None, dollars: Some(Dollars(5)) };
        assert_eq!(both.grant(dollars, 8), Amount { tokens: Some(10), dollars: Some(Dollars(5)) });
    }

    const BUDGET: u64 = 1_000;

    proptest! {
        /// Sessions ask for helpers, use what they have, end, and are gone on with, in any order.
        #[test]
        fn however_helpers_are_asked_for_all_of_them_use_no_more_than_the_one_budget(
            steps in vec((0..4_u8, 0..24_usize, 0..400_u64), 0..200),
        ) {
            let mut all = vec![member(0, None, BUDGET, 0, false)];
            for (step, at, amount) in steps {
                let at = at % all.len();
                let family = Family::of(all.clone());
                let it = all[at].clone();
                match step {
                    0 if !it.has_ended => {
                        let wanted = if amount % 2 == 0 { Amount::default() } else { tokens(amount) };
                        if let Ok(room) = family.room(it.id) {
                            let given = room.grant(wanted, 3).tokens.unwrap();
                            all.push(member(all.len(), Some(at), given, 0, false));
                        }
                    }
                    // Its gateway holds calls at what it has not given away.
                    1 if !it.has_ended => {
                        let charged = it.used.and(&family.lent(it.id).charged());
                        all[at].used.tokens += amount.min(it.budget.left(&charged).tokens.unwrap());
                    }
                    2 => all[at].has_ended = true,
                    3 if it.has_ended && !all.iter().any(|next| next.continues == Some(it.id)) => {
                        if let Ok(room) = family.room(it.id) {
                            let next = member(all.len(), None, room.tokens.unwrap(), 0, false);
                            all.push(Member { continues: Some(it.id), spawned_by: it.spawned_by, ..next });
                        }
                    }
                    _ => {}
                }
                let used: u64 = all.iter().map(|member| member.used.tokens).sum();
                prop_assert!(used <= BUDGET, "{used} used: {all:?}");
            }
        }
    }
}
