//! What helps where a conversation no longer fits into its model's context: to try again would only fail again.

use ostler_client::Session;
use ostler_domain::{
    event::CONTEXT_FULL,
    session::{Attention, Outcome},
};

/// Whose agents make their conversation smaller when they are told to.
const COMPACTING: [&str; 2] = ["claude-code", "codex"];

/// Commands and what they do, the best first; none where the last turn did not fail of that.
pub(crate) fn steps(session: &Session) -> Option<Vec<(String, &'static str)>> {
    let why = session.obituary.as_ref().map_or(session.evidence.as_str(), |end| end.sentence.as_str());
    let has_failed =
        session.attention == Some(Attention::TurnFailed) || session.outcome == Some(Outcome::TurnFailed);
    if !has_failed || !why.contains(CONTEXT_FULL) {
        return None;
    }
    let id = session.id.short();
    let smaller = COMPACTING.contains(&session.provider.as_str()).then(|| {
        (
            format!("ostler send {id} /compact"),
            "has the agent make its conversation smaller; then send goes on",
        )
    });
    let others = [
        (format!("ostler handoff {id}"), "a fresh session goes on, told what was done and what is open"),
        (
            format!("ostler conversation reset {id}"),
            "begins anew under the same name; the old one stays readable",
        ),
    ];
    Some(smaller.into_iter().chain(others).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_full_context_is_not_tried_again_as_it_is() {
        let mut session = testing::fleet().remove(2);
        session.obituary = None;
        session.attention = Some(Attention::TurnFailed);
        session.evidence = "503: no model is loaded".to_owned();
        assert_eq!(steps(&session), None);
        session.evidence = format!("{CONTEXT_FULL}: prompt is too long");
        let first = |session: &Session| steps(session).unwrap().remove(0).0;
        for (provider, command) in [("codex", "ostler send"), ("openclaw", "ostler handoff")] {
            session.provider = provider.to_owned();
            assert!(first(&session).starts_with(command), "{provider}: {}", first(&session));
        }
    }
}
