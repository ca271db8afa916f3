//! The model gateway: what an agent asks of the gateway's own address goes to the one upstream of the order, with the
//! real key, and nowhere else.
//!
//! One call per connection, on both sides. That costs a call a handshake, and spares a reused connection that was closed
//! meanwhile: whether a call that costs money may be repeated is not for a proxy to guess.

mod body;
mod exchange;
mod head;
mod upstream;

use std::{
    io::{self, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use ostler_domain::{
    gateway::{CallEnd, ModelCall, ModelOrder},
    limits::{MODEL_HOLD_LOOK, MODEL_RETRY_AFTER},
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
    tunnel::wait,
};

pub(crate) use self::{
    body::Body,
    head::is_ours,
    upstream::{Trust, dial, greet},
};

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

    /// Lets a call begin, at once or as soon as more is allowed. Who only asks what models there are spends nothing.
    fn admit(&self, client: &TcpStream, order: &ModelOrder, request: &Request) -> io::Result<Admission> {
        let deadline = Instant::now() + Duration::from_millis(order.hold_ms);
        while let Some(why) = self.purse.end().filter(|_| request.method == "POST") {
            if Instant::now() >= deadline {
                return Ok(Admission::Refused(why));
            }
            let look = deadline.min(Instant::now() + MODEL_HOLD_LOOK);
            let mut fds = [PollFd::new(client, PollFlags::RDHUP), PollFd::new(&self.stop, PollFlags::IN)];
            wait(&mut fds, Some(look))?;
            if fds.iter().any(|fd| !fd.revents().is_empty()) {
                return Ok(Admission::Gone);
            }
        }
        Ok(Admission::Granted)
    }

    fn tell_call(&self, request: &Request, seen: Seen, outcome: &Outcome, began: Instant) {
        // What was refused was not thought about, and cost nothing.
        let is_answered = (200..300).contains(&seen.status) && request.method == "POST";
        let asked = outcome.to_server.saturating_sub(request.head.len() as u64);
        let content = Content { asked, answered: seen.content_bytes };
        let content = if is_answered { content } else { Content::default() };
        let Found { id, model, usage } = seen.meter.finish();
        let call = ModelCall {
            id,
            request_id: seen.request_id,
            method: request.method.clone(),
            path: request.path.clone(),
            model,
            status: seen.status,
            usage,
            end: outcome.end,
            duration_ms: millis(began, Instant::now()),
            first_byte_ms: seen.first_byte.map(|at| millis(began, at)),
            bytes_in: outcome.to_client,
            bytes_out: outcome.to_server,
            failure: outcome.failure.clone(),
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
