//! The actors there are, by session.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError, atomic::Ordering},
};

use ostler_domain::SessionId;
use ostler_tape::frame::FrozenBy;

use crate::session::Handle;

#[derive(Default)]
pub(crate) struct Sessions {
    handles: Mutex<HashMap<SessionId, Handle>>,
}

/// How many sessions there are.
pub(crate) struct Count {
    pub(crate) known: u64,
    /// Those that are not cut off from their keeper: those too that have none yet.
    pub(crate) attached: u64,
    pub(crate) keepers: u64,
    /// The same by the version of their program.
    pub(crate) keeper_versions: BTreeMap<String, u64>,
}

impl Sessions {
    /// Registers an actor; false when the session has one.
    pub(crate) fn register(&self, id: SessionId, handle: Handle) -> bool {
        match self.lock().entry(id) {
            std::collections::hash_map::Entry::Occupied(_) => false,
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(handle);
                true
            }
        }
    }

    pub(crate) fn forget(&self, id: &SessionId) {
        self.lock().remove(id);
    }

    pub(crate) fn get(&self, id: &SessionId) -> Option<Handle> {
        self.lock().get(id).cloned()
    }

    pub(crate) fn all(&self) -> Vec<(SessionId, Handle)> {
        self.lock().iter().map(|(id, handle)| (*id, handle.clone())).collect()
    }

    pub(crate) fn is_attached(&self, id: &SessionId) -> bool {
        self.lock().get(id).is_some_and(|handle| handle.attached.load(Ordering::Acquire))
    }

    /// Whether something of its agent may still run.
    pub(crate) fn has_agent(&self, id: &SessionId) -> bool {
        self.lock().get(id).is_some_and(|handle| !handle.gone.load(Ordering::Acquire))
    }

    /// Whether its keeper is connected.
    pub(crate) fn is_linked(&self, id: &SessionId) -> bool {
        self.lock().get(id).is_some_and(|handle| handle.linked.load(Ordering::Acquire))
    }

    /// How its agent is made to stand still, if it does.
    pub(crate) fn frozen(&self, id: &SessionId) -> Option<FrozenBy> {
        let frozen = self.lock().get(id)?.frozen.clone();
        *frozen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn count(&self) -> Count {
        let handles = self.lock();
        let is_linked = |handle: &&Handle| handle.linked.load(Ordering::Acquire);
        let mut keeper_versions = BTreeMap::new();
        for version in handles.values().filter(is_linked).filter_map(|handle| handle.keeper_version.get()) {
            *keeper_versions.entry(version.clone()).or_default() += 1;
        }
        let having = |has: fn(&Handle) -> bool| handles.values().filter(|handle| has(handle)).count() as u64;
        Count {
            known: handles.len() as u64,
            attached: having(|handle| handle.attached.load(Ordering::Acquire)),
            keepers: having(|handle| handle.linked.load(Ordering::Acquire)),
            keeper_versions,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Handle>> {
        // Nothing panics while holding it; a poisoned map would still be whole.
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
