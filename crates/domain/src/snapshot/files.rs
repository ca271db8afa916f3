//! Which files differ, from git's own list of them.

use super::Changed;

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: String,
    pub status: FileStatus,
    /// Lines; none of a file that has none.
    pub added: Option<u64>,
    pub removed: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileStatus {
    Added,
    Changed,
    Removed,
}

impl FileStatus {
    pub const ALL: &'static [FileStatus] = &[FileStatus::Added, FileStatus::Changed, FileStatus::Removed];

    pub const fn as_str(self) -> &'static str {
        match self {
            FileStatus::Added => "added",
            FileStatus::Changed => "changed",
            FileStatus::Removed => "removed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|status| status.as_str() == text)
    }
}

/// Reads `git diff-tree --raw --numstat -z --no-renames`: first what became of each file, then its lines.
pub fn files(bytes: &[u8]) -> Vec<FileChange> {
    let mut found: Vec<FileChange> = Vec::new();
    let mut fields = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    while let Some(field) = fields.next() {
        if let Some(raw) = field.strip_prefix(':') {
            let status = match raw.rsplit(' ').next().and_then(|letter| letter.chars().next()) {
                Some('A') => FileStatus::Added,
                Some('D') => FileStatus::Removed,
                _ => FileStatus::Changed,
            };
            let Some(path) = fields.next() else { break };
            found.push(FileChange { path: path.into_owned(), status, added: None, removed: None });
            continue;
        }
        let mut parts = field.splitn(3, '\t');
        let (Some(added), Some(removed), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        if let Some(file) = found.iter_mut().find(|file| file.path == path) {
            (file.added, file.removed) = (added.parse().ok(), removed.parse().ok());
        }
    }
    found
}

impl Changed {
    /// The sum over files.
    pub fn of(files: &[FileChange]) -> Self {
        Changed {
            files: files.len() as u64,
            added: files.iter().filter_map(|file| file.added).sum(),
            removed: files.iter().filter_map(|file| file.removed).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_their_lines_are_joined() {
        let bytes =
            b":100644 100644 aa bb M\0a b.txt\0:000000 100644 00 cc A\0new\0:100644 000000 dd 00 D\0gone\0\
            3\t1\ta b.txt\0-\t-\tnew\0\x30\t7\tgone\0";
        let found = files(bytes);
        let told: Vec<_> =
            found.iter().map(|f| (f.path.as_str(), f.status.as_str(), f.added, f.removed)).collect();
        assert_eq!(
            told,
            [
                ("a b.txt", "changed", Some(3), Some(1)),
                ("new", "added", None, None),
                ("gone", "removed", Some(0), Some(7))
            ]
        );
        assert_eq!(Changed::of(&found), Changed { files: 3, added: 3, removed: 8 });
        assert!(files(b"").is_empty());
    }
}
