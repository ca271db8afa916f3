//! The actors there are, by session.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError, atomic::Ordering},
};

use ostler_domain::SessionId;

use crate::session::Handle;

#[derive(Default)]
pub(crate) struct Sessions {
    handles: Mutex<HashMap<SessionId, Handle>>,
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

    /// How many there are, and how many of them have their keeper connected.
    pub(crate) fn count(&self) -> (u64, u64) {
        let handles = self.lock();
        let attached = handles.values().filter(|handle| handle.attached.load(Ordering::Acquire)).count();
        (handles.len() as u64, attached as u64)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Handle>> {
        // Nothing panics while holding it; a poisoned map would still be whole.
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
