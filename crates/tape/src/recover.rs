//! What a tape holds when nobody writes it: how far it is whole, and the last input on it.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::files;
use crate::input::InputPiece;
use crate::reader::{ReadError, Reader, TapeRecord};
use crate::record::{Flags, Stream};
use crate::segment::{SEGMENT_HEADER_BYTES, Segment, list_segments, torn_path};

/// Bytes looked at in one go.
const STRIDE_BYTES: usize = 1024 * 1024;

/// What is on a tape.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Survey {
    /// The end of its last whole record.
    pub end: u64,
    /// The last input that is on it completely; 0 if there is none.
    pub last_input_no: u64,
}

/// Looks through a tape from its end backwards, only as far as needed.
pub fn survey(dir: &Path) -> Result<Survey, ReadError> {
    let segments = list_segments(dir).map_err(ReadError::io(dir))?;
    let mut reader = Reader::open(dir)?;
    let mut end = None;
    let mut stop_at = u64::MAX;
    for segment in segments.iter().rev() {
        let (reached, last_input_no) = last_input_between(&mut reader, segment.base, stop_at)?;
        let end = *end.get_or_insert(reached);
        if let Some(last_input_no) = last_input_no {
            return Ok(Survey { end, last_input_no });
        }
        stop_at = segment.base;
    }
    Ok(Survey { end: end.unwrap_or(0), last_input_no: 0 })
}

fn last_input_between(reader: &mut Reader, from: u64, to: u64) -> Result<(u64, Option<u64>), ReadError> {
    let mut last = None;
    let mut at = from;
    while at < to {
        let batch = reader.read_from(at, STRIDE_BYTES)?;
        last = batch.records().filter_map(completed_input).next_back().or(last);
        at = batch.next;
        if batch.is_empty() {
            break;
        }
    }
    Ok((at, last))
}

fn completed_input(record: TapeRecord<'_>) -> Option<u64> {
    let record = record.record;
    let complete = record.stream == Stream::In && !record.flags.has(Flags::MORE);
    complete.then(|| InputPiece::decode(record.payload).map(|piece| piece.input_no)).flatten()
}

/// Cuts a plain last segment to `end`, keeping the cut bytes beside it: they are evidence.
pub(crate) fn cut_torn_tail(dir: &Path, segment: Segment, end: u64) -> io::Result<()> {
    let mut file = files::open_or_create(&segment.path(dir))?;
    let keep = SEGMENT_HEADER_BYTES as u64 + (end - segment.base);
    let mut torn = Vec::new();
    file.seek(SeekFrom::Start(keep))?;
    file.read_to_end(&mut torn)?;
    if torn.is_empty() {
        return Ok(());
    }
    files::replace(&torn_path(dir, end), &torn)?;
    file.set_len(keep)
}

/// Puts a segment without a readable header aside and returns the first offset that nobody can have used.
pub(crate) fn set_aside(dir: &Path, segment: Segment) -> io::Result<u64> {
    let path = segment.path(dir);
    let records = std::fs::metadata(&path)?.len().saturating_sub(SEGMENT_HEADER_BYTES as u64);
    std::fs::rename(&path, torn_path(dir, segment.base))?;
    Ok(segment.base + records)
}
