//! Sessions that a budget holds: whoever waits for one waits for somebody who allows more.

use ostler_client::Session;
use ostler_domain::{
    SessionId,
    event::Held,
    session::{Attention, Hold, Watchdog},
};
pub use ostler_form::held::larger_budget;

use crate::{Line, Tone, row};

/// That a session is held at a budget, and what lets it go on.
pub fn at_a_budget(session: &Session) -> Option<Line> {
    let is_held = session.attention == Some(Attention::BudgetHold);
    is_held.then(|| told(&session.id, &session.evidence, row::budget_cure(session)))
}

/// The same, where that happens while somebody waits.
pub fn at_a_budget_now(session: &SessionId, held: &Held) -> Option<Line> {
    let short = session.short();
    let cure = match held.hold {
        Hold::Budget => format!("ostler resume {short} --budget AMOUNT"),
        // Whose it is stands before what is used of it.
        Hold::CampaignBudget | Hold::AgentBudget => format!("ostler show {short}"),
        Hold::Halt | Hold::Disk => return None,
    };
    Some(told(session, &held.reason, cure))
}

/// Why a session that a budget holds stands still before its turn is over.
pub(crate) const fn stands_still(watchdog: Watchdog) -> &'static str {
    match watchdog {
        Watchdog::BudgetTool => "it stands still, with a command of it under way",
        _ => "it stands still: it waits for another call",
    }
}

fn told(session: &SessionId, reason: &str, cure: String) -> Line {
    let said = Line::toned(Tone::Warn, format!("{} is held at its budget: {reason}", session.short()));
    Line::joined([said, Line::toned(Tone::Accent, cure)])
}

/// Whether it is the session's own budget, and not one that it shares with others.
pub fn is_own(session: &Session) -> bool {
    !["campaign ", "agent "].iter().any(|whose| session.evidence.starts_with(whose))
}

#[cfg(test)]
mod tests {
    use ostler_domain::{
        Budget, Usage,
        budget::{Amount, WhenUsedUp},
    };

    use super::*;
    use crate::{Look, testing};

    #[test]
    fn whoever_waits_is_told_what_lets_it_go_on() {
        let mut session = testing::fleet().remove(0);
        let said = |line: Option<Line>| line.map(|line| line.show(&Look::plain(None)));
        assert_eq!(said(at_a_budget(&session)), None);
        session.attention = Some(Attention::BudgetHold);
        session.evidence = "510k of 500k tokens used".to_owned();
        let short = session.id.short();
        let own = |amount: &str| {
            let held = format!("{short} is held at its budget: 510k of 500k tokens used");
            Some(format!("{held} · ostler resume {short} --budget {amount}"))
        };
        session.budget = Some(Budget::new(Amount::parse("500k").unwrap(), WhenUsedUp::Hold));
        session.usage = Usage { input: 510_000, ..Usage::default() };
        assert_eq!(said(at_a_budget(&session)), own("1020k"));
        let held = |hold| Held { hold, reason: session.evidence.clone(), settles: false };
        assert_eq!(said(at_a_budget_now(&session.id, &held(Hold::Budget))), own("AMOUNT"));
        let shared = said(at_a_budget_now(&session.id, &held(Hold::CampaignBudget))).unwrap();
        assert!(shared.ends_with(&format!("ostler show {short}")), "{shared}");
        assert_eq!(said(at_a_budget_now(&session.id, &held(Hold::Halt))), None);
    }

    #[test]
    fn a_larger_budget_is_larger_than_what_is_used() {
        let mut session = testing::fleet().remove(0);
        session.budget = None;
        assert_eq!(larger_budget(&session), None);
        let of = |text: &str| Budget::new(Amount::parse(text).unwrap(), WhenUsedUp::Hold);
        session.cost = Default::default();
        session.usage = Usage { input: 10, ..Usage::default() };
        session.budget = Some(of("2usd,500k"));
        assert_eq!(larger_budget(&session).unwrap().to_string(), "4usd,1M");
        session.usage.output = 2_000_000;
        assert_eq!(larger_budget(&session).unwrap().tokens, Some(4_000_020));
        session.cost.unpriced.insert("new".to_owned(), session.usage);
        assert_eq!(larger_budget(&session), None, "a price is what it lacks");
        session.budget = Some(of("500k"));
        assert!(larger_budget(&session).is_some(), "tokens need none");
    }
}
