//! How a daemon starts a keeper: one JSON document on descriptor 0, one status line back on descriptor 1.

use std::path::PathBuf;
use std::time::Duration;

use ostler_domain::confinement::Confinement;
use ostler_domain::gateway::GatewayOrder;
use ostler_domain::limits;
use serde::{Deserialize, Serialize};

use crate::frame::{Rung, RungAction};

/// The version of [`LaunchDocument`] that this program writes and understands.
pub const LAUNCH_VERSION: u32 = 1;

/// Everything a keeper is told. It is the daemon's own binary that reads it, so unlike a frame it is strict: a
/// field that is not understood might have been a restriction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchDocument {
    pub version: u32,
    pub session: String,
    /// Must be what the file `attempt` says.
    pub attempt: u32,
    /// The session directory.
    pub dir: PathBuf,
    pub program: PathBuf,
    pub args: Vec<String>,
    /// The agent's whole environment.
    pub env: Vec<(String, String)>,
    pub cwd: PathBuf,
    /// A cgroup v2 directory to make for init and below.
    pub cgroup: Option<PathBuf>,
    /// A cgroup v2 directory that the keeper itself moves to, before it starts anybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keepers_cgroup: Option<PathBuf>,
    /// Directories of cgroup v1, for what version 2 does not have on this machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub old_cgroups: Vec<OldGroup>,
    pub intake: IntakeLimits,
    /// The tape may grow to this.
    pub tape_bytes: u64,
    pub piece_bytes: usize,
    pub segment_bytes: u64,
    /// The stop ladder for when nobody sends one.
    pub ladder: Vec<Rung>,
    /// How long an agent may live without a daemon; absent, for ever.
    pub orphan_grace_ms: Option<u64>,
    /// Values that never reach the tape from the agent's output.
    pub secrets: Vec<String>,
    /// Who says this may call on the session socket, which is not there without it. It is one of the secrets too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Where to learn which program is the daemon.
    pub daemon_json: PathBuf,
    /// The sandbox; absent, the agent has all the rights of the user who runs the daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<Confinement>,
    /// What the gateway of the sandbox is told, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayOrder>,
}

/// A directory of one controller of cgroup v1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OldGroup {
    pub controller: Controller,
    pub path: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Controller {
    Memory,
    Pids,
    Freezer,
}

/// What an agent may print: a burst at full speed, then a steady rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntakeLimits {
    pub burst_bytes: u64,
    pub bytes_per_second: u64,
}

impl Default for IntakeLimits {
    fn default() -> Self {
        IntakeLimits {
            burst_bytes: limits::INTAKE_BURST_BYTES,
            bytes_per_second: limits::INTAKE_BYTES_PER_SECOND,
        }
    }
}

impl LaunchDocument {
    /// A document with the usual limits, an empty environment and no cgroup.
    pub fn new(session: impl Into<String>, attempt: u32, dir: PathBuf, program: PathBuf) -> Self {
        LaunchDocument {
            version: LAUNCH_VERSION,
            session: session.into(),
            attempt,
            cwd: dir.clone(),
            daemon_json: dir.join("daemon.json"),
            dir,
            program,
            args: Vec::new(),
            env: Vec::new(),
            cgroup: None,
            keepers_cgroup: None,
            old_cgroups: Vec::new(),
            intake: IntakeLimits::default(),
            tape_bytes: limits::TAPE_BYTES,
            piece_bytes: limits::PIECE_BYTES,
            segment_bytes: limits::SEGMENT_BYTES,
            ladder: default_ladder(limits::STOP_RUNG),
            orphan_grace_ms: None,
            secrets: Vec::new(),
            token: None,
            confinement: None,
            gateway: None,
        }
    }
}

/// The orderly stop: end of input, SIGTERM, then the end of everything.
pub fn default_ladder(rung: Duration) -> Vec<Rung> {
    const SIGTERM: i32 = 15;
    let wait_ms = rung.as_millis() as u64;
    [RungAction::CloseInput, RungAction::Signal(SIGTERM), RungAction::Kill]
        .map(|action| Rung { action, wait_ms })
        .to_vec()
}

/// The keeper's one line on its status pipe, before it starts the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum StatusLine {
    /// It holds the lock and listens on `ctl`.
    Ready { keeper_pid: u32, start_time: u64, tape_end: u64, last_input_no: u64 },
    /// It starts nothing and exits with 126.
    Refused {
        stage: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        errno: Option<i32>,
        message: String,
        hint: String,
    },
}

/// A keeper's exit code after [`StatusLine::Refused`].
pub const EXIT_REFUSED: u8 = 126;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_with_an_unknown_field_is_refused() {
        let document = LaunchDocument::new("ses_1", 1, "/s".into(), "/bin/true".into());
        let mut json = serde_json::to_value(&document).unwrap();
        assert_eq!(serde_json::from_value::<LaunchDocument>(json.clone()).unwrap(), document);
        json["network"] = "none".into();
        assert!(serde_json::from_value::<LaunchDocument>(json).is_err());
    }
}
