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
    time::Instant,
};

use ostler_domain::gateway::{CallEnd, ModelCall, ModelOrder};
use serde_json::json;

use self::{
    exchange::{Exchange, Outcome, Reader},
    head::{Request, Response},
    upstream::Connection,
};
use crate::{
    connection::Gateway,
    log,
    meter::{Found, Meter},
};

pub(crate) use self::{head::is_ours, upstream::Trust};

/// What was seen of an answer.
struct Seen {
    status: u16,
    request_id: Option<String>,
    first_byte: Option<Instant>,
    meter: Meter,
}

impl Reader for Seen {
    fn head(&mut self, response: &Response) {
        self.status = response.status;
        self.request_id.clone_from(&response.request_id);
        self.meter.head(response.status, response.content_type.as_deref());
    }

    fn content(&mut self, bytes: &[u8]) {
        self.first_byte.get_or_insert_with(Instant::now);
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
        let mut seen = Seen { status: 0, request_id: None, first_byte: None, meter };
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
            CallEnd::Failed | CallEnd::Cut | CallEnd::Left | CallEnd::Stopped => Ok(()),
        }
    }

    fn tell_call(&self, request: &Request, seen: Seen, outcome: &Outcome, began: Instant) {
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
        };
        if let Err(error) = self.reporter.call(&call) {
            log(format_args!("the keeper does not hear of a call: {error}"));
        }
    }

    fn unreachable(&self, client: &TcpStream, order: &ModelOrder, why: &str) -> io::Result<()> {
        let text = format!("the model's address {} cannot be used: {why}", order.upstream);
        self.refuse(client, "502 Bad Gateway", "upstream_unreachable", &text)
    }

    /// In the form in which every client of a model looks for the reason.
    fn refuse(&self, client: &TcpStream, status: &str, code: &str, text: &str) -> io::Result<()> {
        let message = format!("ostler: {text}");
        let body = json!({"type": "error", "error": {"type": "api_error", "code": code, "message": message}});
        self.reply(client, status, "application/json", &body.to_string())
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
