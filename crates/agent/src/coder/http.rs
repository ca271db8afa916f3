//! Plain HTTP/1.1 to the gateway on the loopback: one request, its answer as it comes, and a way to break it off.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream, ToSocketAddrs},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use super::settings::Base;

const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Longest head of an answer, and how many headers it may have.
const HEAD_BYTES: usize = 64 * 1024;
const HEADERS: usize = 100;

/// What comes of a request, in order: a head, pieces of the body, and one of the last two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Head(Head),
    Body(Vec<u8>),
    /// The body is complete, or the server has closed a stream that had no length.
    End,
    Failed {
        message: String,
        before_head: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Head {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// A request under way. Dropping it closes the connection, which also stops the server's work.
pub(super) struct Exchange {
    wire: Arc<Mutex<Line>>,
}

enum Line {
    Connecting,
    Open(TcpStream),
    Cut,
}

impl Exchange {
    /// Posts a body; `hear` is called on another thread with what comes.
    pub(super) fn post(
        base: &Base,
        path: &str,
        headers: &[(String, String)],
        body: &[u8],
        hear: impl Fn(Answer) + Send + 'static,
    ) -> Self {
        let mut request = format!(
            "POST {}{path} HTTP/1.1\r\nhost: {}:{}\r\ncontent-type: application/json\r\naccept: text/event-stream\r\n\
             content-length: {}\r\nconnection: close\r\n",
            base.path,
            base.host,
            base.port,
            body.len()
        );
        for (name, value) in headers {
            // A line break in a header would be a second request.
            let clean = |text: &str| text.replace(['\r', '\n'], " ");
            request.push_str(&format!("{}: {}\r\n", clean(name), clean(value)));
        }
        request.push_str("\r\n");
        let mut bytes = request.into_bytes();
        bytes.extend_from_slice(body);
        let wire = Arc::new(Mutex::new(Line::Connecting));
        let (shared, base) = (Arc::clone(&wire), base.clone());
        thread::spawn(move || {
            let mut reading = Reading::default();
            if let Err(error) = carry(&base, &bytes, &shared, &mut reading, &hear) {
                hear(Answer::Failed { message: error.to_string(), before_head: reading.head.is_none() });
            }
        });
        Self { wire }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut line = self.wire.lock().unwrap_or_else(PoisonError::into_inner);
        if let Line::Open(stream) = &*line {
            let _ = stream.shutdown(Shutdown::Both);
        }
        *line = Line::Cut;
    }
}

fn carry(
    base: &Base,
    request: &[u8],
    wire: &Mutex<Line>,
    reading: &mut Reading,
    hear: &impl Fn(Answer),
) -> io::Result<()> {
    let mut stream = connect(base)?;
    {
        let mut line = wire.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*line, Line::Cut) {
            return Ok(());
        }
        *line = Line::Open(stream.try_clone()?);
    }
    stream.write_all(request)?;
    let mut buffer = [0; 16 * 1024];
    loop {
        let n = stream.read(&mut buffer)?;
        let answers = if n == 0 { vec![reading.end()?] } else { reading.push(&buffer[..n])? };
        for answer in answers {
            let last = answer == Answer::End;
            hear(answer);
            if last {
                return Ok(());
            }
        }
    }
}

fn connect(base: &Base) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, format!("{} has no address", base.host));
    let host = base.host.trim_start_matches('[').trim_end_matches(']');
    for address in (host, base.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIME) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Reads an answer from bytes that may be cut anywhere.
#[derive(Debug, Default)]
struct Reading {
    buffer: Vec<u8>,
    head: Option<Head>,
    body: Body,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum Body {
    #[default]
    UntilClose,
    /// Bytes still to come.
    Length(u64),
    Chunk,
    /// Inside of a chunk, with its closing line break.
    InChunk(u64),
    ChunkEnd,
    Done,
}

impl Reading {
    fn push(&mut self, bytes: &[u8]) -> io::Result<Vec<Answer>> {
        self.buffer.extend_from_slice(bytes);
        let mut answers = Vec::new();
        while self.head.is_none() {
            match self.read_head()? {
                Some(head) if head.status / 100 == 1 => {}
                Some(head) => {
                    answers.push(Answer::Head(head.clone()));
                    self.head = Some(head);
                }
                None => return Ok(answers),
            }
        }
        while let Some(answer) = self.read_body()? {
            let last = answer == Answer::End;
            answers.push(answer);
            if last {
                break;
            }
        }
        Ok(answers)
    }

