//! What is known of the providers on this machine.

use std::{path::PathBuf, sync::Arc};

use ostler_domain::{
    Policy, Refusal, Secret,
    config::check_provider,
    provider::{
        ACP_PREFIX, Account, CAPABILITIES, CallerKeys, ENDED_LOGIN, ITS_LOGIN, KeySource, LACKS_MODEL,
        NOT_LOGGED_IN, Settings, Status,
    },
};
use ostler_providers::{Capabilities, Provider, UsageSource, registry};
use tokio::task::JoinHandle;

use crate::{
    Engine,
    programs::Unusable,
    upstream::{self, login_command},
};

impl Engine {
    /// All providers: those that are built in, then those of the configuration.
    /// `variables` are those that the caller has.
    pub async fn providers(&self, variables: &[String]) -> Result<Vec<Status>, Refusal> {
        let mut settings = self.shared.options.providers.all()?;
        let built_in = registry::all().into_iter().map(|provider| {
            let settings = settings.remove(provider.name()).unwrap_or_default();
            self.begin_status(provider, settings, variables)
        });
        let mut all: Vec<_> = built_in.collect();
        // Those that people are likely to have are found before anybody has configured them.
        let likely = registry::likely().into_iter().filter(|one| !settings.contains_key(one.name()));
        let likely: Vec<_> =
            likely.map(|one| self.begin_status(one, Settings::default(), variables)).collect();
        let likely_from = all.len();
        let likely_to = likely_from + likely.len();
        all.extend(likely);
        let mut unknown = Vec::new();
        for (name, settings) in settings {
            match registry::find(&name) {
                Some(provider) => all.push(self.begin_status(provider, settings, variables)),
                None => unknown.push(unknown_status(name)),
            }
        }
        let mut known = Vec::new();
        for (place, status) in all.into_iter().enumerate() {
            let status = status.await.map_err(|error| Refusal::internal(error.to_string()))?;
            let is_only_likely = (likely_from..likely_to).contains(&place);
            known.extend((!is_only_likely || status.problem.is_none()).then_some(status));
        }
        known.extend(unknown);
        Ok(known)
    }

    /// Looks at a provider beside all others: their programs take seconds to say their versions.
    fn begin_status(
        &self,
        provider: Arc<dyn Provider>,
        settings: Settings,
        variables: &[String],
    ) -> JoinHandle<Status> {
        let (engine, variables) = (self.clone(), variables.to_vec());
        tokio::spawn(async move { engine.status_of(provider, &settings, &variables).await })
    }

    /// Has the programs of providers looked for in these directories too.
    pub fn search_too(&self, dirs: Vec<PathBuf>) {
        self.shared.programs.search_too(dirs);
    }

    async fn status_of(
        &self,
        provider: Arc<dyn Provider>,
        settings: &Settings,
        variables: &[String],
    ) -> Status {
        let home = self.shared.options.home_dir.as_deref();
        let found = self.shared.programs.find_soon(provider.as_ref(), settings, home).await;
        let mut status = Status {
            name: provider.name().to_owned(),
            base_url: settings.base_url.clone(),
            key: self.key(provider.as_ref(), settings, variables),
            is_logged_in: self.shared.login(provider.as_ref(), settings).is_some(),
            profiles: self.accounts(provider.as_ref(), settings, variables),
            model: settings.model.clone(),
            capabilities: words(provider.capabilities()),
            usage_sources: self.usage_sources(provider.as_ref(), settings, variables),
            net_mode: Some(provider.usual_network()),
            ..Status::default()
        };
        match found {
            Ok(found) => {
                status.version =
                    found.as_ref().and_then(|found| found.version).map(|version| version.to_string());
                status.program = found.map(|found| found.path.to_string_lossy().into_owned());
                if let Some((lacks, cure)) = self.lacks(provider.as_ref(), settings, variables) {
                    (status.lacks, status.cure) = (Some(lacks.to_owned()), Some(cure));
                }
            }
            Err(unusable) => {
                if let Unusable::TooOld { found, version, least, .. } = &unusable {
                    let problem = format!("too old: {version}, needs {least}");
                    status.program = Some(found.to_string_lossy().into_owned());
                    status.version = Some(version.to_string());
                    status.lacks = Some(format!("a newer program ({problem})"));
                    status.problem = Some(problem);
                }
                let refusal = Refusal::from(unusable);
                let why = refusal.why.map(|why| format!(": {why}")).unwrap_or_default();
                status.problem.get_or_insert_with(|| format!("{}{why}", refusal.message));
                status.lacks.get_or_insert_with(|| "its program".to_owned());
                status.cure = refusal.hints.into_iter().next().map(|hint| hint.command);
            }
        }
        status
    }

    /// Its further accounts.
    fn accounts(&self, provider: &dyn Provider, settings: &Settings, variables: &[String]) -> Vec<Account> {
        let of = |name: &String| {
            let account = name.parse().ok()?;
            let own = settings.clone().of_profile(provider.name(), Some(&account)).ok()?;
            let login = own.login_of.as_ref().and_then(|_| self.shared.login(provider, &own));
            let key = self.key(provider, &own, variables);
            Some(Account { name: name.clone(), base_url: own.base_url, key, is_logged_in: login.is_some() })
        };
        settings.profiles.keys().filter_map(of).collect()
    }

