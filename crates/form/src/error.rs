//! Why something was refused.

use ostler_domain::{Reason, Refusal};
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub struct ErrorForm<'a> {
    error: ErrorBody<'a>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Refusal")]
struct ErrorBody<'a> {
    #[schemars(extend("enum" = reasons()))]
    reason: &'static str,
    message: &'a str,
    why: Option<&'a str>,
    hint: Vec<HintForm<'a>>,
    /// The change that was refused; none where something was only asked.
    request_id: Option<&'a str>,
    /// Of the command that failed of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<u8>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Hint")]
struct HintForm<'a> {
    command: &'a str,
    effect: &'a str,
}

impl<'a> ErrorForm<'a> {
    pub fn new(refusal: &'a Refusal, exit: Option<u8>) -> Self {
        let hint = |hint: &'a ostler_domain::refusal::Hint| HintForm {
            command: &hint.command,
            effect: &hint.effect,
        };
        Self {
            error: ErrorBody {
                reason: refusal.reason.as_str(),
                message: &refusal.message,
                why: refusal.why.as_deref(),
                hint: refusal.hints.iter().map(hint).collect(),
                request_id: refusal.request_id.as_deref(),
                exit,
            },
        }
    }
}

fn reasons() -> Vec<&'static str> {
    Reason::ALL.iter().map(|reason| reason.as_str()).collect()
}
