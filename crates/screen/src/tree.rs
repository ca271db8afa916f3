//! What became of files, in words.

use ostler_client::Session;
use ostler_domain::{
    Event,
    snapshot::{Blamed, Cause, Changed, FileChange, FileStatus, Tree},
    text::one_line,
    worktree::{Kept, Standing},
};

use super::{activity::Told, field};
use crate::{Line, Tone, words};

/// How much of a prompt is shown.
const PROMPT: usize = 300;

/// Events about trees.
pub fn tell(event: &Event) -> Told {
    match event {
        Event::CommitsSeen(seen) => {
            let branch = seen.branch.as_deref().unwrap_or("no branch");
            let first = seen.commits.first().map(|commit| format!(": {}", one_line(&commit.subject, 100)));
            let made = match seen.commits.len() as u64 {
                0 => seen.head.as_deref().map(|head| format!(" at {}", short(head))).unwrap_or_default(),
                n => format!(" · {}", words::plural(n, "commit", "commits")),
            };
            Told::new("git", format!("{branch}{made}{}", first.unwrap_or_default())).faint()
        }
        Event::SnapshotTaken(taken) => match (&taken.commit, &taken.why) {
            (Some(commit), _) => {
                let text = format!("turn {} · {}", taken.turn, short(commit));
                let changed = changed(&taken.changed);
                Told::new("snapshot", if changed.is_empty() { text } else { format!("{text} · {changed}") })
                    .faint()
            }
            (None, why) => {
                let why = one_line(why.as_deref().unwrap_or("nobody knows why"), 200);
                Told::new("snapshot", format!("none of turn {}: {why}", taken.turn)).tone(Tone::Warn)
            }
        },
        Event::Rewound(rewound) => Told::new(
            "rewound",
            format!(
                "files are as after turn {} · {} · by {}",
                rewound.turn,
                changed(&rewound.changed),
                rewound.by.0
            ),
        )
        .tone(Tone::Strong),
        Event::WorktreeMade(made) => {
            let again = if made.again { " again" } else { "" };
            let text =
                format!("{} made{again} at {}", one_line(&made.worktree.branch, 80), short(&made.commit));
            Told::new("worktree", text).faint()
        }
        Event::WorktreeRemoved(removed) => {
            let branch = if removed.branch_deleted { " with its branch" } else { "" };
            let text = format!("{} removed{branch} · by {}", one_line(&removed.branch, 80), removed.by.0);
            Told::new("worktree", text).tone(Tone::Strong)
        }
        _ => Told::new("files", "changed"),
    }
}

fn short(commit: &str) -> &str {
    commit.get(..8).unwrap_or(commit)
}

/// `5 files +96 −4`; nothing where nothing changed.
pub fn changed(changed: &Changed) -> String {
    if changed.files == 0 {
        return String::new();
    }
    let files = words::plural(changed.files, "file", "files");
    format!("{files} +{} −{}", changed.added, changed.removed)
}

/// One line of a list of files each.
pub fn files(files: &[FileChange]) -> Vec<Line> {
    let lines = |count: Option<u64>, sign: &str| count.map_or("-".to_owned(), |n| format!("{sign}{n}"));
    let line = |file: &FileChange| {
        let (tone, letter) = match file.status {
            FileStatus::Added => (Tone::Good, "A"),
            FileStatus::Changed => (Tone::Plain, "M"),
            FileStatus::Removed => (Tone::Bad, "D"),
        };
        Line::toned(tone, letter)
            .plain(format!(" {:>6} {:>6} ", lines(file.added, "+"), lines(file.removed, "−")))
            .plain(&file.path)
    };
    files.iter().map(line).collect()
}

/// How much that is.
pub fn count(files: &[FileChange]) -> Line {
    Line::of(changed(&Changed::of(files)))
}

