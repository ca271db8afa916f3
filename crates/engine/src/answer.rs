//! A person's answers to agents that ask for leave, and the rules that come of them.

use ostler_domain::{
    Event, Policy, Reason, Refusal,
    approval::{Applied, Place, always, judge},
    event::{ApprovalRequested, AskKind},
    redact::BLOT,
    session::{Request, Sandbox, View},
};
use ostler_store::{ApprovalRow, ApprovalState};

use crate::{Change, Engine};

/// What a person says to a request.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    pub allow: bool,
    /// The campaign gets rules that allow the same from now on.
    pub always: bool,
    /// What the agent is told beside it; may be empty.
    pub message: String,
}

impl Engine {
    /// Answers an agent that asks for leave. Returns the rules that allow the same from now on, where that was wanted.
    pub async fn answer(
        &self,
        approval: &str,
        answer: Answer,
        change: Change,
    ) -> Result<(ApprovalRow, Vec<Applied>), Refusal> {
        let row = self.approval(approval).await?;
        let rules =
            if answer.always && answer.allow { self.allow_always(&row, &change).await? } else { Vec::new() };
        let view = self.session(&row.session.to_string()).await?;
        let hears_why = self.shared.provider(&view.provider)?.capabilities().hears_why;
        let Answer { allow, message, .. } = answer;
        let request = Request::Answer { id: row.id, allow, message, hears_why };
        self.ask(&row.session.to_string(), request, change).await?;
        Ok((self.approval(&row.id.to_string()).await?, rules))
    }

    /// Stores what is missing for a request to be allowed by rules. If the daemon dies before the answer, the rules are
    /// there and the question is still open: asking again finds nothing to store, and answers.
    async fn allow_always(&self, row: &ApprovalRow, change: &Change) -> Result<Vec<Applied>, Refusal> {
        let id = row.id.short();
        let once = |refusal: Refusal| refusal.hint(format!("ostler allow {id}"), "allows it this once");
        let no_rule = |why: String| {
            once(Refusal::new(Reason::WrongState, "no rule could allow this and nothing else").because(why))
        };
        let asked = self.asked(row).await?;
        if asked.kind == AskKind::Question {
            return Err(Refusal::new(Reason::WrongState, "no rule answers a question")
                .hint(format!("ostler allow {id} -m \"…\""), "answers it")
                .hint(format!("ostler deny {id}"), "gives no answer"));
        }
        let view = self.session(&row.session.to_string()).await?;
        let campaign = self.campaign(&view.campaign.to_string()).await?;
        let place = place_of(&view);
        let missing = always(&campaign.policy, &place, &asked.tool, &asked.action).map_err(no_rule)?;
        if missing.iter().any(|rule| rule.text.contains(BLOT)) {
            return Err(no_rule("it has a secret in it, which is not recorded".to_owned()));
        }
        // Where it was answered meanwhile, the answer below is refused, or was this one.
        let policy = if missing.is_empty() || row.state != ApprovalState::Open {
            campaign.policy
        } else {
            let settings: Vec<String> = missing.iter().map(|rule| rule.setting()).collect();
            let by = Change { request: None, ..change.clone() };
            self.set_campaign(&campaign.id.to_string(), &settings, by).await?.policy
        };
        Ok(deciding(&policy, &view, &asked))
    }

    /// The request as the agent made it.
    async fn asked(&self, row: &ApprovalRow) -> Result<ApprovalRequested, Refusal> {
        match self.shared.store.event(row.seq).await?.map(|recorded| recorded.event) {
            Some(Event::ApprovalRequested(asked)) => Ok(*asked),
            _ => Err(Refusal::internal(format!("the record of approval {} cannot be read", row.id.short()))),
        }
    }
}

fn place_of(view: &View) -> Place<'_> {
    Place { root: &view.working_dir, is_confined: view.sandbox == Sandbox::On }
}

fn deciding(policy: &Policy, view: &View, asked: &ApprovalRequested) -> Vec<Applied> {
    judge(policy, &place_of(view), &asked.tool, &asked.action).rules
}
