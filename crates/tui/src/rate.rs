//! How fast tokens and money go, from what was counted within the last minute.

use std::{collections::VecDeque, time::Duration};

use ostler_domain::{Time, budget::Today, price::Dollars};

const WINDOW: Duration = Duration::from_secs(60);
/// Less than this tells nothing yet.
const LEAST: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(crate) struct Rate {
    counted: VecDeque<(Time, u64, Dollars)>,
}

impl Rate {
    /// Takes in what was counted. A new day, or what was counted less than before, begins anew.
    pub(crate) fn count(&mut self, now: Time, today: &Today) {
        if self.counted.back().is_some_and(|(_, tokens, _)| *tokens > today.tokens) {
            self.counted.clear();
        }
        self.counted.push_back((now, today.tokens, today.paid));
        // The last one before the window is where it begins.
        while self.counted.get(1).is_some_and(|(at, ..)| now.since(*at) >= WINDOW) {
            self.counted.pop_front();
        }
    }

    /// Tokens a second and dollars an hour; none while nothing moves.
    pub(crate) fn now(&self) -> Option<(u64, Dollars)> {
        let ((from, tokens_then, paid_then), (to, tokens, paid)) =
            (*self.counted.front()?, *self.counted.back()?);
        let span = to.since(from);
        if span < LEAST || tokens <= tokens_then {
            return None;
        }
        let a_second = (tokens - tokens_then) as u128 * 1_000 / span.as_millis();
        let an_hour = u128::from(paid.0.saturating_sub(paid_then.0)) * 3_600_000 / span.as_millis();
        Some((a_second.try_into().unwrap_or(u64::MAX), Dollars(an_hour.try_into().unwrap_or(u64::MAX))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(points: &[(u64, u64, u64)]) -> Option<(u64, Dollars)> {
        let mut rate = Rate::default();
        for (second, tokens, paid) in points {
            let today = Today { tokens: *tokens, paid: Dollars(*paid), ..Today::default() };
            rate.count(Time::default().plus(Duration::from_secs(*second)), &today);
        }
        rate.now()
    }

    #[test]
    fn the_last_minute_counts() {
        assert_eq!(counted(&[(0, 0, 0), (10, 1_000, 10_000)]), Some((100, Dollars(3_600_000))));
        let stood_still = [(0, 0, 0), (10, 9_000, 90_000), (30, 9_000, 90_000), (100, 9_000, 90_000)];
        assert_eq!(counted(&stood_still), None);
        assert_eq!(counted(&[(0, 0, 0), (1, 1_000, 1)]), None, "too soon to tell");
        assert_eq!(counted(&[(0, 5_000, 9), (10, 10, 1), (20, 30, 1)]), Some((2, Dollars(0))), "a new day");
    }
}
