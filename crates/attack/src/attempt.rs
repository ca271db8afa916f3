//! What an attempt is, and what it may say of itself.

use serde::{Deserialize, Serialize};

use crate::scene::Scene;

/// One way to leave the sandbox; or, as a control, one thing that must work inside.
pub(crate) struct Attempt {
    /// Area and name.
    pub(crate) name: &'static str,
    /// What it tries, after "tries to".
    pub(crate) tries: &'static str,
    /// Runs inside.
    pub(crate) run: fn(&Scene) -> Said,
    pub(crate) setting: Setting,
}

/// In what an attempt is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    /// The sandbox as it is by default.
    Usual,
    /// The same; and it does no harm to try without one.
    Harmless,
    /// With a terminal of the host's as standard error.
    Terminal,
    /// In the host's network, as `net.mode=host` gives it.
    HostNetwork,
    /// The agent ends, and what it has left behind has a moment before the sandbox is ended.
    Lingers,
    /// Not an attack: this must work.
    Control,
}

impl Attempt {
    const fn new(
        name: &'static str,
        tries: &'static str,
        run: fn(&Scene) -> Said,
        setting: Setting,
    ) -> Attempt {
        Attempt { name, tries, run, setting }
    }
}

/// An attempt in the usual sandbox.
pub(crate) const fn usual(name: &'static str, tries: &'static str, run: fn(&Scene) -> Said) -> Attempt {
    Attempt::new(name, tries, run, Setting::Usual)
}

pub(crate) const fn harmless(name: &'static str, tries: &'static str, run: fn(&Scene) -> Said) -> Attempt {
    Attempt::new(name, tries, run, Setting::Harmless)
}

pub(crate) const fn within(
    setting: Setting,
    name: &'static str,
    tries: &'static str,
    run: fn(&Scene) -> Said,
) -> Attempt {
    Attempt::new(name, tries, run, setting)
}

/// What an attempt says from inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Said {
    /// It was refused.
    Blocked(String),
    /// It was done, and cannot tell from inside whether that had an effect outside.
    Tried(String),
    /// It has what it wanted; this is what.
    Got(String),
    /// Something is missing that it needs.
    Untried(String),
}

impl Said {
    pub(crate) fn words(&self) -> &str {
        match self {
            Said::Blocked(words) | Said::Tried(words) | Said::Got(words) | Said::Untried(words) => words,
        }
    }
}
