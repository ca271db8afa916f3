//! How long the record of a session is kept, and in which form.
//!
//! A rule of a person's says when a session that has ended is archived, and when what was said in it is deleted. Without a
//! rule nothing happens, ever. Deleting is announced: first a session is marked, and for some days it can be taken back.

mod erase;
mod mission;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    CampaignId, Name, SessionId, Time,
    event::By,
    time::{span, span_text},
};

pub use erase::erased;
pub use mission::{MissionRules, MissionStep};

/// How long a session that is to be deleted can still be taken back, where nobody says otherwise.
pub const TOMBSTONE: Duration = Duration::from_secs(14 * 86_400);
/// A mark that nobody has time to see is none.
const LEAST_TOMBSTONE: Duration = Duration::from_secs(3_600);

/// The rule that somebody's `conversation rm` is.
const REMOVED: &str = "conversation rm";

/// When something is done: so long after the last event of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum After {
    /// Also where the machine's rule says otherwise.
    Never,
    Seconds(u64),
}

impl After {
    /// `30d`, `12h`, or `never`.
    pub fn parse(text: &str) -> Option<After> {
        match text {
            "never" => Some(After::Never),
            text => span(text).filter(|span| span.as_secs() > 0).map(|span| After::Seconds(span.as_secs())),
        }
    }

    fn span(self) -> Option<Duration> {
        match self {
            After::Never => None,
            After::Seconds(seconds) => Some(Duration::from_secs(seconds)),
        }
    }
}

impl std::fmt::Display for After {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.span() {
            None => f.write_str("never"),
            Some(span) => f.write_str(&span_text(span)),
        }
    }
}

/// How long a deletion is announced: `14d`, at least an hour.
pub fn tombstone(text: &str) -> Option<u64> {
    span(text).filter(|span| *span >= LEAST_TOMBSTONE).map(|span| span.as_secs())
}

/// What a person said, of a campaign or of the machine. Empty means that nothing is ever archived or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Rules {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive_after: Option<After>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_after: Option<After>,
    /// Seconds between the mark and the deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tombstone: Option<u64>,
    /// What missions leave behind.
    #[serde(skip_serializing_if = "MissionRules::is_empty")]
    pub missions: MissionRules,
}

impl Rules {
    pub fn is_empty(&self) -> bool {
        *self == Rules::default()
    }

    /// These, and where they say nothing, others.
    #[must_use]
    pub fn or(self, others: Rules) -> Rules {
        Rules {
            archive_after: self.archive_after.or(others.archive_after),
            delete_after: self.delete_after.or(others.delete_after),
            tombstone: self.tombstone.or(others.tombstone),
            missions: self.missions.or(others.missions),
        }
    }

    /// What was said, by key.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, String)> {
        let announced = self.tombstone.map(|seconds| span_text(Duration::from_secs(seconds)));
        [
            self.archive_after.map(|after| ("retention.archive_after", after.to_string())),
            self.delete_after.map(|after| ("retention.delete_after", after.to_string())),
            announced.map(|span| ("retention.tombstone", span)),
            (!self.missions.is_empty()).then(|| ("retention.missions", self.missions.to_string())),
        ]
        .into_iter()
        .flatten()
    }

    /// Whether anything may ever follow from them for a session.
    pub fn do_something(&self) -> bool {
        self.archives().is_some() || self.deletes().is_some()
    }

    /// No session whose last event is younger is touched by them; none where they touch nobody.
    pub fn least(&self) -> Option<Duration> {
        self.archives().into_iter().chain(self.deletes()).min()
    }

    fn archives(&self) -> Option<Duration> {
        self.archive_after.and_then(After::span)
    }

    fn deletes(&self) -> Option<Duration> {
        self.delete_after.and_then(After::span)
    }

    /// How long a deletion is announced.
    pub fn announced(&self) -> Duration {
        self.tombstone.map_or(TOMBSTONE, Duration::from_secs).max(LEAST_TOMBSTONE)
    }

    fn archive_rule(&self) -> String {
        format!("retention.archive_after={}", self.archive_after.unwrap_or(After::Never))
    }

    fn delete_rule(&self) -> String {
        format!("retention.delete_after={}", self.delete_after.unwrap_or(After::Never))
    }
}

/// What was done to a session's record so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Kept {
    pub archived: Option<Time>,
    /// It is to be deleted then.
    pub due: Option<Time>,
    pub deleted: Option<Time>,
    /// When somebody brought it back: rules count from there on.
    pub restored: Option<Time>,
    pub held: Option<Hold>,
    /// The rule that was last followed.
    pub rule: Option<String>,
}

