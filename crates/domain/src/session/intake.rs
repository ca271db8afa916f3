//! What the keeper says of its reading.

use serde::{Deserialize, Serialize};

/// Whether the keeper reads what the agent prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intake {
    Open,
    Throttled,
    DiskFull,
    TapeLimit,
}

impl Intake {
    pub const fn as_str(self) -> &'static str {
        match self {
            Intake::Open => "open",
            Intake::Throttled => "throttled",
            Intake::DiskFull => "disk_full",
            Intake::TapeLimit => "tape_limit",
        }
    }
}
