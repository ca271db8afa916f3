//! The providers there are. Adding one adds a line.

use crate::{Provider, script};

/// All providers, in the order in which they are listed.
pub static PROVIDERS: &[&dyn Provider] = &[&script::Script];

pub fn find(name: &str) -> Option<&'static dyn Provider> {
    PROVIDERS.iter().copied().find(|provider| provider.name() == name)
}

pub fn names() -> impl Iterator<Item = &'static str> {
    PROVIDERS.iter().map(|provider| provider.name())
}
