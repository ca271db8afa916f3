//! What the lines of a store say, whoever wrote them.

use crate::{
    Time, Usage,
    event::{ContextCompacted, ImageRecorded, Raw, StopReason, Text, ToolCall, ToolResult},
    image::Image,
};

/// Something that a line says.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// When it happened, where the line says it.
    pub at: Option<Time>,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A person said this to the agent, or whoever stood in for one. `place` tells it from all others of the file.
    Prompt {
        text: String,
        place: u64,
        images: Vec<Image>,
    },
    Thinking(Text),
    ToolCall(ToolCall),
    ToolResult(ToolResult),
    /// Before the result that it is in.
    Image(ImageRecorded),
    Completion(Text),
    Status(String),
    Error(String),
    Compacted(ContextCompacted),
    /// The model that works from here on.
    Model(String),
    Call(Call),
    /// The turn would end like this, if nothing more came.
    Rests(StopReason),
    /// A line that could not be understood.
    Unreadable(Raw),
    /// One that is too long to be.
    Oversize(Raw),
}

/// The tokens of a model call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Call {
    pub usage: Usage,
    pub model: Option<String>,
    /// What tells this call from all others of the same program, if anything does.
    pub name: Option<String>,
    /// Other files may tell of the same call: it counts once among all of them.
    pub is_shared: bool,
}
