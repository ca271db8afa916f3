//! How each agent program is started and talked to.
//!
//! A provider is pure: a command line as data, and a [`Dialogue`] that turns the lines of a tape into reports and
//! requests into lines. It sees no process, no clock and no randomness, and its state is a function of the tape
//! alone, so that any tape gives the same events again.
//!
//! To add one: a folder here, and one line in [`registry`].
#![forbid(unsafe_code)]

pub mod acp;
pub mod claude_code;
pub mod codex;
mod foreign;
pub mod history;
mod login;
mod mcp;
pub mod openai_api;
pub mod openclaw;
mod parts;
pub mod registry;
pub mod script;
mod version;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use ostler_domain::{
    SessionId,
    gateway::KeyScheme,
    policy::NetMode,
    provider::Settings,
    session::{AgentRequest, Approve, Begin, Report},
};
use ostler_tape::{Line, frame::Rung};

pub use login::{Lent, LoginSpec, Refresh};
pub use version::Version;

/// A kind of agent program.
pub trait Provider: Send + Sync {
    fn name(&self) -> &str;

    fn capabilities(&self) -> Capabilities;

    /// The program to look for; none for an agent that is part of this one.
    fn program(&self) -> Option<ProgramSpec> {
        None
    }

    /// Where its model is called when nobody says otherwise; none when that is not ours to say.
    fn default_base_url(&self) -> Option<&str> {
        None
    }

    /// The variable in which people usually have the key of its default base URL.
    fn key_variable(&self) -> Option<&str> {
        None
    }

    /// What is put behind the base URL to be told which models there are; none for an agent without a model.
    fn models_path(&self) -> Option<&str> {
        Some("/models")
    }

    /// Whether its agents cannot begin without being told a model.
    fn needs_model(&self) -> bool {
        false
    }

    /// How its program logs in by itself; none when it cannot, or not in a way that sessions can be lent.
    fn login(&self) -> Option<&LoginSpec> {
        None
    }

    /// How its model wants to be shown the key; none when that follows from where the model is.
    fn key_scheme(&self) -> Option<KeyScheme> {
        None
    }

    /// Whether to try to branch off what its agent remembers. Some say only when they are asked whether they can.
    fn tries_fork(&self) -> bool {
        self.capabilities().fork
    }

    /// Whether its program can be started so that its model has no tool at all. All others are held by denying what they
    /// ask leave for, and by a sandbox in which nothing of the campaign is writable.
    fn can_go_without_tools(&self) -> bool {
        false
    }

    /// The setting of a session, and its value, that has its model think this much; none where it cannot be told that.
    fn thinking(&self, _level: &str) -> Option<(&'static str, String)> {
        None
    }

    /// Settings of a session (`--config KEY=VALUE`) that mean nothing to this provider are refused when it is created.
    fn unknown_setting<'a>(&self, config: &'a BTreeMap<String, String>) -> Option<&'a str> {
        config.keys().next().map(String::as_str)
    }

    /// The command that starts the agent, as data: the engine has it run.
    fn command(&self, launch: &Launch) -> Result<CommandSpec, LaunchError>;

    /// What is said to every agent of this kind before anything else. Whatever the dialogue must know of the terms
    /// travels in the tags, so that its state stays a function of the tape.
    fn opening(&self, _terms: &Terms) -> Vec<Say> {
        Vec::new()
    }

    /// A dialogue at its beginning, or where `state` says.
    fn dialogue(&self, state: Option<&DialogueState>) -> Result<Box<dyn Dialogue>, UnknownState>;

    /// How far its agents reach into the network where a campaign's policy does not say.
    fn usual_network(&self) -> NetMode {
        NetMode::Provider
    }

    /// Names of a project's files that its agents are not shown, as a campaign's `hide` names them: they would run what is in
    /// them, and cannot be told not to.
    fn unseen(&self) -> &[&str] {
        &[]
    }

    /// Names of a project's files, the best first, with what their people tell every agent. Its program is told what the
    /// first of them says, because it does not read them by itself as Ostler starts it; none where it does.
    fn instruction_files(&self) -> &[&str] {
        &[]
    }

    /// How much memory its program takes once it runs, in bytes: what is set aside for one that starts.
    fn usual_memory(&self) -> u64 {
        ostler_domain::limits::AGENT_MEMORY_BYTES
    }

    /// Whether its program's own login may be a subscription, which covers what its calls cost.
    fn has_plans(&self) -> bool {
        false
    }

    /// The orderly way down, mildest first.
    fn stop_ladder(&self) -> Vec<Rung>;

    /// How its own program goes on with a dialogue that lies in a home of ours; none when it has no such command.
    fn native(&self, _provider_id: &str, _home: &std::path::Path) -> Option<NativeCommand> {
        None
    }

    /// Where the provider keeps a dialogue: gone, it cannot be gone on with. None when it cannot be looked for.
    fn memory(&self, _provider_id: &str) -> Option<Memory> {
        None
    }
}

