//! What holds inside that network. Each test has a gateway of its own, and plays its keeper.

use std::{
    io::{BufRead, ErrorKind, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use ostler_domain::gateway::{NetDecision, Reach};

use crate::keeper::{Keeper, start};

const GRANT: &str = "ostler campaign set shop net.allow+=";

/// Answers each connection with what it said, until it stops saying things. One for all tests: the address is one.
fn server() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        for port in [443, 80] {
            let listener = TcpListener::bind(("93.184.216.34", port)).unwrap();
            thread::spawn(move || {
                for stream in listener.incoming() {
                    let mut stream = stream.unwrap();
                    thread::spawn(move || {
                        let mut bytes = [0; 4096];
                        while let Ok(count @ 1..) = stream.read(&mut bytes) {
                            if stream.write_all(&bytes[..count]).is_err() {
                                return;
                            }
                            // A plain request says that the answer is the end.
                            if bytes[..count].windows(17).any(|window| window == b"Connection: close") {
                                return;
                            }
                        }
                    });
                }
            });
        }
    });
}

fn with_len(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_be_bytes(), bytes].concat()
}

/// The greeting of a TLS client.
fn hello(name: Option<&str>) -> Vec<u8> {
    let entry = |name: &str| with_len(&[&[0][..], &with_len(name.as_bytes())].concat());
    let extension = name.map(|name| [&[0, 0][..], &with_len(&entry(name))].concat()).unwrap_or_default();
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    body.extend(with_len(&extension));
    let message = [&[1][..], &(body.len() as u32).to_be_bytes()[1..], &body].concat();
    [&[22, 3, 1][..], &with_len(&message)].concat()
}

