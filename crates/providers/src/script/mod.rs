//! The built-in scripted agent: deterministic, with real tool calls. See `docs/script.md`.

mod dialogue;

use ostler_domain::{limits, policy::NetMode};
use ostler_tape::{frame::Rung, launch::default_ladder};

use crate::{
    Capabilities, CommandSpec, Dialogue, DialogueState, Launch, LaunchError, Provider, UnknownState,
    UsageSource,
};

pub struct Script;

impl Provider for Script {
    fn name(&self) -> &str {
        "script"
    }

    fn models_path(&self) -> Option<&str> {
        None
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            resume: false,
            fork: false,
            steer: false,
            interrupt: true,
            approvals: true,
            hears_why: true,
            partial_output: true,
            model_change: false,
            usage: UsageSource::Report,
        }
    }

    fn command(&self, launch: &Launch) -> Result<CommandSpec, LaunchError> {
        match self.unknown_setting(&launch.terms.config) {
            Some(key) => Err(LaunchError::UnknownSetting { key: key.to_owned() }),
            None => Ok(CommandSpec {
                program: launch.ostler.clone(),
                args: vec!["internal".to_owned(), "script".to_owned()],
                ..CommandSpec::default()
            }),
        }
    }

    fn dialogue(&self, state: Option<&DialogueState>) -> Result<Box<dyn Dialogue>, UnknownState> {
        Ok(Box::new(dialogue::ScriptDialogue::restore(state)?))
    }

    /// It asks no model.
    fn usual_network(&self) -> NetMode {
        NetMode::None
    }

    /// A few lines of JSON.
    fn usual_memory(&self) -> u64 {
        16 * 1024 * 1024
    }

    fn stop_ladder(&self) -> Vec<Rung> {
        default_ladder(limits::STOP_RUNG)
    }
}
