//! One connection: requests in, answers out, with the failures that a step asks for.

use std::{
    collections::HashMap,
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::{PoisonError, atomic::Ordering},
    thread,
    time::Duration,
};

use rustix::net::sockopt::set_socket_linger;
use serde_json::{Value, json};

use super::{
    Seen, State, chat, gemini, messages, responses,
    script::{Step, Wire},
};

pub(super) fn serve(stream: TcpStream, state: &State) {
    let Ok(reading) = stream.try_clone() else { return };
    let mut reader = BufReader::new(reading);
    while let Ok(Some(request)) = read(&mut reader) {
        if answer(&stream, state, request).is_err() {
            return;
        }
    }
}

struct Request {
    method: String,
    path: String,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

fn read(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut first = String::new();
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut words = first.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut body = Vec::new();
    if headers.get("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let size = u64::from_str_radix(line.trim(), 16).unwrap_or(0);
            let mut chunk = Vec::new();
            reader.by_ref().take(size).read_to_end(&mut chunk)?;
            body.extend(chunk);
            reader.read_line(&mut line)?;
            if size == 0 {
                break;
            }
        }
    } else {
        let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        reader.by_ref().take(length).read_to_end(&mut body)?;
    }
    Ok(Some(Request { method: method.to_owned(), path: path.to_owned(), headers, body }))
}

fn answer(stream: &TcpStream, state: &State, request: Request) -> io::Result<()> {
    let path = request.path.split('?').next().unwrap_or_default().to_owned();
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let wire = match path.as_str() {
        path if path.ends_with("/chat/completions") => Some(Wire::Chat),
        path if path.ends_with("/responses") => Some(Wire::Responses),
        path if path.ends_with("/messages") => Some(Wire::Messages),
        path if path.ends_with("enerateContent") => Some(Wire::Gemini),
        _ => None,
    };
    let seen = Seen {
        path: path.clone(),
        headers: request.headers,
        body: body.clone(),
        status: 0,
        complete: false,
        usage: None,
    };
    let number = state.see(seen);
    let (Some(wire), "POST") = (wire, request.method.as_str()) else {
        let models = json!({"object": "list", "data": [{"id": "fake-model", "object": "model"}]});
        let (status, found) = match &path {
            path if path.ends_with("/models") => (200, models),
            path if path.ends_with(":countTokens") => (200, json!({"totalTokens": request.body.len() / 4})),
            path if path.ends_with("/count_tokens") => (200, json!({"input_tokens": request.body.len() / 4})),
            path => (404, json!({"error": {"message": format!("no such route {path}")}})),
        };
        state.amend(number, |seen| (seen.status, seen.complete) = (status, true));
        return plain(stream, status, &[], &found);
    };
    let step = Step::of(&body, wire, &state.otherwise());
    let fails = |what: &str| match (step.number(what), step.number("times")) {
        (Some(_), Some(times)) => u64::from(state.attempt(&step.key)) <= times,
        (given, None) => given.is_some(),
        (None, Some(_)) => false,
    };
    if fails("status") {
        let status = u16::try_from(step.number("status").unwrap_or(500)).unwrap_or(500);
        let code = if status == 429 { json!("rate_limit_exceeded") } else { Value::Null };
        let usual =
            json!({"error": {"message": format!("fake error {status}"), "type": "fake_error", "code": code}});
        let headers: Vec<(String, String)> = step
            .fields
            .get("headers")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect();
        state.amend(number, |seen| (seen.status, seen.complete) = (status, true));
        return plain(stream, status, &headers, step.fields.get("body").unwrap_or(&usual));
    }
    state.amend(number, |seen| seen.status = 200);
    if let Some(page) = step.fields.get("page").and_then(Value::as_str) {
        let head =
            format!("HTTP/1.1 200 Fake\r\ncontent-type: text/html\r\ncontent-length: {}\r\n", page.len());
        return (&*stream).write_all(format!("{head}\r\n{page}").as_bytes());
    }
    let usage = step.usage(&body);
    if wire == Wire::Messages && body["stream"] != true {
        state.amend(number, |seen| (seen.complete, seen.usage) = (true, Some(usage)));
        return plain(stream, 200, &[], &messages::whole(&step, &body, usage, number));
    }
    if wire == Wire::Gemini && !path.ends_with(":streamGenerateContent") {
        state.amend(number, |seen| (seen.complete, seen.usage) = (true, Some(usage)));
        return plain(stream, 200, &[], &gemini::whole(&step, usage, number));
    }
    let cut = fails("cut").then(|| step.number("cut").unwrap_or(0));
    let mut events = Events { stream, state, step: &step, cut, sent: 0, held: String::new() };
    events.begin()?;
    match wire {
        Wire::Chat => chat::send(&mut events, &step, &body, usage, number)?,
        Wire::Responses => responses::send(&mut events, &step, &body, usage, number)?,
        Wire::Messages => messages::send(&mut events, &step, &body, usage, number)?,
        Wire::Gemini => gemini::send(&mut events, &step, usage, number)?,
    }
    // Before the last byte: whoever has read the answer finds it booked.
    state.amend(number, |seen| (seen.complete, seen.usage) = (true, Some(usage)));
    events.end()
}

fn plain(mut stream: &TcpStream, status: u16, headers: &[(String, String)], body: &Value) -> io::Result<()> {
    let body = body.to_string();
    let mut head = format!(
        "HTTP/1.1 {status} Fake\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes())
}

/// A stream of events, with the step's delays and failures.
pub(super) struct Events<'a> {
    stream: &'a TcpStream,
    state: &'a State,
    step: &'a Step,
    cut: Option<u64>,
    sent: u64,
    /// The newest event, kept until the next one or the end: some know by the last one that the answer is whole.
    held: String,
}

impl Events<'_> {
    fn begin(&mut self) -> io::Result<()> {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        self.stream.write_all(head.as_bytes())
    }

    pub(super) fn data(&mut self, name: Option<&str>, data: &str) -> io::Result<()> {
        self.let_go()?;
        if self.cut.is_some_and(|cut| self.sent >= cut) {
            if self.step.is("cut_clean") {
                self.chunk("")?;
            } else if !self.step.is("cut_closed") {
                // A reset, as when a server dies. The kernel throws away what the other side has not read yet.
                let _ = set_socket_linger(self.stream, Some(Duration::ZERO));
            }
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        if self.step.number("hang") == Some(self.sent) {
            self.hang()?;
        }
        if let (Some(ms), 1..) = (self.step.number("delay_ms"), self.sent) {
            thread::sleep(Duration::from_millis(ms));
        }
        self.sent += 1;
        let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        self.held = format!("{name}data: {data}\n\n");
        Ok(())
    }

    fn let_go(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        if held.is_empty() { Ok(()) } else { self.chunk(&held) }
    }

    fn hang(&self) -> io::Result<()> {
        let mut released = self.state.released.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *released;
        while *released == before {
            let wait = self.state.release.wait_timeout(released, Duration::from_millis(50));
            released = wait.unwrap_or_else(PoisonError::into_inner).0;
            if self.state.over.load(Ordering::SeqCst) || self.is_left() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
        }
        Ok(())
    }

    fn is_left(&self) -> bool {
        let _ = self.stream.set_nonblocking(true);
        let left = matches!(self.stream.peek(&mut [0]), Ok(0));
        let _ = self.stream.set_nonblocking(false);
        left
    }

    fn end(&mut self) -> io::Result<()> {
        self.let_go()?;
        self.chunk("")
    }

    fn chunk(&mut self, text: &str) -> io::Result<()> {
        self.stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
    }
}
