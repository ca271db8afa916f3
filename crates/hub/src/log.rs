//! What a hub has of one node's log: the newest events, on lines, in two files of which the older goes when the newer is
//! full. A line is durable before the node hears of it.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use ostler_domain::{
    Reason, Refusal,
    hub::{Forwarded, fresh},
    limits::HUB_KEPT_EVENTS,
};

use crate::keys::make_private;

#[derive(Debug)]
pub(crate) struct Log {
    dir: PathBuf,
    file: File,
    older: Index,
    newer: Index,
    /// The place of the last event; none, and there was never any.
    last: Option<u64>,
}

/// Why nobody can go on from a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoPlace {
    EndsBefore,
    /// With this one: what came between is gone.
    BeginsBehind(u64),
}

impl NoPlace {
    pub(crate) fn refusal(self, after: u64) -> Refusal {
        let why = match self {
            NoPlace::EndsBefore => "it ends before it: the machine's was put back from a copy".to_owned(),
            NoPlace::BeginsBehind(first) => {
                format!("it begins with {first} by now: a hub keeps the newest events alone")
            }
        };
        Refusal::new(Reason::CursorUnknown, format!("the log has no place {after}")).because(why)
    }
}

/// Where the lines of a file begin, and which events they are.
#[derive(Debug, Default)]
struct Index {
    lines: Vec<(u64, u64)>,
    bytes: u64,
}

impl Index {
    /// Of whole lines: what was cut off when a hub died was never acknowledged.
    fn read(path: &Path) -> io::Result<Index> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Index::default()),
            Err(error) => return Err(error),
        };
        let (mut reader, mut line, mut index) = (BufReader::new(file), Vec::new(), Index::default());
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line)?;
            if read == 0 || !line.ends_with(b"\n") {
                return Ok(index);
            }
            // Whoever can read no line of it reads the others.
            if let Ok(event) = serde_json::from_slice::<Forwarded>(&line) {
                index.lines.push((event.seq, index.bytes));
            }
            index.bytes += read as u64;
        }
    }

    /// Where the first event behind a place begins.
    fn behind(&self, after: u64) -> Option<u64> {
        let place = self.lines.partition_point(|(seq, _)| *seq <= after);
        self.lines.get(place).map(|(_, offset)| *offset)
    }
}

const NEWER: &str = "newer.jsonl";
const OLDER: &str = "older.jsonl";

impl Log {
    pub(crate) fn open(dir: &Path) -> io::Result<Log> {
        make_private(dir)?;
        let (older, newer) = (Index::read(&dir.join(OLDER))?, Index::read(&dir.join(NEWER))?);
        let file = append(&dir.join(NEWER))?;
        file.set_len(newer.bytes)?;
        let last = newer.lines.last().or(older.lines.last()).map(|(seq, _)| *seq);
        Ok(Log { dir: dir.to_owned(), file, older, newer, last })
    }

    pub(crate) fn last(&self) -> Option<u64> {
        self.last
    }

    /// Whether whoever has everything up to a place misses nothing when they go on from there. At 0 is who has nothing.
    pub(crate) fn check(&self, after: u64) -> Result<(), NoPlace> {
        if self.last.unwrap_or(0) < after {
            return Err(NoPlace::EndsBefore);
        }
        let first = self.older.lines.first().or(self.newer.lines.first()).map(|(seq, _)| *seq);
        match first {
            Some(first) if after > 0 && after + 1 < first => Err(NoPlace::BeginsBehind(first)),
            _ => Ok(()),
        }
    }

