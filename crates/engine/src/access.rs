//! Who was let in by the HTTP door, for the audit log.

use crate::{
    Engine,
    audit::{Decision, Door, Entry, Who},
};

impl Engine {
    /// Writes down that somebody was let in, or given the means to be.
    pub fn note_access(&self, by: &str, action: &'static str, object: &str) {
        self.shared.audit.write(&Entry {
            time: self.shared.clock.now().wall,
            actor: Who { name: by, pid: None, door: Door::Http },
            action,
            object: object.to_owned(),
            decision: Decision::Allowed,
            reason: String::new(),
            policy: None,
        });
    }
}
