//! Reading a tape that may still be written: whole records from any offset on, across segments.
//!
//! Damage is skipped and reported, never fatal. Bytes at the very end that are no whole record are not damage:
//! they are not there yet.

use std::io;
use std::path::{Path, PathBuf};

use crate::record::{Flags, HEADER_BYTES, Parsed, RECORD_BYTES, Record, Stream, parse};
use crate::segment::list_segments;
use crate::source::{OpenSegment, Opened};

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("failed to read the tape {path}")]
    Io { path: PathBuf, source: io::Error },
    #[error("the tape {path} has format {version}, which is newer than this program")]
    Newer { path: PathBuf, version: u32 },
}

impl ReadError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> ReadError {
        move |source| ReadError::Io { path: path.into(), source }
    }
}

/// A stretch of the tape that cannot be read: flipped bits, lost blocks, a deleted segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    pub from: u64,
    pub to: u64,
}

/// A record and where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapeRecord<'a> {
    pub start: u64,
    pub end: u64,
    pub record: Record<'a>,
}

/// Records that were read at once; they share one buffer.
#[derive(Debug, Default)]
pub struct Batch {
    /// Where the next batch begins.
    pub next: u64,
    pub damage: Vec<Damage>,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    start: u64,
    stream: Stream,
    flags: Flags,
    time_us: i64,
    payload_at: usize,
    payload_len: usize,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn records(&self) -> impl DoubleEndedIterator<Item = TapeRecord<'_>> + ExactSizeIterator {
        self.entries.iter().map(|entry| TapeRecord {
            start: entry.start,
            end: entry.start + (HEADER_BYTES + entry.payload_len) as u64,
            record: Record {
                stream: entry.stream,
                flags: entry.flags,
                time_us: entry.time_us,
                payload: &self.bytes[entry.payload_at..entry.payload_at + entry.payload_len],
            },
        })
    }

    fn skip_to(&mut self, offset: u64) {
        if offset > self.next {
            self.damage.push(Damage { from: self.next, to: offset });
            self.next = offset;
        }
    }

    /// Takes every whole record at the start of `bytes`, which lie at `self.next`; returns how far they reach.
    fn take(&mut self, bytes: &[u8], salt: u32) -> usize {
        let origin = self.next;
        let mut at = 0;
        loop {
            match parse(&bytes[at..], salt) {
                Parsed::Record(record) => {
                    self.entries.push(Entry {
                        start: origin + at as u64,
                        stream: record.stream,
                        flags: record.flags,
                        time_us: record.time_us,
                        payload_at: at + HEADER_BYTES,
                        payload_len: record.payload.len(),
                    });
                    at += record.tape_bytes();
                    self.next = origin + at as u64;
                }
                Parsed::Incomplete => return at,
                Parsed::Damaged => match next_record(bytes, at + 1, salt) {
                    Some(found) => {
                        at = found;
                        self.skip_to(origin + at as u64);
                    }
                    None => return at,
                },
            }
        }
    }
}

fn next_record(bytes: &[u8], from: usize, salt: u32) -> Option<usize> {
    (from..bytes.len()).find(|&at| matches!(parse(&bytes[at..], salt), Parsed::Record(_)))
}

/// Reads one session's tape. Reading onwards is cheap; going back in a compressed segment decompresses it anew.
#[derive(Debug)]
pub struct Reader {
    dir: PathBuf,
    open: Option<OpenSegment>,
}

impl Reader {
    /// The directory may still be empty: a tape begins with its first record.
    pub fn open(dir: &Path) -> Result<Reader, ReadError> {
        std::fs::metadata(dir).map_err(ReadError::io(dir))?;
        Ok(Reader { dir: dir.to_owned(), open: None })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Reads about `max_bytes` of records from `offset` on: more if a single record is longer, fewer at the end
    /// of a segment, none at the end of the tape.
    pub fn read_from(&mut self, offset: u64, max_bytes: usize) -> Result<Batch, ReadError> {
        let mut batch = Batch { next: offset, ..Batch::default() };
        while let Some(mut segment) = self.segment_for(batch.next)? {
            batch.skip_to(segment.base());
            segment.read_into(&mut batch, max_bytes).map_err(ReadError::io(&self.dir))?;
            if !batch.is_empty() {
                self.open = Some(segment);
                break;
            }
            match segment.successor() {
                // Known to be complete before it was read, so what is left of it will never be a record.
                Some(successor) => batch.skip_to(successor),
                None => {
                    let successor = self.base_after(segment.base())?;
                    let at_the_end = successor.is_none();
                    // It may have grown between our reading and its successor's appearing: look again.
                    segment.set_successor(successor);
                    self.open = Some(segment);
                    if at_the_end {
                        break;
                    }
                }
            }
        }
        Ok(batch)
    }

    /// The segment that holds `offset`, or the first one after it.
    fn segment_for(&mut self, offset: u64) -> Result<Option<OpenSegment>, ReadError> {
        if let Some(open) = self.open.take_if(|open| open.holds(offset)) {
            return Ok(Some(open));
        }
        self.open = None;
        let segments = list_segments(&self.dir).map_err(ReadError::io(&self.dir))?;
        let first_after = segments.partition_point(|segment| segment.base <= offset);
        for index in first_after.saturating_sub(1)..segments.len() {
            let successor = segments.get(index + 1).map(|segment| segment.base);
            match OpenSegment::open(&self.dir, segments[index], successor)? {
                Opened::Segment(segment) => return Ok(Some(segment)),
                // Without its header no record in it can be checked: the reader goes on behind it.
                Opened::Unreadable => continue,
            }
        }
        Ok(None)
    }

    fn base_after(&self, base: u64) -> Result<Option<u64>, ReadError> {
        let segments = list_segments(&self.dir).map_err(ReadError::io(&self.dir))?;
        Ok(segments.iter().map(|segment| segment.base).find(|&other| other > base))
    }
}

impl OpenSegment {
    fn read_into(&mut self, batch: &mut Batch, max_bytes: usize) -> io::Result<()> {
        let mut bytes = Vec::new();
        let mut want = max_bytes.max(HEADER_BYTES);
        loop {
            let reached_end = self.fill(&mut bytes, batch.next, want)?;
            let before = batch.next;
            let consumed = batch.take(&bytes, self.salt());
            debug_assert_eq!(before + consumed as u64, batch.next);
            if consumed > 0 || reached_end {
                self.keep_rest(batch.next, &bytes[consumed..]);
                break;
            }
            want = (want * 2).max(RECORD_BYTES);
        }
        batch.bytes = bytes;
        Ok(())
    }
}
