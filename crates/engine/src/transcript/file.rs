//! The file of a transcript. Only whoever has the lock of [`super::Transcripts`] writes it.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// Whether the file has what it should have. Behind that may be what a write that was cut short has left.
pub(super) fn is_whole(path: &Path, bytes: u64) -> bool {
    let Ok(file) = File::open(path) else { return bytes == 0 };
    let Ok(facts) = file.metadata() else { return false };
    let mut last = [0];
    facts.is_file()
        && facts.len() >= bytes
        && (bytes == 0 || (file.read_exact_at(&mut last, bytes - 1).is_ok() && last == *b"\n"))
}

/// The form that it has when all sessions of its conversation are archived.
pub(super) fn compressed(path: &Path) -> PathBuf {
    path.with_extension("jsonl.zst")
}

/// The same for a file that may be compressed: nobody writes to it then.
pub(super) fn is_whole_in_any_form(path: &Path, bytes: u64) -> bool {
    is_whole(path, bytes) || compressed(path).is_file()
}

/// A file of our own, empty.
pub(super) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Makes what a file is called durable.
pub(super) fn sync_dir(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}

/// Writes text at a place, and ends the file behind it.
pub(super) fn append(path: &Path, at: u64, text: &str) -> io::Result<()> {
    make_dir(path)?;
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    if file.metadata()?.len() != at {
        file.set_len(at)?;
    }
    file.write_all_at(text.as_bytes(), at)
}

/// A file that takes another one's place when it is whole.
pub(super) struct Fresh {
    file: io::BufWriter<File>,
    bytes: u64,
    temporary: PathBuf,
    path: PathBuf,
}

impl Fresh {
    pub(super) fn begin(path: &Path) -> io::Result<Fresh> {
        make_dir(path)?;
        let temporary = path.with_extension("jsonl.new");
        let file = create(&temporary)?;
        Ok(Fresh { file: io::BufWriter::new(file), bytes: 0, temporary, path: path.to_owned() })
    }

    pub(super) fn write(&mut self, text: &str) -> io::Result<()> {
        self.bytes += text.len() as u64;
        self.file.write_all(text.as_bytes())
    }

    /// How long it is.
    pub(super) fn finish(self) -> io::Result<u64> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_data()?;
        fs::rename(&self.temporary, &self.path)?;
        Ok(self.bytes)
    }
}

fn make_dir(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(dir) if !dir.is_dir() => fs::DirBuilder::new().recursive(true).mode(0o700).create(dir),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_write_that_was_cut_short_is_written_again_and_no_line_doubled() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cnv_1/transcript.jsonl");
        assert!(is_whole(&path, 0) && !is_whole(&path, 1));
        append(&path, 0, "one\n").unwrap();
        let next = "two\nthree\n";
        // Wherever the power, or a signal, cut the second write.
        for cut in 0..=next.len() {
            append(&path, 4, &next[..cut]).unwrap();
            assert!(is_whole(&path, 4), "{cut}");
            append(&path, 4, next).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\n", "{cut}");
        }
        // What should be there and is not.
        assert!(is_whole(&path, 14) && !is_whole(&path, 13) && !is_whole(&path, 15));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    }

    #[test]
    fn a_fresh_one_is_there_when_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cnv_1/transcript.jsonl");
        append(&path, 0, "old\n").unwrap();
        let mut fresh = Fresh::begin(&path).unwrap();
        fresh.write("new\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old\n");
        assert_eq!(fresh.finish().unwrap(), 4);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
    }
}
