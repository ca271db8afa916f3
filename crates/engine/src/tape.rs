//! A session's tape for whoever asks: what crossed the agent's border, as it was.

use std::ops::Range;

use ostler_domain::{Refusal, Time};
use ostler_tape::{Flags, InputPiece, ReadError, Reader, Stream, TapeRecord};

use crate::Engine;

/// Bytes of records that are read in one go; a single longer record comes whole.
const PART_BYTES: usize = 128 * 1024;

/// A tape that is being read.
pub struct Tape {
    /// Away while it reads.
    reader: Option<Reader>,
    next: u64,
}

/// Some of it.
pub struct TapePart {
    pub records: Vec<OwnRecord>,
    pub damage: Vec<Range<u64>>,
}

/// A record that is nobody else's.
pub struct OwnRecord {
    pub offset: u64,
    pub stream: &'static str,
    pub time: Time,
    pub payload: Vec<u8>,
    pub more: bool,
    pub input_no: Option<u64>,
}

impl Engine {
    /// Opens a session's tape at a place.
    pub async fn tape(&self, who: &str, offset: u64) -> Result<Tape, Refusal> {
        let id = self.session(who).await?.id;
        let dir = self.shared.session_dir(&id);
        match Reader::open(&dir) {
            Ok(reader) => Ok(Tape { reader: Some(reader), next: offset }),
            Err(ReadError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(Tape { reader: None, next: offset })
            }
            Err(error) => Err(cannot_read(&error)),
        }
    }
}

impl Tape {
    /// The next records; nothing at the tape's present end.
    pub async fn next(&mut self) -> Result<Option<TapePart>, Refusal> {
        let Some(mut reader) = self.reader.take() else { return Ok(None) };
        let from = self.next;
        let read = move || {
            let batch = reader.read_from(from, PART_BYTES);
            (reader, batch)
        };
        let (reader, batch) = tokio::task::spawn_blocking(read)
            .await
            .map_err(|error| Refusal::internal(format!("the tape's reader died: {error}")))?;
        let batch = batch.map_err(|error| cannot_read(&error))?;
        if batch.is_empty() && batch.damage.is_empty() {
            return Ok(None);
        }
        self.reader = (!batch.is_empty()).then_some(reader);
        self.next = batch.next;
        Ok(Some(TapePart {
            records: batch.records().map(own).collect(),
            damage: batch.damage.iter().map(|lost| lost.from..lost.to).collect(),
        }))
    }
}

fn own(found: TapeRecord<'_>) -> OwnRecord {
    let record = found.record;
    let input = (record.stream == Stream::In).then(|| InputPiece::decode(record.payload)).flatten();
    let payload = match input {
        // The line's own end is not part of any other stream's payload either.
        Some(piece) => piece.bytes.strip_suffix(b"\n").unwrap_or(piece.bytes),
        None => record.payload,
    };
    OwnRecord {
        offset: found.start,
        stream: record.stream.name(),
        time: Time::from_micros(record.time_us),
        payload: payload.to_vec(),
        more: record.flags.has(Flags::MORE),
        input_no: input.map(|piece| piece.input_no),
    }
}

fn cannot_read(error: &ReadError) -> Refusal {
    Refusal::internal("the tape cannot be read").because(error.to_string())
}
