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
        check(id)?;
        let mut file = OpenOptions::new().read(true).append(true).open(path(dir, id))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let whole = whole(&bytes);
        if whole < bytes.len() {
            file.set_len(whole as u64)?;
            file.seek(SeekFrom::End(0))?;
        }
        let entries = entries(&bytes[..whole])?;
        Ok((Self { file }, entries))
    }

    fn read(dir: &Path, id: &str) -> io::Result<Vec<Entry>> {
        check(id)?;
        let bytes = fs::read(path(dir, id))?;
        entries(&bytes[..whole(&bytes)])
    }

    /// A new conversation that begins with what another one has; that one is only read.
    pub(super) fn copy(dir: &Path, from: &str, id: &str) -> io::Result<(Self, Vec<Entry>)> {
        let entries = Self::read(dir, from)?;
        let mut copy = Self::create(dir, id)?;
        entries.iter().try_for_each(|entry| copy.add(entry))?;
        Ok((copy, entries))
    }

    pub(super) fn add(&mut self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.file.sync_data()
    }
}

fn check(id: &str) -> io::Result<()> {
    let unknown = || io::Error::new(io::ErrorKind::NotFound, "no such conversation");
    is_plain(id).then_some(()).ok_or_else(unknown)
}

/// How much of a file is whole lines.
fn whole(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

fn entries(bytes: &[u8]) -> io::Result<Vec<Entry>> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let read = |line: &[u8]| {
        serde_json::from_slice(line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    };
    lines.map(read).collect()
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
    fn a_copy_goes_its_own_way() {
        let dir = tempfile::tempdir().unwrap();
        Journal::create(dir.path(), "abc").unwrap().add(&said("one")).unwrap();
        let (mut copy, entries) = Journal::copy(dir.path(), "abc", "def").unwrap();
        assert_eq!(entries, [said("one")]);
        copy.add(&said("two")).unwrap();
        assert_eq!(Journal::open(dir.path(), "abc").unwrap().1, [said("one")]);
        assert_eq!(Journal::open(dir.path(), "def").unwrap().1, [said("one"), said("two")]);
        assert!(Journal::copy(dir.path(), "../abc", "ghi").is_err());
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
