//! A conversation on disk: one line for each entry, added and synced as it happens, so that a kill loses at most
//! what was not yet said.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::conversation::Entry;

/// The file of one conversation.
pub(super) struct Journal {
    file: File,
}

impl Journal {
    /// Where conversations are kept below a home directory.
    pub(super) fn dir(home: &Path) -> PathBuf {
        home.join(".ostler-agent").join("sessions")
    }

    pub(super) fn create(dir: &Path, id: &str) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path(dir, id))?;
        Ok(Self { file })
    }

    /// Opens a conversation and reads what it has. A last line that was cut off is removed: it was never acted upon.
    pub(super) fn open(dir: &Path, id: &str) -> io::Result<(Self, Vec<Entry>)> {
        if !is_plain(id) {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no such conversation"));
        }
        let mut file = OpenOptions::new().read(true).append(true).open(path(dir, id))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64)?;
            file.seek(SeekFrom::End(0))?;
        }
        let lines = bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let entries = lines
            .map(|line| {
                serde_json::from_slice(line)
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
            })
            .collect::<io::Result<_>>()?;
        Ok((Self { file }, entries))
    }

    pub(super) fn add(&mut self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.file.sync_data()
    }
}

/// Ids are ours: letters, digits and dashes. Nothing else becomes a path.
fn is_plain(id: &str) -> bool {
    !id.is_empty() && id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn path(dir: &Path, id: &str) -> PathBuf {
    dir.join(format!("{id}.jsonl"))
}

#[cfg(test)]
mod tests {
    use super::{super::conversation::Item, *};

    fn said(text: &str) -> Entry {
        Entry::Said(Item::User { text: text.into() })
    }

    #[test]
    fn what_was_added_is_there_and_a_cut_line_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(dir.path(), "abc").unwrap();
        journal.add(&said("one")).unwrap();
        journal.add(&said("two")).unwrap();
        drop(journal);
        let file = path(dir.path(), "abc");
        let whole = fs::read(&file).unwrap();
        fs::write(&file, [&whole[..], b"{\"type\":\"sa"].concat()).unwrap();
        let (mut journal, entries) = Journal::open(dir.path(), "abc").unwrap();
        assert_eq!(entries, [said("one"), said("two")]);
        journal.add(&said("three")).unwrap();
        assert_eq!(Journal::open(dir.path(), "abc").unwrap().1.len(), 3);
    }

    #[test]
    fn only_names_of_ours_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        for id in ["../x", "", "a/b", "nobody"] {
            assert_eq!(
                Journal::open(dir.path(), id).err().map(|error| error.kind()),
                Some(io::ErrorKind::NotFound),
                "{id}"
            );
        }
    }
}