/// Whether the other side has ended it, one way or the other.
fn is_cut(client: &mut TcpStream) -> bool {
    match client.read(&mut [0; 1]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

#[test]
#[ignore = "started by in_a_network_of_its_own"]
fn what_is_allowed_passes_and_is_counted() {
    server();
    for (reach, host, rule) in [
        (Reach::Provider, "files.example", "net.allow files.example"),
        (Reach::Provider, "www.files.example", "net.allow *.files.example"),
        (Reach::Open, "other.example", "net=open"),
    ] {
        let mut keeper = Keeper::new(reach, &["files.example", "*.files.example"], 60_000);
        let mut client = keeper.tunnel(host);
        let said = [hello(Some(host)), vec![b'x'; 100_000]].concat();
        let mut writer = client.try_clone().unwrap();
        let to_say = said.clone();
        let saying = thread::spawn(move || {
            writer.write_all(&to_say).unwrap();
            // The other way stays open.
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).unwrap();
        saying.join().unwrap();
        assert!(heard == said, "{} of {} bytes came back", heard.len(), said.len());
        let record = keeper.record();
        let bytes = said.len() as u64;
        assert_eq!((record.host.as_str(), record.port, record.rule.as_str()), (host, 443, rule));
        assert_eq!(
            (record.decision, record.bytes_in, record.bytes_out),
            (NetDecision::Allowed, bytes, bytes)
        );
    }
}

#[test]
#[ignore = "started by in_a_network_of_its_own"]
fn who_is_not_on_the_list_is_denied_with_the_grant() {
    server();
    let mut keeper = Keeper::new(Reach::Provider, &["files.example"], 60_000);
    let answer = keeper.ask("CONNECT other.example:443 HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(answer.contains("denied network other.example:443 (rule: net=provider)"), "{answer}");
    assert!(answer.contains(&format!("{GRANT}other.example")), "{answer}");
    let record = keeper.record();
    assert_eq!((record.host.as_str(), record.decision), ("other.example", NetDecision::Denied));
    assert_eq!(record.grant, Some(format!("{GRANT}other.example")));
}

#[test]
#[ignore = "started by in_a_network_of_its_own"]
fn no_name_and_no_list_leads_to_an_address_that_is_not_public() {
    for reach in [Reach::Provider, Reach::Open] {
        let mut keeper = Keeper::new(reach, &["*.example", "localhost", "127.0.0.1"], 60_000);
        for (host, rule) in [
            ("loop.example", "it is a loopback address"),
            ("localhost", "it is a loopback address"),
            ("127.0.0.1", "it is a loopback address"),
            ("private.example", "it is a private address"),
            ("metadata.example", "it is a cloud's metadata address"),
            ("metadata6.example", "it is a cloud's metadata address"),
            ("carrier.example", "it is a carrier's private address"),
            ("self.example", "it is an address of this machine"),
        ] {
            let answer = keeper.ask(&format!("CONNECT {host}:443 HTTP/1.1\r\n\r\n"));
            assert!(answer.starts_with("HTTP/1.1 403 "), "{host}: {answer}");
            let record = keeper.record();
            assert_eq!((record.decision, record.rule.as_str()), (NetDecision::Denied, rule), "{host}");
            assert_eq!(record.grant, None, "{host}");
        }
    }
    let mut keeper = Keeper::new(Reach::Open, &[], 60_000);
    for host in ["10.1.2.3", "[::1]", "[::ffff:93.184.216.34]", "[64:ff9b::5db8:d822]", "0x7f.1", "127.1"] {
        let answer = keeper.ask(&format!("CONNECT {host}:443 HTTP/1.1\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 403 "), "{host}: {answer}");
        assert_eq!(keeper.record().decision, NetDecision::Denied, "{host}");
    }
}

#[test]
#[ignore = "started by in_a_network_of_its_own"]
fn a_greeting_for_another_host_is_cut_before_the_server_hears_of_it() {
    server();
    let mut keeper = Keeper::new(Reach::Open, &[], 60_000);
    for (said, rule) in [
        (hello(Some("other.example")), "TLS asks for another host"),
        (hello(None), "TLS does not say which host"),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "no TLS on port 443"),
    ] {
        let mut client = keeper.tunnel("files.example");
        client.write_all(&said).unwrap();
        assert!(is_cut(&mut client), "{rule}");
        let record = keeper.record();
        assert_eq!((record.decision, record.rule.as_str()), (NetDecision::Denied, rule));
        assert_eq!((record.bytes_in, record.bytes_out), (0, 0));
    }
}

#[test]
#[ignore = "started by in_a_network_of_its_own"]
fn a_plain_request_goes_to_hosts_of_the_list_and_ends_where_it_says() {
    server();
    let mut keeper = Keeper::new(Reach::Open, &["files.example"], 60_000);
    let answer = keeper.ask(
        "POST http://files.example/a HTTP/1.1\r\nHost: other.example\r\nContent-Length: 2\r\n\r\nhiGET /smuggled",
    );
    assert_eq!(
        answer,
        "POST /a HTTP/1.1\r\nHost: files.example\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"
    );
    assert_eq!(keeper.record().rule, "net.allow files.example");
    let answer = keeper.ask("GET http://other.example/ HTTP/1.1\r\n\r\n");
    assert!(answer.contains(" 403 ") && answer.contains(GRANT), "{answer}");
    assert_eq!(keeper.record().port, 80);
    assert!(keeper.ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 "));
}

#[test]
#[ignore = "started by in_a_network_of_its_own"]
fn what_cannot_be_reached_is_told() {
    let mut keeper = Keeper::new(Reach::Open, &[], 60_000);
    for host in ["closed.example", "nowhere.example"] {
        let answer = keeper.ask(&format!("CONNECT {host}:443 HTTP/1.1\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 502 "), "{host}: {answer}");
        let record = keeper.record();
        assert_eq!(record.decision, NetDecision::Allowed, "{host}");
        assert!(!record.failure.is_empty(), "{host}");
    }
}

#[test]
#[ignore = "started by in_a_network_of_its_own"]
fn an_idle_gateway_ends_and_the_next_one_serves_who_came_meanwhile() {
    server();
    let mut keeper = Keeper::new(Reach::Open, &[], 200);
    let busy = keeper.tunnel("files.example");
    thread::sleep(Duration::from_millis(500));
    assert!(keeper.gateway.try_wait().unwrap().is_none(), "not while somebody is served");
    drop(busy);
    keeper.record();
    assert!(keeper.gateway.wait().unwrap().success());
    let mut line = String::new();
    assert_eq!(keeper.records.read_line(&mut line).unwrap(), 0, "{line}");

    let mut waiting = keeper.connect();
    waiting.write_all(b"CONNECT 10.0.0.1:443 HTTP/1.1\r\n\r\n").unwrap();
    (keeper.gateway, keeper.records) = start(&keeper.listener, &keeper.order);
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    keeper.record();
}

#[test]
#[ignore = "started by in_a_network_of_its_own"]
fn the_end_of_the_session_cuts_and_counts() {
    server();
    let mut keeper = Keeper::new(Reach::Open, &[], 60_000);
    let mut client = keeper.tunnel("files.example");
    let said = hello(Some("files.example"));
    client.write_all(&said).unwrap();
    let mut heard = vec![0; said.len()];
    client.read_exact(&mut heard).unwrap();
    keeper.records.get_ref().shutdown(Shutdown::Write).unwrap();
    assert!(is_cut(&mut client));
    assert_eq!(keeper.record().bytes_in, said.len() as u64);
    assert!(keeper.gateway.wait().unwrap().success());
}
