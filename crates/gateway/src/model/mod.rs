//! The model gateway: what an agent asks of the gateway's own address goes to the one upstream of the order, with the
//! real key, and nowhere else.
//!
//! One call per connection, on both sides. That costs a call a handshake, and spares a reused connection that was closed
//! meanwhile: whether a call that costs money may be repeated is not for a proxy to guess.

mod body;
mod exchange;
mod head;
mod reach;
mod upstream;

use std::{
    io::{self, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use ostler_domain::{
    gateway::{CallEnd, ModelCall, ModelOrder, NetDecision},
    limits::{MODEL_HOLD_LOOK, MODEL_RETRY_AFTER},
    text::one_line,
};
use rustix::event::{PollFd, PollFlags};
use serde_json::{Value, json};

use self::{
    exchange::{Exchange, Outcome, Reader},
    head::{Request, Response},
    upstream::Connection,
};
use crate::{
    connection::Gateway,
    log,
    meter::{Found, Meter},
    purse::Content,
    rules::{Target, Way},
    tunnel::{Counts, wait},
};

pub(crate) use self::{
    body::Body,
    head::is_ours,
    upstream::{Trust, dial, greet},
};

/// How much of a path that is refused is told.
const SHOWN_PATH: usize = 200;

/// What was seen of an answer.
struct Seen {
    status: u16,
    request_id: Option<String>,
    retry_after_ms: Option<u64>,
    first_byte: Option<Instant>,
    content_bytes: u64,
    meter: Meter,
}

enum Admission {
    Granted,
    /// The agent, or the session.
    Gone,
    Refused(String),
}

impl Reader for Seen {
    fn head(&mut self, response: &Response) {
        self.status = response.status;
        self.request_id.clone_from(&response.request_id);
        self.retry_after_ms = response.retry_after_ms;
        self.meter.head(response.status, response.content_type.as_deref());
    }

    fn content(&mut self, bytes: &[u8]) {
        self.first_byte.get_or_insert_with(Instant::now);
        self.content_bytes += bytes.len() as u64;
        self.meter.content(bytes);
    }
}

impl Gateway {
    /// Serves one call to the model. `rest` was read behind its head.
    pub(crate) fn call_model(
        &self,
        client: &TcpStream,
        order: &ModelOrder,
        head: &[u8],
        rest: &[u8],
    ) -> io::Result<()> {
        let request = match head::request(head, self.port, order) {
            Ok(request) => request,
            Err(fault) => return self.refuse(client, "400 Bad Request", "invalid_request", fault),
        };
        if !reach::is_let_through(&request.method, &request.path) {
            return self.hold_back(client, order, &request);
        }
        let began = Instant::now();
        let meter = Meter::new(&request.method, &request.path);
        let mut seen = Seen {
            status: 0,
            request_id: None,
            retry_after_ms: None,
            first_byte: None,
            content_bytes: 0,
            meter,
        };
        match self.admit(client, order, &request)? {
            Admission::Granted => {}
            Admission::Gone => return Ok(()),
            Admission::Refused(why) => {
                let outcome = Outcome { end: CallEnd::Held, ..Outcome::failed(&why) };
                seen.status = 429;
                self.tell_call(&request, seen, &outcome, began);
                return self.put_off(client, &why);
            }
        }
        if request.expects_continue {
            (&*client).write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let upstream = match Connection::open(order, &self.trust) {
            Ok(upstream) => upstream,
            Err(error) => {
                let why = error.to_string();
                let outcome = Outcome::failed(&why);
                self.tell_call(&request, seen, &outcome, began);
                return self.unreachable(client, order, &why);
            }
        };
        let exchange = match Exchange::new(client, upstream, &request, rest) {
            Ok(exchange) => exchange,
            Err(fault) => return self.refuse(client, "400 Bad Request", "invalid_request", fault),
        };
        let outcome = exchange.run(&self.stop, &mut seen);
        // Told before the agent is let go: what it costs is known before it can ask for more.
        self.tell_call(&request, seen, &outcome, began);
        client.set_nonblocking(false)?;
        match outcome.end {
            CallEnd::Complete => self.part(client),
            CallEnd::Failed if !outcome.answered => self.unreachable(client, order, &outcome.failure),
            CallEnd::Failed | CallEnd::Cut | CallEnd::Left | CallEnd::Stopped | CallEnd::Held => Ok(()),
        }
    }

    /// What is no call would use the key for something that nobody lent it for, and nobody counts.
    fn hold_back(&self, client: &TcpStream, order: &ModelOrder, request: &Request) -> io::Result<()> {
        let what = one_line(&format!("{} {}", request.method, request.path), SHOWN_PATH);
        let target = Target { host: order.upstream.host.clone(), port: order.upstream.port, way: Way::Plain };
        let rule = format!("{what} is no call to a model");
        let text = format!("{rule}, and nothing else goes through to the model's address");
        self.tell(&target, NetDecision::Denied, rule, None, Counts::default(), "");
        self.refuse(client, "404 Not Found", "not_a_model_call", &text)
    }

    /// Lets a call begin, at once or as soon as more is allowed. Who only asks what models there are spends nothing.
    fn admit(&self, client: &TcpStream, order: &ModelOrder, request: &Request) -> io::Result<Admission> {
        let hold = Duration::from_millis(order.hold_ms);
        let mut deadline = Instant::now() + hold;
        let mut has_waited = false;
        loop {
            let end = self.purse.end().filter(|_| request.method == "POST");
            // Looked for after what is allowed: who left before more was allowed begins nothing.
            if has_waited && self.is_gone(client, Instant::now())? {
                return Ok(Admission::Gone);
            }
            let Some(why) = end else { return Ok(Admission::Granted) };
            if self.purse.is_asked_for() {
                // An agent that stands still has no patience to lose, and is to find no refusal when it goes on.
                deadline = Instant::now() + hold;
            } else if Instant::now() >= deadline {
                return Ok(Admission::Refused(why));
            }
            self.is_gone(client, deadline.min(Instant::now() + MODEL_HOLD_LOOK))?;
            has_waited = true;
        }
    }

    /// Whether the agent or the session is, at the latest when `until` has come.
    fn is_gone(&self, client: &TcpStream, until: Instant) -> io::Result<bool> {
        let mut fds = [PollFd::new(client, PollFlags::RDHUP), PollFd::new(&self.stop, PollFlags::IN)];
        wait(&mut fds, Some(until))?;
        Ok(fds.iter().any(|fd| !fd.revents().is_empty()))
    }

    fn tell_call(&self, request: &Request, seen: Seen, outcome: &Outcome, began: Instant) {
        // What was refused was not thought about, and cost nothing.
        let is_answered = (200..300).contains(&seen.status) && request.method == "POST";
        let asked = outcome.to_server.saturating_sub(request.head.len() as u64);
        let content = Content { asked, answered: seen.content_bytes };
        let content = if is_answered { content } else { Content::default() };
        let breaks_off = outcome.end == CallEnd::Complete && seen.meter.breaks_off();
        let (end, failure) = if breaks_off {
            (CallEnd::Cut, "the answer ended before its last event")
        } else {
            (outcome.end, outcome.failure.as_str())
        };
        let Found { id, model, usage } = seen.meter.finish();
        let call = ModelCall {
            id,
            request_id: seen.request_id,
            method: request.method.clone(),
            path: request.path.clone(),
            model,
            status: seen.status,
            usage,
            end,
            duration_ms: millis(began, Instant::now()),
            first_byte_ms: seen.first_byte.map(|at| millis(began, at)),
            bytes_in: outcome.to_client,
            bytes_out: outcome.to_server,
            failure: failure.to_owned(),
            retry_after_ms: seen.retry_after_ms,
        };
        self.purse.spend(&call, content);
        if let Err(error) = self.reporter.call(&call, || self.purse.spent()) {
            log(format_args!("the keeper does not hear of a call: {error}"));
        }
    }

    fn unreachable(&self, client: &TcpStream, order: &ModelOrder, why: &str) -> io::Result<()> {
        let text = format!("the model's address {} cannot be used: {why}", order.upstream);
        self.refuse(client, "502 Bad Gateway", "upstream_unreachable", &text)
    }

    /// The budget is used up, and nobody has allowed more. Clients that heed either word stop asking.
    fn put_off(&self, client: &TcpStream, why: &str) -> io::Result<()> {
        let headers = format!("Retry-After: {}\r\nX-Should-Retry: false\r\n", MODEL_RETRY_AFTER.as_secs());
        let message = format!("ostler: the session's budget is used up: {why}");
        let error = json!({"type": "rate_limit_error", "code": "budget_exceeded", "message": message});
        self.reply_json(client, "429 Too Many Requests", &headers, error)
    }

    fn refuse(&self, client: &TcpStream, status: &str, code: &str, text: &str) -> io::Result<()> {
        let message = format!("ostler: {text}");
        self.reply_json(client, status, "", json!({"type": "api_error", "code": code, "message": message}))
    }

    /// In the form in which every client of a model looks for the reason.
    fn reply_json(&self, client: &TcpStream, status: &str, headers: &str, error: Value) -> io::Result<()> {
        let body = json!({"type": "error", "error": error}).to_string();
        self.reply(client, status, &format!("Content-Type: application/json\r\n{headers}"), &body)
    }
}

impl Outcome {
    fn failed(why: &str) -> Outcome {
        let failure = why.to_owned();
        Outcome { end: CallEnd::Failed, failure, answered: false, to_client: 0, to_server: 0 }
    }
}

fn millis(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_millis()).unwrap_or(u64::MAX)
}
