//! What the keeper states of the agent's process.

use serde::{Deserialize, Serialize};

use super::StopRequested;
use crate::{
    Hint,
    event::{Leftover, Process},
    session::OutOfMemory,
};

#[derive(Debug, Clone, PartialEq)]
pub struct Spawn {
    pub agent: Process,
    /// Its calls go through a gateway, which holds them at the end of an allowance.
    pub holds_calls: bool,
}

/// How the process ended, as the exit record says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitFacts {
    pub how: How,
    /// It had more memory than it may: the kernel or its keeper ended it for that.
    #[serde(default)]
    pub oom: bool,
    /// What was seen of its memory, where it was ended for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Box<OutOfMemory>>,
    /// What of the tree was still running when the agent ended.
    #[serde(default)]
    pub leftovers: Vec<Leftover>,
    /// Who asked the keeper to end it, when it was not the daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The keeper itself was told to end by a signal, as everybody is by a machine that shuts down.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shut_down: bool,
    /// The daemon's wish as the keeper heard it: the only trace of one that could not be recorded in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wish: Option<StopRequested>,
    /// The rung of the ladder that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung: Option<String>,
    /// What would let the next one work, where the model's server refused this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cures: Vec<Hint>,
}

impl ExitFacts {
    /// Something of it was killed for its memory; an agent that ends well has got over that.
    pub fn is_out_of_memory(&self) -> bool {
        self.oom && self.how != (How::Exited { code: 0 })
    }
}

/// The way out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    Exited {
        code: i32,
    },
    Signaled {
        signal: i32,
    },
    /// The program was never executed.
    NeverStarted {
        stage: String,
        message: String,
        /// What would let the next one start.
        cures: Vec<Hint>,
    },
    /// The keeper is gone and left no record.
    Lost {
        reason: String,
    },
}
