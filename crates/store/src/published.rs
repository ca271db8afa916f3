//! An event that became durable, as those who watch are handed it.

use std::{ops::Deref, sync::OnceLock};

use bytes::Bytes;
use ostler_domain::Recorded;

/// An event, and the form in which it is sent: made once, however many watch.
#[derive(Debug)]
pub struct Published {
    recorded: Recorded,
    sent: OnceLock<Bytes>,
}

impl Published {
    pub fn new(recorded: Recorded) -> Self {
        Self { recorded, sent: OnceLock::new() }
    }

    /// The form in which it is sent, made by whoever asks first. There is one form: all make the same.
    pub fn sent_as(&self, make: impl FnOnce(&Recorded) -> Bytes) -> Bytes {
        self.sent.get_or_init(|| make(&self.recorded)).clone()
    }
}

impl Deref for Published {
    type Target = Recorded;

    fn deref(&self) -> &Recorded {
        &self.recorded
    }
}
