//! An approval: what an agent asks leave for, and what was answered.

use ostler_client::Approval;
use ostler_domain::approval::Applied;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{rfc3339, shape};

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Approval")]
pub struct ApprovalForm {
    id: String,
    session: String,
    /// Whose question it is, in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    tool: String,
    input: String,
    /// In one line.
    asks: String,
    #[schemars(with = "shape::AskKind")]
    kind: ostler_domain::event::AskKind,
    why: String,
    asked: String,
    deadline: Option<String>,
    answer: Option<AnswerForm>,
    /// With `allow --always`: what allows the same from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<shape::Rule>>")]
    always: Option<Vec<Applied>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Answer")]
struct AnswerForm {
    #[schemars(with = "shape::Answer")]
    answer: ostler_domain::event::Answer,
    by: String,
    message: String,
    answered: String,
    #[schemars(with = "Vec<shape::Rule>")]
    rules: Vec<Applied>,
}

impl ApprovalForm {
    pub fn new(approval: &Approval) -> Self {
        Self {
            id: approval.id.to_string(),
            session: approval.session.to_string(),
            agent: None,
            tool: approval.tool.clone(),
            input: approval.input.clone(),
            asks: approval.asks.clone(),
            kind: approval.kind,
            why: approval.why.clone(),
            asked: rfc3339(approval.asked),
            deadline: approval.deadline.map(rfc3339),
            always: None,
            answer: approval.answer.as_ref().map(|answered| AnswerForm {
                answer: answered.answer,
                by: answered.by.0.clone(),
                message: answered.message.clone(),
                answered: rfc3339(answered.at),
                rules: answered.rules.clone(),
            }),
        }
    }

    pub fn of_agent(self, agent: &str) -> Self {
        Self { agent: Some(agent.to_owned()), ..self }
    }

    pub fn with_rules(self, rules: &[Applied]) -> Self {
        Self { always: (!rules.is_empty()).then(|| rules.to_vec()), ..self }
    }
}
