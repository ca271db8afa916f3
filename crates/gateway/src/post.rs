//! One message to an address that the machine's owner has named, and the status of its answer. Follows no redirection.

use std::{
    io::{self, ErrorKind, Read, Write},
    time::{Duration, Instant},
};

use ostler_domain::{gateway::Upstream, limits::WEBHOOK_ANSWER_BYTES};

use crate::{
    model::{Trust, dial, greet},
    timed::Timed,
    untrusted,
};

/// Sends `body` and waits for the answer's status, both within a time. The fault is for people, and has nothing secret.
pub fn post(url: &str, headers: &[(&str, String)], body: &[u8], within: Duration) -> Result<u16, String> {
    post_trusting(url, headers, body, within, None)
}

/// [`post`], believing these authorities besides the machine's own.
fn post_trusting(
    url: &str,
    headers: &[(&str, String)],
    body: &[u8],
    within: Duration,
    authorities: Option<&str>,
) -> Result<u16, String> {
    let upstream = Upstream::parse(url)?;
    let deadline = Instant::now() + within;
    let head = head(&upstream, headers, body.len());
    talk(&upstream, deadline, authorities, |stream| say(stream, &head, body)).map_err(in_words)
}

pub(crate) fn in_words(error: io::Error) -> String {
    let is_late = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    if is_late { "it did not answer in time".to_owned() } else { untrusted::in_words(error) }
}

/// A connection, whether with TLS or without.
pub(crate) trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

fn head(upstream: &Upstream, headers: &[(&str, String)], length: usize) -> String {
    let path = if upstream.prefix.is_empty() { "/" } else { &upstream.prefix };
    let own: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\nuser-agent: ostler\r\ncontent-length: {length}\r\nconnection: close\r\n{own}\r\n",
        upstream.authority()
    )
}

/// Connects, and says what is to be said before the deadline.
pub(crate) fn talk<T>(
    upstream: &Upstream,
    deadline: Instant,
    authorities: Option<&str>,
    say: impl FnOnce(&mut dyn Stream) -> io::Result<T>,
) -> io::Result<T> {
    let tcp = dial(upstream)?;
    if !upstream.tls {
        return say(&mut Timed::until(&tcp, deadline));
    }
    let mut tls = greet(&tcp, upstream, Trust::default().config(authorities)?)?;
    say(&mut rustls::Stream::new(&mut *tls, &mut Timed::until(&tcp, deadline)))
}

fn say(stream: &mut dyn Stream, head: &str, body: &[u8]) -> io::Result<u16> {
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    stream.flush()?;
    let mut answer = Vec::new();
    let mut buffer = [0; 2048];
    loop {
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Err(io::Error::new(ErrorKind::UnexpectedEof, "it hung up without an answer"));
        }
        answer.extend_from_slice(&buffer[..read]);
        if let Some(status) = status(&answer)? {
            return Ok(status);
        }
        if answer.len() > WEBHOOK_ANSWER_BYTES {
            return Err(io::Error::new(ErrorKind::InvalidData, "its answer begins too long"));
        }
    }
}

fn status(answer: &[u8]) -> io::Result<Option<u16>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    match response.parse(answer) {
        // What comes before the answer, such as `100 Continue`, is none.
        Ok(httparse::Status::Complete(read)) if response.code.is_some_and(|code| code < 200) => {
            status(&answer[read..])
        }
        Ok(httparse::Status::Complete(_)) => Ok(response.code),
        Ok(httparse::Status::Partial) => Ok(None),
        Err(error) => Err(io::Error::new(ErrorKind::InvalidData, format!("its answer is not HTTP: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, sync::Arc, thread};

    use rustls::{
        ServerConfig, ServerConnection, StreamOwned,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    };

    use super::*;

    const AUTHORITY: &str = include_str!("../tests/gateway/tls/authority.pem");
    const CERTIFICATE: &[u8] = include_bytes!("../tests/gateway/tls/server.pem");
    const KEY: &[u8] = include_bytes!("../tests/gateway/tls/server.key");

    #[test]
    fn speaks_tls_and_believes_nobody_unknown() {
        let certificate = CertificateDer::from_pem_slice(CERTIFICATE).expect("a certificate");
        let key = PrivateKeyDer::from_pem_slice(KEY).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth();
        let config = Arc::new(config.with_single_cert(vec![certificate], key).expect("a pair"));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("https://localhost:{}/hook", listener.local_addr().expect("an address").port());
        thread::spawn(move || {
            for tcp in listener.incoming().flatten() {
                let server = ServerConnection::new(config.clone()).expect("a connection");
                let mut stream = StreamOwned::new(server, tcp);
                let mut heard = Vec::new();
                let mut buffer = [0; 1024];
                while !heard.ends_with(b"{}") {
                    match stream.read(&mut buffer) {
                        Ok(read) if read > 0 => heard.extend_from_slice(&buffer[..read]),
                        _ => break,
                    }
                }
                let _ = stream.write_all(b"HTTP/1.1 204 So\r\n\r\n");
            }
        });
        let within = Duration::from_secs(10);
        assert_eq!(post_trusting(&url, &[], b"{}", within, Some(AUTHORITY)), Ok(204));
        assert!(post(&url, &[], b"{}", within).unwrap_err().contains("certificate"));
    }

    /// Answers one request with these bytes, and says what it heard.
    fn server(answer: &'static [u8]) -> (String, thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/hook/a", listener.local_addr().expect("an address"));
        let heard = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a caller");
            let mut heard = Vec::new();
            let mut buffer = [0; 1024];
            while !heard.ends_with(b"{}") {
                let read = stream.read(&mut buffer).expect("a request");
                heard.extend_from_slice(&buffer[..read]);
            }
            stream.write_all(answer).expect("somebody who listens");
            // Held open: the status alone is waited for.
            thread::sleep(Duration::from_millis(200));
            String::from_utf8(heard).expect("text")
        });
        (url, heard)
    }

    #[test]
    fn sends_it_and_hears_the_status() {
        let (url, heard) =
            server(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\ncontent-length: 9\r\n\r\n");
        let headers = [("ostler-notice", "n-1".to_owned())];
        assert_eq!(post(&url, &headers, b"{}", Duration::from_secs(10)), Ok(202));
        let heard = heard.join().expect("an end");
        assert!(heard.starts_with("POST /hook/a HTTP/1.1\r\nhost: 127.0.0.1:"), "{heard}");
        assert!(
            heard.contains("\r\ncontent-length: 2\r\n") && heard.contains("\r\nostler-notice: n-1\r\n"),
            "{heard}"
        );
    }

    #[test]
    fn says_what_went_wrong_in_time() {
        let wrong = |answer| {
            let (url, _heard) = server(answer);
            post(&url, &[], b"{}", Duration::from_millis(150)).unwrap_err()
        };
        assert!(wrong(b"hello there\r\n\r\n").contains("not HTTP"));
        assert_eq!(wrong(b"HTTP/1.1 200"), "it did not answer in time");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        drop(listener);
        assert!(post(&url, &[], b"{}", Duration::from_secs(5)).unwrap_err().contains("refused"));
        assert!(post("ftp://x", &[], b"", Duration::from_secs(1)).is_err());
    }
}
