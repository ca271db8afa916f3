//! A chain.

use ostler_client::Session;
use ostler_domain::chain::Chain;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{CostForm, SessionForm};

/// A chain for programs.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Chain")]
pub struct ChainForm {
    chain: String,
    sessions: Vec<SessionForm>,
    helpers: Vec<SessionForm>,
    session_count: u64,
    helper_count: u64,
    tokens: u64,
    cost: CostForm,
    seconds: u64,
}

impl ChainForm {
    /// Of the chain that a session belongs to.
    pub fn new(session: &Session, chain: &Chain, campaign: impl Fn(&Session) -> String) -> Self {
        let form = |one: &Session| SessionForm::new(one, &campaign(one));
        Self {
            chain: session.chain.to_string(),
            sessions: chain.sessions.iter().map(form).collect(),
            helpers: chain.helpers.iter().map(form).collect(),
            session_count: chain.session_count,
            helper_count: chain.helper_count,
            tokens: chain.sum.usage.total(),
            cost: CostForm::new(&chain.sum.cost),
            seconds: chain.sum.time.as_secs(),
        }
    }
}
