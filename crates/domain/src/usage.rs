//! Tokens of model calls in four disjoint buckets.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// One model call's tokens, or a sum of them. The four buckets never overlap; `reasoning` is a part of
/// `output`, shown for information and never added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input that was not cached.
    pub input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub output: u64,
    pub reasoning: u64,
}

impl Usage {
    /// All tokens, each once.
    pub fn total(&self) -> u64 {
        [self.cache_read, self.cache_write, self.output]
            .iter()
            .fold(self.input, |sum, n| sum.saturating_add(*n))
    }

    /// What a token budget counts: input and output.
    pub fn budgeted(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// What is left of each bucket after another usage, never below zero.
    pub fn less(&self, other: &Usage) -> Usage {
        Usage {
            input: self.input.saturating_sub(other.input),
            cache_read: self.cache_read.saturating_sub(other.cache_read),
            cache_write: self.cache_write.saturating_sub(other.cache_write),
            output: self.output.saturating_sub(other.output),
            reasoning: self.reasoning.saturating_sub(other.reasoning),
        }
    }

    pub fn is_zero(&self) -> bool {
        *self == Usage::default()
    }
}

impl Add for Usage {
    type Output = Usage;
    /// Saturates: an agent that reports nonsense must not bring a counter to panic.
    fn add(self, other: Usage) -> Usage {
        Usage {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        *self = *self + other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_is_never_added() {
        let usage = Usage { input: 1000, cache_read: 300, cache_write: 0, output: 500, reasoning: 200 };
        assert_eq!(usage.total(), 1800);
        assert_eq!(usage.budgeted(), 1500);
    }
}
