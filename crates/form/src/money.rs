//! What something cost.

use ostler_domain::{
    Usage,
    price::{Cost, Dollars},
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::shape;

/// A cost, as programs read it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Cost")]
pub struct CostForm {
    /// Of the part that has a price; null where none has.
    #[schemars(with = "Option<shape::Dollars>")]
    pub amount: Option<Dollars>,
    currency: &'static str,
    /// Whether that is all of it.
    pub is_known: bool,
    /// What a subscription covers, at the prices that others pay.
    #[schemars(with = "shape::Dollars")]
    plan: Dollars,
    #[schemars(with = "shape::Usage")]
    unpriced: Usage,
    unpriced_models: Vec<String>,
}

impl CostForm {
    pub fn new(cost: &Cost) -> CostForm {
        let is_known = cost.unpriced.is_empty();
        CostForm {
            amount: (is_known || cost.paid != Dollars(0)).then_some(cost.paid),
            currency: "USD",
            is_known,
            plan: cost.plan,
            unpriced: cost.unpriced.values().fold(Usage::default(), |sum, usage| sum + *usage),
            unpriced_models: cost.unpriced.keys().filter(|model| !model.is_empty()).cloned().collect(),
        }
    }
}

impl CostForm {
    /// The same where there were answers of which nobody has said what they took.
    #[must_use]
    pub fn and_unknown(self) -> CostForm {
        let amount = self.amount.filter(|amount| *amount != Dollars(0));
        CostForm { amount, is_known: false, ..self }
    }
}

/// In a column. Empty where nothing was used.
pub fn short(cost: &Cost) -> String {
    let is_unknown = !cost.unpriced.is_empty();
    let paid = match (cost.paid, is_unknown) {
        (Dollars(0), true) => "?".to_owned(),
        (Dollars(0), false) => String::new(),
        (paid, true) => format!("{paid}+?"),
        (paid, false) => paid.to_string(),
    };
    let plan = match (cost.plan, cost.plan_unpriced.is_zero()) {
        (Dollars(0), true) => String::new(),
        (Dollars(0), false) => "~?".to_owned(),
        (plan, true) => format!("~{plan}"),
        (plan, false) => format!("~{plan}+?"),
    };
    [paid, plan].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}
