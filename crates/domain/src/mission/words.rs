//! The words of missions.

use std::time::Duration;

use serde::{Deserialize, Serialize};

macro_rules! words {
    ($name:ident { $($variant:ident = $text:literal),* $(,)? }) => {
        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|word| word.as_str() == text)
            }
        }
    };
}
pub(super) use words;

/// In which order the agents of a mission work. All of them become one graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// All at once.
    #[default]
    Parallel,
    /// One after the other, as they are listed.
    Sequential,
    /// Each when what it needs is over; agents may add assignments while it runs.
    Adaptive,
    /// In stages: one begins when all of the one before it are over, with their results.
    Pipeline,
}

words!(Strategy {
    Parallel = "parallel",
    Sequential = "sequential",
    Adaptive = "adaptive",
    Pipeline = "pipeline"
});

/// How a mission stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Planned, and not begun.
    Created,
    Running,
    /// Paused by somebody, or held until a person says how it goes on.
    Paused,
    /// Every assignment was completed, and merged where that was asked for.
    Completed,
    /// Some assignments were completed, and some were not.
    Partial,
    /// None was completed.
    Failed,
    Cancelled,
}

words!(Status {
    Created = "created",
    Running = "running",
    Paused = "paused",
    Completed = "completed",
    Partial = "partial",
    Failed = "failed",
    Cancelled = "cancelled",
});

impl Status {
    pub const fn is_over(self) -> bool {
        matches!(self, Status::Completed | Status::Partial | Status::Failed | Status::Cancelled)
    }
}

/// How an assignment stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssignmentStatus {
    /// What it needs is not over.
    Pending,
    /// It may start, and waits for a place or for its next try.
    Ready,
    Running,
    /// It has begun, and is frozen.
    Paused,
    Completed,
    Failed,
    /// Something that it needs was not completed.
    Skipped,
    Cancelled,
}

words!(AssignmentStatus {
    Pending = "pending",
    Ready = "ready",
    Running = "running",
    Paused = "paused",
    Completed = "completed",
    Failed = "failed",
    Skipped = "skipped",
    Cancelled = "cancelled",
});

impl AssignmentStatus {
    pub const fn is_final(self) -> bool {
        matches!(
            self,
            AssignmentStatus::Completed
                | AssignmentStatus::Failed
                | AssignmentStatus::Skipped
                | AssignmentStatus::Cancelled
        )
    }

    /// The sign that is shown beside the word.
    pub const fn sign(self) -> char {
        match self {
            AssignmentStatus::Pending | AssignmentStatus::Ready => '◌',
            AssignmentStatus::Running => '●',
            AssignmentStatus::Paused => '‖',
            AssignmentStatus::Completed => '✓',
            AssignmentStatus::Failed => '✗',
            AssignmentStatus::Skipped | AssignmentStatus::Cancelled => '–',
        }
    }
}

/// Why a mission, or one assignment of it, waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// Its tokens or dollars are used up, or cannot be counted.
    Budget,
    /// Its time is used up.
    Time,
    /// An agent does the same again and again.
    Loop,
    /// An agent does things, and nothing comes of them.
    NoProgress,
    /// Something that it needs was not completed, and it was declared that a person then decides.
    Dependency,
}

words!(Hold {
    Budget = "budget",
    Time = "time",
    Loop = "loop",
    NoProgress = "no_progress",
    Dependency = "dependency",
});

/// Why a mission ends before its work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopRule {
    /// A person asked for it.
    Cancel,
    Budget,
    Time,
}

words!(StopRule { Cancel = "cancel", Budget = "budget", Time = "time" });

/// How long something was expected to take: the middle, and the ends of the interval, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    pub low_us: u64,
    pub likely_us: u64,
    pub high_us: u64,
}

impl Interval {
    pub fn new(low: Duration, likely: Duration, high: Duration) -> Self {
        let [low_us, likely_us, high_us] = [low, likely, high].map(micros);
        Self { low_us, likely_us, high_us }
    }

    pub fn low(&self) -> Duration {
        Duration::from_micros(self.low_us)
    }

    pub fn likely(&self) -> Duration {
        Duration::from_micros(self.likely_us)
    }

    pub fn high(&self) -> Duration {
        Duration::from_micros(self.high_us)
    }

    /// Says whether something that took this long was within it.
    pub fn held(&self, took: Duration) -> bool {
        (self.low_us..=self.high_us).contains(&micros(took))
    }
}

pub(super) fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// A span in its largest unit, as lists show it: `31s`, `11m`, `1h 4m`, `2d 3h`.
pub(super) fn short_span(span: Duration) -> String {
    let seconds = span.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, minutes) => format!("{minutes}m"),
        (0, hours, minutes) if minutes % 60 == 0 => format!("{hours}h"),
        (0, hours, minutes) => format!("{hours}h {}m", minutes % 60),
        (days, hours, _) if hours % 24 == 0 => format!("{days}d"),
        (days, hours, _) => format!("{days}d {}h", hours % 24),
    }
}
