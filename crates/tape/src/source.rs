//! One open segment, plain or compressed, as a source of bytes at an absolute offset.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::reader::ReadError;
use crate::segment::{HeaderFault, SEGMENT_HEADER_BYTES, Segment, SegmentHeader};

#[derive(Debug)]
pub(crate) struct OpenSegment {
    header: SegmentHeader,
    /// Where the next segment begins. While unknown, this one may still grow.
    successor: Option<u64>,
    bytes: Bytes,
}

pub(crate) enum Opened {
    Segment(OpenSegment),
    Unreadable,
}

enum Bytes {
    Plain(File),
    Compressed(Decompressor),
}

/// A decompressor can only go forward, so it keeps what it gave out and nobody used.
struct Decompressor {
    decoder: zstd::stream::read::Decoder<'static, BufReader<File>>,
    rest: Vec<u8>,
    rest_at: u64,
}

impl OpenSegment {
    pub(crate) fn open(dir: &Path, segment: Segment, successor: Option<u64>) -> Result<Opened, ReadError> {
        let path = segment.path(dir);
        let file = match open_for_reading(&path) {
            Ok(file) => file,
            // Compressed since it was listed; the next look finds the other form.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !segment.compressed => {
                return Self::open(dir, Segment { compressed: true, ..segment }, successor);
            }
            Err(error) => return Err(ReadError::io(path)(error)),
        };
        let mut bytes = Bytes::over(file, segment).map_err(ReadError::io(&path))?;
        match bytes.read_header() {
            Ok(header) if header.base == segment.base => {
                Ok(Opened::Segment(OpenSegment { header, successor, bytes }))
            }
            Err(HeaderFault::Newer(version)) => Err(ReadError::Newer { path, version }),
            Ok(_) | Err(HeaderFault::Damaged) => Ok(Opened::Unreadable),
        }
    }

    pub(crate) fn base(&self) -> u64 {
        self.header.base
    }

    pub(crate) fn salt(&self) -> u32 {
        self.header.salt
    }

    pub(crate) fn successor(&self) -> Option<u64> {
        self.successor
    }

    pub(crate) fn set_successor(&mut self, successor: Option<u64>) {
        self.successor = successor;
    }

    pub(crate) fn holds(&self, offset: u64) -> bool {
        let not_before = match &self.bytes {
            Bytes::Plain(_) => self.header.base,
            Bytes::Compressed(decompressor) => decompressor.rest_at,
        };
        offset >= not_before && self.successor.is_none_or(|successor| offset < successor)
    }

    /// Appends to `buffer`, which holds what lies at `offset`, until it is `want` long. True if the segment ends
    /// before that.
    pub(crate) fn fill(&mut self, buffer: &mut Vec<u8>, offset: u64, want: usize) -> io::Result<bool> {
        match &mut self.bytes {
            Bytes::Plain(file) => {
                let start = SEGMENT_HEADER_BYTES as u64 + (offset - self.header.base);
                buffer.reserve_exact(want.saturating_sub(buffer.len()));
                while buffer.len() < want {
                    let at = start + buffer.len() as u64;
                    if rustix::io::pread(&*file, spare_capacity(buffer), at)? == 0 {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Bytes::Compressed(decompressor) => decompressor.fill(buffer, offset, want),
        }
    }

    /// Remembers what lies at `offset` and was filled in but not used.
    pub(crate) fn keep_rest(&mut self, offset: u64, rest: &[u8]) {
        if let Bytes::Compressed(decompressor) = &mut self.bytes {
            decompressor.rest_at = offset;
            decompressor.rest.clear();
            decompressor.rest.extend_from_slice(rest);
        }
    }
}

/// Opens a file whose times do not matter: a tape that grows is read as often as it is written, and the kernel would
/// note the time of each reading on the disk.
fn open_for_reading(path: &Path) -> io::Result<File> {
    let open = |extra| rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC | extra, Mode::empty());
    match open(OFlags::NOATIME) {
        // Only a file's owner may ask for that.
        Err(Errno::PERM) => Ok(open(OFlags::empty())?.into()),
        opened => Ok(opened?.into()),
    }
}

impl Bytes {
    fn over(file: File, segment: Segment) -> io::Result<Bytes> {
        if !segment.compressed {
            return Ok(Bytes::Plain(file));
        }
        let decoder = zstd::stream::read::Decoder::new(file)?;
        Ok(Bytes::Compressed(Decompressor { decoder, rest: Vec::new(), rest_at: segment.base }))
    }

    fn read_header(&mut self) -> Result<SegmentHeader, HeaderFault> {
        let mut header = [0; SEGMENT_HEADER_BYTES];
        let read = match self {
            Bytes::Plain(file) => file.read_exact(&mut header),
            Bytes::Compressed(decompressor) => decompressor.decoder.read_exact(&mut header),
        };
        read.map_err(|_| HeaderFault::Damaged)?;
        SegmentHeader::decode(&header)
    }
}

impl Decompressor {
    fn fill(&mut self, buffer: &mut Vec<u8>, offset: u64, want: usize) -> io::Result<bool> {
        match self.fill_whole(buffer, offset, want) {
            // A damaged or cut frame ends the segment; what came out before it is good.
            Err(error) if is_damage(&error) => Ok(true),
            other => other,
        }
    }

    fn fill_whole(&mut self, buffer: &mut Vec<u8>, offset: u64, want: usize) -> io::Result<bool> {
        if buffer.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            let skip = offset - self.rest_at;
            match usize::try_from(skip).ok().and_then(|skip| rest.get(skip..)) {
                Some(rest) => buffer.extend_from_slice(rest),
                None => {
                    let missing = skip - rest.len() as u64;
                    io::copy(&mut (&mut self.decoder).take(missing), &mut io::sink())?;
                }
            }
        }
        let missing = want.saturating_sub(buffer.len());
        let read = (&mut self.decoder).take(missing as u64).read_to_end(buffer)?;
        Ok(read < missing)
    }
}

fn is_damage(error: &io::Error) -> bool {
    // zstd's own faults have no errno; those of the file below do.
    error.raw_os_error().is_none()
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Bytes::Plain(_) => "Plain",
            Bytes::Compressed(_) => "Compressed",
        })
    }
}
