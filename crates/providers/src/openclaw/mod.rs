//! OpenClaw, by its gateway: a server of its own inside the sandbox that speaks JSON over a WebSocket, which
//! `ostler internal bridge` carries over standard streams. One gateway, one session. Written for 2026.9, protocol 4.

mod config;
mod dialogue;
mod events;
mod opening;
mod task;
mod usage;

use std::collections::BTreeMap;

use ostler_tape::frame::{Rung, RungAction};

use crate::{
    Capabilities, CommandSpec, Dialogue, DialogueState, HomeFile, Launch, LaunchError, ProgramSpec, Provider,
    Say, Terms, UnknownState, UsageSource, Version,
};

pub struct Openclaw;

/// Where it keeps its things, below the agent's home.
const STATE: &str = ".openclaw";
const SIGTERM: i32 = 15;
/// It drains for minutes when asked in the middle of work; a gateway at rest needs two seconds.
const RUNG_MS: u64 = 6_000;

/// How much its model thinks, and the words that it knows for that.
const THINKING: &str = "thinking";
const LEVELS: [&str; 7] = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];

impl Provider for Openclaw {
    fn name(&self) -> &str {
        "openclaw"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            resume: true,
            fork: false,
            steer: true,
            interrupt: true,
            approvals: true,
            hears_why: true,
            partial_output: true,
            model_change: true,
            usage: UsageSource::Report,
        }
    }

    fn program(&self) -> Option<ProgramSpec> {
        Some(ProgramSpec {
            name: "openclaw".to_owned(),
            natives: Vec::new(),
            // Operators must speak the gateway's own version of the protocol.
            least: Some(Version(2026, 9, 0)),
            install: Some("npm install -g openclaw".to_owned()),
        })
    }

    fn default_base_url(&self) -> Option<&str> {
        Some("https://api.openai.com/v1")
    }

    fn key_variable(&self) -> Option<&str> {
        Some("OPENAI_API_KEY")
    }

    fn needs_model(&self) -> bool {
        true
    }

    fn unknown_setting<'a>(&self, config: &'a BTreeMap<String, String>) -> Option<&'a str> {
        config.keys().map(String::as_str).find(|key| ![config::API, THINKING].contains(key))
    }

    fn thinking(&self, level: &str) -> Option<(&'static str, String)> {
        LEVELS.contains(&level).then(|| (THINKING, level.to_owned()))
    }

    fn command(&self, launch: &Launch) -> Result<CommandSpec, LaunchError> {
        if let Some(key) = self.unknown_setting(&launch.terms.config) {
            return Err(LaunchError::UnknownSetting { key: key.to_owned() });
        }
        let program = launch.program.as_ref().ok_or(LaunchError::NoProgram)?;
        let mut args = ["internal", "bridge", "--"].map(str::to_owned).to_vec();
        args.push(program.path.to_string_lossy().into_owned());
        args.extend(["gateway", "run"].map(str::to_owned));
        args.extend(launch.settings.args.iter().cloned());
        Ok(CommandSpec {
            program: launch.ostler.clone(),
            args,
            env: config::environment(&launch.home),
            home_files: vec![HomeFile {
                path: format!("{STATE}/{}", config::FILE).into(),
                text: config::text(launch)?,
            }],
            ..CommandSpec::default()
        })
    }

    fn opening(&self, terms: &Terms) -> Vec<Say> {
        opening::opening(terms).into_iter().collect()
    }

    fn dialogue(&self, state: Option<&DialogueState>) -> Result<Box<dyn Dialogue>, UnknownState> {
        Ok(Box::new(dialogue::OpenclawDialogue::restore(state)?))
    }

    fn stop_ladder(&self) -> Vec<Rung> {
        [RungAction::CloseInput, RungAction::Signal(SIGTERM), RungAction::Kill]
            .map(|action| Rung { action, wait_ms: RUNG_MS })
            .to_vec()
    }
}
