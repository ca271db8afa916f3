//! Where a body ends, found while it passes by: its bytes are carried as they are, and its content is shown to whoever
//! wants to read along.

use ostler_domain::limits::MODEL_CHUNK_LINE_BYTES;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Body {
    /// This many bytes are to come.
    Length(u64),
    Chunked(Chunk),
    /// All that comes.
    UntilClose,
}

/// Where in a chunked body the next byte stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Chunk {
    Size {
        size: u64,
        digits: u8,
    },
    /// Behind the size, up to the end of its line.
    Extension {
        size: u64,
        bytes: usize,
    },
    SizeEnd {
        size: u64,
    },
    Data {
        left: u64,
    },
    DataReturn,
    DataEnd,
    /// The lines behind the last chunk; an empty one is the end.
    Trailer {
        is_empty: bool,
        bytes: usize,
    },
    TrailerEnd {
        is_empty: bool,
        bytes: usize,
    },
    Done,
}

/// What is no chunked body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl Body {
    pub(crate) const fn chunked() -> Body {
        Body::Chunked(Chunk::Size { size: 0, digits: 0 })
    }

    /// Whether all of it has passed.
    pub(crate) const fn is_done(&self) -> bool {
        matches!(self, Body::Length(0) | Body::Chunked(Chunk::Done))
    }

    /// Whether it is whole if nothing more comes.
    pub(crate) const fn may_end(&self) -> bool {
        self.is_done() || matches!(self, Body::UntilClose)
    }

    /// How many of these bytes belong to it. Its content is given to `read`.
    pub(crate) fn take(&mut self, bytes: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<usize, Malformed> {
        match self {
            Body::UntilClose => {
                read(bytes);
                Ok(bytes.len())
            }
            Body::Length(left) => {
                let taken = shorter(*left, bytes.len());
                read(&bytes[..taken]);
                *left -= taken as u64;
                Ok(taken)
            }
            Body::Chunked(chunk) => {
                let mut at = 0;
                while at < bytes.len() && *chunk != Chunk::Done {
                    if let Chunk::Data { left } = chunk {
                        let taken = shorter(*left, bytes.len() - at);
                        read(&bytes[at..at + taken]);
                        at += taken;
                        *left -= taken as u64;
                        if *left == 0 {
                            *chunk = Chunk::DataReturn;
                        }
                    } else {
                        *chunk = step(chunk, bytes[at])?;
                        at += 1;
                    }
                }
                Ok(at)
            }
        }
    }
}

fn shorter(left: u64, len: usize) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(len)
}

/// One byte between the contents. Lines end with both of their characters: to somebody else a bare one might be an end.
fn step(chunk: &Chunk, byte: u8) -> Result<Chunk, Malformed> {
    Ok(match (chunk, byte) {
        (Chunk::Size { size, digits: 0..16 }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
            let Chunk::Size { digits, .. } = chunk else { return Err(Malformed) };
            let digit = char::from(byte).to_digit(16).ok_or(Malformed)?;
            Chunk::Size { size: size << 4 | u64::from(digit), digits: digits + 1 }
        }
        (Chunk::Size { digits: 0, .. }, _) => return Err(Malformed),
        (Chunk::Size { size, .. } | Chunk::Extension { size, .. }, b'\r') => Chunk::SizeEnd { size: *size },
        (Chunk::Size { size, .. }, b';' | b' ' | b'\t') => Chunk::Extension { size: *size, bytes: 0 },
        (Chunk::Extension { size, bytes }, _) if byte != b'\n' && *bytes < MODEL_CHUNK_LINE_BYTES => {
            Chunk::Extension { size: *size, bytes: bytes + 1 }
        }
        (Chunk::SizeEnd { size: 0 }, b'\n') => Chunk::Trailer { is_empty: true, bytes: 0 },
        (Chunk::SizeEnd { size }, b'\n') => Chunk::Data { left: *size },
        (Chunk::DataReturn, b'\r') => Chunk::DataEnd,
        (Chunk::DataEnd, b'\n') => Chunk::Size { size: 0, digits: 0 },
        (Chunk::Trailer { is_empty, bytes }, b'\r') => {
            Chunk::TrailerEnd { is_empty: *is_empty, bytes: *bytes }
        }
        (Chunk::Trailer { bytes, .. }, _) if byte != b'\n' && *bytes < MODEL_CHUNK_LINE_BYTES => {
            Chunk::Trailer { is_empty: false, bytes: bytes + 1 }
        }
        (Chunk::TrailerEnd { is_empty: true, .. }, b'\n') => Chunk::Done,
        (Chunk::TrailerEnd { bytes, .. }, b'\n') => Chunk::Trailer { is_empty: true, bytes: *bytes },
        _ => return Err(Malformed),
    })
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// Content, and what was left over.
    fn take(mut body: Body, bytes: &[u8], portion: usize) -> Result<(Vec<u8>, usize, bool), Malformed> {
        let mut content = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let end = bytes.len().min(at + portion);
            let taken = body.take(&bytes[at..end], &mut |part| content.extend_from_slice(part))?;
            at += taken;
            if body.is_done() {
                break;
            }
        }
        Ok((content, bytes.len() - at, body.is_done()))
    }

    #[test]
    fn a_chunked_body_ends_at_its_last_chunk() {
        let bytes =
            b"4\r\nWiki\r\n6;x=y\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n0\r\nTrailer: x\r\n\r\nGET /";
        for portion in 1..bytes.len() {
            let (content, left, done) = take(Body::chunked(), bytes, portion).unwrap();
            assert_eq!(content, b"Wikipedia in \r\n\r\nchunks.");
            assert_eq!((left, done), (5, true), "{portion}");
        }
    }

    #[test]
    fn what_two_readers_could_read_differently_is_no_chunked_body() {
        for wrong in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "4\nWiki\r\n",
            "4\r\nWikix\r\n",
            "4\r\nWiki\n",
            "4;a\nb\r\n",
            "0\r\nA: b\n\r\n",
            "11111111111111111\r\n",
            " 4\r\n",
        ] {
            assert_eq!(take(Body::chunked(), wrong.as_bytes(), 3), Err(Malformed), "{wrong:?}");
        }
        let long = format!("4;{}", "x".repeat(MODEL_CHUNK_LINE_BYTES + 1));
        assert_eq!(take(Body::chunked(), long.as_bytes(), 100), Err(Malformed));
    }

    #[test]
    fn a_length_is_a_length() {
        assert_eq!(take(Body::Length(3), b"abcdef", 2), Ok((b"abc".to_vec(), 3, true)));
        assert_eq!(take(Body::Length(9), b"abc", 2), Ok((b"abc".to_vec(), 0, false)));
        assert!(Body::Length(0).is_done() && !Body::UntilClose.is_done() && Body::UntilClose.may_end());
    }

    proptest! {
        #[test]
        fn any_content_in_any_chunks_and_portions_is_read_whole(
            chunks in vec(vec(any::<u8>(), 1..40), 0..8),
            portion in 1_usize..50,
        ) {
            let mut bytes = Vec::new();
            for chunk in &chunks {
                bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
                bytes.extend(chunk);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n\r\nrest");
            let taken = take(Body::chunked(), &bytes, portion).unwrap();
            prop_assert_eq!(taken, (chunks.concat(), 4, true));
        }

        #[test]
        fn no_bytes_panic(bytes in vec(any::<u8>(), 0..200), portion in 1_usize..50) {
            let _ = take(Body::chunked(), &bytes, portion);
        }
    }
}
