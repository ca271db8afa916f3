//! From records to lines: joins the pieces of each stream, however they are interleaved.
//!
//! What is half joined is described by a small state without bytes. Committed together with the offset behind
//! any record, it restores to an assembler that goes on exactly as this one would.

use std::borrow::Cow;

use ostler_domain::limits::LINE_BYTES;
use serde::{Deserialize, Serialize};

use crate::input::{InputMark, InputPiece};
use crate::reader::{ReadError, Reader, TapeRecord};
use crate::record::{Flags, Record, Stream};

/// Bytes re-read in one go while restoring.
const RESTORE_BYTES: usize = 1024 * 1024;

/// One line of a stream. A line of the stream `In` is one whole input, as it was written to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    pub stream: Stream,
    /// Where its first record begins and its last ends; records of other streams may lie between.
    pub start: u64,
    pub end: u64,
    /// Time of its first record.
    pub time_us: i64,
    pub body: LineBody<'a>,
    pub input: Option<InputMark>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineBody<'a> {
    Whole(Cow<'a, [u8]>),
    /// Longer than anyone parses; the tape has it.
    Oversize {
        len: u64,
    },
    /// The stream ended without a newline, or damage took a part of the line.
    Partial(Cow<'a, [u8]>),
}

impl LineBody<'_> {
    /// The bytes there are; none of an oversize line.
    pub fn bytes(&self) -> &[u8] {
        match self {
            LineBody::Whole(bytes) | LineBody::Partial(bytes) => bytes,
            LineBody::Oversize { .. } => &[],
        }
    }
}

/// What an assembler has not finished, without the bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssemblerState {
    pending: Vec<PendingState>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PendingState {
    stream: Stream,
    /// Where its first piece begins.
    start: u64,
    len: u64,
    time_us: i64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<InputMark>,
}

/// A line that waits for its last piece.
#[derive(Debug)]
struct Pending {
    state: PendingState,
    /// Empty once the line is longer than the limit.
    bytes: Vec<u8>,
}

/// Joins records into lines. Feed it every record, in order.
#[derive(Debug)]
pub struct Assembler {
    next: u64,
    limit: usize,
    pending: Vec<Pending>,
}

impl Assembler {
    /// For a tape that is read from `offset` on, where no line is pending.
    pub fn new(offset: u64) -> Assembler {
        Assembler { next: offset, limit: LINE_BYTES, pending: Vec::new() }
    }

    /// Lines above `limit` become [`LineBody::Oversize`].
    pub fn with_limit(self, limit: usize) -> Assembler {
        Assembler { limit, ..self }
    }

    /// Goes on where the assembler that gave `state` was when the tape had been read up to `committed`.
    pub fn restore(
        state: AssemblerState,
        reader: &mut Reader,
        committed: u64,
    ) -> Result<Assembler, ReadError> {
        Self::restore_limited(state, reader, committed, LINE_BYTES)
    }

    /// [`Assembler::restore`] for one that had a limit of its own.
    pub fn restore_limited(
        state: AssemblerState,
        reader: &mut Reader,
        committed: u64,
        limit: usize,
    ) -> Result<Assembler, ReadError> {
        let mut pending: Vec<Pending> =
            state.pending.into_iter().map(|state| Pending { state, bytes: Vec::new() }).collect();
        let needed = |pending: &&mut Pending| pending.state.len <= limit as u64;
        let first = pending.iter_mut().filter(needed).map(|pending| pending.state.start).min();
        let mut at = first.unwrap_or(committed);
        while at < committed {
            let batch = reader.read_from(at, RESTORE_BYTES)?;
            for record in batch.records().take_while(|record| record.start < committed) {
                let this = |pending: &&mut Pending| {
                    pending.state.stream == record.record.stream && pending.state.start <= record.start
                };
                if let Some(pending) = pending.iter_mut().filter(needed).find(this) {
                    pending.bytes.extend_from_slice(Piece::of(&record.record).bytes);
                }
            }
            if batch.is_empty() {
                break;
            }
            at = batch.next;
        }
        for pending in pending.iter_mut().filter(needed) {
            pending.state.cut |= pending.bytes.len() as u64 != pending.state.len;
        }
        Ok(Assembler { next: committed, limit, pending })
    }

