//! What a daemon may be told about its engine.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use ostler_domain::session::WatchdogLimits;

#[derive(Debug, Clone)]
pub struct Options {
    /// Where the record and the sessions' directories are.
    pub state_dir: PathBuf,
    /// Where keepers learn which program is the daemon.
    pub daemon_json: PathBuf,
    /// Directories that may not become campaigns, nor hold one.
    pub own_dirs: Vec<PathBuf>,
    pub home_dir: Option<PathBuf>,
    pub watchdogs: WatchdogLimits,
    /// How long an agent may live without a daemon; absent, for ever.
    pub orphan_grace: Option<Duration>,
    pub tape_bytes: Option<u64>,
    /// Whether agents run without a sandbox, on this machine, because its owner said so.
    pub unconfined: bool,
    /// The hosts of the presets of `net.allow`, by the preset's name without its sign.
    pub network_presets: BTreeMap<String, Vec<String>>,
}
