//! How each agent program is started and talked to.
//!
//! A provider is pure: a command line as data, and a [`Dialogue`] that turns the lines of a tape into reports and
//! requests into lines. It sees no process, no clock and no randomness, and its state is a function of the tape
//! alone, so that any tape gives the same events again.
//!
//! To add one: a folder here, and one line in [`registry`].
#![forbid(unsafe_code)]

mod foreign;
pub mod registry;
pub mod script;

use std::{collections::BTreeMap, path::PathBuf};

use ostler_domain::{
    policy::NetMode,
    session::{AgentRequest, Report},
};
use ostler_tape::{Line, frame::Rung};

/// A kind of agent program.
pub trait Provider: Send + Sync {
    fn name(&self) -> &'static str;

    fn capabilities(&self) -> Capabilities;

    /// The command that starts the agent, as data: the engine has it run.
    fn command(&self, launch: &Launch) -> Result<CommandSpec, LaunchError>;

    /// A dialogue at its beginning, or where `state` says.
    fn dialogue(&self, state: Option<&DialogueState>) -> Result<Box<dyn Dialogue>, UnknownState>;

    /// How far its agents reach into the network where a campaign's policy does not say.
    fn usual_network(&self) -> NetMode {
        NetMode::Provider
    }

    /// The orderly way down, mildest first.
    fn stop_ladder(&self) -> Vec<Rung>;
}

/// The conversation with one agent process, without the process.
pub trait Dialogue: Send {
    /// Takes in one line of the tape and says what it means.
    fn on_line(&mut self, line: &Line<'_>, heard: &mut Vec<Heard>);

    /// The bytes that say this to the agent, or nothing when it has no way to be told. Does not change the
    /// dialogue: what must be remembered comes back with the `in` record. Protocol ids are made from `input_no`.
    fn on_request(&self, request: &AgentRequest, input_no: u64) -> Option<Vec<u8>>;

    /// What to commit with the events.
    fn state(&self) -> DialogueState;
}

/// What a line meant.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    Report(Report),
    /// A part of a text that will come whole: shown live, never stored.
    Delta(String),
}

/// A dialogue's state in its stored form.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DialogueState {
    pub version: u32,
    pub bytes: Vec<u8>,
}

/// The stored state is of a version that this program does not read: the tape is folded again from its start.
#[derive(Debug, thiserror::Error)]
#[error("dialogue state of version {0} is not known")]
pub struct UnknownState(pub u32);

/// What a provider can do; the same words for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    pub resume: bool,
    pub fork: bool,
    pub steer: bool,
    pub interrupt: bool,
    pub approvals: bool,
    pub partial_output: bool,
    pub usage: UsageSource,
}

/// Where the tokens of a provider are learnt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageSource {
    Report,
    Wire,
}

/// What is known when an agent is started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// This program's own binary, for agents that are part of it.
    pub ostler: PathBuf,
    pub model: Option<String>,
    pub config: BTreeMap<String, String>,
}

/// A command line as data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSpec {
    pub program: PathBuf,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
}

/// Why an agent cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    #[error("provider setting {key} is not known")]
    UnknownSetting { key: String },
}
