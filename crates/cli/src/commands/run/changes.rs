//! What a run did to the files of a git repository: looked at before and after it, in the campaign's sandbox. Nothing of
//! git is run outside of one: an agent may have said what it runs.

use std::time::Duration;

use ostler_client::{Campaign, Client, PrepareCommand, Session};
use ostler_domain::snapshot::FileChange;
use serde::Serialize;

use super::check::in_sandbox;
use crate::{app::App, worktree_form::KeptForm};

/// A repository that takes longer to look at is not looked at.
const LOOKED_WITHIN: Duration = Duration::from_secs(60);

/// Everything as it is, ignored files excepted, as a tree of its own; the index that people use stays as it is.
const LOOK: &str = r#"
set -e
[ "$(git rev-parse --show-prefix)" = "" ]
index=$(mktemp)
cp "$(git rev-parse --git-path index)" "$index" 2>/dev/null || rm -f "$index"
export GIT_INDEX_FILE=$index
# Hidden files cannot be read here, and are nobody's work.
git add -A --ignore-errors >/dev/null 2>&1 || :
git write-tree
git rev-parse -q --verify HEAD || echo none
"#;

/// A repository at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Snapshot {
    tree: String,
    head: String,
}

/// `{"path":"src/a.rs","added":12,"removed":3}`
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct FileForm {
    path: String,
    /// None for files that have no lines.
    added: Option<u64>,
    removed: Option<u64>,
}

/// What was changed and committed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Changes {
    pub(super) files: Vec<FileForm>,
    pub(super) commits: Vec<String>,
}

/// The repository as it is now; none where the campaign is none, or cannot be looked at.
pub(super) async fn look(app: &App, client: &Client, campaign: &Campaign) -> Option<Snapshot> {
    let output = sh(app, client, campaign, LOOK.to_owned()).await?;
    let mut lines = output.lines();
    let (tree, head) = (lines.next()?.to_owned(), lines.next()?.to_owned());
    is_name(&tree).then_some(Snapshot { tree, head })
}

/// What has changed since.
pub(super) async fn since(
    app: &App,
    client: &Client,
    campaign: &Campaign,
    before: &Snapshot,
) -> Option<Changes> {
    let after = look(app, client, campaign).await?;
    let range = match (is_name(&before.head), is_name(&after.head)) {
        (true, true) => format!("{}..{}", before.head, after.head),
        (false, true) => after.head.clone(),
        (_, false) => String::new(),
    };
    let log = if range.is_empty() { String::new() } else { format!("git log --format=%H {range}") };
    let line = format!(
        "set -e\ngit diff-tree -r --no-renames --no-ext-diff --no-textconv --numstat {} {}\necho\n{log}",
        before.tree, after.tree
    );
    Some(read(&sh(app, client, campaign, line).await?))
}

/// What a session with a work tree of its own has made there, by its snapshots, and how the tree stands.
pub(super) async fn in_worktree(client: &Client, session: &Session) -> (Option<Changes>, Option<KeptForm>) {
    let who = session.id.to_string();
    let Ok(tree) = client.tree(&who).await else { return (None, None) };
    let form = |file: FileChange| FileForm { path: file.path, added: file.added, removed: file.removed };
    let files = client.difference(&who, "", false).await.ok();
    let changes = files.map(|difference| Changes {
        files: difference.files.into_iter().map(form).collect(),
        commits: tree.commits.iter().map(|commit| commit.hash.clone()).collect(),
    });
    (changes, tree.worktree.as_ref().map(KeptForm::new))
}

async fn sh(app: &App, client: &Client, campaign: &Campaign, line: String) -> Option<String> {
    let wanted = PrepareCommand {
        campaign: campaign.id.to_string(),
        argv: vec!["sh".to_owned(), "-c".to_owned(), line],
        unlisted: true,
        directory: None,
        session: None,
    };
    let ended = in_sandbox(app, client, wanted, Some(LOOKED_WITHIN)).await.ok()?;
    ended.passed().then_some(ended.output)
}

/// Git's name of an object.
fn is_name(text: &str) -> bool {
    text.len() >= 40 && text.chars().all(|c| c.is_ascii_hexdigit())
}

/// Lines of numbers and paths, an empty one, and the names of commits.
fn read(text: &str) -> Changes {
    let mut changes = Changes::default();
    for line in text.lines() {
        let mut parts = line.splitn(3, '\t');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(added), Some(removed), Some(path)) => changes.files.push(FileForm {
                path: unquoted(path),
                added: added.parse().ok(),
                removed: removed.parse().ok(),
            }),
            (Some(name), None, None) if is_name(name) => changes.commits.push(name.to_owned()),
            _ => {}
        }
    }
    changes
}

/// Git quotes a path with characters that are not plain.
fn unquoted(path: &str) -> String {
    let Some(inside) = path.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return path.to_owned();
    };
    let mut bytes = Vec::with_capacity(inside.len());
    let mut rest = inside.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(first @ b'0'..=b'3') => {
                let octal = [first, rest.next().unwrap_or(b'0'), rest.next().unwrap_or(b'0')];
                bytes.push(
                    octal.iter().fold(0_u8, |sum, digit| sum.wrapping_mul(8).wrapping_add(digit - b'0')),
                );
            }
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_says_is_read() {
        let name = "0123456789abcdef0123456789abcdef01234567";
        let text = format!("12\t3\tsrc/a.rs\n-\t-\tlogo.png\n1\t0\t\"\\303\\251 \\\"x\\\".txt\"\n\n{name}\n");
        let changes = read(&text);
        let file = |path: &str, added, removed| FileForm { path: path.to_owned(), added, removed };
        assert_eq!(
            changes.files,
            [
                file("src/a.rs", Some(12), Some(3)),
                file("logo.png", None, None),
                file("é \"x\".txt", Some(1), Some(0))
            ]
        );
        assert_eq!(changes.commits, [name]);
    }
}
