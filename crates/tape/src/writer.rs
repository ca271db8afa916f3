//! Appending to a tape. One writer, the keeper; readers may look at any moment, so a record that was whole once
//! is never taken back.

use std::fs::File;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};

use crate::files;
use crate::reader::ReadError;
use crate::record::{HEADER_BYTES, PAYLOAD_BYTES, Record};
use crate::recover::{cut_torn_tail, set_aside, survey};
use crate::segment::{self, SEGMENT_HEADER_BYTES, Segment, SegmentHeader, list_segments};
use crate::source::{OpenSegment, Opened};

/// Records handed to the kernel in one call; two slices each must stay below its limit of 1024.
const RECORDS_PER_WRITE: usize = 512;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("failed to open the tape in {dir}")]
    Io { dir: PathBuf, source: io::Error },
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The tape could not take a batch. Its first `written` records are on the tape, nothing of the others is:
/// appending those again is the way to go on.
#[derive(Debug, thiserror::Error)]
#[error("failed to append to the tape")]
pub struct AppendError {
    pub written: usize,
    pub source: io::Error,
}

#[derive(Debug)]
pub struct Writer {
    dir: PathBuf,
    file: File,
    header: SegmentHeader,
    end: u64,
    last_input_no: u64,
    segment_bytes: u64,
}

impl Writer {
    /// Opens the tape in `dir`, making it if there is none. A tail that a dead writer left torn is cut off and
    /// kept in `tape.torn.<offset>`.
    pub fn open(dir: &Path, segment_bytes: u64) -> Result<Writer, OpenError> {
        let io = |source| OpenError::Io { dir: dir.to_owned(), source };
        let mut least_end = 0;
        let last = loop {
            let Some(&last) = list_segments(dir).map_err(io)?.last() else { break None };
            match OpenSegment::open(dir, last, None)? {
                Opened::Segment(_) => break Some(last),
                Opened::Unreadable => least_end = least_end.max(set_aside(dir, last).map_err(io)?),
            }
        };
        let found = survey(dir)?;
        let end = found.end.max(least_end);
        let (file, header) = match last {
            Some(last) if !last.compressed && found.end == end => {
                cut_torn_tail(dir, last, end).map_err(io)?;
                continue_segment(dir, last).map_err(io)?
            }
            // A compressed segment, or one set aside, is not continued: the tape goes on in a new one.
            _ => {
                let header = SegmentHeader { base: end, salt: fresh_salt().map_err(io)? };
                (segment::create(dir, header).map_err(io)?, header)
            }
        };
        let last_input_no = found.last_input_no;
        Ok(Writer { dir: dir.to_owned(), file, header, end, last_input_no, segment_bytes })
    }

    /// The absolute offset behind the last record.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The last complete input that was on the tape when it was opened.
    pub fn last_input_no(&self) -> u64 {
        self.last_input_no
    }

    /// Appends all of `records`, in one system call unless they are many, and returns the new end.
    pub fn append(&mut self, records: &[Record<'_>]) -> Result<u64, AppendError> {
        let mut written = 0;
        while written < records.len() {
            let rest = &records[written..];
            match self.append_some(&rest[..rest.len().min(RECORDS_PER_WRITE)]) {
                Ok(count) => written += count,
                Err(source) => {
                    // The next append overwrites half a record anyhow; cutting it spares readers the sight.
                    let _ = self.file.set_len(self.file_offset());
                    return Err(AppendError { written, source });
                }
            }
        }
        Ok(self.end)
    }

    /// Appends at least the first of `records` and returns how many are whole.
    fn append_some(&mut self, records: &[Record<'_>]) -> io::Result<usize> {
        if records.iter().any(|record| record.payload.len() > PAYLOAD_BYTES) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "payload longer than a piece"));
        }
        if self.end - self.header.base >= self.segment_bytes {
            self.rotate()?;
        }
        let headers: Vec<[u8; HEADER_BYTES]> =
            records.iter().map(|record| record.header(self.header.salt)).collect();
        let slices: Vec<IoSlice<'_>> = headers
            .iter()
            .zip(records)
            .flat_map(|(header, record)| [IoSlice::new(header), IoSlice::new(record.payload)])
            .collect();
        let offset = self.file_offset();
        let taken = rustix::io::retry_on_intr(|| rustix::io::pwritev(&self.file, &slices, offset))?;

        let mut whole = 0;
        let mut bytes = 0;
        for record in records {
            if bytes + record.tape_bytes() > taken {
                break;
            }
            bytes += record.tape_bytes();
            whole += 1;
        }
        self.end += bytes as u64;
        // The reason for a short write comes with the next attempt, unless there was no progress at all.
        if whole == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(whole) }
    }

    /// Makes everything on the tape durable. Not for the hot path: what survives a crash of every process needs
    /// no sync, and what must survive a power cut is in the data base.
    pub fn sync(&self) -> io::Result<()> {
        for segment in list_segments(&self.dir)?.iter().filter(|segment| !segment.compressed) {
            if let Some(file) = files::open_existing(&segment.path(&self.dir))? {
                file.sync_data()?;
            }
        }
        files::sync_dir(&self.dir)
    }

    fn rotate(&mut self) -> io::Result<()> {
        let header = SegmentHeader { base: self.end, salt: fresh_salt()? };
        self.file = segment::create(&self.dir, header)?;
        self.header = header;
        Ok(())
    }

    fn file_offset(&self) -> u64 {
        SEGMENT_HEADER_BYTES as u64 + (self.end - self.header.base)
    }
}

fn continue_segment(dir: &Path, segment: Segment) -> io::Result<(File, SegmentHeader)> {
    let file = files::open_or_create(&segment.path(dir))?;
    let mut header = [0; SEGMENT_HEADER_BYTES];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut header, 0)?;
    let header = SegmentHeader::decode(&header)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "segment header changed"))?;
    Ok((file, header))
}

fn fresh_salt() -> io::Result<u32> {
    let mut salt = [0; 4];
    rustix::rand::getrandom(&mut salt, rustix::rand::GetRandomFlags::empty())?;
    Ok(u32::from_le_bytes(salt))
}