/// Somebody said that no rule is to touch it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    pub by: By,
    pub why: String,
    pub since: Time,
}

/// How a session's record stands, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Hot,
    Archived,
    /// To be deleted.
    Marked,
    Deleted,
}

impl Stage {
    pub const fn as_str(self) -> &'static str {
        match self {
            Stage::Hot => "hot",
            Stage::Archived => "archived",
            Stage::Marked => "marked",
            Stage::Deleted => "deleted",
        }
    }
}

impl Kept {
    pub fn stage(&self) -> Stage {
        match self {
            Kept { deleted: Some(_), .. } => Stage::Deleted,
            Kept { due: Some(_), .. } => Stage::Marked,
            Kept { archived: Some(_), .. } => Stage::Archived,
            _ => Stage::Hot,
        }
    }
}

/// What rules look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// When the session's last event was; none for one that has not ended.
    pub ended: Option<Time>,
    pub kept: Kept,
    /// When somebody removed its conversation, and has not taken that back: their word is a rule for it.
    pub removed: Option<Time>,
    /// Something that lives goes on with it, was started by it, or is about to be.
    pub is_needed: bool,
    /// A work tree of its own is still there, and may have what was never committed.
    pub has_work_tree: bool,
}

/// What is to be done with a session's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Archive,
    /// Announce that it is deleted then.
    Mark {
        due: Time,
    },
    /// No rule deletes it any more.
    Unmark,
    Delete,
}

impl Step {
    pub const fn as_str(self) -> &'static str {
        match self {
            Step::Archive => "archive",
            Step::Mark { .. } => "mark",
            Step::Unmark => "unmark",
            Step::Delete => "delete",
        }
    }
}

/// Why a rule that would do something does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spared {
    Held,
    Needed,
    WorkTree,
}

impl Spared {
    pub const fn words(self) -> &'static str {
        match self {
            Spared::Held => "somebody holds it",
            Spared::Needed => "something that lives goes on with it or was started by it",
            Spared::WorkTree => "its work tree is still there",
        }
    }
}

/// What the rules come to for one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Nothing,
    /// Do it, because of this rule.
    Do(Step, String),
    /// A rule would, and something stands against it.
    Spare(Step, Spared),
}

/// What is to be done with a session's record now. One thing at a time: whoever does it asks again.
pub fn decide(facts: &Facts, rules: &Rules, now: Time) -> Verdict {
    let (Some(ended), None) = (facts.ended, facts.kept.deleted) else { return Verdict::Nothing };
    let last = facts.kept.restored.map_or(ended, |restored| restored.max(ended));
    let is_due = |after: Option<Duration>| after.is_some_and(|after| last.plus(after) <= now);
    // Whoever brings it back means it, also where its conversation stays closed; and never is never.
    let is_removed = rules.delete_after != Some(After::Never)
        && facts.removed.is_some_and(|at| facts.kept.restored.is_none_or(|restored| restored < at));
    let deletes = || if is_removed { REMOVED.to_owned() } else { rules.delete_rule() };
    let (step, rule) = match (is_removed || is_due(rules.deletes()), facts.kept.due) {
        // The announcement holds as it was made, and is made anew where the rule was gone in between.
        (true, Some(due)) if due <= now => (Step::Delete, deletes()),
        (true, Some(_)) => return Verdict::Nothing,
        (true, None) => (Step::Mark { due: now.plus(rules.announced()) }, deletes()),
        (false, Some(_)) => return Verdict::Do(Step::Unmark, "no rule deletes it any more".to_owned()),
        (false, None) if is_due(rules.archives()) && facts.kept.archived.is_none() => {
            (Step::Archive, rules.archive_rule())
        }
        (false, None) => return Verdict::Nothing,
    };
    let spared = if facts.kept.held.is_some() {
        Some(Spared::Held)
    } else if facts.is_needed {
        Some(Spared::Needed)
    } else if facts.has_work_tree && step != Step::Archive {
        Some(Spared::WorkTree)
    } else {
        None
    };
    match spared {
        Some(why) => Verdict::Spare(step, why),
        None => Verdict::Do(step, rule),
    }
}

/// A session as retention sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub session: SessionId,
    pub name: Name,
    pub campaign: CampaignId,
    /// The campaign's name.
    pub campaign_name: String,
    pub ended: Option<Time>,
    pub kept: Kept,
}

/// One line of a plan, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    pub standing: Standing,
    pub step: Step,
    /// The rule that says so; empty where it is spared.
    pub rule: String,
    /// Why it is not done: something stands against it, or it failed.
    pub spared: Option<String>,
}
