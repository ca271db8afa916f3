//! The heads of a call to the model, as they are passed on: the agent's with the real key in place of whatever it sent,
//! the upstream's without what is between it and us. Pure.

use ostler_domain::{
    Time,
    gateway::{ModelOrder, is_plain_path},
    limit_end,
};

use super::body::Body;

/// More are nobody's.
const HEADERS: usize = 128;

/// Between two neighbours only; and `expect`, which is answered here.
const HOP: [&str; 8] = [
    "connection",
    "expect",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "upgrade",
];
/// Ours to say: keys, where it goes, and that usage must be readable.
const REPLACED: [&str; 6] =
    ["accept-encoding", "api-key", "authorization", "host", "x-api-key", "x-goog-api-key"];

/// Why a head is none, for the eyes of whoever wrote it.
pub(crate) type Fault = &'static str;

/// What an agent asks of its model.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// As the agent wrote it, without its query.
    pub(crate) path: String,
    /// As the upstream is told.
    pub(crate) head: Vec<u8>,
    pub(crate) body: Body,
    /// It waits to be told to go on before it sends the body.
    pub(crate) expects_continue: bool,
}

/// What the upstream answers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) request_id: Option<String>,
    /// How long the server asks to be left alone.
    pub(crate) retry_after_ms: Option<u64>,
    /// As the agent is told.
    pub(crate) head: Vec<u8>,
    pub(crate) body: Body,
    /// Absent where it is packed in a way that cannot be read along.
    pub(crate) content_type: Option<String>,
}

/// Whether a head asks for something at the gateway's own address, instead of asking the proxy for somebody else's.
pub(crate) fn is_ours(head: &[u8], port: u16) -> bool {
    let line = head.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let target = std::str::from_utf8(line).ok().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    target.starts_with('/') || own_path(target, port).is_some()
}

/// The path of `http://127.0.0.1:port/path`: some clients say it to a proxy that way.
fn own_path(target: &str, port: u16) -> Option<&str> {
    const SCHEME: &str = "http://";
    let scheme = target.get(..SCHEME.len()).filter(|scheme| scheme.eq_ignore_ascii_case(SCHEME))?;
    let rest = &target[scheme.len()..];
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let host = authority.strip_suffix(&format!(":{port}"))?;
    let own = ["127.0.0.1", "localhost", "[::1]"];
    own.iter().any(|own| own.eq_ignore_ascii_case(host)).then_some(path)
}

pub(crate) fn request(head: &[u8], port: u16, order: &ModelOrder) -> Result<Request, Fault> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Err("the request's head is not whole"),
        Err(httparse::Error::TooManyHeaders) => return Err("the request has too many headers"),
        Err(_) => return Err("the request is not HTTP"),
    }
    let (Some(method), Some(target), Some(version)) = (parsed.method, parsed.path, parsed.version) else {
        return Err("the request is not HTTP");
    };
    // A client of 1.0 would not understand an answer in chunks.
    if version != 1 {
        return Err("the model is called with HTTP/1.1");
    }
    let target = if target.starts_with('/') { Some(target) } else { own_path(target, port) };
    let target = target.ok_or("the request is for somebody else")?;
    if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("the path has characters that no path has");
    }
    let (path, query) = target.split_at(target.find('?').unwrap_or(target.len()));
    if !is_plain_path(path) {
        return Err("the path leads upwards");
    }
    let upstream = &order.upstream;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let query = without_key(query);
    let mut text = format!("{method} {}{slash}{path}{query} HTTP/1.1\r\n", upstream.prefix);
    text.push_str(&format!(
        "host: {}\r\naccept-encoding: identity\r\nconnection: close\r\n",
        upstream.authority()
    ));
    if let Some((name, value)) = order.key.as_ref().and_then(|key| order.scheme.header(key)) {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    let named = named_by_connection(parsed.headers);
    let mut passed = text.into_bytes();
    let mut expects_continue = false;
    for header in parsed.headers.iter() {
        let name = header.name.to_ascii_lowercase();
        expects_continue |= name == "expect" && header.value.eq_ignore_ascii_case(b"100-continue");
        if !HOP.contains(&name.as_str()) && !REPLACED.contains(&name.as_str()) && !named.contains(&name) {
            pass(&mut passed, header);
        }
    }
    passed.extend_from_slice(b"\r\n");
    // Without either header a request has no body.
    let body = framing(parsed.headers)?.unwrap_or(Body::Length(0));
    Ok(Request { method: method.to_owned(), path: path.to_owned(), head: passed, body, expects_continue })
}

