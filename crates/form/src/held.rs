//! What lets a session go on that is held at a budget.

pub use ostler_domain::session::held::{
    asked_by_mission, budget_cure, larger_budget, raise, shared_budget_cure,
};