/// `5 files +96 −4, not committed`: what a session has made, in a few words. Empty where nothing is known, or nothing changed.
pub fn made(work: &Tree) -> String {
    let changed = work.last().map(|taken| self::changed(&taken.changed)).unwrap_or_default();
    let commits = work.commits.len() as u64;
    match (changed.is_empty(), commits) {
        (true, 0) => String::new(),
        (true, n) => words::plural(n, "commit", "commits"),
        (false, 0) => format!("{changed}, not committed"),
        (false, n) => format!("{changed}, {}", words::plural(n, "commit", "commits")),
    }
}

/// `worktree agent/x kept · 2 commits, 3 files uncommitted`: what became of a session's own work tree.
pub fn worktree(kept: &Kept) -> Line {
    let found = &kept.condition;
    let (tone, word) = match kept.standing {
        _ if kept.removed.is_some() => (Tone::Faint, "removed"),
        Standing::Live => (Tone::Plain, "in use"),
        Standing::Gone => (Tone::Warn, "gone"),
        Standing::Unknown => (Tone::Warn, "kept"),
        Standing::Uncommitted | Standing::Unmerged | Standing::Clean => (Tone::Plain, "kept"),
    };
    let commits = match (found.commits, found.unmerged) {
        (0, _) => String::new(),
        (made, 0) => format!("{}, merged", words::plural(made, "commit", "commits")),
        (made, _) => words::plural(made, "commit", "commits"),
    };
    let files = match found.uncommitted {
        0 => String::new(),
        n => format!("{} uncommitted", words::plural(n, "file", "files")),
    };
    let parts = [commits, files, found.busy.clone().unwrap_or_default()];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let why = kept.why.as_deref().map(|why| one_line(why, 200)).unwrap_or_default();
    Line::joined([
        Line::toned(tone, format!("worktree {} {word}", one_line(&kept.worktree.branch, 80))),
        Line::of(parts.join(", ")),
        Line::toned(Tone::Warn, why),
    ])
}

/// What `show` says of it: the branch it is on by now, what was made, and which snapshots there are.
pub fn work(session: &Session, work: &Tree) -> Option<Line> {
    let branch = work.branch.as_deref().filter(|branch| session.branch.as_deref() != Some(*branch));
    let last = work.last().map(|taken| format!("snapshot of turn {}", taken.turn)).unwrap_or_default();
    let missing = work.snapshots.last().filter(|taken| taken.commit.is_none());
    let missing = missing.and_then(|taken| taken.why.as_deref());
    let line = Line::joined([
        work.worktree.as_ref().map(worktree).unwrap_or_default(),
        Line::of(branch.map(|branch| format!("now on {}", one_line(branch, 80))).unwrap_or_default()),
        // Of its own tree there is more to say than what differs.
        Line::of(if work.worktree.is_none() { made(work) } else { String::new() }),
        Line::new().faint(last),
        missing.map_or_else(Line::new, |why| {
            Line::toned(Tone::Warn, format!("no snapshot since: {}", one_line(why, 200)))
        }),
    ]);
    (!line.is_empty()).then_some(line)
}

/// Where a line comes from.
pub fn blamed(blamed: &Blamed, session: &Session) -> Vec<Line> {
    let mut lines = vec![field(
        "line",
        Line::of(format!("{}:{}", blamed.path, blamed.line)).faint("  ").plain(blamed.text.trim()),
    )];
    let who = session.id.short();
    let from = match blamed.snapshot.cause {
        Cause::Start => format!("it was there before session {} ({who}) began", session.name),
        Cause::Rewind | Cause::Removal => {
            format!("it was changed after turn {} of {} ({who})", blamed.snapshot.turn, session.name)
        }
        Cause::Turn => format!("turn {} of {} ({who})", blamed.snapshot.turn, session.name),
    };
    let model = session.model.as_deref().map(|model| format!(" · {model}")).unwrap_or_default();
    lines.push(field("from", Line::of(from).faint(format!(" · {}{model}", session.provider))));
    if let Some(prompt) = &blamed.prompt {
        lines.push(field("prompt", Line::of(one_line(prompt, PROMPT))));
    }
    if let Some(cost) = blamed.cost {
        lines.push(field("cost", Line::of(cost.to_string()).faint(" for the turn")));
    }
    lines
}
