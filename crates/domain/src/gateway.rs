//! The gateway of a sandbox: what it is told, and what it tells of each connection.

pub mod address;
mod allowance;
mod model;
pub mod rules;

use serde::{Deserialize, Serialize};

pub use allowance::{Allowance, Spent};
pub use model::{CallEnd, KeyScheme, ModelCall, ModelOrder, Upstream, is_plain_path};

/// The version of [`GatewayOrder`] that this program writes and understands.
pub const GATEWAY_VERSION: u32 = 1;

/// Whom one session may reach. Strict like every document that restricts: what is not understood is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayOrder {
    pub version: u32,
    /// The campaign's name, for the grants that refusals name.
    pub campaign: String,
    pub reach: Reach,
    /// Host names and `*.suffix`, presets resolved.
    pub allow: Vec<String>,
    /// How long a gateway that nobody uses stays.
    pub idle_ms: u64,
    /// The model that is served at the gateway's own address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelOrder>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// The hosts of the list.
    Provider,
    /// Every public host.
    Open,
}

impl Reach {
    /// The rule that people see.
    pub const fn rule(self) -> &'static str {
        match self {
            Reach::Provider => "net=provider",
            Reach::Open => "net=open",
        }
    }
}

/// What a line of the gateway's is: a record for a stream of the tape, or something to be kept for the next gateway. The
/// keeper looks at the sign before a record, never into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewayLine {
    Net,
    Wire,
    /// [`Spent`], which the keeper remembers.
    Spent,
}

impl GatewayLine {
    pub const fn sign(self) -> &'static str {
        match self {
            GatewayLine::Net => "net ",
            GatewayLine::Wire => "wire ",
            GatewayLine::Spent => "spent ",
        }
    }

    /// What a line is, and what it says.
    pub fn split(line: &[u8]) -> Option<(GatewayLine, &[u8])> {
        let lines = [GatewayLine::Net, GatewayLine::Wire, GatewayLine::Spent];
        lines.into_iter().find_map(|kind| Some((kind, line.strip_prefix(kind.sign().as_bytes())?)))
    }
}

/// A connection that was denied, or one that was allowed and has ended. The record of the stream `net` and the body of
/// the event are the same JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    pub host: String,
    pub port: u16,
    pub decision: NetDecision,
    /// What decided it, in words.
    pub rule: String,
    /// The command that would allow it; absent when none would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// To the agent.
    #[serde(default)]
    pub bytes_in: u64,
    /// From the agent.
    #[serde(default)]
    pub bytes_out: u64,
    /// Why an allowed connection came to nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failure: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetDecision {
    Allowed,
    Denied,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_with_an_unknown_field_is_refused() {
        let order = GatewayOrder {
            version: GATEWAY_VERSION,
            campaign: "shop".to_owned(),
            reach: Reach::Provider,
            allow: vec!["*.example".to_owned()],
            idle_ms: 1,
            model: None,
        };
        let mut json = serde_json::to_value(&order).unwrap();
        assert_eq!(serde_json::from_value::<GatewayOrder>(json.clone()).unwrap(), order);
        json["deny"] = "x.example".into();
        assert!(serde_json::from_value::<GatewayOrder>(json).is_err());
    }
}