    /// The server closed the connection.
    fn end(&mut self) -> io::Result<Answer> {
        match (&self.head, self.body) {
            (Some(_), Body::UntilClose | Body::Done) => Ok(Answer::End),
            _ => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed in mid-answer")),
        }
    }

    fn read_head(&mut self) -> io::Result<Option<Head>> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response.parse(&self.buffer).map_err(garbled)?;
        let httparse::Status::Complete(len) = parsed else {
            return if self.buffer.len() > HEAD_BYTES {
                Err(garbled("its head is too long"))
            } else {
                Ok(None)
            };
        };
        let head = Head {
            status: response.code.unwrap_or_default(),
            headers: response
                .headers
                .iter()
                .map(|header| (header.name.to_owned(), String::from_utf8_lossy(header.value).into_owned()))
                .collect(),
        };
        self.buffer.drain(..len);
        let is_chunked = head
            .header("transfer-encoding")
            .is_some_and(|coding| coding.to_ascii_lowercase().contains("chunked"));
        self.body = match head.header("content-length").map(str::parse) {
            _ if is_chunked => Body::Chunk,
            Some(Ok(length)) => Body::Length(length),
            Some(Err(_)) => return Err(garbled("its length is no number")),
            None => Body::UntilClose,
        };
        Ok(Some(head))
    }

    fn read_body(&mut self) -> io::Result<Option<Answer>> {
        match self.body {
            Body::Done | Body::Length(0) => {
                self.body = Body::Done;
                Ok(Some(Answer::End))
            }
            _ if self.buffer.is_empty() => Ok(None),
            Body::UntilClose => Ok(Some(Answer::Body(std::mem::take(&mut self.buffer)))),
            Body::Length(left) => {
                let piece = self.take(left);
                self.body = Body::Length(left - piece.len() as u64);
                Ok(Some(Answer::Body(piece)))
            }
            Body::InChunk(left) => {
                let piece = self.take(left);
                let left = left - piece.len() as u64;
                self.body = if left == 0 { Body::ChunkEnd } else { Body::InChunk(left) };
                Ok(Some(Answer::Body(piece)))
            }
            Body::ChunkEnd if self.buffer.len() < 2 => Ok(None),
            Body::ChunkEnd => {
                self.buffer.drain(..2);
                self.body = Body::Chunk;
                self.read_body()
            }
            Body::Chunk => {
                let size =
                    httparse::parse_chunk_size(&self.buffer).map_err(|_| garbled("a chunk has no size"))?;
                let httparse::Status::Complete((line, size)) = size else { return Ok(None) };
                self.buffer.drain(..line);
                // Trailers mean nothing here, and the connection is not used again.
                self.body = if size == 0 { Body::Done } else { Body::InChunk(size) };
                self.read_body()
            }
        }
    }

    fn take(&mut self, most: u64) -> Vec<u8> {
        let n = usize::try_from(most).unwrap_or(usize::MAX).min(self.buffer.len());
        self.buffer.drain(..n).collect()
    }
}

fn garbled(why: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the answer is not HTTP: {}", why.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, size: usize) -> (u16, String, bool) {
        let mut reading = Reading::default();
        let (mut status, mut body, mut ended) = (0, Vec::new(), false);
        for piece in text.as_bytes().chunks(size) {
            for answer in reading.push(piece).unwrap() {
                match answer {
                    Answer::Head(head) => status = head.status,
                    Answer::Body(bytes) => body.extend(bytes),
                    Answer::End => ended = true,
                    Answer::Failed { .. } => unreachable!(),
                }
            }
        }
        ended = ended || reading.end().is_ok();
        (status, String::from_utf8(body).unwrap(), ended)
    }

    #[test]
    fn an_answer_reads_the_same_however_it_is_cut() {
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n";
        let length = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 429 Slow\r\ncontent-length: 4\r\nretry-after: 1\r\n\r\nwait";
        let closing = "HTTP/1.1 200 OK\r\n\r\nall of it";
        for size in 1..80 {
            assert_eq!(read(chunked, size), (200, "hello world".into(), true));
            assert_eq!(read(length, size), (429, "wait".into(), true));
            assert_eq!(read(closing, size), (200, "all of it".into(), true));
        }
    }

    #[test]
    fn an_answer_that_stops_early_is_not_complete() {
        let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel";
        assert!(!read(chunked, 7).2);
        assert!(!read("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort", 7).2);
        assert!(Reading::default().push(b"SSH-2.0-OpenSSH\r\n\r\n").is_err());
        assert!(Reading::default().push(&vec![b'H'; HEAD_BYTES + 1]).is_err());
    }
}