/// Reads the upstream's head. Nothing when it was only an interim one.
pub(crate) fn response(head: &[u8], method: &str, now: Time) -> Result<Option<Response>, Fault> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut parsed = httparse::Response::new(&mut headers);
    match parsed.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Err("the head of the answer is not whole"),
        Err(_) => return Err("the answer is not HTTP"),
    }
    let status = parsed.code.ok_or("the answer has no status")?;
    match status {
        // Nothing was asked to be switched.
        101 => return Err("the upstream wants to speak another protocol"),
        100..=199 => return Ok(None),
        _ => {}
    }
    let reason = parsed.reason.unwrap_or_default();
    let mut passed = format!("HTTP/1.1 {status} {reason}\r\nconnection: close\r\n").into_bytes();
    let named = named_by_connection(parsed.headers);
    let mut request_id = None;
    let said = |asked: &str| {
        let header = parsed.headers.iter().find(|header| header.name.eq_ignore_ascii_case(asked))?;
        std::str::from_utf8(header.value).ok()
    };
    let retry_after =
        if status == 429 { limit_end::of_limited(said, now) } else { limit_end::retry_after(said, now) };
    let retry_after_ms = retry_after.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
    let (mut content_type, mut is_packed) = (None, false);
    for header in parsed.headers.iter() {
        let name = header.name.to_ascii_lowercase();
        let value = || String::from_utf8_lossy(header.value).trim().to_owned();
        match name.as_str() {
            "request-id" | "x-request-id" => request_id = request_id.or_else(|| Some(value())),
            "content-type" => content_type = Some(value()),
            "content-encoding" => is_packed = !value().eq_ignore_ascii_case("identity"),
            _ => {}
        }
        if !HOP.contains(&name.as_str()) && !named.contains(&name) {
            pass(&mut passed, header);
        }
    }
    passed.extend_from_slice(b"\r\n");
    let body = match (method, status) {
        ("HEAD", _) | (_, 204 | 304) => Body::Length(0),
        _ => framing(parsed.headers)?.unwrap_or(Body::UntilClose),
    };
    let content_type = content_type.filter(|_| !is_packed);
    Ok(Some(Response { status, request_id, retry_after_ms, head: passed, body, content_type }))
}

fn pass(head: &mut Vec<u8>, header: &httparse::Header<'_>) {
    head.extend_from_slice(header.name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(header.value);
    head.extend_from_slice(b"\r\n");
}

/// Headers that a sender calls its neighbour's. What says where a body ends is not its to take away.
fn named_by_connection(headers: &[httparse::Header<'_>]) -> Vec<String> {
    let values = headers.iter().filter(|header| header.name.eq_ignore_ascii_case("connection"));
    let names = values.flat_map(|header| header.value.split(|&byte| byte == b','));
    names
        .map(|name| String::from_utf8_lossy(name).trim().to_ascii_lowercase())
        .filter(|name| name != "content-length" && name != "transfer-encoding")
        .collect()
}

/// Where the body ends must not be a matter of opinion: behind it would be a call that nobody counts.
fn framing(headers: &[httparse::Header<'_>]) -> Result<Option<Body>, Fault> {
    let mut body = None;
    for header in headers {
        let found = if header.name.eq_ignore_ascii_case("transfer-encoding") {
            if !header.value.eq_ignore_ascii_case(b"chunked") {
                return Err("the only transfer-encoding is chunked");
            }
            Body::chunked()
        } else if header.name.eq_ignore_ascii_case("content-length") {
            let digits = std::str::from_utf8(header.value).unwrap_or_default();
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err("the content-length is not one number");
            }
            Body::Length(digits.parse().map_err(|_| "the content-length is not one number")?)
        } else {
            continue;
        };
        if body.replace(found).is_some() {
            return Err("the body's length is said twice");
        }
    }
    Ok(body)
}

/// A query without `key=`, which is where some clients put their key.
fn without_key(query: &str) -> String {
    let parts = query.trim_start_matches('?').split('&');
    let kept: Vec<&str> = parts.filter(|part| !part.is_empty() && !part.starts_with("key=")).collect();
    if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) }
}

