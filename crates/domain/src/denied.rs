//! What Ostler itself did not allow, in one form whoever decided it: what was wanted, which rule stood against it, and
//! the command that would allow it. What the kernel refuses inside a sandbox is not seen by anybody, and is not here.

use serde::{Deserialize, Serialize};

use crate::gateway::{NetDecision, Network};

/// One thing that was not allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    pub kind: DeniedKind,
    /// What was wanted: a host and port, a command line, a variable, a call.
    pub target: String,
    /// What decided it, in words.
    pub rule: String,
    /// The command that would allow it; absent when none would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
}

impl Denied {
    /// What a connection that the gateway did not allow is; none for one that it did.
    pub fn of_network(network: &Network) -> Option<Self> {
        (network.decision == NetDecision::Denied).then(|| Denied {
            kind: DeniedKind::Network,
            target: format!("{}:{}", network.host, network.port),
            rule: network.rule.clone(),
            grant: network.grant.clone(),
        })
    }
}

/// Where it was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeniedKind {
    /// The gateway: a connection.
    Network,
    /// The command list of `ostler exec`.
    Command,
    /// The campaign's policy, or the rules above it.
    Policy,
    /// The session socket.
    Call,
}

impl DeniedKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            DeniedKind::Network => "network",
            DeniedKind::Command => "command",
            DeniedKind::Policy => "policy",
            DeniedKind::Call => "call",
        }
    }
}
