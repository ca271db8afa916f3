//! Bodies: what happened to the node and its campaigns.

use serde::{Deserialize, Serialize};

use crate::{Hint, SessionId, campaign::Root, event::By, id::CampaignId, policy::Policy, time::BootId};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DaemonStarted {
    pub version: String,
    pub epoch: u64,
    pub pid: u32,
    pub boot: BootId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DaemonStopped {
    pub by: By,
    pub sessions_left_running: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CampaignRemoved {
    pub id: CampaignId,
    pub by: By,
}

/// What a campaign's agents may do was changed; sessions that are started from now on follow it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CampaignPolicyChanged {
    pub campaign: CampaignId,
    /// As they were typed: `read+=@rust`.
    pub settings: Vec<String>,
    /// All of it, after the change.
    pub policy: Policy,
    pub by: By,
}

/// A campaign's directory is elsewhere, or is another one: a person said that it is the campaign's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CampaignRelinked {
    pub campaign: CampaignId,
    pub from: Root,
    pub to: Root,
    pub by: By,
}

/// Nothing new starts on this machine; what runs goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Drained {
    pub by: By,
    #[serde(default)]
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DrainEnded {
    pub by: By,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Halted {
    /// Agents are frozen where they stand instead of killed.
    pub freeze: bool,
    pub by: By,
    #[serde(default)]
    pub why: String,
}

/// Somebody said that sessions that were lost with the machine are to stay as they are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LostLeft {
    pub sessions: Vec<SessionId>,
    pub by: By,
}

/// An ended session was to go on in another one by itself, and could not. It is tried again; recorded anew only where
/// something else is in the way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RestartRefused {
    pub session: SessionId,
    /// The stable word of the refusal.
    pub reason: String,
    pub why: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cures: Vec<Hint>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HaltReleased {
    pub by: By,
}
