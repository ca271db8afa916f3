//! Which snapshots are meant: a turn, one of its own name, or a span between two.

use std::fmt;

use super::{Cause, Snapshot, is_object_name};

/// A turn of a session, or a snapshot by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Point {
    Turn(u32),
    /// The beginning of a commit's name in Ostler's repository.
    Commit(String),
}

/// Turns have fewer digits than this; longer numbers are names of snapshots.
const TURN_DIGITS: usize = 6;

/// The turn that a text is the number of.
pub fn turn_number(text: &str) -> Option<u32> {
    let is_number = text.len() <= TURN_DIGITS && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

impl Point {
    /// Reads `3` or `1f0c9a2b`.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(turn) = turn_number(text) {
            return Some(Point::Turn(turn));
        }
        let name = text.to_ascii_lowercase();
        (is_object_name(&name) && name.len() > TURN_DIGITS).then_some(Point::Commit(name))
    }

    /// The snapshot meant. Of several of one turn the last, but none that was taken because files were put back: those
    /// are not how the turn left them.
    pub fn of<'a>(&self, snapshots: &'a [Snapshot]) -> Option<&'a Snapshot> {
        let taken = || snapshots.iter().filter(|snapshot| snapshot.commit.is_some());
        match self {
            Point::Turn(turn) => taken().rev().find(|snapshot| {
                snapshot.turn == *turn && !matches!(snapshot.cause, Cause::Rewind | Cause::Removal)
            }),
            Point::Commit(name) => taken().rev().find(|snapshot| {
                snapshot.commit.as_deref().is_some_and(|commit| commit.starts_with(name.as_str()))
            }),
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Point::Turn(turn) => write!(f, "{turn}"),
            Point::Commit(name) => f.write_str(name),
        }
    }
}

/// What a difference is asked between.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Span {
    /// Unset: the session's beginning.
    pub from: Option<Point>,
    /// Unset: the last one there is.
    pub to: Option<Point>,
}

impl Span {
    /// Reads `3` (what that turn did), `1..3`, `1..` or `..3`.
    pub fn parse(text: &str) -> Option<Self> {
        let side = |text: &str| match text {
            "" => Some(None),
            text => Point::parse(text).map(Some),
        };
        match text.split_once("..") {
            Some((from, to)) => Some(Span { from: side(from)?, to: side(to)? }),
            None => match Point::parse(text)? {
                // Nothing was done before the first turn.
                Point::Turn(turn) => Some(Span {
                    from: Some(Point::Turn(turn.saturating_sub(1))),
                    to: Some(Point::Turn(turn)),
                }),
                commit => Some(Span { from: Some(commit), to: None }),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CampaignId, SessionId, Time, snapshot::Changed};

    fn snapshot(turn: u32, cause: Cause, commit: Option<&str>) -> Snapshot {
        let time = Time::from_micros(1);
        Snapshot {
            session: SessionId::new(time, 1),
            campaign: CampaignId::new(time, 1),
            turn,
            cause,
            time,
            commit: commit.map(str::to_owned),
            changed: Changed::default(),
            why: None,
        }
    }

    #[test]
    fn spans_are_read_as_they_are_typed() {
        let turn = |n| Some(Point::Turn(n));
        assert_eq!(Span::parse("3"), Some(Span { from: turn(2), to: turn(3) }));
        assert_eq!(Span::parse("0"), Some(Span { from: turn(0), to: turn(0) }));
        assert_eq!(Span::parse("1..3"), Some(Span { from: turn(1), to: turn(3) }));
        assert_eq!(Span::parse("..3"), Some(Span { from: None, to: turn(3) }));
        assert_eq!(Span::parse("1.."), Some(Span { from: turn(1), to: None }));
        let commit = Some(Point::Commit("1f0c9a2b".to_owned()));
        assert_eq!(Span::parse("1F0C9A2B"), Some(Span { from: commit, to: None }));
        for nonsense in ["", "x", "1..x", "-1", "--output=/x", "1...3", "HEAD"] {
            assert_eq!(
                Span::parse(nonsense),
                if nonsense.is_empty() { None } else { Span::parse("x") },
                "{nonsense}"
            );
        }
    }

    #[test]
    fn a_turn_means_how_it_left_the_files() {
        let all = [
            snapshot(0, Cause::Start, Some("aaaaaaaa")),
            snapshot(1, Cause::Turn, Some("bbbbbbbb")),
            snapshot(1, Cause::Rewind, Some("cccccccc")),
            snapshot(2, Cause::Turn, None),
        ];
        let found = |text: &str| Point::parse(text).and_then(|point| point.of(&all)?.commit.clone());
        assert_eq!(found("1").as_deref(), Some("bbbbbbbb"));
        assert_eq!(found("ccccccc").as_deref(), Some("cccccccc"), "what was put away is found by its name");
        assert_eq!(found("2"), None, "what could not be taken is not there");
    }
}
