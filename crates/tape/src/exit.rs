//! How a session's agent ended: `tape.exit`, a file of its own, so that a full disk cannot lose it.
//!
//! It is written with zeroes and synced before the agent starts, and overwritten in place when it has ended.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use ostler_domain::{limits::EXIT_RECORD_BYTES, session::OutOfMemory};
use serde::{Deserialize, Serialize};

use crate::files;
use crate::record::{HEADER_BYTES, Parsed, Record, Stream, parse};

pub const EXIT_FILE: &str = "tape.exit";

/// The file has no segment header and holds one record, so there is nothing to confuse it with.
const SALT: u32 = 0;

/// The last word on a session's agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    pub how: How,
    /// Set if someone asked for the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<AskedStop>,
    /// The rung of the stop ladder that was being tried when the agent ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung: Option<String>,
    /// The kernel killed a process of the tree for want of memory.
    #[serde(default)]
    pub oom: bool,
    /// What was seen of its memory, where it was ended for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<OutOfMemory>,
    /// What else was still running in the tree; killed since.
    #[serde(default)]
    pub leftovers: Vec<ProcessName>,
    /// Printed by the agent, but the tape could not be written.
    #[serde(default)]
    pub untaped_bytes: u64,
    pub tape_end: u64,
    pub last_input_no: u64,
    pub time_us: i64,
    pub written_by: WrittenBy,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum How {
    Exited {
        code: i32,
    },
    Signaled {
        signal: i32,
        core: bool,
    },
    /// The program never ran.
    NeverStarted {
        stage: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        errno: Option<i32>,
        message: String,
        /// What helps; empty where nothing is known to.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        hint: String,
    },
    /// Nobody saw the end: the keeper or its init died first.
    Lost {
        reason: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedStop {
    pub by: String,
    pub rule: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessName {
    pub pid: u32,
    pub name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WrittenBy {
    Keeper,
    Daemon,
}

#[derive(Debug, thiserror::Error)]
pub enum ExitError {
    #[error("failed to read the exit record")]
    Io(#[from] io::Error),
    #[error("the exit record is torn or damaged")]
    Damaged,
    #[error("the exit record is not understood")]
    Foreign(#[from] serde_json::Error),
}

impl ExitRecord {
    /// The exit record in `dir`; nothing while the agent has not ended.
    pub fn read(dir: &Path) -> Result<Option<ExitRecord>, ExitError> {
        let Some(file) = files::open_existing(&dir.join(EXIT_FILE))? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(EXIT_RECORD_BYTES as u64).read_to_end(&mut bytes)?;
        if bytes.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        match parse(&bytes, SALT) {
            Parsed::Record(record) if record.stream == Stream::Exit => {
                Ok(Some(serde_json::from_slice(record.payload)?))
            }
            _ => Err(ExitError::Damaged),
        }
    }

    /// The record as JSON that fits. Only the leftovers can be many; the last ones go.
    fn fitted(&self) -> io::Result<Vec<u8>> {
        let mut record = self.clone();
        loop {
            let json = serde_json::to_vec(&record)?;
            if HEADER_BYTES + json.len() <= EXIT_RECORD_BYTES {
                return Ok(json);
            }
            if record.leftovers.is_empty() {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "exit record too long"));
            }
            record.leftovers.truncate(record.leftovers.len() / 2);
        }
    }
}

/// The place for the exit record.
#[derive(Debug)]
pub struct ExitFile {
    file: File,
}

impl ExitFile {
    /// Makes the file, or finds it.
    pub fn prepare(dir: &Path) -> io::Result<ExitFile> {
        let file = files::open_or_create(&dir.join(EXIT_FILE))?;
        if file.metadata()?.len() < EXIT_RECORD_BYTES as u64 {
            // Zeroes that are really written: a hole would need space at the worst moment.
            file.write_all_at(&[0; EXIT_RECORD_BYTES], 0)?;
        }
        Ok(ExitFile { file })
    }

    /// Has the disk give it its blocks, which are the session's from here on, and its name in `dir`.
    pub fn secure(&self, dir: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        files::sync_dir(dir)
    }

    /// Writes the record in place; it is durable on return.
    pub fn write(&self, record: &ExitRecord) -> io::Result<()> {
        let json = record.fitted()?;
        let mut bytes = Vec::with_capacity(EXIT_RECORD_BYTES);
        Record::line(Stream::Exit, record.time_us, &json).encode(SALT, &mut bytes);
        bytes.resize(EXIT_RECORD_BYTES, 0);
        self.file.write_all_at(&bytes, 0)?;
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(leftovers: usize) -> ExitRecord {
        let name = |pid| ProcessName { pid, name: "sleep".into() };
        ExitRecord {
            how: How::Signaled { signal: 9, core: false },
            asked: Some(AskedStop { by: "ada".into(), rule: "stop".into() }),
            rung: Some("kill".into()),
            oom: false,
            memory: None,
            leftovers: (0..leftovers as u32).map(name).collect(),
            untaped_bytes: 0,
            tape_end: 77,
            last_input_no: 3,
            time_us: 5,
            written_by: WrittenBy::Keeper,
        }
    }

    #[test]
    fn zeroes_mean_not_yet_and_writing_is_once_in_place() {
        let dir = tempfile::tempdir().unwrap();
        assert!(ExitRecord::read(dir.path()).unwrap().is_none());
        let file = ExitFile::prepare(dir.path()).unwrap();
        assert!(ExitRecord::read(dir.path()).unwrap().is_none());
        file.write(&record(1)).unwrap();
        assert_eq!(ExitRecord::read(dir.path()).unwrap(), Some(record(1)));
        ExitFile::prepare(dir.path()).unwrap();
        assert_eq!(ExitRecord::read(dir.path()).unwrap(), Some(record(1)), "preparing again keeps it");
        assert_eq!(dir.path().join(EXIT_FILE).metadata().unwrap().len(), EXIT_RECORD_BYTES as u64);
    }

    #[test]
    fn damage_is_an_error_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let file = ExitFile::prepare(dir.path()).unwrap();
        file.write(&record(0)).unwrap();
        file.file.write_all_at(b"x", 40).unwrap();
        assert!(matches!(ExitRecord::read(dir.path()), Err(ExitError::Damaged)));
    }

    #[test]
    fn many_leftovers_are_cut_to_fit() {
        let dir = tempfile::tempdir().unwrap();
        ExitFile::prepare(dir.path()).unwrap().write(&record(10_000)).unwrap();
        let read = ExitRecord::read(dir.path()).unwrap().unwrap();
        assert!((100..10_000).contains(&read.leftovers.len()));
    }
}