    /// What to commit together with [`Assembler::offset`].
    pub fn state(&self) -> AssemblerState {
        AssemblerState { pending: self.pending.iter().map(|pending| pending.state.clone()).collect() }
    }

    /// The end of the last record taken.
    pub fn offset(&self) -> u64 {
        self.next
    }

    /// Takes the next record and adds the lines that it completes: usually one or none, two if it shows that
    /// an earlier line will never be finished.
    pub fn push<'a>(&mut self, record: TapeRecord<'a>, lines: &mut Vec<Line<'a>>) {
        if record.start != self.next {
            // Damage was skipped. Whether it held a piece of a pending line nobody can say.
            self.pending.iter_mut().for_each(|pending| pending.state.cut = true);
        }
        self.next = record.end;

        let TapeRecord { start, end, record } = record;
        let piece = Piece::of(&record);
        let continues = record.flags.has(Flags::CONTINUES);
        let mut pending = self.take_pending(record.stream);
        if !continues && let Some(abandoned) = pending.take() {
            // Its writer died between two pieces. Half an input never counted: it was not written to the agent.
            if record.stream != Stream::In {
                lines.push(abandoned.cut().finish(start, self.limit));
            }
        }
        let more = record.flags.has(Flags::MORE);
        let partial = record.flags.has(Flags::PARTIAL);
        if !continues && !more {
            lines.push(piece.whole_line(&record, start, end, partial, self.limit));
            return;
        }
        let mut pending = pending.unwrap_or_else(|| Pending {
            // A piece whose beginning is lost is already cut.
            state: PendingState {
                stream: record.stream,
                start,
                len: 0,
                time_us: record.time_us,
                cut: continues,
                input: piece.mark(),
            },
            bytes: Vec::new(),
        });
        pending.extend(piece.bytes, self.limit);
        if more {
            self.pending.push(pending);
        } else {
            pending.state.cut |= partial;
            lines.push(pending.finish(end, self.limit));
        }
    }

    fn take_pending(&mut self, stream: Stream) -> Option<Pending> {
        let index = self.pending.iter().position(|pending| pending.state.stream == stream)?;
        Some(self.pending.swap_remove(index))
    }
}

impl Pending {
    fn extend(&mut self, bytes: &[u8], limit: usize) {
        self.state.len += bytes.len() as u64;
        if self.state.len <= limit as u64 {
            self.bytes.extend_from_slice(bytes);
        } else {
            self.bytes = Vec::new();
        }
    }

    fn cut(mut self) -> Pending {
        self.state.cut = true;
        self
    }

    fn finish<'a>(self, end: u64, limit: usize) -> Line<'a> {
        let PendingState { stream, start, len, time_us, cut, input } = self.state;
        Line { stream, start, end, time_us, body: body(Cow::Owned(self.bytes), len, cut, limit), input }
    }
}

/// The part of a payload that belongs to the line.
struct Piece<'a> {
    bytes: &'a [u8],
    input: Option<InputPiece<'a>>,
}

impl<'a> Piece<'a> {
    fn of(record: &Record<'a>) -> Piece<'a> {
        let input = (record.stream == Stream::In).then(|| InputPiece::decode(record.payload)).flatten();
        Piece { bytes: input.map_or(record.payload, |input| input.bytes), input }
    }

    fn mark(&self) -> Option<InputMark> {
        self.input.map(|input| InputMark { input_no: input.input_no, tag: input.tag.to_owned() })
    }

    fn whole_line(self, record: &Record<'_>, start: u64, end: u64, partial: bool, limit: usize) -> Line<'a> {
        let body = body(Cow::Borrowed(self.bytes), self.bytes.len() as u64, partial, limit);
        Line { stream: record.stream, start, end, time_us: record.time_us, body, input: self.mark() }
    }
}

fn body(bytes: Cow<'_, [u8]>, len: u64, cut: bool, limit: usize) -> LineBody<'_> {
    if len > limit as u64 {
        LineBody::Oversize { len }
    } else if cut {
        LineBody::Partial(bytes)
    } else {
        LineBody::Whole(bytes)
    }
}
