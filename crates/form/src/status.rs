//! How the daemon is, and what holds all its sessions.

use ostler_client::reply::NodeStatus;
use schemars::JsonSchema;
use serde::Serialize;

use crate::rfc3339;

/// `daemon status -o json`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Status")]
pub struct StatusForm {
    pid: u32,
    version: String,
    node: String,
    epoch: u64,
    started: String,
    state_dir: String,
    live_sessions: u64,
    detached_sessions: u64,
    halt: Option<HaltForm>,
    drain: Option<DrainForm>,
    store: StoreForm,
    last_seq: u64,
    schema_version: u32,
    memory_held_by: String,
    machine_restart: Option<MachineRestartForm>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MachineRestart")]
struct MachineRestartForm {
    restarted: String,
    lost_sessions: u64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Halt")]
pub struct HaltForm {
    freeze: bool,
    by: String,
    why: String,
    since: String,
}

impl HaltForm {
    pub fn new(halt: &ostler_client::reply::HaltState) -> Self {
        Self { freeze: halt.freeze, by: halt.by.0.clone(), why: halt.why.clone(), since: rfc3339(halt.since) }
    }
}

/// A halt that was asked for, or ended.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Halted")]
pub struct HaltedForm {
    pub halt: Option<HaltForm>,
    pub sessions: u64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Drain")]
pub struct DrainForm {
    by: String,
    why: String,
    since: String,
}

impl DrainForm {
    pub fn new(drain: &ostler_client::reply::DrainState) -> Self {
        Self { by: drain.by.0.clone(), why: drain.why.clone(), since: rfc3339(drain.since) }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Store")]
struct StoreForm {
    database_bytes: u64,
    search_bytes: u64,
}

impl StatusForm {
    pub fn new(status: &NodeStatus) -> Self {
        Self {
            pid: status.pid,
            version: status.version.clone(),
            node: status.node.to_string(),
            epoch: status.epoch,
            started: rfc3339(status.started),
            state_dir: status.state_dir.clone(),
            live_sessions: status.live_sessions,
            detached_sessions: status.detached_sessions,
            halt: status.halt.as_ref().map(HaltForm::new),
            drain: status.drain.as_ref().map(DrainForm::new),
            store: StoreForm {
                database_bytes: status.store.database_bytes,
                search_bytes: status.store.search_bytes,
            },
            last_seq: status.last_seq,
            schema_version: status.schema_version,
            memory_held_by: status.memory_held_by.clone(),
            machine_restart: status.machine_restart.map(|restart| MachineRestartForm {
                restarted: rfc3339(restart.at),
                lost_sessions: restart.lost,
            }),
        }
    }
}