/// The conversation with one agent process, without the process.
pub trait Dialogue: Send {
    /// Takes in one line of the tape and says what it means, and what to answer by itself.
    fn on_line(&mut self, line: &Line<'_>, heard: &mut Vec<Heard>);

    /// The bytes that say this to the agent, whole lines, or nothing when it has no way to be told. Does not change the
    /// dialogue: what must be remembered comes back with the `in` record, which has the request's tag
    /// ([`AgentRequest::tag`]). Protocol ids are made from `input_no`.
    fn on_request(&self, request: &AgentRequest, input_no: u64) -> Option<Vec<u8>>;

    /// What to commit with the events.
    fn state(&self) -> DialogueState;

    /// How long after [`AgentRequest::End`] its input stays open, as it stands now: until then the agent does what it was
    /// told with that.
    fn ends_within(&self) -> Duration {
        Duration::ZERO
    }
}

/// What a line meant.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    Report(Report),
    /// A part of a text that will come whole: shown live, never stored.
    Delta(String),
    /// Answers the agent. Becomes an outbox row of the commit that has the reports of the same line; while a tape is
    /// folded to rebuild a state it is discarded like them. Protocol ids are made from the line's place on the tape.
    Say(Say),
}

/// Something to be written to the agent without anybody asking for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Say {
    /// What must be remembered about it; comes back with the `in` record. At most [`ostler_tape::input::TAG_BYTES`].
    pub tag: String,
    /// Whole lines.
    pub bytes: Vec<u8>,
}

impl Say {
    /// One line of JSON.
    pub fn line(tag: impl Into<String>, value: &impl serde::Serialize) -> Option<Say> {
        let mut bytes = serde_json::to_vec(value).ok()?;
        bytes.push(b'\n');
        Some(Say { tag: tag.into(), bytes })
    }
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

/// A command that a person runs without Ostler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeCommand {
    pub env: Vec<(String, String)>,
    pub words: Vec<String>,
}

/// What a provider can do; the same words for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    pub resume: bool,
    pub fork: bool,
    pub steer: bool,
    pub interrupt: bool,
    pub approvals: bool,
    /// Why something was denied reaches its model: with the answer, or said into the turn.
    pub hears_why: bool,
    pub partial_output: bool,
    /// The model can be changed while it lives.
    pub model_change: bool,
    pub usage: UsageSource,
}

/// Where the tokens of a provider are learnt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageSource {
    Report,
    Wire,
}

/// What a session is to be, before anything has been looked for on this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// Names of our own choice for the provider's dialogue are made from it.
    pub session: SessionId,
    pub working_dir: PathBuf,
    pub model: Option<String>,
    pub begin: Begin,
    pub approve: Approve,
    /// Added to what the provider tells its model about its work: the text of one of its
    /// [`instruction_files`](Provider::instruction_files).
    pub instructions: Option<String>,
    /// This program as the agent sees it, for its model's tools (`ostler mcp`); none where it gets none of ours.
    pub mcp: Option<PathBuf>,
    /// The session's own settings of this provider.
    pub config: BTreeMap<String, String>,
    /// Its agent only answers.
    pub no_tools: bool,
}

/// What is known when an agent is started.
#[derive(Debug, Clone)]
pub struct Launch {
    pub terms: Terms,
    /// This program's own binary, for agents that are part of it.
    pub ostler: PathBuf,
    /// Absent when the provider has no [`ProgramSpec`].
    pub program: Option<FoundProgram>,
    /// The agent's home directory as it sees it. The conversation's: it outlives the session.
    pub home: PathBuf,
    pub settings: Settings,
    /// The model gateway; absent when the agent calls its model by its own login.
    pub model_access: Option<ModelAccess>,
    /// Whether a sandbox of ours is around the agent.
    pub is_confined: bool,
}

/// Where an agent calls its model, as seen from inside its sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAccess {
    /// Without a slash at its end, and without the part of the path that providers add.
    pub base_url: String,
    /// No secret: the gateway replaces it by the real one.
    pub key: String,
}

/// A program to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramSpec {
    pub name: String,
    /// Where the program itself lies below a `node_modules` when what was found is a launcher of npm's.
    pub natives: Vec<PathBuf>,
    /// Versions below this are refused.
    pub least: Option<Version>,
    /// The command that installs it, where one is known.
    pub install: Option<String>,
}

/// A program that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundProgram {
    /// Canonical.
    pub path: PathBuf,
    pub version: Option<Version>,
    /// What it needs to be seen of the machine: itself, its package, its runtime.
    pub read_only: Vec<PathBuf>,
    /// Directories of programs that it calls by name, such as its runtime's.
    pub search: Vec<PathBuf>,
}

/// A command line as data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandSpec {
    pub program: PathBuf,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Written into the conversation's home before each start.
    pub home_files: Vec<HomeFile>,
    /// Beyond what the program itself needs.
    pub read_only: Vec<PathBuf>,
}

/// A file of the agent's home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeFile {
    /// Below the home, without `..`.
    pub path: PathBuf,
    pub text: String,
}

/// A file below the agent's home that has a dialogue in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// The directory, below the home, in which it lies at some depth.
    pub below: PathBuf,
    /// How its name ends.
    pub name_ends: String,
}

/// Why an agent cannot be started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    #[error("provider setting {key} is not known")]
    UnknownSetting { key: String },
    #[error("provider setting {key}: {why}")]
    WrongSetting { key: String, why: String },
    /// The engine looks for the program before it asks.
    #[error("its program was not looked for")]
    NoProgram,
}
