//! One slot of a mission: what never changes about it, and what came of it.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::words::words;
use crate::{
    AssignmentId, Name, Usage,
    limits::RESULT_BYTES,
    price::{Cost, Dollars, PriceBook},
    text::head,
    ticket::Output,
};

/// One slot of a mission. What its agent is to do is the plan's member that it is an instance of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    pub id: AssignmentId,
    /// The member's name, with the instance at its end where there are several; unique in the mission.
    pub name: Name,
    pub role: Name,
    /// From 1.
    pub instance: u32,
    /// The place of its member among those of the plan.
    pub member: u32,
    /// The places of the assignments that must be over before it, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<u32>,
    /// Whose agent added it while the mission ran, and how deep such ones lie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_by: Option<AssignmentId>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Assignment {
    /// `agent_{role}_{instance}_{id}`: a name that others use for it. It is shown and understood, and nothing is ever read
    /// out of it: a role may have the same characters.
    pub fn long_name(&self) -> String {
        let id = self.id.to_string();
        let ulid = id.rsplit('_').next().unwrap_or(&id).to_ascii_lowercase();
        format!("agent_{}_{}_{ulid}", self.role, self.instance)
    }

    /// Says whether a person who says this means it.
    pub fn is_called(&self, text: &str) -> bool {
        self.name.as_str() == text
            || self.id.to_string().eq_ignore_ascii_case(text)
            || self.long_name().eq_ignore_ascii_case(text)
    }
}

/// What an assignment hands on to those that need it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Product {
    /// What its agent said last.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Files, commits and other things that it named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<Output>,
}

impl Product {
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.outputs.is_empty()
    }

    /// In a length that is recorded: the beginning, which says that it was cut.
    #[must_use]
    pub(super) fn bounded(mut self) -> Self {
        self.text = cut(&self.text, RESULT_BYTES);
        let mut room = RESULT_BYTES;
        self.outputs.retain(|output| {
            let fits = output.value.len() <= room;
            room = room.saturating_sub(output.value.len());
            fits
        });
        self
    }
}

/// The beginning of a text, which says where it was cut.
pub(super) fn cut(text: &str, most: usize) -> String {
    match head(text, most) {
        whole if whole.len() == text.len() => text.to_owned(),
        part => format!("{part}\n… cut: {} bytes in all", text.len()),
    }
}

/// What sessions have used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    pub usage: Usage,
    /// Of what has a price.
    pub cost: Dollars,
    /// Some of it has none.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unpriced: bool,
}

impl Spent {
    pub fn is_nothing(&self) -> bool {
        *self == Spent::default()
    }

    /// The same at these prices, where this is what its calls cost: what had no price then may have one now.
    #[must_use]
    pub fn at(self, calls: &Cost, prices: &PriceBook) -> Self {
        let (cost, unknown) = calls.settled(prices);
        Self { cost, unpriced: unknown.is_some(), ..self }
    }

    /// `$1.20`, `unknown (no price for foo-1)`, `$1.20 and what has no price (foo-1)`: what is not known is never said to be
    /// nothing. The model is the one that it was done with, as far as that is known.
    pub fn cost_words(&self, model: &str) -> String {
        match (self.unpriced, self.cost) {
            (false, cost) => cost.to_string(),
            (true, Dollars(0)) => format!("unknown (no price for {model})"),
            (true, cost) => format!("{cost} and what has no price ({model})"),
        }
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Spent) {
        self.usage += other.usage;
        self.cost = Dollars(self.cost.0.saturating_add(other.cost.0));
        self.unpriced |= other.unpriced;
    }
}

/// What follows for an assignment when something that it needs was not completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDepFailure {
    /// It is skipped, and says why.
    #[default]
    Skip,
    /// It waits until a person decides.
    Block,
    /// It runs all the same, once everything that it needs is over.
    Run,
}

words!(OnDepFailure { Skip = "skip", Block = "block", Run = "run" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_price_is_never_nothing() {
        let mut spent = Spent::default();
        assert_eq!(spent.cost_words("foo-1"), "$0.00");
        spent += Spent { unpriced: true, ..Spent::default() };
        assert_eq!(spent.cost_words("foo-1"), "unknown (no price for foo-1)");
        spent += Spent { cost: Dollars(1_200_000), ..Spent::default() };
        assert_eq!(spent.cost_words("foo-1"), "$1.20 and what has no price (foo-1)");
    }
}
