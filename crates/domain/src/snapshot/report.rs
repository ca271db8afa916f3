//! What a look at a tree gave, as the script that looks prints it: one fact a line.

use super::{Changed, is_object_name};
use crate::{event::SeenCommit, text::one_line};

/// Everything that was printed and understood.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    pub branch: Option<String>,
    pub head: Option<String>,
    /// Newest first.
    pub commits: Vec<SeenCommit>,
    pub snapshot: Option<String>,
    /// What was there last, where it differs.
    pub changed: Changed,
}

/// How much of a commit's first line is kept.
const SUBJECT: usize = 200;

/// Reads what was printed. Lines that are not understood are passed over: agents choose what branches and commits are
/// called, and nothing that they choose is believed to be anything else.
pub fn report(text: &str) -> Report {
    let mut report = Report::default();
    for line in text.lines() {
        let Some((word, rest)) = line.split_once(' ') else { continue };
        match word {
            "branch" => report.branch = Some(one_line(rest, SUBJECT)),
            "head" if is_object_name(rest) => report.head = Some(rest.to_owned()),
            "made" => {
                let (hash, subject) = rest.split_once(' ').unwrap_or((rest, ""));
                if is_object_name(hash) {
                    let subject = one_line(subject, SUBJECT);
                    report.commits.push(SeenCommit { hash: hash.to_owned(), subject });
                }
            }
            "snapshot" if is_object_name(rest) => report.snapshot = Some(rest.to_owned()),
            "changed" => report.changed = changed(rest),
            _ => {}
        }
    }
    report
}

/// ` 3 files changed, 10 insertions(+), 2 deletions(-)`.
fn changed(text: &str) -> Changed {
    let mut changed = Changed::default();
    for part in text.split(',') {
        let mut words = part.split_whitespace();
        let (Some(count), Some(of)) = (words.next().and_then(|n| n.parse().ok()), words.next()) else {
            continue;
        };
        match of {
            "file" | "files" => changed.files = count,
            of if of.starts_with("insertion") => changed.added = count,
            of if of.starts_with("deletion") => changed.removed = count,
            _ => {}
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_one_fact_and_nonsense_is_none() {
        let text = "branch main\nhead 0a1b2c3d\nmade 11112222 fix: a, b\nmade not-a-hash x\nsnapshot deadbeef\n\
                    changed  3 files changed, 10 insertions(+), 2 deletions(-)\nelse what\nalone\n";
        let report = report(text);
        assert_eq!(report.branch.as_deref(), Some("main"));
        assert_eq!(report.head.as_deref(), Some("0a1b2c3d"));
        assert_eq!(report.snapshot.as_deref(), Some("deadbeef"));
        assert_eq!(report.commits.len(), 1);
        assert_eq!(report.commits[0].subject, "fix: a, b");
        assert_eq!(report.changed, Changed { files: 3, added: 10, removed: 2 });
        assert_eq!(super::report("snapshot --all"), Report::default());
    }

    #[test]
    fn one_of_each_is_counted_too() {
        assert_eq!(changed(" 1 file changed, 1 insertion(+)"), Changed { files: 1, added: 1, removed: 0 });
        assert_eq!(changed(""), Changed::default());
    }
}
