//! Why a sandbox was not started: what was being done, what the kernel said, and what helps.

use std::fmt::{self, Display};
use std::io;

use serde::{Deserialize, Serialize};

use crate::cure::{self, Machine};

/// What a sandbox that was refused had got to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Document,
    Identity,
    IdMap,
    Namespaces,
    Network,
    Mounts,
    Root,
    Hidden,
    Tooling,
    Proc,
    Init,
    Limits,
    Landlock,
    Seccomp,
    Cwd,
    Exec,
}

impl Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Document => "document",
            Stage::Identity => "identity",
            Stage::IdMap => "id_map",
            Stage::Namespaces => "namespaces",
            Stage::Network => "network",
            Stage::Mounts => "mounts",
            Stage::Root => "root",
            Stage::Hidden => "hidden",
            Stage::Tooling => "tooling",
            Stage::Proc => "proc",
            Stage::Init => "init",
            Stage::Limits => "limits",
            Stage::Landlock => "landlock",
            Stage::Seccomp => "seccomp",
            Stage::Cwd => "cwd",
            Stage::Exec => "exec",
        })
    }
}

/// A sandbox that was not started. There is no lesser one to fall back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub stage: Stage,
    pub errno: Option<i32>,
    pub message: String,
    /// What to do about it; empty where nothing is known to help.
    pub hint: String,
}

impl Refusal {
    pub(crate) fn new(stage: Stage, message: impl Into<String>, hint: impl Into<String>) -> Refusal {
        Refusal { stage, errno: None, message: message.into(), hint: hint.into() }
    }
}

impl Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.stage, self.message)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, " ({})", self.hint) }
    }
}

impl std::error::Error for Refusal {}

/// Turns a failed call into a refusal that says what it was for.
pub(crate) trait OrRefuse<T> {
    fn or_refuse(self, stage: Stage, doing: impl Display) -> Result<T, Refusal>;
}

impl<T, E: Into<io::Error>> OrRefuse<T> for Result<T, E> {
    fn or_refuse(self, stage: Stage, doing: impl Display) -> Result<T, Refusal> {
        self.map_err(|error| {
            let error = error.into();
            let errno = error.raw_os_error();
            Refusal {
                stage,
                errno,
                message: format!("{doing}: {error}"),
                hint: cure::of(stage, errno, &Machine::look()),
            }
        })
    }
}
