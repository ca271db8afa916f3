//! What sessions look like now, where that is newer than their rows.
//!
//! A busy session changes what it shows with every event, and each row lies on another page of the database: written
//! every time, the rows would cost more than the log. So a row whose columns stay the same is written once a second,
//! and until then readers take the newer look from here. Nothing is lost with it: after a crash the events give it
//! back ([`Store::load_session`](crate::Store::load_session)).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ostler_domain::session::View;

/// How long a look stays here after its row was written: longer than any reader's transaction.
const KEPT: Duration = Duration::from_secs(5);

#[derive(Clone, Default)]
pub(crate) struct Shown {
    looks: Arc<Mutex<HashMap<i64, Look>>>,
}

struct Look {
    view: Arc<View>,
    is_written: bool,
    at: Instant,
}

impl Shown {
    /// Shows what became durable, unless something later is shown already.
    pub(crate) fn show(&self, num: i64, view: Arc<View>, is_written: bool) {
        let mut looks = self.lock();
        if looks.get(&num).is_none_or(|look| look.view.session_seq <= view.session_seq) {
            looks.insert(num, Look { view, is_written, at: Instant::now() });
        }
    }

    /// The later one of a row and what is shown here.
    pub(crate) fn latest(&self, num: i64, row: View) -> View {
        match self.lock().get(&num) {
            Some(look) if look.view.session_seq > row.session_seq => View::clone(&look.view),
            _ => row,
        }
    }

    /// Everything that is newer than its row. Forgets what has long been written.
    pub(crate) fn unwritten(&self) -> Vec<(i64, Arc<View>)> {
        let mut looks = self.lock();
        looks.retain(|_, look| !look.is_written || look.at.elapsed() < KEPT);
        let unwritten = looks.iter().filter(|(_, look)| !look.is_written);
        unwritten.map(|(num, look)| (*num, Arc::clone(&look.view))).collect()
    }

    pub(crate) fn has_unwritten(&self) -> bool {
        self.lock().values().any(|look| !look.is_written)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i64, Look>> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
