//! The head of a request to a proxy: `CONNECT host:port`, or a plain request with the whole address in it.

use std::net::{IpAddr, Ipv6Addr};

use crate::rules::{Target, Way};

/// What a client asks of the proxy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) target: Target,
    /// What is said to the server first; nothing for a tunnel.
    pub(crate) head: Vec<u8>,
    /// Bytes behind the head that belong to it.
    pub(crate) body_bytes: u64,
}

/// Why a request is none, for the client's eyes.
pub(crate) type Fault = &'static str;

/// Headers that are between a client and its proxy, or that say what happens to this one connection.
const OURS: [&str; 8] = [
    "connection",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];

/// Where the head ends, behind its empty line.
pub(crate) fn head_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

/// Reads a whole head, with its empty line.
pub(crate) fn parse(head: &[u8]) -> Result<Request, Fault> {
    let head = std::str::from_utf8(head).map_err(|_| "the request is not text")?;
    let mut lines = head.strip_suffix("\r\n\r\n").unwrap_or(head).split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err("the request line is not HTTP/1.1");
    };
    if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("the address has characters that no address has");
    }
    if method == "CONNECT" {
        let (host, port) = split_authority(target)?;
        let port = port.ok_or("CONNECT needs a port")?;
        let target = Target { host: host_name(host)?, port, way: Way::Tunnel };
        return Ok(Request { target, head: Vec::new(), body_bytes: 0 });
    }
    if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-') {
        return Err("the request has no method");
    }
    let rest =
        strip_scheme(target).ok_or("this is a proxy: CONNECT host:443, or a request with http://host/")?;
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (host, port) = split_authority(authority)?;
    let target = Target { host: host_name(host)?, port: port.unwrap_or(80), way: Way::Plain };
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut head = format!("{method} {slash}{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n");
    let mut body_bytes = None;
    for line in lines {
        let (name, value) = line.split_once(':').ok_or("a header has no colon")?;
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a header has no name");
        }
        // A bare line feed would be the end of a line to some servers and not to others.
        if value.contains(['\r', '\n', '\0']) {
            return Err("a header has more than one line");
        }
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            // Where a request ends must not be a matter of opinion: behind it would be a second one, to anybody.
            "transfer-encoding" => return Err("a plain request needs a content-length"),
            "content-length" => {
                let digits = value.trim();
                let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
                let bytes = digits.parse::<u64>().ok().filter(|_| is_number);
                if body_bytes.is_some() || bytes.is_none() {
                    return Err("the content-length is not one number");
                }
                body_bytes = bytes;
            }
            _ => {}
        }
        if !OURS.contains(&name.as_str()) {
            head.push_str(line);
            head.push_str("\r\n");
        }
    }
    head.push_str("\r\n");
    Ok(Request { target, head: head.into_bytes(), body_bytes: body_bytes.unwrap_or(0) })
}

fn strip_scheme(target: &str) -> Option<&str> {
    const SCHEME: &str = "http://";
    let scheme = target.get(..SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then(|| &target[SCHEME.len()..])
}

/// `host`, `host:port`, `[address]:port`.
fn split_authority(authority: &str) -> Result<(&str, Option<u16>), Fault> {
    const FAULT: Fault = "the host is not host:port";
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let end = rest.find(']').ok_or(FAULT)?;
            // With its brackets, so that it is not taken for a name.
            (&authority[..end + 2], &rest[end + 1..])
        }
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    if port.is_empty() {
        return Ok((host, None));
    }
    let digits = port.strip_prefix(':').ok_or(FAULT)?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(FAULT);
    }
    Ok((host, Some(digits.parse().map_err(|_| FAULT)?)))
}

fn host_name(host: &str) -> Result<String, Fault> {
    const FAULT: Fault = "the host is not a name or an address";
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().map(|address| address.to_string()).map_err(|_| FAULT);
    }
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if host.len() > 253 || !host.split('.').all(is_label) {
        return Err(FAULT);
    }
    Ok(host.parse::<IpAddr>().map_or(host, |address| address.to_string()))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn connect(target: &str) -> Result<(String, u16), Fault> {
        let head = format!("CONNECT {target} HTTP/1.1\r\nHost: somebody.else\r\n\r\n");
        parse(head.as_bytes()).map(|request| (request.target.host, request.target.port))
    }

    #[test]
    fn a_tunnel_has_a_host_and_a_port() {
        let is = |host: &str, port| Ok((host.to_owned(), port));
        assert_eq!(connect("api.example:443"), is("api.example", 443));
        assert_eq!(connect("API.Example.:443"), is("api.example", 443));
        assert_eq!(connect("[2606:2800:0::1]:443"), is("2606:2800::1", 443));
        assert_eq!(connect("93.184.216.34:22"), is("93.184.216.34", 22));
        for wrong in [
            "api.example",
            "api.example:",
            "api.example:+443",
            "api.example:99999",
            "a:b:443",
            ":443",
            "..:443",
            "a..b:443",
            "user@host:443",
            "[::1:443",
            "[::1]443",
            "[fe80::1%lo]:443",
            "[name]:443",
            "http://api.example:443",
            "a\0b:443",
            "ä.example:443",
        ] {
            assert!(connect(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_plain_request_is_told_to_its_host_and_to_nobody_else() {
        let head =
            b"POST http://Api.Example/a?b HTTP/1.1\r\nHost: other.example\r\nProxy-Authorization: x\r\n\
            Connection: keep-alive\r\nContent-Length: 3\r\nX-A: b\r\n\r\n";
        let request = parse(head).unwrap();
        assert_eq!((request.target.host.as_str(), request.target.port), ("api.example", 80));
        assert_eq!(request.body_bytes, 3);
        assert_eq!(
            String::from_utf8(request.head).unwrap(),
            "POST /a?b HTTP/1.1\r\nHost: Api.Example\r\nConnection: close\r\nContent-Length: 3\r\nX-A: b\r\n\r\n"
        );
        let request = parse(b"GET http://a.example?q HTTP/1.1\r\n\r\n").unwrap();
        assert!(request.head.starts_with(b"GET /?q HTTP/1.1\r\nHost: a.example\r\n"));
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        for head in [
            "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET https://a.example/ HTTP/1.1\r\n\r\n",
            "GET http://a.example/ HTTP/2\r\n\r\n",
            "GET  http://a.example/ HTTP/1.1\r\n\r\n",
            "get http://a.example/ HTTP/1.1\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nContent-Length : 1\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nA: b\nHost: x\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\n folded: x\r\n\r\n",
            "GET http://a.example@b.example/ HTTP/1.1\r\n\r\n",
            "GET http://a.example\n/ HTTP/1.1\r\n\r\n",
            "GET http://a.example/\nHost:b HTTP/1.1\r\n\r\n",
        ] {
            assert!(parse(head.as_bytes()).is_err(), "{head:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in vec(any::<u8>(), 0..200), text in "[A-Z]{0,7} ?(http://)?[a-z\\[\\]:.@/?]{0,20} HTTP/1.[01]\r\n.{0,30}\r\n\r\n") {
            let _ = parse(&bytes);
            if let Ok(request) = parse(text.as_bytes()) {
                prop_assert!(!request.head.windows(2).any(|pair| pair[1] == b'\n' && pair[0] != b'\r'));
            }
        }
    }
}
