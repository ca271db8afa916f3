//! Requests and answers, as far as a hub has them: one on each connection.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::Shutdown,
    time::{Duration, Instant},
};

use ostler_domain::{
    Reason, Refusal,
    http::{self, Foreign, Proof, Sent},
    refusal::Hint,
};
use ostler_gateway::socket::Stream;
use serde_json::{Value, json};

/// The longest head, the most lines of it, and the longest body.
const HEAD_BYTES: usize = 16 * 1024;
const HEADERS: usize = 64;
const BODY_BYTES: usize = 1024 * 1024;
/// How long a request may take to be said, from the first moment of its connection: no byte of it puts that off.
pub(crate) const WITHIN: Duration = Duration::from_secs(20);
/// How long an answer may take to be heard.
pub(crate) const HEARD_WITHIN: Duration = Duration::from_secs(60);
/// How long whoever was refused may go on with what nobody reads: who hears nothing before they have said it all would not
/// hear why.
const LINGER: Duration = Duration::from_secs(2);

/// Why there is no request.
#[derive(Debug)]
pub(crate) enum Unread {
    /// Whoever was there is gone, or took too long.
    Gone(io::Error),
    /// It is none that is taken here.
    Refused(Reply),
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Unread {
        Unread::Gone(error)
    }
}

impl Unread {
    fn refused(status: u16, what: &str, why: String) -> Unread {
        let reason = if status == 413 { Reason::TooLarge } else { Reason::InvalidArgument };
        Unread::Refused(Reply::refused(status, &Refusal::new(reason, what).because(why)))
    }

    fn head_too_long() -> Unread {
        let most = format!("a head has at most {HEADERS} lines, and {} KiB", HEAD_BYTES / 1024);
        Unread::refused(431, "the head of this request is too long", most)
    }
}

#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The only value of a header; what is there twice is nobody's.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        let first = found.next().map(|(_, value)| value.as_str());
        if found.next().is_some() { None } else { first }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(key, _)| key.eq_ignore_ascii_case(name))
    }

    /// What it says of where it comes from; what is there twice is somebody's who plays tricks, and fits nothing.
    fn origin(&self) -> Option<&str> {
        self.has("origin").then(|| self.header("origin").unwrap_or("?"))
    }

    /// Says whether it comes from a page of the hub's own, or from none.
    pub(crate) fn check_origin(&self, own: &str) -> Result<(), Foreign> {
        http::check_origin(self.origin(), own)
    }

    /// Says whether what a token is for comes from where it should.
    pub(crate) fn check_by_token(&self, own: &str) -> Result<(), Foreign> {
        http::check(Sent {
            own_origin: own,
            origin: self.origin(),
            is_change: !matches!(self.method.as_str(), "GET" | "HEAD"),
            is_json: self.header("content-type").is_some_and(http::is_json),
            has_csrf: false,
            proof: Proof::Token,
        })
    }

    pub(crate) fn bearer(&self) -> Option<&str> {
        let (scheme, token) = self.header("authorization")?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("Bearer").then_some(token)
    }

    pub(crate) fn cookie(&self, name: &str) -> Option<&str> {
        let pairs = self.header("cookie")?.split(';');
        pairs
            .filter_map(|pair| pair.trim().split_once('='))
            .find_map(|(key, value)| (key == name).then_some(value))
    }

    /// A word behind the `?`; none of those that a hub takes needs decoding.
    pub(crate) fn asked(&self, name: &str) -> Option<&str> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).next_back()
    }

    /// The name that whoever asks gave to the change.
    pub(crate) fn change_name(&self) -> Result<Option<&str>, Refusal> {
        let named = self.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(http::CHANGE_NAME));
        http::change_name(named.map(|(_, value)| Some(value.as_str())))
    }

    /// The place in a log that is named behind the `?`, or in a header; what is there and is none is refused.
    pub(crate) fn place(&self, name: &str, said: Option<&str>) -> Result<Option<u64>, Refusal> {
        let place = |text: &str| {
            text.trim().parse().map_err(|_| Refusal::invalid(format!("{name}: not a place in the log")))
        };
        said.map(place).transpose()
    }

    /// How long its body is.
    fn length(&self) -> Result<usize, Unread> {
        if self.has("transfer-encoding") {
            let why = "Content-Length says how long it is; a Transfer-Encoding is not read".to_owned();
            return Err(Unread::refused(411, "a body has a length here", why));
        }
        if !self.has("content-length") {
            return Ok(0);
        }
        let length = self.header("content-length").and_then(|length| length.parse::<usize>().ok());
        match length {
            Some(length) if length <= BODY_BYTES => Ok(length),
            Some(length) => {
                let most = format!("it has {length} bytes, and a hub takes at most {BODY_BYTES}");
                Err(Unread::refused(413, "what is wanted is too long", most))
            }
            None => {
                let why = "Content-Length is there once, and is a number".to_owned();
                Err(Unread::refused(400, "nobody knows how long the body is", why))
            }
        }
    }

    pub(crate) fn accepts_events(&self) -> bool {
        self.header("accept").is_some_and(|accepted| accepted.contains("text/event-stream"))
    }
}

