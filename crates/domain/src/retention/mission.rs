//! How long what a mission leaves behind stays where it was: the directory that its members shared, and their work trees.
//!
//! Its record, its report and its sessions are not touched by this: they have rules of their own.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use super::After;
use crate::{CampaignId, MissionId, Name, Time, mission::Status};

/// What a person said, by how missions ended. Empty means that nothing is ever cleared away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MissionRules {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<After>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial: Option<After>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<After>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<After>,
}

impl MissionRules {
    /// `30d` for all, or by how they ended: `completed:7d,failed:30d,cancelled:never`.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(all) = After::parse(text) {
            let all = Some(all);
            return Some(Self { completed: all, partial: all, failed: all, cancelled: all });
        }
        let mut rules = Self::default();
        for part in text.split(',') {
            let (status, after) = part.trim().split_once(':')?;
            let place = rules.place(status.trim())?;
            if place.replace(After::parse(after.trim())?).is_some() {
                return None;
            }
        }
        Some(rules)
    }

    fn place(&mut self, status: &str) -> Option<&mut Option<After>> {
        match status {
            "completed" => Some(&mut self.completed),
            "partial" => Some(&mut self.partial),
            "failed" => Some(&mut self.failed),
            "cancelled" => Some(&mut self.cancelled),
            _ => None,
        }
    }

    fn all(&self) -> [(&'static str, Option<After>); 4] {
        [
            ("completed", self.completed),
            ("partial", self.partial),
            ("failed", self.failed),
            ("cancelled", self.cancelled),
        ]
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These, and where they say nothing, others.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            completed: self.completed.or(others.completed),
            partial: self.partial.or(others.partial),
            failed: self.failed.or(others.failed),
            cancelled: self.cancelled.or(others.cancelled),
        }
    }

    /// Whether anything may ever follow from them.
    pub fn do_something(&self) -> bool {
        self.all().iter().any(|(_, after)| after.and_then(After::span).is_some())
    }

    /// The rule by which what a mission left behind is cleared away now; none where it stays.
    pub fn due(&self, status: Status, ended: Time, now: Time) -> Option<String> {
        let (word, after) = self.all().into_iter().find(|(word, _)| *word == status.as_str())?;
        let after: Duration = after.and_then(After::span)?;
        (ended.plus(after) <= now)
            .then(|| format!("retention.missions={word}:{}", crate::time::span_text(after)))
    }
}

impl fmt::Display for MissionRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = || self.all().into_iter().filter_map(|(word, after)| Some((word, after?)));
        match self.completed {
            Some(all) if said().filter(|(_, after)| *after == all).count() == self.all().len() => {
                write!(f, "{all}")
            }
            _ => {
                let parts: Vec<String> = said().map(|(word, after)| format!("{word}:{after}")).collect();
                f.write_str(&parts.join(","))
            }
        }
    }
}

/// What a mission has left behind, what is to become of it, and what did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissionStep {
    pub mission: MissionId,
    pub name: Name,
    pub campaign: CampaignId,
    /// The campaign's name.
    pub campaign_name: String,
    pub status: Status,
    pub ended: Time,
    /// The rule that says so; empty where a person does.
    pub rule: String,
    /// Work trees of its members that go with it.
    pub worktrees: u32,
    /// What its files took, and what they take in the archive; 0 before.
    pub bytes: u64,
    pub archived_bytes: u64,
    /// Why it is not done: something stands against it, or it failed.
    pub spared: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_they_are_shown() {
        for text in ["30d", "never", "completed:7d,failed:30d,cancelled:never", "partial:12h"] {
            assert_eq!(MissionRules::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "done:7d", "completed", "completed:", "completed:7d,completed:8d", "7x"] {
            assert_eq!(MissionRules::parse(text), None, "{text}");
        }
    }

    #[test]
    fn each_end_has_a_time_of_its_own() {
        let rules = MissionRules::parse("completed:1d,failed:never").unwrap();
        let machine = MissionRules::parse("2d").unwrap();
        let (ended, day) = (Time::from_micros(1_000_000), Duration::from_secs(86_400));
        let due = |rules: MissionRules, status, days| rules.due(status, ended, ended.plus(day * days));
        assert_eq!(due(rules, Status::Completed, 1).as_deref(), Some("retention.missions=completed:1d"));
        assert_eq!(due(rules, Status::Completed, 0), None);
        assert_eq!(due(rules, Status::Failed, 90), None);
        assert_eq!(due(rules, Status::Partial, 90), None, "nothing is said of it");
        let both = rules.or(machine);
        assert_eq!(due(both, Status::Failed, 90), None, "never is never");
        assert!(due(both, Status::Partial, 2).is_some());
        assert_eq!(due(both, Status::Running, 90), None);
        assert!(!MissionRules::parse("never").unwrap().do_something() && both.do_something());
    }
}
