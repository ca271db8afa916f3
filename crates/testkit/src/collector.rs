//! A collector of OpenTelemetry on loopback: takes OTLP over HTTP in its JSON form, and remembers.

use std::{
    collections::VecDeque,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::Value;

use crate::wait;

/// What it took, and what it answers next.
pub struct Collector {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    /// 200 when nothing is left.
    statuses: Arc<Mutex<VecDeque<u16>>>,
}

/// One request that was answered well.
#[derive(Debug, Clone)]
pub struct Request {
    pub head: String,
    pub body: Value,
}

/// An address where nobody listens yet.
pub fn silent() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

impl Collector {
    /// Opens, and answers first with these.
    pub fn open(address: SocketAddr, statuses: &[u16]) -> Collector {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let statuses = Arc::new(Mutex::new(statuses.iter().copied().collect::<VecDeque<_>>()));
        let collector = Collector { address, requests: Arc::default(), statuses };
        let (requests, statuses) = (collector.requests.clone(), collector.statuses.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Some(request) = read(&stream) else { continue };
                let status = statuses.lock().unwrap().pop_front().unwrap_or(200);
                if status == 200 {
                    requests.lock().unwrap().push(request);
                }
                let _ = write!(&stream, "HTTP/1.1 {status} So\r\ncontent-length: 2\r\n\r\n{{}}");
            }
        });
        collector
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// All spans so far.
    pub fn spans(&self) -> Vec<Value> {
        let of_request = |request: Request| {
            let spans = request.body["resourceSpans"][0]["scopeSpans"][0]["spans"].clone();
            spans.as_array().cloned().unwrap_or_default()
        };
        self.requests().into_iter().flat_map(of_request).collect()
    }

    /// Waits until there is a span of this name, and returns all of that name.
    pub fn wait_for(&self, name: &str) -> Vec<Value> {
        let named =
            || -> Vec<Value> { self.spans().into_iter().filter(|span| span["name"] == name).collect() };
        wait::until(&format!("the span {name}"), wait::PATIENCE, || !named().is_empty());
        named()
    }
}

/// An attribute of a span, whatever its type.
pub fn attribute(span: &Value, key: &str) -> Option<Value> {
    let attributes = span["attributes"].as_array()?;
    let found = attributes.iter().find(|attribute| attribute["key"] == key)?;
    found["value"].as_object()?.values().next().cloned()
}

fn read(mut stream: &TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok())?;
        if body.len() >= length {
            return Some(Request { head: head.to_owned(), body: serde_json::from_str(body).unwrap() });
        }
    }
}
