//! `ostler interrupt`: ends turns, not sessions. Says what came of it, not what was asked for.

use std::time::Duration;

use clap::Args;
use ostler_client::{Client, Session};
use ostler_domain::{
    session::{Attention, Status},
    text::one_line,
};

use super::{
    chosen::{Chosen, Deed},
    many::{self, Operands},
};
use crate::{app::App, exit_code, failure::Failure, screen::row};

/// How long an agent may take to end its turn before that is said.
const PATIENCE: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(Debug, Args)]
pub(crate) struct InterruptArgs {
    #[command(flatten)]
    chosen: Chosen,
}

pub(crate) async fn run(app: &App, args: InterruptArgs) -> Result<u8, Failure> {
    let client = app.client().await?;
    let deed = Deed { verb: "interrupt", done: "interrupted", of_the_ended: false };
    let Some(operands) = args.chosen.sessions(app, &client, &deed).await? else { return Ok(exit_code::OK) };
    interrupt(app, &client, &operands).await
}

pub(super) async fn interrupt(app: &App, client: &Client, operands: &Operands) -> Result<u8, Failure> {
    let act = async |client: &Client, who: &str| {
        let before = client.session(who).await?;
        let session = until_its_turn_ends(client, client.interrupt_session(who).await?).await?;
        Ok((what_came_of_it(may_have_a_turn(&before), &session), session))
    };
    many::each(app, client, operands, act).await
}

/// An agent needs a moment to end its turn, and may not want to.
async fn until_its_turn_ends(client: &Client, mut session: Session) -> Result<Session, Failure> {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while is_in_a_turn(&session) && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(LOOK_EVERY).await;
        session = client.session(&session.id.to_string()).await?;
    }
    Ok(session)
}

fn may_have_a_turn(session: &Session) -> bool {
    let is_held = matches!(
        session.attention,
        Some(
            Attention::Paused
                | Attention::BudgetHold
                | Attention::WaitingApproval
                | Attention::WaitingInput
                | Attention::RateLimited
                | Attention::Stalled
        )
    );
    is_held || is_in_a_turn(session)
}

fn is_in_a_turn(session: &Session) -> bool {
    let is_working = session.status == Status::Working && session.attention != Some(Attention::Paused);
    is_working && session.background().is_none()
}

fn what_came_of_it(had_a_turn: bool, session: &Session) -> String {
    let short = session.id.short();
    if !had_a_turn && let Some(tasks) = session.background() {
        let tasks = one_line(tasks, 200);
        format!(
            "has no turn to interrupt; in the background runs {tasks} (ostler stop {short} ends the session)"
        )
    } else if !had_a_turn {
        "has no turn to interrupt".to_owned()
    } else if session.attention == Some(Attention::Paused) {
        format!("is paused, and ends its turn when it goes on (ostler resume {short})")
    } else if session.attention == Some(Attention::BudgetHold) {
        format!("is held at its budget, and ends its turn when it goes on ({})", row::budget_cure(session))
    } else if is_in_a_turn(session) {
        format!("is asked to end its turn and has not yet (ostler stop {short} ends the session)")
    } else {
        "turn interrupted".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn what_runs_beside_the_turns_is_no_turn() {
        let mut session = testing::fleet().remove(1);
        assert!(may_have_a_turn(&session) && is_in_a_turn(&session));
        assert_eq!(what_came_of_it(false, &session), "has no turn to interrupt");
        session.evidence = "in the background: cargo test".to_owned();
        assert!(!may_have_a_turn(&session) && !is_in_a_turn(&session));
        let said = what_came_of_it(false, &session);
        let begins = "has no turn to interrupt; in the background runs cargo test (ostler stop ";
        assert!(said.starts_with(begins), "{said}");
        assert_eq!(what_came_of_it(true, &session), "turn interrupted", "and that runs on");
    }
}
