//! What crossed an agent's border, and how its own program goes on alone.

use std::{collections::BTreeMap, ops::Range};

use ostler_domain::Time;

/// Some of a tape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapePart {
    /// Records in the tape's order.
    pub records: Vec<TapeRecord>,
    /// Stretches that cannot be read, by their offsets.
    pub damage: Vec<Range<u64>>,
}

/// One record of a tape: a line, or a piece of a long one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TapeRecord {
    /// Its place on the tape.
    pub offset: u64,
    /// Whose it is: out, err, in, call, wire, net, exit, keeper.
    pub stream: String,
    /// When the keeper had it.
    pub time: Time,
    /// Exactly what was said, without the end of the line.
    pub payload: Vec<u8>,
    /// The line goes on in the next record of this stream.
    pub more: bool,
    /// For `in`: the number of the input.
    pub input_no: Option<u64>,
}

/// How a provider's own program goes on with a conversation, without Ostler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeCommand {
    /// Where to run it.
    pub working_dir: String,
    /// Variables that it needs.
    pub env: BTreeMap<String, String>,
    /// The program and what it is told.
    pub words: Vec<String>,
}
