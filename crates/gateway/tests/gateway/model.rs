//! The model's base URL, served to agents and answered by upstreams of these tests. Loopback on both sides: the upstream
//! is the operator's choice.

use std::{
    io::{BufReader, ErrorKind, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, mpsc},
    thread,
};

use ostler_domain::{
    Secret, Usage,
    gateway::{CallEnd, KeyScheme, ModelOrder, NetDecision, Reach, Upstream},
};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use crate::keeper::{Keeper, PATIENCE};

const KEY: &str = "sk-the-real-one";
const AUTHORITY: &str = include_str!("tls/authority.pem");

/// Somebody who answers: each connection is given to `serve`, in a thread of its own.
pub(crate) fn upstream(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (serve, stream) = (serve.clone(), stream.unwrap());
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            thread::spawn(move || serve(stream));
        }
    });
    port
}

fn order(url: &str) -> ModelOrder {
    ModelOrder::new(Upstream::parse(url).unwrap(), KeyScheme::ApiKey, Some(Secret::new(KEY)))
}

fn keeper(url: &str) -> Keeper {
    Keeper::with_model(Reach::Provider, &[], 60_000, Some(order(url)))
}

/// Reads a head, to its empty line and no further.
pub(crate) fn head(stream: &mut impl Read) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

fn answer(stream: &mut impl Write, body: &[u8]) {
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nrequest-id: req_1\r\n\r\n", body.len()).unwrap();
    stream.write_all(body).unwrap();
}

