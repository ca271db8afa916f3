//! Waiting for conditions, with a deadline and a name, never a blind sleep.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

/// How long anything in a test may take before it has failed; generous, because machines are busy.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until something holds; panics with its name when it takes too long.
pub fn until(what: &str, most: Duration, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + most;
    while !holds() {
        assert!(Instant::now() < deadline, "waited {most:?} for {what}");
        sleep(Duration::from_millis(5));
    }
}

/// Waits until a question has an answer.
pub fn answer<T>(what: &str, most: Duration, mut ask: impl FnMut() -> Option<T>) -> T {
    let mut found = None;
    until(what, most, || {
        found = ask();
        found.is_some()
    });
    found.unwrap()
}
