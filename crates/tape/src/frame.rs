//! Frames on the control socket: `header_len u32 | body_len u32 | JSON header | body`, little endian.
//!
//! Keepers live longer than daemons, so the verbs are few (eight) and append-only: unknown fields are ignored,
//! unknown verbs too. `input` has a body, the bytes for the agent, and so have `answer`, the line for who called, and
//! `hello`, the daemon's environment.

use std::marker::PhantomData;

use ostler_domain::gateway::{Allowance, Spent};
use ostler_domain::limits::FRAME_BYTES;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What both sides name in `hello`.
pub const PROTOCOL: u32 = 1;

const PREFIX_BYTES: usize = 8;

/// What a daemon says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case")]
pub enum ToKeeper {
    /// Asks to be this keeper's daemon. The highest epoch wins. The body is the environment that the daemon has, as
    /// [`crate::environ`] writes it, for the one that the keeper starts when it loses this one; empty where an older daemon
    /// asks, or somebody who is none.
    Hello { protocol: u32, epoch: u64, daemon_version: String },
    /// The body goes to the agent's standard input.
    Input { input_no: u64, tag: String },
    /// Ends the agent, rung by rung. A later `stop` replaces an earlier one.
    Stop { by: String, rule: String, ladder: Vec<Rung> },
    /// Stops or continues the agent's whole tree.
    Freeze { on: bool },
    /// Sets limits; what is absent stays.
    Limits {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tape_bytes: Option<u64>,
        /// How far calls to the model may go, whether there is a daemon or not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        allowance: Option<Allowance>,
    },
    /// These paths below the campaign's root have changed: what is to be hidden there is covered at once.
    Remask { paths: Vec<std::path::PathBuf> },
    /// The body is what a call on the session socket is answered: the one whose record begins at this place of the tape.
    Answer { call: u64 },
    /// The daemon goes away on purpose: nobody is to start another.
    Bye {},
    #[serde(other)]
    Unknown,
}

/// What a keeper says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case")]
pub enum FromKeeper {
    /// The answer to `hello`. `epoch` is the highest this keeper has seen; `accepted` says whether it was yours.
    Hello { protocol: u32, keeper_version: String, epoch: u64, accepted: bool, state: KeeperState },
    /// Something changed. Growth of the tape is gathered; nothing else is.
    State(KeeperState),
    /// A frame was understood and not obeyed.
    Refused {
        refused: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_no: Option<u64>,
        reason: RefusedReason,
        message: String,
        /// So that the daemon knows what to send next.
        last_input_no: u64,
    },
    #[serde(other)]
    Unknown,
}

/// A step of the stop ladder, and how long it may take to work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rung {
    pub action: RungAction,
    pub wait_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RungAction {
    CloseInput,
    /// To the agent's process group.
    Signal(i32),
    /// To the whole tree, until nothing is left of it.
    Kill,
}

impl std::fmt::Display for RungAction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RungAction::CloseInput => f.write_str("close_input"),
            RungAction::Signal(number) => write!(f, "signal {number}"),
            RungAction::Kill => f.write_str("kill"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeeperState {
    pub keeper_pid: u32,
    pub tape_end: u64,
    pub last_input_no: u64,
    pub phase: Phase,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentProcess>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<FrozenBy>,
    #[serde(default)]
    pub intake: Intake,
    /// Nothing of the agent's is left running. What is still to be said of it comes with its exit record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// What calls to the model have taken, and which allowance holds; absent where there is no model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Starting,
    Running,
    Stopping,
    /// The exit record is written.
    Exited,
}

/// A pid with its start time (`/proc/<pid>/stat`, field 22), which together are never reused within a boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentProcess {
    pub pid: u32,
    pub start_time: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrozenBy {
    Cgroup,
    Signals,
}

/// Whether the keeper reads what the agent prints, and if not, why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intake {
    #[default]
    Open,
    Throttled,
    DiskFull,
    TapeLimit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusedReason {
    /// `input_no` is not the one after the last.
    Gap,
    /// The agent has closed its input, or the stop ladder has.
    InputClosed,
    /// Not on the tape, so not to the agent. Send it again later.
    DiskFull,
    /// The agent has ended.
    Ended,
    /// Too much waits for an agent that does not read. Send it again later.
    Backlog,
    /// The connection's hello was not accepted.
    NotYours,
    /// The kernel said no.
    Failed,
    #[serde(other)]
    Other,
}

/// A frame as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame<Verb> {
    pub verb: Verb,
    pub body: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("a frame of {bytes} bytes is over the limit of {FRAME_BYTES}")]
    TooLong { bytes: u64 },
    #[error("the frame's header is not understood")]
    Header(#[from] serde_json::Error),
}

