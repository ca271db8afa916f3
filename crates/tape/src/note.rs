//! What a keeper states about itself and its agent, as JSON in the stream `Keeper`.
//!
//! Append-only: a reader meets notes of younger keepers as [`KeeperNote::Unknown`].

use serde::{Deserialize, Serialize};

use crate::exit::ProcessName;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "snake_case")]
pub enum KeeperNote {
    /// The agent's program runs.
    Started {
        attempt: u32,
        keeper_pid: u32,
        keeper_version: String,
        pid: u32,
        start_time: u64,
        /// Its calls to the model go through a gateway, which holds them at the end of an allowance.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        holds_calls: bool,
    },
    /// The cgroup that was asked for could not be used; trees are walked instead.
    NoCgroup {
        reason: String,
    },
    /// The agent prints faster than it may for long; said once for each such stretch.
    Throttled {
        bytes_per_second: u64,
    },
    /// The tape reached its limit; the agent's output waits in its pipes.
    TapeLimit {
        tape_bytes: u64,
    },
    /// The tape's limit was raised.
    TapeLimitRaised {
        tape_bytes: u64,
    },
    /// The tape can be written again after the disk was full or failed for this long.
    DiskBack {
        after_ms: u64,
        error: String,
    },
    /// The agent's input is closed; later inputs are refused.
    InputClosed {
        reason: String,
    },
    StopAsked {
        by: String,
        rule: String,
    },
    /// A rung of the stop ladder was taken.
    Rung {
        action: String,
    },
    /// Somebody spoke on the session socket and was not heard; said with the agent's other calls in its rate.
    CallRefused {
        reason: String,
    },
    Frozen {
        how: String,
    },
    Thawed {},
    /// Still running when the agent ended; they are killed.
    Leftovers {
        processes: Vec<ProcessName>,
    },
    /// Someone held the agent's pipes open after it ended, and the keeper stopped reading.
    DrainCut {},
    /// The cgroup does not hold the session to this limit.
    NoLimit {
        file: String,
        reason: String,
    },
    /// The session's processes together have more memory than they may; they are ended.
    MemoryLimit {
        bytes: u64,
        limit_bytes: u64,
    },
    /// Files in the campaign that make the host run code are not what they were when the agent started.
    Tampered {
        names: Vec<String>,
    },
    /// A daemon was started because none was there.
    DaemonStarted {
        pid: u32,
    },
    #[serde(other)]
    Unknown,
}

impl KeeperNote {
    /// Reads a payload of the stream `Keeper`.
    pub fn decode(payload: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(payload)
    }

    pub fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_younger_keepers_are_tolerated() {
        let note = KeeperNote::decode(br#"{"note":"levitated","height":3}"#).unwrap();
        assert_eq!(note, KeeperNote::Unknown);
        let note = KeeperNote::decode(br#"{"note":"throttled","bytes_per_second":8,"since":1}"#).unwrap();
        assert_eq!(note, KeeperNote::Throttled { bytes_per_second: 8 });
    }
}
