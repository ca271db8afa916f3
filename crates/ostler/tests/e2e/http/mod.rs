//! The HTTP door: who is let in, what is refused, and that nothing is lost or doubled on the way.

mod api;
mod described;
mod door;
mod lists;
mod live;
mod pages;
mod stream;

use std::{
    io::{BufReader, Read, Write},
    net::TcpStream,
};

use ostler_client::Client;
use ostler_testkit::{TestHome, wait::PATIENCE};
use serde_json::Value;

use crate::OSTLER;

/// A door that stands open, and the means to come in.
struct Open {
    home: TestHome,
    /// `127.0.0.1:PORT`.
    host: String,
    cookie: String,
    csrf: String,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let is_it = |line: &&str| line.split(':').next().is_some_and(|key| key.eq_ignore_ascii_case(name));
        self.head.lines().find(is_it).and_then(|line| line.split_once(": ")).map(|(_, value)| value)
    }
}

fn connect(host: &str, head: &str, body: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    stream.write_all(format!("{head}{length}\r\n{body}").as_bytes()).unwrap();
    BufReader::new(stream)
}

/// Sends a request as it stands, and reads the answer to its end.
pub(crate) fn ask(host: &str, first: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let mut stream = connect(host, &format!("{first} HTTP/1.1\r\n{headers}connection: close\r\n"), body);
    let mut whole = String::new();
    stream.read_to_string(&mut whole).unwrap();
    let (head, body) = whole.split_once("\r\n\r\n").unwrap_or((&whole, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

impl Open {
    async fn new() -> Open {
        let home = TestHome::new(OSTLER);
        home.configure("[http]\nlisten = \"127.0.0.1:0\"\n");
        home.begin().await;
        let (host, cookie) = let_in(&home.client().await).await;
        let page = ask(&host, "GET /", &[("host", &host), ("cookie", &cookie)], "");
        assert_eq!(page.status, 200, "{page:?}");
        let (_, after) = page.body.split_once("name=\"csrf\" content=\"").unwrap();
        let csrf = after.split('"').next().unwrap().to_owned();
        Open { home, host, cookie, csrf }
    }

    fn get(&self, path: &str) -> Answer {
        ask(&self.host, &format!("GET {path}"), &[("host", &self.host), ("cookie", &self.cookie)], "")
    }

    /// A change as a page of ours makes it, with something else in the place of what it usually has.
    fn change(&self, path: &str, body: &str, instead: &[(&str, Option<&str>)]) -> Answer {
        let origin = format!("http://{}", self.host);
        let usual = [
            ("host", self.host.as_str()),
            ("cookie", &self.cookie),
            ("origin", &origin),
            ("content-type", "application/json"),
            ("x-ostler-csrf", &self.csrf),
        ];
        let headers: Vec<(&str, &str)> = usual
            .into_iter()
            .filter_map(|(name, value)| match instead.iter().find(|(other, _)| *other == name) {
                Some((_, other)) => other.map(|other| (name, other)),
                None => Some((name, value)),
            })
            .collect();
        let is_usual = |name: &str| usual.iter().any(|(other, _)| *other == name);
        let more = instead.iter().filter(|(name, _)| !is_usual(name));
        let headers: Vec<_> =
            headers.into_iter().chain(more.filter_map(|(name, value)| Some((*name, (*value)?)))).collect();
        ask(&self.host, &format!("POST {path}"), &headers, body)
    }
}

/// Follows a link as a browser does: the address of the door, and the cookie.
pub(crate) async fn let_in(client: &Client) -> (String, String) {
    let way = client.open_http("/sessions").await.unwrap();
    let host = way.address.strip_prefix("http://").unwrap().to_owned();
    let path = way.link.strip_prefix(&way.address).unwrap();
    let looked = ask(&host, &format!("HEAD {path}"), &[("host", &host)], "");
    assert_eq!(
        (looked.status, looked.header("set-cookie")),
        (405, None),
        "a look uses nothing up: {looked:?}"
    );
    let answer = ask(&host, &format!("GET {path}"), &[("host", &host)], "");
    // No redirect: of one that began on another site's page, the browser would not send the cookie along.
    assert_eq!((answer.status, answer.header("location")), (200, None), "{answer:?}");
    assert!(answer.body.contains("http-equiv=\"refresh\" content=\"0;url=/sessions\""), "{answer:?}");
    let cookie = answer.header("set-cookie").unwrap();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && cookie.contains("Path=/"),
        "{cookie}"
    );
    let again = ask(&host, &format!("GET {path}"), &[("host", &host)], "");
    assert_eq!(again.status, 403, "a link works once: {again:?}");
    (host, cookie.split(';').next().unwrap().to_owned())
}
