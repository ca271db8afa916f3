//! What to do next about a session: the commands that let it go on, answer it, or show more.

use ostler_client::Session;
use ostler_domain::{
    event::AskKind,
    session::{Attention, Outcome, Status},
};
use ostler_form::held::asked_by_mission;

use super::{
    super::{full_context, hold, row},
    Around,
};

/// What lets one go on that needs a person.
pub(crate) fn cure(session: &Session, campaign: &str) -> String {
    let id = session.id.short();
    match (session.attention, &session.imported) {
        // What runs outside is answered where it runs.
        (_, Some(_)) => format!("ostler show {id}"),
        (Some(Attention::WaitingInput), None) => format!("ostler send {id} \"…\""),
        _ => {
            let steps = next(session, &Around::of(campaign));
            steps.into_iter().next().map_or_else(|| format!("ostler show {id}"), |(command, _)| command)
        }
    }
}

pub(super) fn next<'a>(session: &'a Session, around: &Around<'_>) -> Vec<(String, &'a str)> {
    let id = session.id.short();
    let cures = session.obituary.iter().flat_map(|obituary| &obituary.cures);
    let mut steps: Vec<(String, &str)> =
        cures.map(|cure| (cure.command.clone(), cure.effect.as_str())).collect();
    if let Some(approval) = around.approvals.first() {
        let short = approval.id.short();
        if approval.kind == AskKind::Question {
            steps.push((format!("ostler send {id} \"…\""), "answers it"));
            steps.push((format!("ostler deny {short}"), "gives no answer"));
        } else {
            steps.push((format!("ostler allow {short}"), "lets the agent"));
            steps.push((format!("ostler deny {short} -m \"…\""), "does not, and says why"));
        }
    }
    if let Some(cures) = full_context::steps(session) {
        steps.extend(cures);
        steps.push((format!("ostler logs {id} --tail 50"), "what happened before"));
        return steps;
    }
    if let Some(refused) = &session.restart_refused {
        steps.extend(refused.cures.iter().map(|cure| (cure.command.clone(), cure.effect.as_str())));
        let resume = format!("ostler resume {id}");
        if steps.iter().all(|(command, _)| *command != resume) {
            steps.push((resume, "tries it now"));
        }
        steps.push((format!("ostler logs {id} --tail 50"), ""));
        return steps;
    }
    if let Some(next) = session.continued_by {
        steps.push((format!("ostler show {}", next.short()), "the session that goes on with it"));
        steps.push((format!("ostler logs {id} --tail 50"), ""));
        return steps;
    }
    match (session.status, session.attention) {
        (Status::Failed, _) => {
            steps.push((format!("ostler resume {id}"), "goes on in a new session of the same conversation"));
            steps.push((format!("ostler logs {id} --tail 50"), ""));
        }
        (Status::Stopped, _) if session.outcome == Some(Outcome::Budget) => {
            match session.budget {
                Some(budget) => {
                    let larger = hold::larger_budget(session).unwrap_or(budget.amount());
                    steps.push((
                        format!("ostler resume {id} --budget {larger}"),
                        "allows that much in all, and goes on in a new session",
                    ));
                }
                None => steps.push((
                    row::shared_budget_cure(session, around.campaign),
                    "allows more, as in 50usd/day; then resume it",
                )),
            }
            steps.push((format!("ostler logs {id}"), "what was done"));
        }
        (Status::Stopped, _) if session.outcome == Some(Outcome::Handoff) => {
            steps.push((format!("ostler chain show {id}"), "who goes on with its work"));
            steps.push((format!("ostler logs {id}"), "what was done"));
        }
        (Status::Stopped, _) => {
            let tell = "goes on in a new session of the same conversation";
            // What ran outside is only read until somebody goes on with it here.
            steps.push(match session.imported {
                Some(_) => (format!("ostler resume {id}"), tell),
                None => (format!("ostler send {id} \"…\""), tell),
            });
            steps.push((format!("ostler logs {id}"), "what was done"));
        }
        (_, Some(Attention::BudgetHold | Attention::Stalled)) if asked_by_mission(session).is_some() => {
            steps.extend(asked_by_mission(session).map(|(command, _)| (command.to_owned(), "lets it go on")));
            steps.push((format!("ostler stop {id}"), "ends it in an orderly way"));
        }
        (_, Some(Attention::BudgetHold)) => {
            let amount = session.budget.map(|budget| budget.amount()).unwrap_or_default();
            match session.cost.unpriced.keys().find(|model| !model.is_empty()) {
                _ if !hold::is_own(session) => steps.push((
                    row::shared_budget_cure(session, around.campaign),
                    "allows more, as in 50usd/day; its sessions go on",
                )),
                Some(model) if amount.dollars.is_some() => steps.push((
                    format!("ostler price set {model} input=DOLLARS output=DOLLARS && ostler resume {id}"),
                    "says what a million of its tokens cost, and goes on",
                )),
                _ => steps.push((row::raise(session), "allows that much in all, and goes on")),
            }
            steps.push((format!("ostler stop {id}"), "ends it in an orderly way"));
        }
        (_, Some(Attention::Paused)) => {
            steps.push((format!("ostler resume {id}"), "lets it go on"));
            steps.push((format!("ostler stop {id}"), "ends it in an orderly way"));
        }
        (_, Some(Attention::Stalled)) => {
            steps.push((format!("ostler interrupt {id}"), "ends the turn, not the session"));
            steps.push((format!("ostler restart {id}"), "replaces the process"));
        }
        (_, Some(Attention::TurnFailed)) => {
            steps
                .push((format!("ostler resume {id}"), "tries again: the agent is told that its turn failed"));
            steps.push((format!("ostler send {id} \"…\""), "says something else to it"));
            steps.push((format!("ostler logs {id} --tail 50"), "what happened before"));
            steps.push((format!("ostler stop {id}"), "ends it in an orderly way"));
        }
        _ => {
            steps.push((format!("ostler logs -f {id}"), "follows what it does"));
            steps.push((format!("ostler attach {id}"), "follows, answers and talks to it"));
            steps.push((format!("ostler stop {id}"), "ends it in an orderly way"));
        }
    }
    steps
}
