//! What is known of the providers on this machine.

use std::sync::Arc;

use ostler_domain::{
    Refusal,
    provider::{ACP_PREFIX, KeySource, NOT_LOGGED_IN, Settings, Status},
};
use ostler_providers::{Capabilities, Provider, registry};

use crate::Engine;

impl Engine {
    /// All providers: those that are built in, then those of the configuration.
    /// `variables` are those that the caller has.
    pub async fn providers(&self, variables: &[String]) -> Result<Vec<Status>, Refusal> {
        let mut settings = self.shared.options.providers.all()?;
        let mut all = Vec::new();
        for provider in registry::all() {
            let settings = settings.remove(provider.name()).unwrap_or_default();
            all.push(self.status_of(provider, &settings, variables).await);
        }
        for (name, settings) in settings {
            all.push(match registry::find(&name) {
                Some(provider) => self.status_of(provider, &settings, variables).await,
                None => Status {
                    problem: Some(
                        "config.toml has settings for it, and there is no such provider".to_owned(),
                    ),
                    cure: Some(format!("name it \"{ACP_PREFIX}{name}\" if it speaks ACP")),
                    name,
                    ..Status::default()
                },
            });
        }
        Ok(all)
    }

    async fn status_of(
        &self,
        provider: Arc<dyn Provider>,
        settings: &Settings,
        variables: &[String],
    ) -> Status {
        let home = self.shared.options.home_dir.as_deref();
        let found = self.shared.programs.find(provider.as_ref(), settings, home).await;
        let mut status = Status {
            name: provider.name().to_owned(),
            base_url: settings.base_url.clone(),
            key: self.key(provider.as_ref(), settings, variables),
            model: settings.model.clone(),
            capabilities: words(provider.capabilities()),
            ..Status::default()
        };
        match found {
            Ok(found) => {
                status.version =
                    found.as_ref().and_then(|found| found.version).map(|version| version.to_string());
                status.program = found.map(|found| found.path.to_string_lossy().into_owned());
            }
            Err(refusal) => {
                let why = refusal.why.map(|why| format!(": {why}")).unwrap_or_default();
                status.problem = Some(format!("{}{why}", refusal.message));
                status.cure = refusal.hints.into_iter().next().map(|hint| hint.command);
            }
        }
        status
    }

    /// Where the key is, in words.
    fn key(&self, provider: &dyn Provider, settings: &Settings, variables: &[String]) -> String {
        if let Some(source) = settings.key_source() {
            return source.to_string();
        }
        if settings.base_url.is_some() {
            return "none is sent".to_owned();
        }
        if let Some(login) = self.shared.login(provider) {
            let now = self.shared.clock.now().wall.micros() / 1_000_000;
            return match login.expires.map(|expires| expires - now) {
                Some(left) if left <= 0 => "its login, which is renewed with the next session".to_owned(),
                _ => "its login".to_owned(),
            };
        }
        let is_set =
            |name: &&str| variables.iter().any(|set| set == name) || std::env::var_os(name).is_some();
        match (provider.key_variable().filter(is_set), provider.login(), provider.program()) {
            (Some(variable), ..) => KeySource::Variable(variable.to_owned()).to_string(),
            (None, Some(_), _) => NOT_LOGGED_IN.to_owned(),
            (None, None, Some(_)) => "its own affair".to_owned(),
            (None, None, None) => "none is needed".to_owned(),
        }
    }
}

fn words(can: Capabilities) -> Vec<String> {
    let words = [
        (can.resume, "resume"),
        (can.fork, "fork"),
        (can.steer, "steer"),
        (can.interrupt, "interrupt"),
        (can.approvals, "approvals"),
        (can.partial_output, "partial_output"),
        (can.model_change, "model_change"),
    ];
    words.into_iter().filter(|(can, _)| *can).map(|(_, word)| word.to_owned()).collect()
}
