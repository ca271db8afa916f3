//! Channels that are not told, and why: what nobody hears of is not heard of by not being told.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use ostler_domain::{
    Refusal,
    notice::{Channel, To},
};

use super::Tried;
use crate::Engine;

/// Why whoever was told last did not hear, by the channel's name. Of as many as there are channels, and by this daemon.
#[derive(Debug, Default)]
pub(crate) struct Untold(Mutex<HashMap<String, String>>);

impl Untold {
    fn known(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what came of a try.
    pub(super) fn tried(&self, channel: &str, tried: &Tried) {
        match tried {
            Tried::Heard => _ = self.known().remove(channel),
            Tried::Refused(why) | Tried::Again(why) => {
                _ = self.known().insert(channel.to_owned(), why.clone())
            }
        }
    }

    pub(super) fn forget(&self, channel: &str) {
        self.known().remove(channel);
    }
}

impl Engine {
    /// The channels that cannot be told as things are, or were not when it was tried last, with the reason.
    pub fn untold(&self) -> Result<Vec<(String, String)>, Refusal> {
        let channels = self.channels()?.into_iter().filter(|channel| channel.to != To::Terminal);
        let why = |channel: &Channel| {
            let secret = channel.to.secret().and_then(|secret| secret.read().err());
            secret.or_else(|| self.shared.untold.known().get(&channel.name).cloned())
        };
        Ok(channels.filter_map(|channel| Some((channel.name.clone(), why(&channel)?))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_try_counts() {
        let untold = Untold::default();
        untold.tried("phone", &Tried::Again("it answered 503".to_owned()));
        untold.tried("hook", &Tried::Refused("it ended with exit status: 1".to_owned()));
        assert_eq!(untold.known().get("phone").map(String::as_str), Some("it answered 503"));
        untold.tried("phone", &Tried::Heard);
        untold.forget("hook");
        assert!(untold.known().is_empty());
    }
}
