//! Keys that callers brought or commands said, each for one session. Here alone: a daemon that comes after this one has none
//! of them.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ostler_domain::{Name, Refusal, Secret, SessionId, provider::CallerKeys};

use crate::shared::Shared;

/// How long what a command said is good for the start that it was asked for: some keys are made for minutes.
const FRESH: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(crate) struct Keys(Mutex<HashMap<SessionId, Held>>);

#[derive(Default)]
struct Held {
    brought: CallerKeys,
    /// What a command said before the session was created: it may ask a person, and is not run twice for one start.
    said: Option<(Secret, Instant)>,
}

impl Keys {
    /// Has a session called by this key; a newer one takes the place of an older in its variable.
    fn bring(&self, session: SessionId, keys: CallerKeys) {
        if !keys.is_empty() {
            let mut all = self.held();
            let held = all.entry(session).or_default();
            held.brought = keys.and(std::mem::take(&mut held.brought));
        }
    }

    /// The session that goes on with another has what that one had.
    pub(crate) fn hand_on(&self, from: SessionId, to: SessionId) {
        let mut held = self.held();
        if let Some(keys) = held.remove(&from) {
            held.insert(to, keys);
        }
    }

    /// Keeps what a command said for the start that follows.
    pub(crate) fn keep_said(&self, session: SessionId, said: Option<Secret>) {
        if let Some(said) = said {
            self.held().entry(session).or_default().said = Some((said, Instant::now()));
        }
    }

    /// What a command has just said, once.
    pub(crate) fn take_said(&self, session: SessionId) -> Option<Secret> {
        let (said, at) = self.held().get_mut(&session)?.said.take()?;
        (at.elapsed() < FRESH).then_some(said)
    }

    pub(crate) fn of(&self, session: SessionId, variable: &str) -> Option<Secret> {
        self.held().get(&session)?.brought.get(variable).cloned()
    }

    /// All that was brought for a session.
    pub(crate) fn brought(&self, session: SessionId) -> CallerKeys {
        self.held().get(&session).map(|held| held.brought.clone()).unwrap_or_default()
    }

    pub(crate) fn forget(&self, session: SessionId) {
        self.held().remove(&session);
    }

    fn held(&self) -> MutexGuard<'_, HashMap<SessionId, Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Keeps the one key of a caller's that a session of this provider needs.
    pub(crate) fn bring_keys(
        &self,
        session: SessionId,
        provider: &str,
        profile: Option<&Name>,
        keys: &CallerKeys,
    ) -> Result<(), Refusal> {
        if keys.is_empty() {
            return Ok(());
        }
        let settings = self.options.providers.of_account(provider, profile)?;
        let usual = self.provider(provider)?;
        if let Some(variable) = settings.key_variable(usual.key_variable()) {
            self.keys.bring(session, keys.only(variable));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ostler_domain::Time;

    use super::*;

    #[test]
    fn a_key_goes_from_session_to_session_and_is_forgotten_with_the_last() {
        let keys = Keys::default();
        let [first, second] = [1, 2].map(|n| SessionId::new(Time::from_micros(0), n));
        keys.bring(first, [("A".to_owned(), Secret::new("sk-1"))].into_iter().collect());
        keys.bring(first, CallerKeys::default());
        assert_eq!(keys.of(first, "A"), Some(Secret::new("sk-1")), "who brings none takes none away");
        keys.bring(first, [("B".to_owned(), Secret::new("sk-3"))].into_iter().collect());
        assert_eq!(keys.of(first, "A"), Some(Secret::new("sk-1")), "whoever goes on may need another");
        keys.hand_on(first, second);
        assert_eq!((keys.of(first, "A"), keys.of(second, "B")), (None, Some(Secret::new("sk-3"))));
        assert_eq!(keys.of(second, "A"), Some(Secret::new("sk-1")));
        keys.keep_said(second, Some(Secret::new("sk-2")));
        keys.hand_on(second, first);
        assert_eq!(keys.of(first, "A"), Some(Secret::new("sk-1")), "one does not take the other's place");
        assert_eq!((keys.take_said(first), keys.take_said(first)), (Some(Secret::new("sk-2")), None), "once");
        keys.forget(first);
        assert_eq!(keys.of(first, "A"), None);
    }
}
