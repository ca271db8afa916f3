//! A model server on the loopback that says what the prompt tells it to: the outside world as a program.
//!
//! It speaks Chat Completions, the Responses API, the Anthropic Messages API and the Gemini API, streamed, so that real agent
//! programs can be run against it. What it answers is a function of the conversation alone (see `script`): it survives restarts, resumes and parallel
//! sessions.

mod chat;
mod connection;
mod gemini;
mod messages;
mod responses;
mod script;

use std::{
    collections::HashMap,
    net::{SocketAddr, TcpListener},
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use ostler_domain::Usage;
use serde_json::Value;

/// A server that ends with the test.
pub struct FakeOpenai {
    address: SocketAddr,
    state: Arc<State>,
}

/// One request as it came.
#[derive(Debug, Clone)]
pub struct Seen {
    pub path: String,
    /// Names in lower case.
    pub headers: HashMap<String, String>,
    pub body: Value,
    /// The status that it was answered with; 0 while it is not.
    pub status: u16,
    /// Whether the answer was sent to its end.
    pub complete: bool,
    /// What the answer said that it cost, once that was sent.
    pub usage: Option<Usage>,
}

#[derive(Default)]
struct State {
    seen: Mutex<Vec<Seen>>,
    /// How often a step that fails at first was tried.
    attempts: Mutex<HashMap<String, u32>>,
    /// What prompts without a script are answered with.
    otherwise: Mutex<Vec<Value>>,
    released: Mutex<u64>,
    release: Condvar,
    over: AtomicBool,
}

impl FakeOpenai {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), false) = (stream, shared.over.load(Ordering::SeqCst)) else { return };
                let shared = Arc::clone(&shared);
                thread::spawn(move || connection::serve(stream, &shared));
            }
        });
        Self { address, state }
    }

    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The base URL of programs that add `/v1` themselves.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every request so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.state.seen()
    }

    /// What all answers that were sent to their end said that they cost.
    pub fn sent(&self) -> Usage {
        self.seen().iter().filter_map(|seen| seen.usage).fold(Usage::default(), |sum, usage| sum + usage)
    }

    /// Answers prompts that have no script of their own with these steps from now on.
    pub fn answer_others(&self, steps: &Value) {
        let steps = steps.as_array().cloned().unwrap_or_default();
        *self.state.otherwise.lock().unwrap_or_else(PoisonError::into_inner) = steps;
    }

    /// Lets every answer that hangs go on.
    pub fn release(&self) {
        *self.state.released.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.state.release.notify_all();
    }
}

impl Drop for FakeOpenai {
    fn drop(&mut self) {
        self.state.over.store(true, Ordering::SeqCst);
        self.release();
        // Wakes the accepting thread, which then ends.
        let _ = std::net::TcpStream::connect(self.address);
    }
}

impl State {
    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn otherwise(&self) -> Vec<Value> {
        self.otherwise.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn see(&self, seen: Seen) -> usize {
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(seen);
        all.len() - 1
    }

    fn amend(&self, number: usize, amend: impl FnOnce(&mut Seen)) {
        amend(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner)[number]);
    }

    /// Counts a try and says which it is.
    fn attempt(&self, key: &str) -> u32 {
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        let tries = attempts.entry(key.to_owned()).or_default();
        *tries += 1;
        *tries
    }
}
