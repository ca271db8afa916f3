//! Lines of a file that somebody else writes to: only whole ones, however long, in bounded memory.

use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use ostler_domain::{
    history::{PRINT_BYTES, Prints},
    limits::LINE_BYTES,
};
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

/// A line without its end. One that is too long is cut; its length is not.
pub(super) struct FileLine {
    pub(super) bytes: Vec<u8>,
    pub(super) start: u64,
    /// Behind its end.
    pub(super) next: u64,
}

pub(super) struct Lines {
    file: BufReader<File>,
    at: u64,
}

/// Opens a file of a store: a regular one, through no link, and without waiting for anybody.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    Ok(file)
}

impl Lines {
    pub(super) fn from(path: &Path, at: u64) -> io::Result<Lines> {
        let mut file = open(path)?;
        file.seek(SeekFrom::Start(at))?;
        Ok(Lines { file: BufReader::with_capacity(256 * 1024, file), at })
    }

    /// The next line that has an end.
    pub(super) fn next(&mut self) -> io::Result<Option<FileLine>> {
        let (start, mut bytes, mut next) = (self.at, Vec::new(), self.at);
        loop {
            let there = self.file.fill_buf()?;
            if there.is_empty() {
                return Ok(None);
            }
            let end = there.iter().position(|byte| *byte == b'\n');
            let piece = &there[..end.unwrap_or(there.len())];
            // One byte more than a line may have tells that it is too long.
            let room = (LINE_BYTES + 1).saturating_sub(bytes.len());
            bytes.extend_from_slice(&piece[..piece.len().min(room)]);
            let taken = piece.len() + usize::from(end.is_some());
            next += taken as u64;
            self.file.consume(taken);
            if end.is_some() {
                self.at = next;
                return Ok(Some(FileLine { bytes, start, next }));
            }
        }
    }
}

/// What tells a file's beginning and the end of what was read of it from others.
pub(super) fn prints(path: &Path, to: u64) -> io::Result<Prints> {
    let mut file = open(path)?;
    let mut print = |from: u64, bytes: u64| -> io::Result<String> {
        file.seek(SeekFrom::Start(from))?;
        let mut there = Vec::new();
        (&mut file).take(bytes).read_to_end(&mut there)?;
        Ok(Sha256::digest(&there).iter().take(16).map(|byte| format!("{byte:02x}")).collect())
    };
    let near = to.min(PRINT_BYTES);
    Ok(Prints { head: print(0, near)?, tail: print(to - near, near)? })
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn all(path: &Path, from: u64) -> Vec<(u64, u64, usize)> {
        let mut lines = Lines::from(path, from).unwrap();
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push((line.start, line.next, line.bytes.len()));
        }
        found
    }

    #[test]
    fn only_whole_lines_are_read_and_long_ones_are_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        fs::write(&path, "one\n\ntorn").unwrap();
        assert_eq!(all(&path, 0), [(0, 4, 3), (4, 5, 0)]);
        assert_eq!(all(&path, 4), [(4, 5, 0)]);
        assert_eq!(all(&path, 99), []);
        let long = LINE_BYTES + 100;
        fs::write(&path, format!("{}\nx\n", "a".repeat(long))).unwrap();
        let end = long as u64 + 1;
        assert_eq!(all(&path, 0), [(0, end, LINE_BYTES + 1), (end, end + 2, 1)]);
    }

    #[test]
    fn links_pipes_and_directories_are_no_files_of_a_store() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link.jsonl");
        symlink("/etc/passwd", &link).unwrap();
        assert!(open(&link).is_err());
        assert!(open(dir.path()).is_err());
        let pipe = dir.path().join("pipe.jsonl");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        assert!(open(&pipe).is_err(), "and nobody waits for one to write into it");
    }

    #[test]
    fn prints_show_what_was_put_in_the_place_of_what_was_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let text = "line\n".repeat(1_000);
        fs::write(&path, &text).unwrap();
        let before = prints(&path, 5_000).unwrap();
        fs::write(&path, format!("{text}more\n")).unwrap();
        assert_eq!(prints(&path, 5_000).unwrap(), before);
        fs::write(&path, text.replacen("line", "LINE", 1)).unwrap();
        assert_ne!(prints(&path, 5_000).unwrap(), before);
        fs::write(&path, format!("{}LINE\n", &text[..4_995])).unwrap();
        assert_ne!(prints(&path, 5_000).unwrap(), before);
    }
}