/// The frame as bytes.
pub fn encode<Verb: Serialize>(verb: &Verb, body: &[u8]) -> Result<Vec<u8>, FrameError> {
    let header = serde_json::to_vec(verb)?;
    let bytes = PREFIX_BYTES + header.len() + body.len();
    if bytes > FRAME_BYTES {
        return Err(FrameError::TooLong { bytes: bytes as u64 });
    }
    let mut frame = Vec::with_capacity(bytes);
    frame.extend_from_slice(&(header.len() as u32).to_le_bytes());
    frame.extend_from_slice(&(body.len() as u32).to_le_bytes());
    frame.extend_from_slice(&header);
    frame.extend_from_slice(body);
    Ok(frame)
}

/// Takes frames out of a stream of bytes that arrives in any portions. A header that is not understood costs its
/// frame only; after a frame that is too long the stream is lost and the connection is to be closed.
#[derive(Debug)]
pub struct Decoder<Verb> {
    buffer: Vec<u8>,
    used: usize,
    verb: PhantomData<fn() -> Verb>,
}

impl<Verb> Default for Decoder<Verb> {
    fn default() -> Self {
        Decoder { buffer: Vec::new(), used: 0, verb: PhantomData }
    }
}

impl<Verb: DeserializeOwned> Decoder<Verb> {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.used);
        self.used = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame; nothing until more bytes are pushed.
    pub fn next_frame(&mut self) -> Result<Option<Frame<Verb>>, FrameError> {
        let bytes = &self.buffer[self.used..];
        let Some((prefix, rest)) = bytes.split_first_chunk::<PREFIX_BYTES>() else { return Ok(None) };
        let [h0, h1, h2, h3, b0, b1, b2, b3] = *prefix;
        let header_len = u32::from_le_bytes([h0, h1, h2, h3]) as usize;
        let body_len = u32::from_le_bytes([b0, b1, b2, b3]) as usize;
        let total = PREFIX_BYTES as u64 + header_len as u64 + body_len as u64;
        if total > FRAME_BYTES as u64 {
            return Err(FrameError::TooLong { bytes: total });
        }
        let Some(content) = rest.get(..header_len + body_len) else { return Ok(None) };
        let (header, body) = content.split_at(header_len);
        let verb = serde_json::from_slice(header);
        let body = body.to_vec();
        self.used += PREFIX_BYTES + content.len();
        if self.used == self.buffer.len() {
            // Nothing is kept between frames, not even capacity: most keepers are idle most of the time.
            *self = Self::default();
        }
        Ok(Some(Frame { verb: verb?, body }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode_all(bytes: &[u8], portion: usize) -> Vec<Frame<ToKeeper>> {
        let mut decoder = Decoder::new();
        let mut frames = Vec::new();
        for portion in bytes.chunks(portion) {
            decoder.push(portion);
            while let Some(frame) = decoder.next_frame().unwrap() {
                frames.push(frame);
            }
        }
        frames
    }

    #[test]
    fn frames_arrive_in_any_portions() {
        let input = ToKeeper::Input { input_no: 3, tag: "t".into() };
        let mut bytes = encode(&input, b"hello\n").unwrap();
        bytes.extend(encode(&ToKeeper::Bye {}, b"").unwrap());
        for portion in 1..bytes.len() {
            let frames = decode_all(&bytes, portion);
            assert_eq!(frames.len(), 2);
            assert_eq!(frames[0], Frame { verb: input.clone(), body: b"hello\n".to_vec() });
            assert_eq!(frames[1].verb, ToKeeper::Bye {});
        }
    }

    #[test]
    fn unknown_verbs_and_fields_are_no_errors() {
        let mut bytes = encode(&serde_json::json!({"verb": "dance", "with": "me"}), b"x").unwrap();
        bytes.extend(encode(&serde_json::json!({"verb": "bye", "until": "soon"}), b"").unwrap());
        let verbs: Vec<_> = decode_all(&bytes, 7).into_iter().map(|frame| frame.verb).collect();
        assert_eq!(verbs, [ToKeeper::Unknown, ToKeeper::Bye {}]);
    }

    #[test]
    fn a_frame_that_would_not_fit_is_refused_before_it_is_read() {
        let mut decoder = Decoder::<ToKeeper>::new();
        decoder.push(&[0xff; 8]);
        assert!(matches!(decoder.next_frame(), Err(FrameError::TooLong { .. })));
        assert!(encode(&ToKeeper::Bye {}, &vec![0; FRAME_BYTES]).is_err());
    }

    #[test]
    fn a_garbled_header_costs_its_frame_only() {
        let mut decoder = Decoder::<ToKeeper>::new();
        decoder.push(b"\x02\0\0\0\0\0\0\0{]");
        decoder.push(&encode(&ToKeeper::Bye {}, b"").unwrap());
        assert!(matches!(decoder.next_frame(), Err(FrameError::Header(_))));
        assert_eq!(decoder.next_frame().unwrap().unwrap().verb, ToKeeper::Bye {});
    }
}
