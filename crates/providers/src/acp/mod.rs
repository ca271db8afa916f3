//! Agents that speak the Agent Client Protocol on their standard streams. Which program that is, is configuration:
//! `[providers."acp:NAME"]`.

mod dialogue;
mod known;
mod tool;
mod turn;
mod usage;

use std::path::PathBuf;

use ostler_domain::{gateway::KeyScheme, limits, provider::acp_name};
use ostler_tape::{frame::Rung, launch::default_ladder};

pub(crate) use dialogue::{AcpDialogue, opening};

use crate::{
    Capabilities, CommandSpec, Dialogue, DialogueState, Launch, LaunchError, ProgramSpec, Provider, Say,
    Terms, UnknownState, UsageSource,
};

/// What any client of the protocol can count on.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    resume: true,
    fork: false,
    steer: false,
    interrupt: true,
    approvals: true,
    hears_why: false,
    partial_output: true,
    model_change: false,
    usage: UsageSource::Report,
};

/// Agents that people are likely to have, by their names with the prefix.
pub(crate) const LIKELY: [&str; 2] = ["acp:opencode", "acp:gemini"];

/// One agent that somebody has configured.
pub struct Acp {
    /// With its prefix.
    name: String,
}

impl Acp {
    /// The provider of this name, if it is one of these.
    pub fn named(name: &str) -> Option<Self> {
        acp_name(name).map(|_| Self { name: name.to_owned() })
    }

    fn own_name(&self) -> &str {
        acp_name(&self.name).unwrap_or(&self.name)
    }
}

impl Provider for Acp {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn tries_fork(&self) -> bool {
        true
    }

    fn default_base_url(&self) -> Option<&str> {
        known::find(self.own_name())?.base_url
    }

    fn models_path(&self) -> Option<&str> {
        Some(known::find(self.own_name()).map_or("/models", |known| known.models_path))
    }

    fn key_variable(&self) -> Option<&str> {
        known::find(self.own_name())?.key_variable
    }

    fn key_scheme(&self) -> Option<KeyScheme> {
        known::find(self.own_name())?.key_scheme
    }

    fn unseen(&self) -> &[&str] {
        known::find(self.own_name()).map_or(&[], |known| known.unseen)
    }

    fn instruction_files(&self) -> &[&str] {
        known::find(self.own_name()).map_or(&[], |known| known.instruction_files)
    }

    fn program(&self) -> Option<ProgramSpec> {
        let known = known::find(self.own_name());
        Some(ProgramSpec {
            name: self.own_name().to_owned(),
            natives: known.map_or(&[][..], |known| known.natives).iter().map(PathBuf::from).collect(),
            least: None,
            install: known.and_then(|known| known.install).map(str::to_owned),
        })
    }

    fn command(&self, launch: &Launch) -> Result<CommandSpec, LaunchError> {
        if let Some(key) = self.unknown_setting(&launch.terms.config) {
            return Err(LaunchError::UnknownSetting { key: key.to_owned() });
        }
        let program = launch.program.as_ref().ok_or(LaunchError::NoProgram)?;
        // What people say comes last, and so counts.
        let usual = known::usual(self.own_name(), launch)?;
        let said = &launch.settings.args;
        let args =
            if said.is_empty() { usual.args } else { said.iter().map(|arg| filled(arg, launch)).collect() };
        let mut env = vec![("HOME".to_owned(), launch.home.to_string_lossy().into_owned())];
        env.push(("NO_COLOR".to_owned(), "1".to_owned()));
        env.extend(usual.env);
        env.extend(launch.settings.env.iter().map(|(name, value)| (name.clone(), filled(value, launch))));
        Ok(CommandSpec {
            program: program.path.clone(),
            args,
            env,
            home_files: usual.home_files,
            ..CommandSpec::default()
        })
    }

    fn opening(&self, terms: &Terms) -> Vec<Say> {
        opening(terms)
    }

    fn dialogue(&self, state: Option<&DialogueState>) -> Result<Box<dyn Dialogue>, UnknownState> {
        Ok(Box::new(AcpDialogue::restore(state)?))
    }

    fn stop_ladder(&self) -> Vec<Rung> {
        default_ladder(limits::STOP_RUNG)
    }
}

/// Every agent has its own way to be told where its model is: `{base_url}` and `{key}` in its arguments and variables
/// become what the model gateway gives.
fn filled(text: &str, launch: &Launch) -> String {
    match (&launch.model_access, &launch.settings.base_url) {
        (Some(access), _) => text.replace("{base_url}", &access.base_url).replace("{key}", &access.key),
        (None, Some(base_url)) => text.replace("{base_url}", base_url),
        (None, None) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        assert_eq!(
            Acp::named("acp:opencode").map(|acp| acp.name().to_owned()).as_deref(),
            Some("acp:opencode")
        );
        for name in ["acp:", "acp", "codex", "acp:../x", "acp:a b"] {
            assert!(Acp::named(name).is_none(), "{name}");
        }
    }

    #[test]
    fn gemini_s_key_is_shown_as_google_has_it_also_to_another_server() {
        let scheme = |name: &str| Acp::named(name).unwrap().key_scheme();
        assert_eq!(scheme("acp:gemini"), Some(KeyScheme::Google));
        assert_eq!((scheme("acp:opencode"), scheme("acp:mine")), (None, None), "by the server that it is");
    }
}
