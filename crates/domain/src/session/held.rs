//! What lets a session go on that is held at a budget.

use super::View;
use crate::{budget::Amount, price::Dollars};

/// What lets a session go on that has used up a budget of its own.
pub fn raise(session: &View) -> String {
    let larger = larger_budget(session).map_or_else(|| "AMOUNT".to_owned(), |larger| larger.to_string());
    format!("ostler resume {} --budget {larger}", session.id.short())
}

/// The command that a mission names which keeps a member's session frozen, and why it does.
pub fn asked_by_mission(session: &View) -> Option<(&str, &str)> {
    // As the mission's state words what it asks.
    session.evidence.split_once(": ").filter(|(command, _)| command.starts_with("ostler mission "))
}

/// What lets a session go on that is held at its budget, at its agent's, at its campaign's or at its mission's.
pub fn budget_cure(session: &View) -> String {
    if let Some((command, _)) = asked_by_mission(session) {
        return command.to_owned();
    }
    // As `campaign shop: 30000 of 30000 tokens used`.
    let held = session.evidence.split_once(':').map_or("", |(whose, _)| whose);
    match (held.strip_prefix("campaign "), &session.agent) {
        (Some(campaign), _) => format!("ostler campaign set {campaign} budget=AMOUNT/PERIOD"),
        (None, Some(_)) if held.starts_with("agent ") => {
            shared_budget_cure(session, &session.campaign.short())
        }
        (None, _) => raise(session),
    }
}

/// What gives more to a session that has no budget of its own: its agent's, or its campaign's.
pub fn shared_budget_cure(session: &View, campaign: &str) -> String {
    let is_agents = session.evidence.starts_with("agent ") || session.evidence.contains("its agent's budget");
    match &session.agent {
        Some(agent) if is_agents => {
            format!("ostler agent set {campaign}/{} budget=AMOUNT/PERIOD", agent.name)
        }
        _ => format!("ostler campaign set {campaign} budget=AMOUNT/PERIOD"),
    }
}

/// A budget with which a session that has used up its own could go on; none where another would not help.
pub fn larger_budget(session: &View) -> Option<Amount> {
    let Amount { tokens, dollars } = session.budget?.amount();
    let is_unpriced = !session.cost.unpriced.is_empty();
    let larger = Amount {
        tokens: tokens.map(|most| most.max(session.usage.budgeted()).saturating_mul(2)),
        dollars: dollars.map(|most| Dollars(most.0.max(session.cost.paid.0).saturating_mul(2))),
    };
    (dollars.is_none() || !is_unpriced).then_some(larger)
}
