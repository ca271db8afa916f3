//! What is known of the memory of processes that had more of it than they may.

use serde::{Deserialize, Serialize};

use crate::{
    Hint,
    policy::size_text,
    text::{bytes, shell_word},
};

/// What was seen before the end. Each part is left out where nobody saw it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OutOfMemory {
    /// The limit of its campaign; none where the whole machine had no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
    /// The most that its processes had together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest: Option<LargestProcess>,
    /// Processes that the kernel killed for want of memory, by its own count.
    #[serde(default)]
    pub oom_kills: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargestProcess {
    pub name: String,
    pub bytes: u64,
}

impl OutOfMemory {
    /// What its processes did that they were ended for.
    pub(super) fn words(&self) -> String {
        match (self.used_bytes, self.limit_bytes) {
            (Some(used), Some(limit)) if used > limit => {
                format!(
                    "its processes used {}; the memory limit of its campaign is {}",
                    bytes(used),
                    bytes(limit)
                )
            }
            (_, Some(limit)) => {
                format!("its processes used {}, the memory limit of its campaign", bytes(limit))
            }
            (Some(used), None) => format!("its processes used {}, and the machine had no more", bytes(used)),
            (None, None) => "its processes used more memory than they may".to_owned(),
        }
    }
}

impl OutOfMemory {
    /// What would allow its campaign twice as much.
    pub fn cure(&self, campaign: &str) -> Option<Hint> {
        let twice = self.limit_bytes?.checked_mul(2)?;
        let command =
            format!("ostler campaign set {} limits.memory={}", shell_word(campaign), size_text(twice));
        Some(Hint { command, effect: "raises the limit".to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn it_is_cured_by_twice_as_much() {
        let cure = |limit_bytes| OutOfMemory { limit_bytes, ..OutOfMemory::default() }.cure("shop");
        assert_eq!(cure(Some(4 * GIB)).unwrap().command, "ostler campaign set shop limits.memory=8GiB");
        assert_eq!(cure(None), None, "no limit of ours ended it");
    }

    #[test]
    fn it_says_which_limit_and_how_much() {
        let of = |used_bytes, limit_bytes| {
            OutOfMemory { used_bytes, limit_bytes, ..OutOfMemory::default() }.words()
        };
        assert_eq!(
            of(Some(4 * GIB), Some(4 * GIB)),
            "its processes used 4.0 GiB, the memory limit of its campaign"
        );
        assert_eq!(of(None, Some(4 * GIB)), "its processes used 4.0 GiB, the memory limit of its campaign");
        assert_eq!(
            of(Some(5 * GIB), Some(4 * GIB)),
            "its processes used 5.0 GiB; the memory limit of its campaign is 4.0 GiB"
        );
        assert_eq!(of(Some(GIB), None), "its processes used 1.0 GiB, and the machine had no more");
        assert_eq!(of(None, None), "its processes used more memory than they may");
    }
}
