//! One record: a whole line, or a piece of one, of one stream.
//!
//! ```text
//! len u32 | crc u32 | stream u8 | flags u8 | reserved u16 | time_us i64 | payload (len bytes)
//! ```
//! Little endian. The checksum covers the segment's salt, `len` and everything after the checksum.

use ostler_domain::limits::PIECE_BYTES;

use crate::input::INPUT_HEAD_BYTES;

/// Bytes of a record before its payload.
pub const HEADER_BYTES: usize = 20;
/// Longest payload a reader believes: a full piece behind the head of an input.
pub const PAYLOAD_BYTES: usize = PIECE_BYTES + INPUT_HEAD_BYTES;
/// Longest record on a tape.
pub const RECORD_BYTES: usize = HEADER_BYTES + PAYLOAD_BYTES;

/// Who said it. The codes are part of the format and are never reused; 0 is none, so that zeroes are no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// The agent's standard output.
    Out,
    /// The agent's standard error.
    Err,
    /// What was written to the agent ([`crate::InputPiece`]).
    In,
    /// Requests on the session socket.
    Call,
    /// Usage that the gateway read off the wire.
    Wire,
    /// Connections that were allowed or denied.
    Net,
    /// How the agent ended; only in `tape.exit`.
    Exit,
    /// Facts stated by the keeper itself ([`crate::KeeperNote`]).
    Keeper,
}

impl Stream {
    pub const ALL: [Stream; 8] = [
        Stream::Out,
        Stream::Err,
        Stream::In,
        Stream::Call,
        Stream::Wire,
        Stream::Net,
        Stream::Exit,
        Stream::Keeper,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Stream::Out => "out",
            Stream::Err => "err",
            Stream::In => "in",
            Stream::Call => "call",
            Stream::Wire => "wire",
            Stream::Net => "net",
            Stream::Exit => "exit",
            Stream::Keeper => "keeper",
        }
    }

    pub const fn code(self) -> u8 {
        match self {
            Stream::Out => 1,
            Stream::Err => 2,
            Stream::In => 3,
            Stream::Call => 4,
            Stream::Wire => 5,
            Stream::Net => 6,
            Stream::Exit => 7,
            Stream::Keeper => 8,
        }
    }

    pub fn from_code(code: u8) -> Option<Stream> {
        Self::ALL.into_iter().find(|stream| stream.code() == code)
    }
}

/// How a record's payload relates to its neighbours in the same stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// A whole line.
    pub const NONE: Flags = Flags(0);
    /// The line goes on in the next record of this stream.
    pub const MORE: Flags = Flags(1);
    /// The stream ended without a newline.
    pub const PARTIAL: Flags = Flags(2);
    /// The line began in an earlier record of this stream. Without it, a keeper that died between two pieces
    /// would have its successor's first line joined to the torn one.
    pub const CONTINUES: Flags = Flags(4);

    const KNOWN: u8 = 7;

    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// The flags that are set when `condition` holds.
    pub const fn when(self, condition: bool) -> Flags {
        if condition { self } else { Flags::NONE }
    }

    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One record, borrowed from whoever holds its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    pub stream: Stream,
    pub flags: Flags,
    /// Wall clock, µs since 1970 UTC, when the keeper had it. Order is the offset, never this.
    pub time_us: i64,
    /// The line without its newline; for `In`, an encoded [`crate::InputPiece`].
    pub payload: &'a [u8],
}

impl<'a> Record<'a> {
    pub fn line(stream: Stream, time_us: i64, payload: &'a [u8]) -> Self {
        Record { stream, flags: Flags::NONE, time_us, payload }
    }

    /// Bytes this record takes on the tape.
    pub fn tape_bytes(&self) -> usize {
        HEADER_BYTES + self.payload.len()
    }

    pub(crate) fn header(&self, salt: u32) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[0..4].copy_from_slice(&(self.payload.len() as u32).to_le_bytes());
        header[8] = self.stream.code();
        header[9] = self.flags.0;
        header[12..20].copy_from_slice(&self.time_us.to_le_bytes());
        let crc = checksum(salt, &header, self.payload);
        header[4..8].copy_from_slice(&crc.to_le_bytes());
        header
    }

    /// Appends header and payload to `out`; for places that hold one record, such as `tape.exit`.
    pub(crate) fn encode(&self, salt: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.header(salt));
        out.extend_from_slice(self.payload);
    }
}

/// What the bytes at some place of a tape are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    Record(Record<'a>),
    /// A believable beginning that needs more bytes.
    Incomplete,
    /// No record starts here.
    Damaged,
}

pub(crate) fn parse(bytes: &[u8], salt: u32) -> Parsed<'_> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return Parsed::Incomplete;
    };
    let [l0, l1, l2, l3, c0, c1, c2, c3, stream, flags, r0, r1, time @ ..] = *header;
    let len = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    let Some(stream) = Stream::from_code(stream) else { return Parsed::Damaged };
    if len > PAYLOAD_BYTES || flags & !Flags::KNOWN != 0 || (r0, r1) != (0, 0) {
        return Parsed::Damaged;
    }
    let Some(payload) = rest.get(..len) else { return Parsed::Incomplete };
    if checksum(salt, header, payload) != u32::from_le_bytes([c0, c1, c2, c3]) {
        return Parsed::Damaged;
    }
    Parsed::Record(Record { stream, flags: Flags(flags), time_us: i64::from_le_bytes(time), payload })
}

fn checksum(salt: u32, header: &[u8; HEADER_BYTES], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&salt.to_le_bytes());
    hasher.update(&header[..4]);
    hasher.update(&header[8..]);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(record: Record<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        record.encode(7, &mut bytes);
        bytes
    }

    #[test]
    fn a_record_survives_the_tape() {
        let record =
            Record { stream: Stream::Err, flags: Flags::MORE, time_us: -5, payload: b"\xff\0 not text" };
        assert_eq!(parse(&encoded(record), 7), Parsed::Record(record));
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = encoded(Record::line(Stream::Out, 1, b"hello"));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(parse(&flipped, 7), Parsed::Record(_)), "bit {bit}");
        }
    }

    #[test]
    fn zeroes_and_foreign_salts_are_no_records() {
        assert_eq!(parse(&[0; 64], 7), Parsed::Damaged);
        assert_eq!(parse(&encoded(Record::line(Stream::Out, 1, b"x")), 8), Parsed::Damaged);
    }

    #[test]
    fn a_cut_record_is_incomplete() {
        let bytes = encoded(Record::line(Stream::Out, 1, b"hello"));
        for len in 0..bytes.len() {
            assert_eq!(parse(&bytes[..len], 7), Parsed::Incomplete, "{len} bytes");
        }
    }

    #[test]
    fn stream_codes_are_stable() {
        let codes = Stream::ALL.map(Stream::code);
        assert_eq!(codes, [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(Stream::from_code(0), None);
    }
}