    /// Takes what is new, durably, and says up to where it has the log.
    pub(crate) fn take(&mut self, events: Vec<Forwarded>) -> io::Result<Option<u64>> {
        let (mut bytes, mut lines) = (Vec::new(), Vec::new());
        for event in fresh(self.last.unwrap_or(0), events) {
            lines.push((event.seq, self.newer.bytes + bytes.len() as u64));
            serde_json::to_writer(&mut bytes, &event)?;
            bytes.push(b'\n');
        }
        let Some((last, _)) = lines.last().copied() else { return Ok(self.last) };
        if let Err(error) = self.file.write_all(&bytes).and_then(|()| self.file.sync_data()) {
            // A disk that was full in the middle of a line.
            let _ = self.file.set_len(self.newer.bytes);
            return Err(error);
        }
        self.newer.bytes += bytes.len() as u64;
        self.newer.lines.append(&mut lines);
        self.last = Some(last);
        if self.newer.lines.len() as u64 >= HUB_KEPT_EVENTS {
            fs::rename(self.dir.join(NEWER), self.dir.join(OLDER))?;
            self.older = std::mem::take(&mut self.newer);
            self.file = append(&self.dir.join(NEWER))?;
        }
        Ok(self.last)
    }

    /// The node's log ends before this one: it was put back, and goes another way from there.
    pub(crate) fn forget(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        let _ = fs::remove_file(self.dir.join(OLDER));
        (self.older, self.newer, self.last) = (Index::default(), Index::default(), None);
        Ok(())
    }

    /// The first so many behind a place.
    pub(crate) fn read(&self, after: u64, most: usize) -> io::Result<Vec<Forwarded>> {
        let mut found = Vec::new();
        for (name, index) in [(OLDER, &self.older), (NEWER, &self.newer)] {
            let Some(offset) = index.behind(after).filter(|_| found.len() < most) else { continue };
            let mut file = File::open(self.dir.join(name))?;
            file.seek(SeekFrom::Start(offset))?;
            for line in BufReader::new(file.take(index.bytes - offset)).lines() {
                let Ok(event) = serde_json::from_str::<Forwarded>(&line?) else { continue };
                found.push(event);
                if found.len() == most {
                    break;
                }
            }
        }
        Ok(found)
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn events(range: std::ops::RangeInclusive<u64>) -> Vec<Forwarded> {
        range.map(|seq| Forwarded { seq, event: json!({ "seq": seq }) }).collect()
    }

    fn seqs(log: &Log, after: u64) -> Vec<u64> {
        log.read(after, usize::MAX).unwrap().iter().map(|event| event.seq).collect()
    }

    #[test]
    fn an_event_is_kept_once_and_a_line_that_was_cut_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::open(dir.path()).unwrap();
        assert_eq!(log.last(), None);
        assert_eq!(log.take(events(3..=6)).unwrap(), Some(6));
        assert_eq!(log.take(events(4..=8)).unwrap(), Some(8));
        drop(log);
        let mut torn = OpenOptions::new().append(true).open(dir.path().join("newer.jsonl")).unwrap();
        torn.write_all(b"{\"seq\":9,\"ev").unwrap();
        let mut log = Log::open(dir.path()).unwrap();
        assert_eq!(log.last(), Some(8));
        log.take(events(9..=9)).unwrap();
        assert_eq!(seqs(&log, 4), [5, 6, 7, 8, 9]);
        log.forget().unwrap();
        assert_eq!((log.last(), seqs(&log, 0).len()), (None, 0));
    }

    #[test]
    fn the_oldest_go_and_it_stays_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::open(dir.path()).unwrap();
        for first in (1..=4 * HUB_KEPT_EVENTS).step_by(500) {
            log.take(events(first..=first + 499)).unwrap();
        }
        let kept = seqs(&log, 0);
        assert!(
            kept.len() as u64 >= HUB_KEPT_EVENTS && kept.len() as u64 <= 2 * HUB_KEPT_EVENTS,
            "{}",
            kept.len()
        );
        let last = 4 * HUB_KEPT_EVENTS;
        assert_eq!(kept.last(), Some(&last));
        assert_eq!((log.check(0), log.check(kept[0] - 1), log.check(last)), (Ok(()), Ok(()), Ok(())));
        assert_eq!(log.check(kept[0] - 2), Err(NoPlace::BeginsBehind(kept[0])), "something between is gone");
        assert_eq!(log.check(last + 1), Err(NoPlace::EndsBefore));
        drop(log);
        assert_eq!(
            Log::open(dir.path()).unwrap().last(),
            Some(4 * HUB_KEPT_EVENTS),
            "also right behind a change"
        );
    }
}
