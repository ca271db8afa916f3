//! What is at an address that the machine's owner has named, whole and bounded. Follows no redirection.

use std::{
    io::{self, ErrorKind},
    time::{Duration, Instant},
};

use ostler_domain::gateway::Upstream;

use crate::{
    model::Body,
    post::{Stream, in_words, talk},
};

/// Longest answer that is read.
const ANSWER_BYTES: usize = 4 << 20;

/// Asks for it and waits for all of the answer, within a time. The fault is for people, and has nothing secret.
pub fn get(url: &str, headers: &[(&str, String)], within: Duration) -> Result<(u16, Vec<u8>), String> {
    let upstream = Upstream::parse(url)?;
    let path = if upstream.prefix.is_empty() { "/" } else { &upstream.prefix };
    let own: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: {}\r\nuser-agent: ostler\r\naccept: application/json\r\nconnection: close\r\n{own}\r\n",
        upstream.authority()
    );
    talk(&upstream, Instant::now() + within, None, |stream| ask(stream, &head)).map_err(in_words)
}

fn ask(stream: &mut dyn Stream, head: &str) -> io::Result<(u16, Vec<u8>)> {
    stream.write_all(head.as_bytes())?;
    stream.flush()?;
    let mut answer = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        let read = stream.read(&mut buffer).or_else(hung_up)?;
        answer.extend_from_slice(&buffer[..read]);
        if let Some(whole) = whole(&answer, read == 0)? {
            return Ok(whole);
        }
        if read == 0 {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "it hung up in the middle of its answer"));
        }
        if answer.len() > ANSWER_BYTES {
            return Err(io::Error::new(ErrorKind::InvalidData, "its answer is too long"));
        }
    }
}

/// Some servers close TLS without saying so; whether that was the end is seen from what they sent.
fn hung_up(error: io::Error) -> io::Result<usize> {
    if error.kind() == ErrorKind::UnexpectedEof { Ok(0) } else { Err(error) }
}

/// Status and body, once all of it is there.
fn whole(answer: &[u8], is_over: bool) -> io::Result<Option<(u16, Vec<u8>)>> {
    let wrong =
        |what: String| io::Error::new(ErrorKind::InvalidData, format!("its answer is not HTTP: {what}"));
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(at) = response.parse(answer).map_err(|error| wrong(error.to_string()))?
    else {
        return Ok(None);
    };
    let status = response.code.unwrap_or_default();
    if status < 200 {
        return whole(&answer[at..], is_over);
    }
    let value = |name: &str| {
        let header = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        header.map(|header| String::from_utf8_lossy(header.value).trim().to_ascii_lowercase())
    };
    let mut body = match (value("transfer-encoding"), value("content-length")) {
        (Some(_), _) => Body::chunked(),
        (None, Some(length)) => Body::Length(length.parse().map_err(|_| wrong("its length".to_owned()))?),
        (None, None) => Body::UntilClose,
    };
    let mut text = Vec::new();
    body.take(&answer[at..], &mut |piece| text.extend_from_slice(piece))
        .map_err(|_| wrong("its chunks".to_owned()))?;
    Ok((body.is_done() || (is_over && body.may_end())).then_some((status, text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_every_form_are_read_whole() {
        let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
        assert_eq!(whole(chunked, false).unwrap(), Some((200, b"{}".to_vec())));
        assert_eq!(whole(&chunked[..50], false).unwrap(), None);
        let length = b"HTTP/1.1 401 No\r\nContent-Length: 3\r\n\r\nno!";
        assert_eq!(whole(length, false).unwrap(), Some((401, b"no!".to_vec())));
        assert_eq!(whole(&length[..length.len() - 1], true).unwrap(), None);
        let open = b"HTTP/1.0 200 OK\r\n\r\n[]";
        assert_eq!(
            (whole(open, false).unwrap(), whole(open, true).unwrap()),
            (None, Some((200, b"[]".to_vec())))
        );
        assert!(whole(b"SSH-2.0-x\r\n\r\n", false).is_err());
    }
}
