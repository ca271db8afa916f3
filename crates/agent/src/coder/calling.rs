//! One call to the model: the request goes out, the reply streams in and is shown as it comes.

use std::{
    env,
    hash::{BuildHasher, RandomState},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use ostler_domain::{Time, limit_end};
use serde_json::Value;

use super::{
    acp::Voice,
    fault::Fault,
    http::{Answer, Exchange, Head},
    serve::{Agent, Cut, Heard, Wake},
    sse::Sse,
    think::Piece,
    turn::Happened,
    wire::{Assembler, Begun, Replied},
};

/// Longest body of an answer that is an error.
const ERROR_BYTES: usize = 64 * 1024;

/// The wall clock: what a server names is a time of day.
fn wall() -> Time {
    Time::default().plus(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

impl Agent {
    pub(super) fn call_model(
        &mut self,
        voice: &Voice,
        message: &str,
        body: &Value,
        shown: bool,
        begun: &mut Begun,
    ) -> Result<Happened, Cut> {
        let failed = |fault, begun| Ok(Happened::Failed { fault, begun, chance: chance() });
        let number = self.next_number();
        let mut headers: Vec<_> =
            self.settings.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        if let Some(key) = self.settings.key_env.as_ref().and_then(|name| env::var(name).ok()) {
            headers.push(("authorization".to_owned(), format!("Bearer {key}")));
        }
        let wakes = self.wakes.clone();
        let hear = move |answer| {
            // Nobody listens only when the agent is ending.
            let _ = wakes.send(Wake::Model(number, answer));
        };
        let path = self.settings.wire.path();
        let url = self.settings.base.shown(path);
        // Dropped on every way out of here, which closes the connection.
        let _exchange =
            Exchange::post(&self.settings.base, path, &headers, body.to_string().as_bytes(), hear);
        let mut reply = Stream::new(self.settings.wire.assembler());
        let mut head: Option<Head> = None;
        let mut error_body = Vec::new();
        loop {
            let answer = match self.wait(Some(Instant::now() + self.settings.idle))? {
                Heard::Model(of, answer) if of == number => answer,
                Heard::TimeIsUp => {
                    let silent = format!("{url} was silent for {} s", self.settings.idle.as_secs());
                    return failed(Fault::Cut(silent), begun.clone());
                }
                _ => continue,
            };
            let status = head.as_ref().map_or(0, |head| head.status);
            match answer {
                Answer::Head(first) if is_page(&first) => {
                    return failed(Fault::NotAModel(url), Begun::default());
                }
                Answer::Head(first) => head = Some(first),
                Answer::Body(bytes) if status == 200 => {
                    let (pieces, done) = reply.push(&bytes);
                    *begun = reply.begun(number);
                    if shown {
                        for piece in &pieces {
                            voice.piece(message, piece)?;
                        }
                    }
                    match done {
                        Ok(false) => {}
                        Ok(true) => return self.complete(reply, voice, message, shown, begun.clone()),
                        Err(fault) => return failed(fault, begun.clone()),
                    }
                }
                Answer::Body(bytes) => {
                    error_body.extend(bytes);
                    error_body.truncate(ERROR_BYTES);
                }
                Answer::End if status == 200 => {
                    return self.complete(reply, voice, message, shown, begun.clone());
                }
                Answer::End => {
                    let asked = |head: &Head| match status {
                        429 => limit_end::of_limited(|name| head.header(name), wall()),
                        _ => limit_end::retry_after(|name| head.header(name), wall()),
                    };
                    let wait = head.as_ref().and_then(asked);
                    return failed(
                        explain(Fault::refused(status, &error_body, wait), &url),
                        Begun::default(),
                    );
                }
                Answer::Failed { message, before_head: true } => {
                    return failed(Fault::Unreachable(format!("{url}: {message}")), Begun::default());
                }
                Answer::Failed { message, before_head: false } => {
                    return failed(Fault::Cut(message), begun.clone());
                }
            }
        }
    }

    fn complete(
        &self,
        reply: Stream,
        voice: &Voice,
        message: &str,
        shown: bool,
        begun: Begun,
    ) -> Result<Happened, Cut> {
        let (pieces, replied) = reply.finish();
        if shown {
            for piece in &pieces {
                voice.piece(message, piece)?;
            }
        }
        Ok(match replied {
            Ok(replied) => Happened::Replied(replied),
            Err(fault) => Happened::Failed { fault, begun, chance: chance() },
        })
    }
}

/// A reply as it streams in.
struct Stream {
    sse: Sse,
    assembler: Box<dyn Assembler>,
    /// When it began, in µs since 1970.
    opened: i64,
}

impl Stream {
    fn new(assembler: Box<dyn Assembler>) -> Self {
        Self { sse: Sse::default(), assembler, opened: wall().micros() }
    }

    /// What there is to show, and whether that was all.
    fn push(&mut self, bytes: &[u8]) -> (Vec<Piece>, Result<bool, Fault>) {
        let mut pieces = Vec::new();
        let events = match self.sse.push(bytes) {
            Ok(events) => events,
            Err(error) => return (pieces, Err(Fault::Cut(error.to_string()))),
        };
        for event in events {
            match self.assembler.take(&event, &mut pieces) {
                Ok(false) => {}
                ended => return (pieces, ended),
            }
        }
        (pieces, Ok(false))
    }

    /// What has come so far. A call that its server does not name has a name of ours: else what is estimated of it would
    /// be taken for a part of some other call that the wire saw.
    fn begun(&self, number: u64) -> Begun {
        let begun = self.assembler.begun();
        if begun.is_nothing() || begun.call.is_some() {
            return begun;
        }
        Begun { call: Some(format!("cut-{}-{number}", self.opened)), ..begun }
    }

    fn finish(mut self) -> (Vec<Piece>, Result<Replied, Fault>) {
        let mut pieces = Vec::new();
        if let Some(event) = self.sse.end()
            && let Err(fault) = self.assembler.take(&event, &mut pieces)
        {
            return (pieces, Err(fault));
        }
        let replied = self.assembler.finish(&mut pieces);
        (pieces, replied)
    }
}

/// A page for people's eyes, where a model's answer should be.
fn is_page(head: &Head) -> bool {
    head.status == 200
        && head.header("content-type").is_some_and(|kind| kind.to_ascii_lowercase().contains("html"))
}

/// Adds to a refusal what a person needs to repair it.
fn explain(fault: Fault, url: &str) -> Fault {
    match fault {
        Fault::Refused { status, code, message, retry_after } => {
            // The address is the gateway's: what it stands for is known outside.
            let mut message = format!("{message} ({})", path_of(url));
            // The gateway's address does not show what its upstream's ends with.
            if status == 404 && !url.contains("/v1/") {
                message
                    .push_str("; the name of the model or the base URL may be wrong: that of many servers ends with /v1");
            }
            Fault::Refused { status, code, message, retry_after }
        }
        fault => fault,
    }
}

fn path_of(url: &str) -> &str {
    let host = url.find("://").map_or(0, |scheme| scheme + 3);
    url[host..].find('/').map_or(url, |path| &url[host + path..])
}

/// A number in 0..1; the standard library's hash keys are random.
fn chance() -> f64 {
    f64::from(u16::try_from(RandomState::new().hash_one(0) & 0xffff).unwrap_or_default())
        / f64::from(u16::MAX)
}
