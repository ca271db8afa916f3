//! What takes the space on the disk, by what it is and by whose it is.

use std::collections::BTreeMap;

use crate::{CampaignId, ConversationId, Name, SessionId};

/// What a file of the state directory is, by the name of the file or of the directory that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The log and what is listed.
    Database,
    /// The index of the full text.
    Search,
    /// Large bodies of events.
    Blobs,
    /// What crossed the borders of sessions.
    Tapes,
    /// Homes of conversations: what agents keep for themselves.
    Homes,
    Logs,
    Other,
    /// Files of campaigns as they were after turns.
    Snapshots,
    /// What was said, as files for others, and what conversations were imported with.
    Transcripts,
}

impl Part {
    pub const fn as_str(self) -> &'static str {
        match self {
            Part::Database => "database",
            Part::Search => "search",
            Part::Blobs => "blobs",
            Part::Tapes => "tapes",
            Part::Homes => "homes",
            Part::Logs => "logs",
            Part::Other => "other",
            Part::Snapshots => "snapshots",
            Part::Transcripts => "transcripts",
        }
    }

    /// The part that an entry of the state directory belongs to.
    pub fn of(name: &str) -> Part {
        match name {
            "blobs" => Part::Blobs,
            "sessions" => Part::Tapes,
            "homes" => Part::Homes,
            "snapshots" => Part::Snapshots,
            "conversations" => Part::Transcripts,
            name if name.starts_with("ostler.db") => Part::Database,
            name if name.starts_with("search.db") => Part::Search,
            name if name.starts_with("daemon.log") || name.starts_with("audit.jsonl") => Part::Logs,
            _ => Part::Other,
        }
    }
}

/// Files and the bytes that they take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Taken {
    pub bytes: u64,
    pub files: u64,
}

impl std::ops::AddAssign for Taken {
    fn add_assign(&mut self, other: Taken) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.files = self.files.saturating_add(other.files);
    }
}

/// What one session takes. The home is its conversation's, and counted with the conversation's last session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfSession {
    pub id: SessionId,
    pub conversation: ConversationId,
    pub name: Name,
    pub campaign: CampaignId,
    pub has_ended: bool,
    pub tape: u64,
    pub home: u64,
}

impl OfSession {
    pub fn total(&self) -> u64 {
        self.tape.saturating_add(self.home)
    }
}

/// What all sessions of a campaign take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfCampaign {
    pub campaign: CampaignId,
    pub sessions: u64,
    pub tapes: u64,
    pub homes: u64,
}

/// Adds up by campaign, the largest first.
pub fn by_campaign(sessions: &[OfSession]) -> Vec<OfCampaign> {
    let mut sums: BTreeMap<CampaignId, OfCampaign> = BTreeMap::new();
    for session in sessions {
        let none = OfCampaign { campaign: session.campaign, sessions: 0, tapes: 0, homes: 0 };
        let sum = sums.entry(session.campaign).or_insert(none);
        sum.sessions += 1;
        sum.tapes = sum.tapes.saturating_add(session.tape);
        sum.homes = sum.homes.saturating_add(session.home);
    }
    let mut sums: Vec<OfCampaign> = sums.into_values().collect();
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.tapes.saturating_add(sum.homes)));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;

    #[test]
    fn every_entry_belongs_to_a_part() {
        for (name, part) in [
            ("ostler.db", "database"),
            ("ostler.db-wal", "database"),
            ("search.db", "search"),
            ("sessions", "tapes"),
            ("homes", "homes"),
            ("snapshots", "snapshots"),
            ("conversations", "transcripts"),
            ("daemon.log", "logs"),
            ("audit.jsonl", "logs"),
            ("credentials", "other"),
        ] {
            assert_eq!(Part::of(name).as_str(), part, "{name}");
        }
    }

    #[test]
    fn campaigns_add_up_and_the_largest_comes_first() {
        let at = Time::default();
        let of = |n: u128, campaign: u128, tape: u64, home: u64| OfSession {
            id: SessionId::new(at, n),
            conversation: ConversationId::new(at, n),
            name: "x".parse().expect("a name"),
            campaign: CampaignId::new(at, campaign),
            has_ended: true,
            tape,
            home,
        };
        let sums = by_campaign(&[of(1, 1, 10, 0), of(2, 2, 5, 50), of(3, 1, 10, 1)]);
        let shown: Vec<_> = sums.iter().map(|sum| (sum.sessions, sum.tapes, sum.homes)).collect();
        assert_eq!(shown, [(1, 5, 50), (2, 20, 1)]);
    }
}
