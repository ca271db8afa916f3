//! Checks numbered lines: each once, in order, none missing.

use ostler_domain::{Event, Recorded};

/// The numbers that a session's completions count with this prefix, in the order of the log.
pub fn counted(events: &[Recorded], prefix: &str) -> Vec<u64> {
    events
        .iter()
        .filter_map(|recorded| match &recorded.event {
            Event::AgentCompletion(text) => text.text.strip_prefix(prefix)?.trim().parse().ok(),
            _ => None,
        })
        .collect()
}

/// Panics unless the numbers are 1 to n, each once and in order.
pub fn assert_complete(numbers: &[u64], n: u64, whose: &str) {
    let expected: Vec<u64> = (1..=n).collect();
    if numbers != expected {
        let missing: Vec<_> = expected.iter().filter(|number| !numbers.contains(number)).take(10).collect();
        let first_wrong = numbers.iter().zip(&expected).position(|(is, should)| is != should);
        panic!(
            "{whose}: {} of {n} numbers; missing {missing:?}; first out of place at {first_wrong:?}",
            numbers.len()
        );
    }
}

/// Panics unless a session's own sequence is 1, 2, 3 … without a hole.
pub fn assert_gapless(events: &[Recorded], whose: &str) {
    for (place, recorded) in events.iter().enumerate() {
        assert_eq!(
            recorded.session_seq,
            Some(place as u64 + 1),
            "{whose}: a hole or a double in its sequence"
        );
    }
}
