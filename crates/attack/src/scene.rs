//! What an attempt knows of the world that it is to reach: names, never the secrets themselves.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Where the scene is told to the half inside.
pub(crate) const SCENE_VARIABLE: &str = "OSTLER_ATTACK_SCENE";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Scene {
    /// In the names of all that an attempt might leave outside.
    pub(crate) token: String,
    pub(crate) root: PathBuf,
    /// A directory beside the campaign which everybody may write.
    pub(crate) outside: PathBuf,
    /// A process of the host's that sleeps, in a group of its own.
    pub(crate) victim: i32,
    /// One that was stopped.
    pub(crate) stopped: i32,
    pub(crate) user: u32,
    pub(crate) tcp: u16,
    pub(crate) tcp6: Option<u16>,
    pub(crate) udp: u16,
    /// The name of an abstract socket on which somebody listens; with `-datagram` behind it another one.
    pub(crate) abstract_name: String,
    /// A shared memory of the host's, by its key.
    pub(crate) shared_memory: Option<i32>,
    /// A key that nobody on the host uses.
    pub(crate) left_key: i32,
    /// The host's pid namespace.
    pub(crate) pid_namespace: String,
    pub(crate) home: Option<PathBuf>,
    /// The device of the campaign's file system.
    pub(crate) device: u64,
}

impl Scene {
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.outside.join(name)
    }

    pub(crate) fn in_root(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// In a directory of the campaign that is emptied after each attempt.
    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.root.join(SCRATCH).join(name)
    }

    /// A name for something that has no business to be in a directory of the host.
    pub(crate) fn stray(&self, directory: &Path) -> PathBuf {
        directory.join(&self.token)
    }
}

pub(crate) const SCRATCH: &str = "scratch";

/// Directories of the host that attempts try to leave something in.
pub(crate) const HOSTS_OWN: [&str; 12] = [
    "/",
    "/etc",
    "/etc/cron.d",
    "/usr",
    "/usr/bin",
    "/usr/local/bin",
    "/tmp",
    "/var/tmp",
    "/dev/shm",
    "/run",
    "/var/spool/cron",
    "/etc/systemd/system",
];
