//! OpenAI's Codex CLI, by `codex app-server`: JSON-RPC on its standard streams, one thread per process. Written for
//! 0.166, whose oddities are named where they matter.

mod config;
mod dialogue;
mod failure;
mod item;
mod login;
mod meter;
mod notices;
mod opening;
mod question;
mod steered;

use std::collections::BTreeMap;

use ostler_domain::limits;
use ostler_tape::frame::{Rung, RungAction};

use crate::{
    Capabilities, CommandSpec, Dialogue, DialogueState, HomeFile, Launch, LaunchError, LoginSpec, Memory,
    NativeCommand, ProgramSpec, Provider, Say, Terms, UnknownState, UsageSource, Version,
};

pub struct Codex;

/// Where it keeps its things, below the agent's home. It must not lie below a temporary directory.
const HOME: &str = ".codex";
const SIGTERM: i32 = 15;
/// Each rung of the way down; it needs a tenth of a second on a machine at rest.
const RUNG_MS: u64 = 3_000;

impl Provider for Codex {
    fn name(&self) -> &str {
        "codex"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            resume: true,
            fork: true,
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
        let natives = ["x64/vendor/x86_64", "arm64/vendor/aarch64"]
            .map(|machine| format!("@openai/codex-linux-{machine}-unknown-linux-musl/bin/codex").into());
        Some(ProgramSpec {
            name: "codex".to_owned(),
            natives: natives.to_vec(),
            // The first whose `app-server` was seen to do all of this.
            least: Some(Version(0, 166, 0)),
            install: Some("npm install -g @openai/codex".to_owned()),
        })
    }

    fn default_base_url(&self) -> Option<&str> {
        Some("https://api.openai.com/v1")
    }

    fn login(&self) -> Option<&LoginSpec> {
        Some(&login::LOGIN)
    }

    fn key_variable(&self) -> Option<&str> {
        Some("OPENAI_API_KEY")
    }

    fn unknown_setting<'a>(&self, config: &'a BTreeMap<String, String>) -> Option<&'a str> {
        config.keys().map(String::as_str).find(|key| *key != config::EFFORT)
    }

    fn thinking(&self, level: &str) -> Option<(&'static str, String)> {
        let effort = if level == "max" { "xhigh" } else { level };
        config::EFFORTS.contains(&effort).then(|| (config::EFFORT, effort.to_owned()))
    }

    fn command(&self, launch: &Launch) -> Result<CommandSpec, LaunchError> {
        if let Some(key) = self.unknown_setting(&launch.terms.config) {
            return Err(LaunchError::UnknownSetting { key: key.to_owned() });
        }
        let program = launch.program.as_ref().ok_or(LaunchError::NoProgram)?;
        let text = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
        let mut env = vec![
            ("HOME".to_owned(), text(launch.home.clone())),
            ("CODEX_HOME".to_owned(), text(launch.home.join(HOME))),
            ("NO_COLOR".to_owned(), "1".to_owned()),
        ];
        if let Some(access) = &launch.model_access {
            env.push((config::KEY.to_owned(), access.key.clone()));
        }
        let words = ["app-server".to_owned()].into_iter();
        // The binary looks for its helpers beside its own directory.
        let package = program.path.parent().and_then(|bin| bin.parent());
        let is_packaged =
            package.is_some_and(|package| package.join("codex-package.json").components().count() > 4);
        Ok(CommandSpec {
            program: program.path.clone(),
            args: words.chain(launch.settings.args.iter().cloned()).collect(),
            env,
            home_files: vec![
                HomeFile { path: format!("{HOME}/config.toml").into(), text: config::text(launch) },
                // Empty, it takes the place of what a project no longer says.
                HomeFile {
                    path: format!("{HOME}/AGENTS.md").into(),
                    text: launch.terms.instructions.clone().unwrap_or_default(),
                },
            ],
            read_only: package.filter(|_| is_packaged).map(ToOwned::to_owned).into_iter().collect(),
        })
    }

    fn opening(&self, terms: &Terms) -> Vec<Say> {
        opening::opening(terms)
    }

    fn dialogue(&self, state: Option<&DialogueState>) -> Result<Box<dyn Dialogue>, UnknownState> {
        Ok(Box::new(dialogue::CodexDialogue::restore(state)?))
    }

    fn has_plans(&self) -> bool {
        true
    }

    /// It reads none of a project that it does not trust.
    fn instruction_files(&self) -> &[&str] {
        &["AGENTS.md"]
    }

    fn stop_ladder(&self) -> Vec<Rung> {
        let wait_ms = RUNG_MS.min(u64::try_from(limits::STOP_RUNG.as_millis()).unwrap_or(RUNG_MS));
        [RungAction::CloseInput, RungAction::Signal(SIGTERM), RungAction::Kill]
            .map(|action| Rung { action, wait_ms })
            .to_vec()
    }

    /// The settings in that home lead to the model through the sandbox's own way out: the program's usual one is named.
    fn native(&self, provider_id: &str, home: &std::path::Path) -> Option<NativeCommand> {
        Some(NativeCommand {
            env: vec![("CODEX_HOME".to_owned(), home.join(HOME).to_string_lossy().into_owned())],
            words: ["codex", "resume", "-c", "model_provider=openai", provider_id]
                .map(str::to_owned)
                .to_vec(),
        })
    }

    fn memory(&self, provider_id: &str) -> Option<Memory> {
        Some(Memory { below: format!("{HOME}/sessions").into(), name_ends: format!("{provider_id}.jsonl") })
    }
}