/// Reads one, and what came behind it.
pub(crate) fn read(stream: &mut Stream) -> Result<(Request, Vec<u8>), Unread> {
    let mut bytes = Vec::new();
    let (mut request, head) = loop {
        let parsed = parsed(&bytes)?;
        if parsed.as_ref().map_or(bytes.len(), |(_, length)| *length) > HEAD_BYTES {
            return Err(Unread::head_too_long());
        }
        if let Some(parsed) = parsed {
            break parsed;
        }
        more(stream, &mut bytes)?;
    };
    let length = request.length()?;
    let mut rest = bytes.split_off(head);
    while rest.len() < length {
        more(stream, &mut rest)?;
    }
    let beyond = rest.split_off(length);
    request.body = rest;
    Ok((request, beyond))
}

fn more(stream: &mut Stream, bytes: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = [0; 4096];
    match stream.read(&mut buffer)? {
        0 => Err(ErrorKind::UnexpectedEof.into()),
        read => {
            bytes.extend_from_slice(&buffer[..read]);
            Ok(())
        }
    }
}

fn parsed(bytes: &[u8]) -> Result<Option<(Request, usize)>, Unread> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Unread::head_too_long()),
        Err(error) => return Err(Unread::refused(400, "this is no request", error.to_string())),
    };
    let target = head.path.unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let request = Request {
        method: head.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers: head
            .headers
            .iter()
            .map(|header| (header.name.to_owned(), String::from_utf8_lossy(header.value).into_owned()))
            .collect(),
        body: Vec::new(),
    };
    Ok(Some((request, length)))
}

/// A refusal, in the form that every one has.
pub(crate) fn error(refusal: &Refusal) -> Value {
    let hint = |hint: &Hint| json!({"command": hint.command, "effect": hint.effect});
    json!({"error": {
        "reason": refusal.reason.as_str(),
        "message": refusal.message,
        "why": refusal.why,
        "hint": refusal.hints.iter().map(hint).collect::<Vec<_>>(),
        "request_id": refusal.request_id,
    }})
}

/// What is answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(status: u16, body: impl Into<Vec<u8>>) -> Reply {
        Reply { status, headers: vec![("content-type", "application/json".to_owned())], body: body.into() }
    }

    pub(crate) fn html(body: String) -> Reply {
        Reply::text("text/html; charset=utf-8", body)
    }

    pub(crate) fn text(kind: &str, body: impl Into<Vec<u8>>) -> Reply {
        Reply { status: 200, headers: vec![("content-type", kind.to_owned())], body: body.into() }
    }

    pub(crate) fn refused(status: u16, refusal: &Refusal) -> Reply {
        Reply::json(status, error(refusal).to_string())
    }

    /// To whoever may come in, and asks from where nobody may.
    pub(crate) fn foreign(foreign: Foreign) -> Reply {
        let refusal = Refusal::new(Reason::PermissionDenied, "this request is not taken");
        Reply::refused(403, &refusal.because(foreign.why()))
    }

    /// Where there is nothing.
    pub(crate) fn nowhere(there_is: &str) -> Reply {
        Reply::refused(404, &Refusal::invalid("there is nothing here").because(there_is))
    }

    pub(crate) fn write(&self, stream: &mut Stream) -> io::Result<()> {
        stream.set_until(Some(Instant::now() + HEARD_WITHIN));
        stream.write_all(head(self.status, &self.headers, Some(self.body.len())).as_bytes())?;
        stream.write_all(&self.body)?;
        stream.flush()
    }

    /// Answers whoever is still saying something.
    pub(crate) fn interrupt(&self, stream: &mut Stream) -> io::Result<()> {
        self.write(stream)?;
        stream.tcp().shutdown(Shutdown::Write)?;
        // What came and was not read when a connection is closed takes the answer with it.
        stream.set_until(Some(Instant::now() + LINGER));
        while stream.read(&mut [0; 4096])? > 0 {}
        Ok(())
    }
}

/// The page reaches nobody else, and is framed by nobody.
const POLICY: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) fn head(status: u16, headers: &[(&'static str, String)], length: Option<usize>) -> String {
    let own: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = length.map(|length| format!("content-length: {length}\r\n")).unwrap_or_default();
    format!(
        "HTTP/1.1 {status} {}\r\nconnection: close\r\ncache-control: no-store\r\nx-content-type-options: nosniff\r\n\
         referrer-policy: no-referrer\r\ncontent-security-policy: {POLICY}\r\n{length}{own}\r\n",
        if status < 400 { "OK" } else { "No" }
    )
}
