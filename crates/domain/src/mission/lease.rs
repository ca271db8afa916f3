//! Leases: what an assignment alone may write. Each is a path below the campaign's root, in which `*` and `?` stand for
//! parts of a name, and a whole name `**` for any directories.

use std::collections::BTreeSet;

use super::{State, Work, plan::Worktree};

/// Two that never run at once, by their places: the later one waits for the earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub later: usize,
    pub earlier: usize,
    pub path: String,
}

/// What is leased by one of two and could be written by the other, so that they do not run at once.
pub(super) fn meeting(one: &Work, other: &Work) -> Option<String> {
    let leased = |path: &&String| other.paths.iter().any(|lease| overlap(path, lease));
    if let Some(path) = one.paths.iter().find(leased) {
        return Some(path.clone());
    }
    // Whoever has leased nothing may write all of the campaign's directory.
    let is_beside = one.worktree == Worktree::None && other.worktree == Worktree::None;
    match (one.paths.first(), other.paths.first()) {
        (Some(path), None) | (None, Some(path)) if is_beside => Some(path.clone()),
        _ => None,
    }
}

impl State {
    /// Whether somebody's agent added another one, itself or through those that it added. It gave the lease, and may wait
    /// for the other one in its own turn.
    pub(super) fn has_added(&self, adder: usize, place: usize) -> bool {
        let above = |place: usize| self.place_of(self.slots[place].assignment.added_by?);
        let mut at = above(place);
        while let Some(by) = at {
            if by == adder {
                return true;
            }
            at = above(by);
        }
        false
    }

    /// What the assignment at this place could write of what the one at another has leased, or the other way round.
    pub(super) fn lease_between(&self, place: usize, by: usize) -> Option<String> {
        let (one, other) = (self.work(place), self.work(by));
        let is_given = (one.paths.is_empty() && self.has_added(place, by))
            || (other.paths.is_empty() && self.has_added(by, place));
        meeting(one, other).filter(|_| !is_given)
    }

    /// Those that take turns for a lease and for nothing else, so many at most.
    pub fn lease_turns(&self, most: usize) -> Vec<Turn> {
        if self.works.iter().all(|work| work.paths.is_empty()) {
            return Vec::new();
        }
        let mut turns = Vec::new();
        for later in 0..self.slots.len() {
            let before = self.all_needs(later);
            for earlier in (0..later).filter(|earlier| !before.contains(earlier)) {
                if turns.len() == most {
                    return turns;
                }
                // One may be listed before what it needs.
                if let Some(path) = self.lease_between(later, earlier)
                    && !self.all_needs(earlier).contains(&later)
                {
                    turns.push(Turn { later, earlier, path });
                }
            }
        }
        turns
    }

    fn all_needs(&self, place: usize) -> BTreeSet<usize> {
        let (mut all, mut left) = (BTreeSet::new(), vec![place]);
        while let Some(place) = left.pop() {
            let needs = self.graph.needs(place).iter().map(|need| *need as usize);
            left.extend(needs.filter(|need| all.insert(*need)));
        }
        all
    }
}

/// Whether it names what is looked for when its agent starts.
pub fn is_pattern(path: &str) -> bool {
    path.split('/').any(is_pattern_name)
}

fn is_pattern_name(name: &str) -> bool {
    name.contains(['*', '?'])
}

/// Whether something may lie in both. Of two patterns it is said where nobody knows better.
pub fn overlap(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.split('/'), other.split('/'));
    loop {
        match (one.next(), other.next()) {
            // What holds the other holds all of it.
            (None, _) | (_, None) => return true,
            (Some("**"), _) | (_, Some("**")) => return true,
            (Some(name), Some(pattern)) | (Some(pattern), Some(name)) if is_pattern_name(pattern) => {
                if !is_pattern_name(name) && !matches(pattern, name) {
                    return false;
                }
            }
            (Some(name), Some(same)) if name == same => {}
            _ => return false,
        }
    }
}

/// Whether all of it lies in the other.
pub fn lies_within(path: &str, lease: &str) -> bool {
    let mut names = path.split('/');
    for wanted in lease.split('/') {
        match names.next() {
            _ if wanted == "**" => return path == lease || lease == "**" || lease.ends_with("/**"),
            Some(name) if name == wanted || (!is_pattern_name(name) && matches(wanted, name)) => {}
            _ => return false,
        }
    }
    true
}

/// Whether a pattern for one name fits it.
pub fn matches(pattern: &str, name: &str) -> bool {
    crate::hidden::matches(pattern.as_bytes(), name.as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_lies_in_both_is_seen_from_both() {
        for (one, other, both) in [
            ("src", "src", true),
            ("src", "src/api/login.rs", true),
            ("src", "srcs", false),
            ("src/api", "src/ui", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/a.ts", false),
            ("src/*.rs", "src/*.ts", true),
            ("src/*/mod.rs", "src/api", true),
            ("src/**/mod.rs", "src/api/deep/x.rs", true),
            ("src/**", "docs", false),
            ("*", "docs/a.md", true),
        ] {
            assert_eq!(overlap(one, other), both, "{one} {other}");
            assert_eq!(overlap(other, one), both, "{other} {one}");
        }
    }

    #[test]
    fn nothing_lies_within_what_is_narrower() {
        for (path, lease) in
            [("src/api", "src"), ("src/a.rs", "src/*.rs"), ("src/a/b", "src/**"), ("src/*.rs", "src")]
        {
            assert!(lies_within(path, lease), "{path} {lease}");
        }
        for (path, lease) in
            [("src", "src/api"), ("src/*", "src/*.rs"), ("srcs", "src"), ("src/a.ts", "src/*.rs")]
        {
            assert!(!lies_within(path, lease), "{path} {lease}");
        }
    }

    proptest! {
        #[test]
        fn what_lies_within_overlaps(path in "[ab*]{1,2}(/[ab*]{1,2}){0,3}", lease in "[ab*]{1,2}(/[ab*]{1,2}){0,3}") {
            prop_assert!(!lies_within(&path, &lease) || overlap(&path, &lease));
            prop_assert!(lies_within(&path, &path) || path.contains("**"));
        }
    }
}
