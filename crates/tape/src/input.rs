//! What is written to an agent, as it stands on the tape: `input_no u64 | tag_len u16 | tag | bytes`.
//!
//! A long input is several pieces, all with its number; the tag is on the first. An input counts once its last
//! piece is on the tape.

use crate::record::{Flags, PAYLOAD_BYTES, Record, Stream};

/// Longest tag. It is a note of the daemon to itself, not a document.
pub const TAG_BYTES: usize = 16 * 1024;
/// Longest head of an input piece.
pub const INPUT_HEAD_BYTES: usize = FIXED_BYTES + TAG_BYTES;

const FIXED_BYTES: usize = 10;

/// One piece of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputPiece<'a> {
    pub input_no: u64,
    pub tag: &'a str,
    /// Exactly what the agent gets, newline included.
    pub bytes: &'a [u8],
}

/// Which input a line of the stream `In` was.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct InputMark {
    pub input_no: u64,
    pub tag: String,
}

impl<'a> InputPiece<'a> {
    pub fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(FIXED_BYTES + self.tag.len() + self.bytes.len());
        payload.extend_from_slice(&self.input_no.to_le_bytes());
        payload.extend_from_slice(&(self.tag.len() as u16).to_le_bytes());
        payload.extend_from_slice(self.tag.as_bytes());
        payload.extend_from_slice(self.bytes);
        payload
    }

    /// Reads a payload of the stream `In`; nothing for one that no keeper wrote.
    pub fn decode(payload: &'a [u8]) -> Option<Self> {
        let (number, rest) = payload.split_first_chunk::<8>()?;
        let (tag_len, rest) = rest.split_first_chunk::<2>()?;
        let (tag, bytes) = rest.split_at_checked(u16::from_le_bytes(*tag_len) as usize)?;
        let tag = std::str::from_utf8(tag).ok()?;
        Some(InputPiece { input_no: u64::from_le_bytes(*number), tag, bytes })
    }
}

/// An input that is ready for the tape: its pieces, encoded.
pub struct EncodedInput {
    pieces: Vec<Vec<u8>>,
    time_us: i64,
}

impl EncodedInput {
    /// Cuts `bytes` into pieces of at most `piece_bytes`. A tag over [`TAG_BYTES`] is the caller's to refuse.
    pub fn new(input_no: u64, tag: &str, bytes: &[u8], piece_bytes: usize, time_us: i64) -> Self {
        let encode = |(index, bytes)| {
            let tag = if index == 0 { tag } else { "" };
            let payload = InputPiece { input_no, tag, bytes }.encode();
            debug_assert!(payload.len() <= PAYLOAD_BYTES);
            payload
        };
        // `chunks` of nothing is no piece at all, but an empty input is an input.
        let pieces = match bytes {
            [] => vec![encode((0, bytes))],
            _ => bytes.chunks(piece_bytes.max(1)).enumerate().map(encode).collect(),
        };
        EncodedInput { pieces, time_us }
    }

    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        let last = self.pieces.len() - 1;
        self.pieces.iter().enumerate().map(move |(index, payload)| Record {
            stream: Stream::In,
            flags: Flags::MORE.when(index < last).with(Flags::CONTINUES.when(index > 0)),
            time_us: self.time_us,
            payload,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_survives() {
        let piece = InputPiece { input_no: 7, tag: "turn:3", bytes: b"\xffhello\n" };
        assert_eq!(InputPiece::decode(&piece.encode()), Some(piece));
    }

    #[test]
    fn foreign_payloads_are_refused() {
        for payload in [&b""[..], b"12345678", b"12345678\xff\xffshort", b"12345678\x01\x00\xff"] {
            assert_eq!(InputPiece::decode(payload), None);
        }
    }

    #[test]
    fn a_long_input_names_itself_in_every_piece_and_tags_the_first() {
        let input = EncodedInput::new(4, "tag", b"abcdefgh", 3, 9);
        let records: Vec<_> = input.records().collect();
        let pieces: Vec<_> = records.iter().map(|r| InputPiece::decode(r.payload).unwrap()).collect();
        assert_eq!(pieces.iter().map(|p| p.bytes).collect::<Vec<_>>(), [&b"abc"[..], b"def", b"gh"]);
        assert!(pieces.iter().all(|p| p.input_no == 4));
        assert_eq!(pieces.iter().map(|p| p.tag).collect::<Vec<_>>(), ["tag", "", ""]);
        assert_eq!(records.iter().map(|r| r.flags.has(Flags::MORE)).collect::<Vec<_>>(), [true, true, false]);
        assert!(!records[0].flags.has(Flags::CONTINUES) && records[1].flags.has(Flags::CONTINUES));
    }

    #[test]
    fn an_empty_input_is_an_input() {
        assert_eq!(EncodedInput::new(1, "", b"", 3, 0).records().count(), 1);
    }
}
