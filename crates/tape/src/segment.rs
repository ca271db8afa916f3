//! Segments: the files a tape is cut into, `tape.<base>` and, once nobody appends, `tape.<base>.zst`.
//!
//! ```text
//! magic [u8; 8] | version u32 | salt u32 | base u64 | crc u32 | records…
//! ```
//! `base` is the absolute offset of the first record; offsets count the bytes of records only.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::files;

pub const SEGMENT_HEADER_BYTES: usize = 28;
pub const FORMAT_VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"OSTLTAPE";
const PREFIX: &str = "tape.";
const COMPRESSED: &str = ".zst";
/// Tapes are text; beyond this level zstd costs much time for little space.
const COMPRESSION_LEVEL: i32 = 3;

/// The start of a segment. The salt goes into every checksum: it is random and an agent never sees it, so
/// nothing that an agent prints can be taken for a record when a reader looks for one behind damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) base: u64,
    pub(crate) salt: u32,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HeaderFault {
    /// Too short, or not what a keeper wrote.
    Damaged,
    /// Written by a later version of this program.
    Newer(u32),
}

impl SegmentHeader {
    pub(crate) fn encode(self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.salt.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.base.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..24]);
        bytes[24..28].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> Result<Self, HeaderFault> {
        let (content, crc) = bytes.split_at(24);
        if content[..8] != MAGIC || crc32fast::hash(content).to_le_bytes() != crc {
            return Err(HeaderFault::Damaged);
        }
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        match u32_at(8) {
            FORMAT_VERSION => {
                let base = u64::from(u32_at(16)) | u64::from(u32_at(20)) << 32;
                Ok(SegmentHeader { base, salt: u32_at(12) })
            }
            version => Err(HeaderFault::Newer(version)),
        }
    }
}

/// A segment found in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Segment {
    pub base: u64,
    pub compressed: bool,
}

impl Segment {
    pub fn path(self, dir: &Path) -> PathBuf {
        let suffix = if self.compressed { COMPRESSED } else { "" };
        dir.join(format!("{PREFIX}{:016x}{suffix}", self.base))
    }

    fn from_name(name: &str) -> Option<Segment> {
        let rest = name.strip_prefix(PREFIX)?;
        let (digits, compressed) = match rest.strip_suffix(COMPRESSED) {
            Some(digits) => (digits, true),
            None => (rest, false),
        };
        let well_formed = digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let base = u64::from_str_radix(digits, 16).ok().filter(|_| well_formed)?;
        Some(Segment { base, compressed })
    }
}

/// Where the bytes of a torn tail that began at `offset` are kept.
pub(crate) fn torn_path(dir: &Path, offset: u64) -> PathBuf {
    dir.join(format!("{PREFIX}torn.{offset:016x}"))
}

/// The segments of a tape, oldest first.
pub fn list_segments(dir: &Path) -> io::Result<Vec<Segment>> {
    let mut segments = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        segments.extend(entry?.file_name().to_str().and_then(Segment::from_name));
    }
    // A crash inside `compress_segment` leaves both forms. The plain one sorts first and is surely whole.
    segments.sort_unstable();
    segments.dedup_by_key(|segment| segment.base);
    Ok(segments)
}

pub(crate) fn create(dir: &Path, header: SegmentHeader) -> io::Result<File> {
    let path = Segment { base: header.base, compressed: false }.path(dir);
    let mut file = files::create_new(&path)?;
    if let Err(error) = file.write_all(&header.encode()) {
        // Half a header would be taken for the tape's last segment.
        let _ = std::fs::remove_file(&path);
        return Err(error);
    }
    Ok(file)
}

/// Replaces a segment by its compressed form. Only for segments that nobody appends to any more; a reader that
/// has the plain file open goes on reading it.
pub fn compress_segment(dir: &Path, base: u64) -> io::Result<()> {
    let plain = Segment { base, compressed: false }.path(dir);
    let compressed = Segment { base, compressed: true }.path(dir);
    let temp = compressed.with_extension("zst-tmp");
    let _ = std::fs::remove_file(&temp);
    let mut encoder = zstd::stream::write::Encoder::new(files::create_new(&temp)?, COMPRESSION_LEVEL)?;
    encoder.include_checksum(true)?;
    io::copy(&mut File::open(&plain)?, &mut encoder)?;
    encoder.finish()?.sync_all()?;
    std::fs::rename(&temp, &compressed)?;
    files::sync_dir(dir)?;
    std::fs::remove_file(&plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_and_notices_damage() {
        let header = SegmentHeader { base: 0x1234_5678_9abc, salt: 42 };
        assert_eq!(SegmentHeader::decode(&header.encode()), Ok(header));
        for byte in 0..SEGMENT_HEADER_BYTES {
            let mut bytes = header.encode();
            bytes[byte] ^= 0x10;
            assert_eq!(SegmentHeader::decode(&bytes), Err(HeaderFault::Damaged));
        }
    }

    #[test]
    fn a_later_version_is_named() {
        let mut bytes = SegmentHeader { base: 0, salt: 0 }.encode();
        bytes[8] = 9;
        let crc = crc32fast::hash(&bytes[..24]);
        bytes[24..].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(SegmentHeader::decode(&bytes), Err(HeaderFault::Newer(9)));
    }

    #[test]
    fn only_segments_are_listed_and_the_plain_form_wins() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "tape.0000000000000010",
            "tape.0000000000000010.zst",
            "tape.0000000000000000.zst",
            "tape.exit",
            "tape.torn.0000000000000010",
            "tape.+000000000000010",
            "tape.0000000000000020.zst-tmp",
        ] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let segments = list_segments(dir.path()).unwrap();
        assert_eq!(
            segments,
            [Segment { base: 0, compressed: true }, Segment { base: 16, compressed: false }]
        );
    }
}
