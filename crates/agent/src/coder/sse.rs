//! Server-sent events: bytes in, the texts of `data:` lines out. Chunks may be cut anywhere, also inside a character.

use ostler_domain::limits;

/// Reads a stream of events.
#[derive(Debug, Default)]
pub(super) struct Sse {
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    data: Vec<String>,
}

/// An event longer than any line that is parsed anywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is longer than {} MiB", limits::LINE_BYTES >> 20)]
pub(super) struct TooLong;

impl Sse {
    /// Takes in bytes, and gives the data of every event that they complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut whole = Vec::new();
        for byte in bytes {
            if *byte == b'\n' {
                whole.extend(self.end_line());
            } else {
                if self.line.len() >= limits::LINE_BYTES {
                    return Err(TooLong);
                }
                self.line.push(*byte);
            }
        }
        Ok(whole)
    }

    /// The stream is over: a server may leave out the last blank line.
    pub(super) fn end(&mut self) -> Option<String> {
        let last = self.end_line();
        last.or_else(|| self.event())
    }

    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        if line.is_empty() {
            return self.event();
        }
        // Comments, names, ids and whatever else there may be mean nothing here.
        if let Some(data) = line.strip_prefix(b"data:") {
            let data = data.strip_prefix(b" ").unwrap_or(data);
            self.data.push(String::from_utf8_lossy(data).into_owned());
        }
        None
    }

    fn event(&mut self) -> Option<String> {
        (!self.data.is_empty()).then(|| std::mem::take(&mut self.data).join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = ": keep-alive\r\n\r\nevent: x\ndata: {\"a\":\"ü\"}\n\ndata:no space\r\n\r\nid: 4\n\ndata: one\ndata: two\n\ndata: [DONE]";

    #[test]
    fn a_stream_reads_the_same_however_it_is_cut() {
        let expected = ["{\"a\":\"ü\"}", "no space", "one\ntwo", "[DONE]"];
        for size in 1..STREAM.len() {
            let mut sse = Sse::default();
            let mut read: Vec<String> =
                STREAM.as_bytes().chunks(size).flat_map(|piece| sse.push(piece).unwrap()).collect();
            read.extend(sse.end());
            assert_eq!(read, expected, "in pieces of {size}");
        }
    }
}