fn body(answer: &str) -> serde_json::Value {
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn a_call_goes_to_the_upstream_with_the_real_key_and_is_told() {
    let port = upstream(|mut stream| {
        let mut head = head(&mut stream);
        let mut body = [0; 5];
        stream.read_exact(&mut body).unwrap();
        head.push_str(std::str::from_utf8(&body).unwrap());
        answer(&mut stream, head.as_bytes());
    });
    let mut keeper = keeper(&format!("http://127.0.0.1:{port}/v1"));
    let own = keeper.listener.local_addr().unwrap().port();
    for target in ["/messages?beta=true".to_owned(), format!("http://127.0.0.1:{own}/messages?beta=true")] {
        let said = keeper.ask(&format!(
            "POST {target} HTTP/1.1\r\nHost: 127.0.0.1:{own}\r\nx-api-key: dummy\r\nAuthorization: Bearer dummy\r\n\
            Accept-Encoding: gzip\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello"
        ));
        let passed = format!(
            "POST /v1/messages?beta=true HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\naccept-encoding: identity\r\n\
            connection: close\r\nx-api-key: {KEY}\r\nContent-Length: 5\r\n\r\nhello"
        );
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: ";
        assert!(said.starts_with(head) && said.ends_with(&format!("\r\n\r\n{passed}")), "{said}");
        let call = keeper.call();
        assert_eq!((call.method.as_str(), call.path.as_str(), call.status), ("POST", "/messages", 200));
        assert_eq!((call.end, call.request_id.as_deref()), (CallEnd::Complete, Some("req_1")));
        assert_eq!((call.bytes_in, call.bytes_out), (said.len() as u64, passed.len() as u64));
    }
}

#[test]
fn each_portion_of_an_answer_is_passed_on_before_the_next_is_there() {
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let may_go_on = std::sync::Mutex::new(may_go_on);
    let port = upstream(move |mut stream| {
        head(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
        let may_go_on = may_go_on.lock().unwrap();
        for number in 0..10 {
            may_go_on.recv_timeout(PATIENCE).unwrap();
            // Neither a whole line nor a whole chunk: nothing is waited for.
            write!(stream, "8\r\ndata: {number}").unwrap();
            may_go_on.recv_timeout(PATIENCE).unwrap();
            stream.write_all(b"\n\r\n").unwrap();
        }
        stream.write_all(b"0\r\n\r\n").unwrap();
    });
    let mut keeper = keeper(&format!("http://127.0.0.1:{port}"));
    let mut client = keeper.connect();
    client.write_all(b"GET /v1/models HTTP/1.1\r\n\r\n").unwrap();
    head(&mut client);
    for number in 0..10 {
        for part in [format!("8\r\ndata: {number}"), "\n\r\n".to_owned()] {
            go_on.send(()).unwrap();
            let mut heard = vec![0; part.len()];
            client.read_exact(&mut heard).unwrap();
            assert_eq!(heard, part.as_bytes());
        }
    }
    let mut rest = String::new();
    client.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "0\r\n\r\n");
    assert_eq!(keeper.call().end, CallEnd::Complete);
}

/// Megabytes with another byte at each place.
fn megabytes(count: usize) -> Vec<u8> {
    (0..count * 1024 * 1024).map(|at| (at % 251) as u8).collect()
}

fn chunks(bytes: &[u8]) -> Vec<u8> {
    let mut chunked = Vec::new();
    for chunk in bytes.chunks(70_001) {
        chunked.extend(format!("{:X};x\r\n", chunk.len()).into_bytes());
        chunked.extend(chunk);
        chunked.extend(b"\r\n");
    }
    chunked.extend(b"0\r\nx-trailer: y\r\n\r\n");
    chunked
}

#[test]
fn bodies_of_megabytes_pass_in_every_framing_both_ways() {
    let (plain, chunked) = (megabytes(3), chunks(&megabytes(3)));
    let expected = chunked.clone();
    let port = upstream(move |mut stream| {
        let head = head(&mut stream);
        let framing =
            if head.contains("chunked") { "transfer-encoding: chunked" } else { "x-framing: close" };
        let length: usize = if head.contains("chunked") { expected.len() } else { 3 * 1024 * 1024 };
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        write!(stream, "HTTP/1.1 200 OK\r\n{framing}\r\n\r\n").unwrap();
        stream.write_all(&body).unwrap();
    });
    let mut keeper = keeper(&format!("http://127.0.0.1:{port}"));
    for (framing, body) in [
        (format!("Content-Length: {}", plain.len()), plain),
        ("Transfer-Encoding: chunked".to_owned(), chunked),
    ] {
        let mut client = keeper.connect();
        let mut writer = client.try_clone().unwrap();
        let to_say = body.clone();
        let saying = thread::spawn(move || {
            write!(writer, "POST /tokenize HTTP/1.1\r\n{framing}\r\n\r\n").unwrap();
            writer.write_all(&to_say).unwrap();
            // A second call behind the first is nobody's: it would be one that nobody counts.
            writer.write_all(b"POST /uncounted HTTP/1.1\r\n\r\n").unwrap();
        });
        let mut reader = BufReader::new(&mut client);
        head(&mut reader);
        let mut heard = Vec::new();
        reader.read_to_end(&mut heard).unwrap();
        saying.join().unwrap();
        assert!(heard == body, "{} of {} bytes came back", heard.len(), body.len());
        assert_eq!(keeper.call().end, CallEnd::Complete);
    }
}

#[test]
fn an_agent_that_leaves_takes_the_upstreams_call_along() {
    let (gone, is_gone) = mpsc::channel();
    let gone = std::sync::Mutex::new(gone);
    let port = upstream(move |mut stream| {
        let head = head(&mut stream);
        if head.contains("begun") {
            stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n").unwrap();
        }
        let gone = gone.lock().unwrap();
        gone.send(false).unwrap();
        gone.send(matches!(stream.read(&mut [0]), Ok(0) | Err(_))).unwrap();
    });
    let mut keeper = keeper(&format!("http://127.0.0.1:{port}"));
    for (path, with_reset) in [
        ("/models/begun", false),
        ("/models/begun", true),
        ("/models/silent", false),
        ("/models/silent", true),
    ] {
        let mut client = keeper.connect();
        write!(client, "GET {path} HTTP/1.1\r\n\r\n").unwrap();
        assert!(!is_gone.recv_timeout(PATIENCE).unwrap());
        if with_reset {
            // What closes with a linger of nothing resets.
            rustix::net::sockopt::set_socket_linger(&client, Some(std::time::Duration::ZERO)).unwrap();
        }
        drop(client);
        assert!(is_gone.recv_timeout(PATIENCE).unwrap(), "{path} {with_reset}");
        let call = keeper.call();
        assert_eq!(call.end, CallEnd::Left, "{path} {with_reset}: {call:?}");
    }
}

#[test]
fn an_upstream_that_cannot_be_used_is_said_with_its_reason() {
    let garbage = upstream(|mut stream| {
        head(&mut stream);
        stream.write_all(b"SSH-2.0-nothing\r\n\r\n").unwrap();
    });
    let silent = upstream(|mut stream| drop(head(&mut stream)));
    let plain = upstream(|mut stream| drop(stream.write_all(b"HTTP/1.1 400 no TLS here\r\n\r\n")));
    for (url, why) in [
        // Nobody listens there, and no test is given that port.
        ("http://127.0.0.1:1/v1".to_owned(), "refused"),
        (format!("http://127.0.0.1:{garbage}"), "not HTTP"),
        (format!("http://127.0.0.1:{silent}"), "closed the connection"),
        (format!("https://127.0.0.1:{plain}"), "corrupt message"),
        ("http://no.such.host.invalid".to_owned(), "lookup"),
    ] {
        let mut keeper = keeper(&url);
        let said = keeper.ask("GET /models HTTP/1.1\r\n\r\n");
        assert!(said.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{said}");
        let error = &body(&said)["error"];
        assert_eq!(error["code"], "upstream_unreachable");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.starts_with(&format!("ostler: the model's address {url} cannot be used: ")),
            "{message}"
        );
        assert!(message.contains(why), "{message}");
        assert!(!said.contains(KEY));
        let call = keeper.call();
        assert_eq!((call.end, call.status), (CallEnd::Failed, 0));
        assert!(call.failure.contains(why), "{call:?}");
    }
}

#[test]
fn an_answer_that_breaks_off_is_not_made_whole() {
    let port = upstream(|mut stream| {
        let head = head(&mut stream);
        let framing =
            if head.contains("chunked") { "transfer-encoding: chunked" } else { "content-length: 9" };
        write!(stream, "HTTP/1.1 200 OK\r\n{framing}\r\n\r\n4\r\nhalf").unwrap();
    });
    let mut keeper = keeper(&format!("http://127.0.0.1:{port}"));
    for path in ["/models/chunked", "/models/length"] {
        let said = keeper.ask(&format!("GET {path} HTTP/1.1\r\n\r\n"));
        assert!(said.ends_with("\r\n\r\n4\r\nhalf"), "{said}");
        let call = keeper.call();
        assert_eq!((call.end, call.status), (CallEnd::Cut, 200));
    }
}

#[test]
fn an_upstream_that_answers_early_is_heard() {
    let port = upstream(|mut stream| {
        head(&mut stream);
        answer(&mut stream, b"too large");
        stream.shutdown(Shutdown::Write).unwrap();
        // A server that does not want the rest reads on for a moment, so that its answer arrives.
        let mut unread = [0; 65536];
        while matches!(stream.read(&mut unread), Ok(1..)) {}
    });
    let mut keeper = keeper(&format!("http://127.0.0.1:{port}"));
    let mut client = keeper.connect();
    client
        .write_all(b"POST /tokenize HTTP/1.1\r\nContent-Length: 100000000\r\n\r\nonly the beginning")
        .unwrap();
    let mut said = String::new();
    client.read_to_string(&mut said).unwrap();
    assert!(said.ends_with("too large"), "{said}");
    assert_eq!((keeper.call().end), CallEnd::Complete);
}

#[test]
fn who_waits_for_a_sign_to_go_on_gets_it_and_interim_answers_are_not_the_answer() {
    let port = upstream(|mut stream| {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\n").unwrap();
        let head = head(&mut stream);
        assert!(!head.contains("xpect"), "{head}");
        stream.read_exact(&mut [0; 2]).unwrap();
        answer(&mut stream, b"yes");
    });
    let mut keeper = keeper(&format!("http://127.0.0.1:{port}"));
    let mut client = keeper.connect();
    client
        .write_all(b"POST /tokenize HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        .unwrap();
    assert_eq!(head(&mut client), "HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(b"hi").unwrap();
    let mut said = String::new();
    client.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("HTTP/1.1 200 OK\r\n") && said.ends_with("yes"), "{said}");
    assert_eq!(keeper.call().status, 200);
}

#[test]
fn only_the_upstream_is_reached_this_way() {
    let port = upstream(|mut stream| panic!("it was asked: {}", head(&mut stream)));
    let other = upstream(|mut stream| panic!("another was asked: {}", head(&mut stream)));
    let mut keeper = keeper(&format!("http://127.0.0.1:{port}/v1"));
    for wrong in ["/../admin", "/%2e%2e/admin", "/v1\\..\\admin"] {
        let said = keeper.ask(&format!("GET {wrong} HTTP/1.1\r\n\r\n"));
        assert!(said.starts_with("HTTP/1.1 400 "), "{said}");
        assert_eq!(body(&said)["error"]["code"], "invalid_request");
    }
    for foreign in [format!("http://127.0.0.1:{other}/"), "http://localhost/".to_owned()] {
        let said = keeper.ask(&format!("GET {foreign} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"));
        assert!(said.starts_with("HTTP/1.1 403 "), "{said}");
        assert_eq!(keeper.record().decision, NetDecision::Denied);
    }
    for (method, path) in [("GET", "/files"), ("POST", "/messages/batches"), ("DELETE", "/models/mine")] {
        let said = keeper.ask(&format!("{method} {path} HTTP/1.1\r\n\r\n"));
        assert!(said.starts_with("HTTP/1.1 404 "), "{said}");
        assert_eq!(body(&said)["error"]["code"], "not_a_model_call");
        let told = keeper.record();
        assert_eq!((told.decision, told.port), (NetDecision::Denied, port));
        assert_eq!(told.rule, format!("{method} {path} is no call to a model"));
    }
    let mut without = Keeper::new(Reach::Open, &[], 60_000);
    assert!(without.ask("GET /v1/models HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 "));
    without.ask(&format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n"));
    assert_eq!(without.record().decision, NetDecision::Denied);
}

/// An upstream that speaks TLS with a certificate of these tests' own authority.
fn secure_upstream() -> u16 {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("tls/server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap());
    upstream(move |stream| {
        let tls = ServerConnection::new(config.clone()).unwrap();
        let mut stream = StreamOwned::new(tls, stream);
        let mut first = [0];
        // Whoever does not believe the certificate says nothing.
        if !matches!(stream.read(&mut first), Ok(1)) {
            return;
        }
        head(&mut stream);
        let mut body = vec![0; 3 * 1024 * 1024];
        stream.read_exact(&mut body).unwrap();
        answer(&mut stream, &body);
        stream.conn.send_close_notify();
        let _ = stream.flush();
    })
}

#[test]
fn an_upstream_is_reached_over_tls_and_only_if_its_certificate_holds() {
    let port = secure_upstream();
    let body = megabytes(3);
    for host in ["localhost", "127.0.0.1"] {
        let mut believing = order(&format!("https://{host}:{port}"));
        believing.authorities = Some(AUTHORITY.to_owned());
        let mut keeper = Keeper::with_model(Reach::Provider, &[], 60_000, Some(believing));
        let mut client = keeper.connect();
        write!(client, "POST /tokenize HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.len()).unwrap();
        let mut writer = client.try_clone().unwrap();
        let to_say = body.clone();
        let saying = thread::spawn(move || writer.write_all(&to_say).unwrap());
        head(&mut client);
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).unwrap();
        saying.join().unwrap();
        assert!(heard == body, "{} of {} bytes came back", heard.len(), body.len());
        let call = keeper.call();
        assert_eq!((call.end, call.status), (CallEnd::Complete, 200));
    }
    let mut doubting = keeper(&format!("https://localhost:{port}"));
    let said = doubting.ask("GET / HTTP/1.1\r\n\r\n");
    assert!(said.contains("502 Bad Gateway") && said.contains("UnknownIssuer"), "{said}");
    assert_eq!(doubting.call().end, CallEnd::Failed);
}

#[test]
fn what_a_call_took_is_read_off_the_wire_as_far_as_it_came() {
    const BEGINNING: &str = r#"data: {"type":"message_start","message":{"id":"msg_1","model":"claude-sonnet-5","usage":{"input_tokens":11,"cache_creation_input_tokens":30,"cache_read_input_tokens":20,"output_tokens":1}}}

"#;
    const END: &str = r#"data: {"type":"message_delta","usage":{"output_tokens":42}}

"#;
    let port = upstream(|mut stream| {
        let head = head(&mut stream);
        stream
            .write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
            )
            .unwrap();
        for part in [BEGINNING, END] {
            write!(stream, "{:x}\r\n{part}\r\n", part.len()).unwrap();
            if head.contains("x-cut") {
                return;
            }
            if head.contains("x-going-down") {
                break;
            }
        }
        stream.write_all(b"0\r\n\r\n").unwrap();
    });
    let mut keeper = keeper(&format!("http://127.0.0.1:{port}"));
    let ends = [
        ("x: y", CallEnd::Complete, 42),
        ("x-cut: y", CallEnd::Cut, 1),
        // A server that goes down ends its answers in good order.
        ("x-going-down: y", CallEnd::Cut, 1),
    ];
    for (header, end, output) in ends {
        keeper.ask(&format!("POST /v1/messages HTTP/1.1\r\n{header}\r\n\r\n"));
        let call = keeper.call();
        let usage = Usage { input: 11, cache_read: 20, cache_write: 30, output, reasoning: 0 };
        assert_eq!((call.usage, call.end), (Some(usage), end));
        assert_eq!((call.id.as_deref(), call.model.as_deref()), (Some("msg_1"), Some("claude-sonnet-5")));
    }
}

#[test]
fn the_end_of_the_session_cuts_a_call() {
    let port = upstream(|mut stream| {
        head(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nbegun").unwrap();
        let _ = stream.read(&mut [0]);
    });
    let mut keeper = keeper(&format!("http://127.0.0.1:{port}"));
    let mut client = keeper.connect();
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    head(&mut client);
    client.read_exact(&mut [0; 5]).unwrap();
    keeper.records.get_ref().shutdown(Shutdown::Write).unwrap();
    match client.read(&mut [0]) {
        Ok(count) => assert_eq!(count, 0),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    let call = keeper.call();
    assert_eq!((call.end, call.status, call.bytes_in > 5), (CallEnd::Stopped, 200, true));
    assert!(keeper.gateway.wait().unwrap().success());
}
