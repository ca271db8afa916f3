//! How fast an agent may print: a burst at full speed, then a steady rate. The limit is kept by not reading.

use std::time::{Duration, Instant};

use ostler_tape::launch::IntakeLimits;

/// Reading goes on once this much time's worth may be read: short waits for few bytes would burn the processor.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct Bucket {
    burst: f64,
    per_second: f64,
    tokens: f64,
    filled_at: Instant,
    /// From running dry until half full again: an agent at its limit is throttled all along, not in turns.
    throttled: bool,
    /// Running dry inside that stretch: nothing is read until the pause is over.
    paused: bool,
}

impl Bucket {
    pub(crate) fn new(limits: IntakeLimits, now: Instant) -> Bucket {
        let burst = limits.burst_bytes.max(1) as f64;
        let per_second = limits.bytes_per_second.max(1) as f64;
        Bucket { burst, per_second, tokens: burst, filled_at: now, throttled: false, paused: false }
    }

    /// What may be read now.
    pub(crate) fn allowance(&mut self, now: Instant) -> usize {
        let elapsed = now.saturating_duration_since(self.filled_at).as_secs_f64();
        self.filled_at = now;
        self.tokens = (self.tokens + elapsed * self.per_second).min(self.burst);
        self.paused &= self.tokens < self.resume_level();
        self.throttled &= self.tokens < self.burst / 2.0;
        if self.paused { 0 } else { self.tokens as usize }
    }

    pub(crate) fn take(&mut self, bytes: usize) {
        self.tokens -= bytes as f64;
        if self.tokens < 1.0 {
            self.throttled = true;
            self.paused = true;
        }
    }

    pub(crate) fn is_throttled(&self) -> bool {
        self.throttled
    }

    /// When to look again: at the end of a pause, or of the whole stretch.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let level = match (self.paused, self.throttled) {
            (true, _) => self.resume_level(),
            (false, true) => self.burst / 2.0,
            (false, false) => return None,
        };
        let missing = (level - self.tokens).max(0.0);
        // Rounded up: waking a moment early would find nothing and wake again at once.
        Some(self.filled_at + Duration::from_secs_f64(missing / self.per_second) + Duration::from_millis(1))
    }

    pub(crate) fn bytes_per_second(&self) -> u64 {
        self.per_second as u64
    }

    fn resume_level(&self) -> f64 {
        (self.per_second * PAUSE.as_secs_f64()).clamp(1.0, self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_the_rate() {
        let mut now = Instant::now();
        let mut bucket = Bucket::new(IntakeLimits { burst_bytes: 1_000, bytes_per_second: 100 }, now);
        assert_eq!(bucket.allowance(now), 1_000);
        bucket.take(1_000);
        assert_eq!(bucket.allowance(now), 0);
        assert!(bucket.is_throttled());

        let mut read = 0;
        for _ in 0..100 {
            now = bucket.wake_at().unwrap().max(now);
            let allowed = bucket.allowance(now);
            assert!(allowed > 0, "a wake-up is never in vain");
            bucket.take(allowed);
            read += allowed;
        }
        assert!(bucket.is_throttled(), "one stretch");
        assert!((400..=600).contains(&read), "{read} bytes in 100 pauses of 50 ms at 100 bytes/s");

        now += Duration::from_secs(6);
        bucket.allowance(now);
        assert!(!bucket.is_throttled());
        assert_eq!(bucket.wake_at(), None);
    }
}