#[cfg(test)]
mod tests {
    use ostler_domain::{
        Secret,
        gateway::{KeyScheme, Upstream},
    };
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const PORT: u16 = 3128;

    fn order(scheme: KeyScheme) -> ModelOrder {
        let upstream = Upstream::parse("https://api.example/v1").unwrap();
        ModelOrder::new(upstream, scheme, Some(Secret::new("sk-real")))
    }

    fn asked(head: &str) -> Result<Request, Fault> {
        request(head.as_bytes(), PORT, &order(KeyScheme::ApiKey))
    }

    #[test]
    fn what_is_at_our_own_address_is_ours() {
        for ours in [
            "POST /v1/messages HTTP/1.1\r\n\r\n",
            "GET http://127.0.0.1:3128/models HTTP/1.1\r\n\r\n",
            "GET HTTP://LocalHost:3128 HTTP/1.1\r\n\r\n",
            "GET http://[::1]:3128/ HTTP/1.1\r\n\r\n",
        ] {
            assert!(is_ours(ours.as_bytes(), PORT), "{ours}");
        }
        for other in [
            "CONNECT 127.0.0.1:3128 HTTP/1.1\r\n\r\n",
            "GET http://127.0.0.1/ HTTP/1.1\r\n\r\n",
            "GET http://127.0.0.1:80/ HTTP/1.1\r\n\r\n",
            "GET http://api.example:3128/ HTTP/1.1\r\n\r\n",
            "GET http://127.0.0.1:3128@api.example/ HTTP/1.1\r\n\r\n",
            "GET https://127.0.0.1:3128/ HTTP/1.1\r\n\r\n",
            "\0\r\n\r\n",
        ] {
            assert!(!is_ours(other.as_bytes(), PORT), "{other}");
        }
    }

    #[test]
    fn the_agents_keys_are_replaced_by_the_real_one() {
        let head = "POST /messages?beta=true&key=dummy HTTP/1.1\r\nHost: 127.0.0.1:3128\r\nX-Api-Key: dummy\r\n\
            Authorization: Bearer dummy\r\nx-goog-api-key: dummy\r\napi-key: dummy\r\nAccept-Encoding: gzip, br\r\n\
            Connection: keep-alive, X-Hop\r\nX-Hop: y\r\nProxy-Connection: close\r\nanthropic-version: 2023-06-01\r\n\
            Content-Length: 2\r\n\r\n";
        let start = "POST /v1/messages?beta=true HTTP/1.1\r\nhost: api.example\r\naccept-encoding: identity\r\n\
            connection: close\r\n";
        let end = "anthropic-version: 2023-06-01\r\nContent-Length: 2\r\n\r\n";
        for (scheme, key) in [
            (KeyScheme::ApiKey, "x-api-key: sk-real\r\n"),
            (KeyScheme::Bearer, "authorization: Bearer sk-real\r\n"),
            (KeyScheme::Google, "x-goog-api-key: sk-real\r\n"),
            (KeyScheme::None, ""),
        ] {
            let request = request(head.as_bytes(), PORT, &order(scheme)).unwrap();
            assert_eq!(String::from_utf8(request.head).unwrap(), format!("{start}{key}{end}"));
            assert_eq!((request.path.as_str(), request.body), ("/messages", Body::Length(2)));
        }
    }

    #[test]
    fn an_absolute_address_is_the_same_request() {
        let origin = asked("GET /models HTTP/1.1\r\nA: b\r\n\r\n").unwrap();
        assert_eq!(asked("GET http://127.0.0.1:3128/models HTTP/1.1\r\nA: b\r\n\r\n").unwrap(), origin);
        assert!(origin.head.starts_with(b"GET /v1/models HTTP/1.1\r\n"));
    }

