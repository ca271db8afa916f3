//! Work trees: lists of them, and what becomes of each.

use ostler_domain::{
    Time,
    text::{bytes, one_line},
    worktree::{Kept, RemovedWorktree, Standing},
};

use crate::{
    output::{Column, Line, Table, Tone},
    words,
};

/// Ignored names that a line has room for.
const NAMED: usize = 5;

pub(crate) fn nothing() -> Line {
    Line::of("No session has a work tree of its own.").faint("   ostler run --worktree \"…\" gives it one")
}

pub(crate) fn table(rows: &[Kept], home: Option<&str>, now: Time) -> Table {
    let columns = [
        Column::new("NAME"),
        Column::new("SESSION").goes(2),
        Column::new("CAMPAIGN").goes(1),
        Column::new("BRANCH"),
        Column::new("STATE").gives_way_to(24),
        Column::new("SIZE").right(),
        Column::new("AGE").right().goes(3),
        Column::new("PATH").goes(4),
    ];
    let mut table = Table::new(columns);
    for kept in rows {
        let age = kept.made.map(|made| words::age(now.since(made)));
        table.row(vec![
            Line::new().strong(kept.worktree.name()),
            Line::of(kept.session.short()),
            Line::of(&kept.campaign_name),
            Line::of(one_line(&kept.worktree.branch, 80)),
            state(kept),
            Line::of(bytes(kept.condition.bytes)),
            Line::of(age.unwrap_or_default()),
            Line::of(words::path(&kept.worktree.path, home)),
        ]);
    }
    table
}

/// `live`, `uncommitted 3 files`, `unmerged 2 commits`, `clean and merged`.
fn state(kept: &Kept) -> Line {
    let found = &kept.condition;
    let files = words::plural(found.uncommitted, "file", "files");
    match kept.standing {
        Standing::Live => Line::toned(Tone::Good, "live"),
        Standing::Unknown => Line::toned(Tone::Warn, "unknown")
            .faint(one_line(&format!(" {}", kept.kept_by().unwrap_or_default()), 120)),
        Standing::Gone => Line::toned(Tone::Warn, "gone").faint(" its directory is not there"),
        Standing::Uncommitted => match &found.busy {
            Some(busy) => {
                Line::toned(Tone::Warn, "uncommitted").plain(format!(" {files}, {}", one_line(busy, 80)))
            }
            None => Line::toned(Tone::Warn, "uncommitted").plain(format!(" {files}")),
        },
        Standing::Unmerged => Line::toned(Tone::Warn, "unmerged")
            .plain(format!(" {}", words::plural(found.unmerged, "commit", "commits"))),
        Standing::Clean => Line::of("clean and merged"),
    }
}

/// What could be done about them; nothing where nothing could.
pub(crate) fn sum(rows: &[Kept]) -> Option<Line> {
    let going: Vec<&Kept> = rows.iter().filter(|kept| kept.standing.may_go()).collect();
    let with_ignored = going.iter().filter(|kept| !kept.condition.ignored.is_empty()).count();
    let lost = match with_ignored {
        0 => "nothing would be lost".to_owned(),
        n => format!("nothing would be lost but files that git ignores, in {n} of these"),
    };
    (!going.is_empty()).then(|| {
        Line::of(format!("{} of them could go, and {lost}", going.len())).faint("   ostler worktree gc")
    })
}

/// One that would be removed, and what would go with it.
pub(crate) fn goes(kept: &Kept) -> Vec<Line> {
    let branch = if kept.worktree.owns_branch() { "with its branch" } else { "its branch stays" };
    let size = named(kept).plain(format!("  {branch}")).faint(format!("  {}", bytes(kept.condition.bytes)));
    [size].into_iter().chain(ignored(kept)).collect()
}

/// What git ignores in it: no commit and no snapshot has that.
pub(crate) fn ignored(kept: &Kept) -> Option<Line> {
    let ignored = &kept.condition.ignored;
    let names: Vec<String> = ignored.iter().take(NAMED).map(|name| one_line(name, 60)).collect();
    let more = ignored.len().saturating_sub(NAMED);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let text = format!("ignored by git, and gone with it: {}{more}", names.join(", "));
    (!ignored.is_empty()).then(|| Line::of("  ").with(Tone::Warn, text))
}

/// One that stays.
pub(crate) fn stays(kept: &Kept) -> Line {
    Line::of("kept  ")
        .append(named(kept))
        .faint(format!("  {}", one_line(&kept.kept_by().unwrap_or_default(), 200)))
}

pub(crate) fn removed(removed: &RemovedWorktree) -> Line {
    let branch = if removed.branch_deleted { "removed with its branch" } else { "removed, its branch stays" };
    Line::toned(Tone::Good, "✓ ").append(named(&removed.kept)).plain(format!("  {branch}"))
}

pub(crate) fn not_removed(kept: &Kept, why: &str) -> Line {
    Line::toned(Tone::Bad, "✗ ").append(named(kept)).plain(format!("  {}", one_line(why, 300)))
}

fn named(kept: &Kept) -> Line {
    Line::new().strong(kept.worktree.name()).faint(format!(" {}", one_line(&kept.worktree.branch, 80)))
}

#[cfg(test)]
mod tests {
    use ostler_domain::{
        CampaignId, SessionId,
        worktree::{Condition, Worktree},
    };

    use super::*;
    use crate::output::Look;

    fn kept(standing: Standing, condition: Condition) -> Kept {
        let at = Time::from_micros(1_763_000_000_000_000);
        Kept {
            worktree: Worktree {
                path: "/home/ann/.local/state/ostler/worktrees/shop/fix".to_owned(),
                branch: "agent/fix".to_owned(),
                base: "0a1b2c3d".to_owned(),
                from: Some("trunk".to_owned()),
                told: None,
            },
            campaign: CampaignId::new(at, 1),
            campaign_name: "shop".to_owned(),
            session: SessionId::new(at, 2),
            session_name: "fix".to_owned(),
            made: Some(at),
            removed: None,
            standing,
            condition,
            why: None,
        }
    }

    #[test]
    fn each_says_what_keeps_it() {
        let found = Condition { bytes: 4 << 20, ..Condition::default() };
        let rows = [
            kept(Standing::Live, found.clone()),
            kept(Standing::Uncommitted, Condition { uncommitted: 3, ..found.clone() }),
            kept(Standing::Unmerged, Condition { unmerged: 1, commits: 1, ..found.clone() }),
            kept(Standing::Clean, Condition { ignored: vec!["target/".to_owned()], ..found.clone() }),
        ];
        let now = Time::from_micros(1_763_000_300_000_000);
        let look = Look::plain(Some(140));
        let mut lines = table(&rows, Some("/home/ann"), now).lines(&look);
        lines.extend(goes(&rows[3]));
        lines.extend([stays(&rows[1]), sum(&rows).unwrap()]);
        let lines: Vec<String> = lines.iter().map(|line| line.show(&look).trim_end().to_owned()).collect();
        insta::assert_snapshot!(lines.join("\n"));
        let work = |kept: &Kept| super::super::tree::worktree(kept).show(&look);
        assert_eq!(work(&rows[1]), "worktree agent/fix kept · 3 files uncommitted");
        let merged = kept(Standing::Clean, Condition { commits: 2, ..found });
        assert_eq!(work(&merged), "worktree agent/fix kept · 2 commits, merged");
        let whole = sum(&[merged]).unwrap().show(&look);
        assert!(whole.starts_with("1 of them could go, and nothing would be lost  "), "{whole}");
    }
}
