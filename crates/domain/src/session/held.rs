//! What lets a session go on that is held at a budget.

use super::View;

/// What lets a session go on that is held at its budget, at its agent's, or at its campaign's.
pub fn budget_cure(session: &View) -> String {
    // As `campaign shop: 30000 of 30000 tokens used`.
    let held = session.evidence.split_once(':').map_or("", |(whose, _)| whose);
    match (held.strip_prefix("campaign "), &session.agent) {
        (Some(campaign), _) => format!("ostler campaign set {campaign} budget=AMOUNT/PERIOD"),
        (None, Some(_)) if held.starts_with("agent ") => {
            shared_budget_cure(session, &session.campaign.short())
        }
        (None, _) => format!("ostler resume {} --budget AMOUNT", session.id.short()),
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
