//! Whether this machine can confine an agent: what the kernel offers, and what came of really trying.

use serde::{Deserialize, Serialize};

/// What a trial of the sandbox came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readiness {
    /// The version of Landlock; absent where the kernel has none.
    pub landlock: Option<i32>,
    pub seccomp: bool,
    /// Namespaces that the kernel knows.
    pub namespaces: Vec<String>,
    pub trial: Trial,
}

/// A sandboxed `true` that was started, or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trial {
    Ran {
        took_us: u64,
    },
    Refused {
        /// Which layer refused.
        stage: String,
        message: String,
        /// What to do about it; empty where nothing is known to help.
        hint: String,
    },
}

impl Readiness {
    /// A machine on which even asking failed.
    pub fn unknown(message: impl Into<String>) -> Self {
        let trial =
            Trial::Refused { stage: "check".to_owned(), message: message.into(), hint: String::new() };
        Self { landlock: None, seccomp: false, namespaces: Vec::new(), trial }
    }
}