    #[test]
    fn what_is_ambiguous_or_leads_elsewhere_is_refused() {
        for wrong in [
            "GET http://other.example/ HTTP/1.1\r\n\r\n",
            "GET /../admin HTTP/1.1\r\n\r\n",
            "GET /%2e%2e/admin HTTP/1.1\r\n\r\n",
            "GET /a HTTP/1.0\r\n\r\n",
            "POST /a HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST /a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            "POST /a HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
            "POST /a HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "POST /a HTTP/1.1\r\nContent-Length : 1\r\n\r\n",
            "POST /a HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
        ] {
            assert!(asked(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn how_long_to_be_patient_is_read_of_refusals() {
        let asked =
            |head: &str| response(head.as_bytes(), "POST", Time::default()).unwrap().unwrap().retry_after_ms;
        assert_eq!(asked("HTTP/1.1 429 Slow\r\nRetry-After: 2\r\n\r\n"), Some(2_000));
        assert_eq!(
            asked("HTTP/1.1 429 Slow\r\nRetry-After: Thu, 01 Jan 1970 00:01:00 GMT\r\n\r\n"),
            Some(60_000)
        );
        assert_eq!(asked("HTTP/1.1 503 Busy\r\nRetry-After-Ms: 150\r\n\r\n"), Some(150));
        let reset = "x-ratelimit-reset-requests: 1m30s\r\nx-ratelimit-remaining-requests: 0\r\n\r\n";
        assert_eq!(asked(&format!("HTTP/1.1 429 Slow\r\n{reset}")), Some(90_000));
        assert_eq!(
            asked(&format!("HTTP/1.1 503 Busy\r\n{reset}")),
            None,
            "it did not refuse because of that"
        );
    }

    #[test]
    fn an_answer_is_passed_on_without_what_is_between_neighbours() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\
            Connection: keep-alive\r\nKeep-Alive: timeout=5\r\nrequest-id: req_1\r\nx-request-id: other\r\n\r\n";
        let response = response(head, "POST", Time::default()).unwrap().unwrap();
        assert_eq!(
            String::from_utf8(response.head).unwrap(),
            "HTTP/1.1 200 OK\r\nconnection: close\r\nContent-Type: text/event-stream\r\n\
            Transfer-Encoding: chunked\r\nrequest-id: req_1\r\nx-request-id: other\r\n\r\n"
        );
        assert_eq!((response.status, response.body), (200, Body::chunked()));
        assert_eq!(response.content_type.as_deref(), Some("text/event-stream"));
        assert_eq!(response.request_id.as_deref(), Some("req_1"));
    }

    #[test]
    fn answers_end_as_they_say() {
        let body = |head: &str, method| {
            response(head.as_bytes(), method, Time::default()).unwrap().map(|found| found.body)
        };
        assert_eq!(body("HTTP/1.1 200 OK\r\n\r\n", "GET"), Some(Body::UntilClose));
        assert_eq!(body("HTTP/1.1 204 No\r\n\r\n", "GET"), Some(Body::Length(0)));
        assert_eq!(body("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "HEAD"), Some(Body::Length(0)));
        assert_eq!(body("HTTP/1.1 100 Continue\r\n\r\n", "POST"), None);
        assert!(response(b"HTTP/1.1 101 Switching\r\n\r\n", "GET", Time::default()).is_err());
        assert!(response(b"SSH-2.0-x\r\n\r\n", "GET", Time::default()).is_err());
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/json\r\nContent-Encoding: br\r\n\r\n";
        assert_eq!(response(head, "GET", Time::default()).unwrap().unwrap().content_type, None, "packed");
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_no_foreign_key_gets_out(
            bytes in vec(any::<u8>(), 0..200),
            name in "(x-api-key|AUTHORIZATION|X-Goog-Api-Key|api-key)",
            value in "[ -~]{0,20}",
        ) {
            let _ = (is_ours(&bytes, PORT), request(&bytes, PORT, &order(KeyScheme::None)), response(&bytes, "GET", Time::default()));
            let head = format!("GET / HTTP/1.1\r\n{name}: {value}\r\n\r\n");
            if let Ok(request) = request(head.as_bytes(), PORT, &order(KeyScheme::None)) {
                let sent = String::from_utf8(request.head).unwrap().to_ascii_lowercase();
                prop_assert!(!sent.contains(&format!("{}:", name.to_ascii_lowercase())), "{}", sent);
            }
        }
    }
}