    /// What keeps a session whose program is there from working, and the command that cures it.
    fn lacks(
        &self,
        provider: &dyn Provider,
        settings: &Settings,
        variables: &[String],
    ) -> Option<(&'static str, String)> {
        let name = provider.name();
        let set = |key: &str, value: &str| format!("ostler config set providers.{name}.{key} {value}");
        let keys = brought(variables);
        if let Some(variable) = upstream::missing_variable(settings, &keys) {
            return Some(("its key", format!("export {variable}=…")));
        }
        if upstream::missing_file(settings).is_some() {
            return Some(("its key", set("api_key_file", "PATH")));
        }
        let has_model = self.shared.has_model(provider, settings, &keys);
        let is_configured = *settings != Settings::default();
        if name.starts_with(ACP_PREFIX) && !is_configured && !has_model {
            if let Some(usual) = provider.key_variable() {
                return Some(("its key", format!("export {usual}=…")));
            }
            let add = format!("ostler provider add {name} --base-url URL --api-key-env VARIABLE -m MODEL");
            return Some(("where its model is", add));
        }
        let told = Default::default();
        let is_logged_in =
            || self.shared.check_login(provider, settings, has_model, &told, &Policy::default()).is_ok();
        if provider.login().is_some() && !is_logged_in() {
            return Some(("a login or a key", login_command(name, settings)));
        }
        if !has_model && self.shared.is_logged_out(provider, settings) {
            return Some(("a login that has not ended", login_command(name, settings)));
        }
        match provider.key_variable() {
            Some(usual) if provider.login().is_none() && !has_model => {
                Some(("a key or a base_url", set("api_key_env", usual)))
            }
            _ if provider.needs_model() && settings.model.is_none() => {
                Some((LACKS_MODEL, set("model", "NAME")))
            }
            _ => None,
        }
    }

    /// Whose word there is for the tokens of its sessions.
    fn usage_sources(
        &self,
        provider: &dyn Provider,
        settings: &Settings,
        variables: &[String],
    ) -> Vec<String> {
        let is_metered = self.shared.has_model(provider, settings, &brought(variables));
        let reports = provider.capabilities().usage == UsageSource::Report;
        let sources = [(is_metered, "wire"), (reports, "report")];
        sources.into_iter().filter(|(is_one, _)| *is_one).map(|(_, word)| word.to_owned()).collect()
    }

    /// Where the key is, in words.
    fn key(&self, provider: &dyn Provider, settings: &Settings, variables: &[String]) -> String {
        if let Some(source) = settings.key_source() {
            return source.to_string();
        }
        if settings.base_url.is_some() {
            return "none is sent".to_owned();
        }
        if let Some(login) = self.shared.login(provider, settings) {
            let now = self.shared.clock.now().wall.micros() / 1_000_000;
            return match login.expires.map(|expires| expires - now) {
                Some(_) if self.shared.is_logged_out(provider, settings) => ENDED_LOGIN.to_owned(),
                Some(left) if left <= 0 => format!("{ITS_LOGIN}, which is renewed with the next session"),
                _ => ITS_LOGIN.to_owned(),
            };
        }
        let is_set =
            |name: &&str| variables.iter().any(|set| set == name) || std::env::var_os(name).is_some();
        let usual = settings.key_variable(provider.key_variable());
        match (usual.filter(is_set), provider.login(), provider.program()) {
            (Some(variable), ..) => KeySource::Variable(variable.to_owned()).to_string(),
            (None, Some(_), _) => NOT_LOGGED_IN.to_owned(),
            (None, None, _) if provider.key_variable().is_some() => "none".to_owned(),
            (None, None, Some(_)) => "its own affair".to_owned(),
            (None, None, None) => "none is needed".to_owned(),
        }
    }
}

/// One that only the configuration knows.
fn unknown_status(name: String) -> Status {
    let meant = check_provider(&name).err().and_then(|unknown| unknown.nearest);
    let meant = meant.map(|meant| format!("; {meant} may be meant")).unwrap_or_default();
    Status {
        problem: Some(format!("config.toml has settings for it, and there is no such provider{meant}")),
        lacks: Some(format!("everything: there is no such provider{meant}")),
        cure: Some("ostler config edit".to_owned()),
        name,
        ..Status::default()
    }
}

/// Keys that a caller has; what they are worth is asked when a session starts.
fn brought(variables: &[String]) -> CallerKeys {
    variables.iter().map(|variable| (variable.clone(), Secret::new("brought"))).collect()
}

fn words(can: Capabilities) -> Vec<String> {
    let Capabilities { resume, fork, steer, interrupt, approvals, partial_output, model_change, .. } = can;
    let can = [resume, fork, steer, interrupt, approvals, partial_output, model_change];
    let words = CAPABILITIES.iter().zip(can).filter(|(_, can)| *can);
    words.map(|(word, _)| (*word).to_owned()).collect()
}
